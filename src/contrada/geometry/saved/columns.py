"""Save a column of regions as a directory of plain NumPy files that are memory-mapped when opened."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from contrada.errors import RegionError
from contrada.geometry.arrays import Arrays, compact
from contrada.geometry.crs import Crs
from contrada.geometry.saved.directories import Format, read_directory, save_directory
from contrada.geometry.saved.soundness import check_coordinates, check_regions, require

KIND = Format("contrada.RegionArray", 2, "saved column of regions", RegionError)
_DTYPES = (np.float64, np.int64, np.int32, np.uint8, np.float64)


def save_column(arrays: Arrays, crs: Crs | None, directory: str | os.PathLike[str], replace: bool = False) -> None:
    """Write the arrays to a new directory, which appears whole or not at all."""
    header = {"regions": len(arrays.bounds), "crs": crs}
    save_directory(KIND, directory, compact(arrays)._asdict(), header, replace)


def open_column(directory: str | os.PathLike[str], verify: bool = True) -> tuple[Arrays, Crs | None]:
    """Return the mapped arrays and the CRS; a foreign or damaged directory raises a RegionError."""
    source = Path(directory)
    header, found = read_directory(KIND, source, verify)
    try:
        arrays = Arrays(*(found[name] for name in Arrays._fields))
        for name, kind in zip(Arrays._fields, _DTYPES, strict=True):
            require(found[name].dtype == kind, f"{name} has type {found[name].dtype}")
        check_regions(arrays, int(header["regions"]))
        if not verify:
            check_coordinates("xy", arrays.xy)
            check_coordinates("bounds", arrays.bounds)
        return arrays, Crs.of(header["crs"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise RegionError(f"{source} is damaged: {error}") from error
