"""Modules and kernels that every worker has from its start: workers are forked from the process that imported this."""

import contextlib
import os

import lark
import msgspec
import numba
import pandas
import pyarrow
import pyarrow.csv
import pyarrow.fs
import pyarrow.ipc
import pyarrow.parquet
import pyproj
import shapely

import contrada
import contrada.cli.main
import contrada.overlay.peer
import contrada.overlay.wire
import contrada.pipeline.artifact_cache
import contrada.pipeline.artifacts
import contrada.pipeline.stream.changes
from contrada import kernels

__all__ = ["contrada", "lark", "msgspec", "numba", "pandas", "pyarrow", "pyproj", "shapely"]

with contextlib.suppress(ImportError):  # ingest reads through it where it is installed
    import pyogrio  # noqa: F401

if os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0"):
    for name in kernels._MODULES:
        getattr(kernels, name)
