"""A column of regions as a directory of plain NumPy files, memory-mapped when opened."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from pathlib import Path

import numpy as np

from contrada.errors import ContradaError, RegionError
from contrada.geometry.arrays import Arrays, compact
from contrada.geometry.crs import Crs

FORMAT = "contrada.RegionArray"
VERSION = 1
_DTYPES = (np.float64, np.int64, np.int32, np.uint8, np.float64)
_PARSING = threading.Lock()  # NumPy parses how a file begins as Python, which CPython 3.11 could not do twice at once


def save_column(arrays: Arrays, crs: Crs | None, directory: str | os.PathLike[str]) -> None:
    """Write the arrays to a new directory, which appears whole or not at all."""
    target = Path(directory)
    if target.exists():
        raise RegionError(f"{target} exists already")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=target.name) as temporary:
        made = Path(temporary) / "column"
        made.mkdir()
        for name, array in compact(arrays)._asdict().items():
            np.save(made / f"{name}.npy", array)
        header = {"format": FORMAT, "version": VERSION, "regions": len(arrays.bounds), "crs": crs}
        (made / "header.json").write_text(json.dumps(header))
        made.rename(target)


def open_column(directory: str | os.PathLike[str]) -> tuple[Arrays, Crs | None]:
    """The arrays, mapped and not read, and the CRS; a foreign or damaged directory is a RegionError."""
    source = Path(directory)
    try:
        header = json.loads((source / "header.json").read_text())
        if header["format"] != FORMAT or header["version"] != VERSION:
            raise RegionError(f"{source} holds {header['format']} {header['version']}, not {FORMAT} {VERSION}")
        with _PARSING:
            arrays = Arrays(*(np.asarray(np.load(source / f"{name}.npy", mmap_mode="r")) for name in Arrays._fields))
        _check_shapes(arrays, int(header["regions"]), source)
        return arrays, Crs.of(header["crs"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, ContradaError):
            raise
        raise RegionError(f"{source} is not a saved column of regions: {error}") from error


def _check_shapes(arrays: Arrays, regions: int, source: Path) -> None:
    """The sizes fit each other, so that no kernel reads beyond an array."""
    rings, vertices = len(arrays.ring_flags), len(arrays.xy)
    fits = (
        tuple(array.dtype.type for array in (arrays[0], *arrays[1:])) == _DTYPES
        and arrays.xy.shape == (vertices, 2)
        and arrays.bounds.shape == (regions, 4)
        and arrays.ring_offsets.shape == (rings + 1,)
        and arrays.region_offsets.shape == (regions + 1,)
        and (arrays.ring_offsets[0], arrays.ring_offsets[-1]) == (0, vertices)
        and (arrays.region_offsets[0], arrays.region_offsets[-1]) == (0, rings)
        and bool((np.diff(arrays.ring_offsets) >= 4).all() and (np.diff(arrays.region_offsets) >= 1).all())
    )
    if not fits:
        raise RegionError(f"{source} is damaged: its arrays do not fit each other")
