"""Contrada on Spark: the same answers from DataFrames. Needs `pip install 'contrada[spark]'`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contrada.pipeline.dataset import Dataset, read_dataset
    from contrada.pipeline.ingesting import Ingested, ingest

_HOMES = {
    "Dataset": "dataset",
    "Ingested": "ingesting",
    "ingest": "ingesting",
    "read_dataset": "dataset",
}

__all__ = ["Dataset", "Ingested", "ingest", "read_dataset"]


def __getattr__(name: str) -> Any:
    """The public names, each from its module when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
