"""PyArrow, imported when one of its names is first used: a process that reads no columns does not wait for it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_SUBMODULES = ("compute", "parquet")  # `import pyarrow` does not import these


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # the import system and doctest ask for these
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = import_module(f"pyarrow.{name}") if name in _SUBMODULES else getattr(import_module("pyarrow"), name)
    globals()[name] = found
    return found
