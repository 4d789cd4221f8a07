"""Subscriptions and messages as Spark DataFrames; every answer is the core's.

Nothing here imports PySpark before it is used, and `import contrada` does not import this package.
"""

from __future__ import annotations

import importlib.util
from importlib import import_module
from typing import TYPE_CHECKING, Any

from contrada.errors import ContradaError

if TYPE_CHECKING:
    from contrada.pipeline.report import write_report

__all__ = ["write_report"]

_HOMES = {"write_report": "report"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if importlib.util.find_spec("pyspark") is None:
        raise ContradaError("the pipeline needs PySpark: pip install 'contrada[spark]'")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
