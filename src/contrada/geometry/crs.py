"""Coordinate reference systems: they ride along with regions and are compared, never guessed."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from contrada.errors import CrsError

if TYPE_CHECKING:
    from pyproj import CRS


@lru_cache(maxsize=256)
def is_same_crs(a: str, b: str) -> bool:
    """True if two CRS texts (authority codes, WKT, PROJJSON) name one system; the order of axes does not count.

    >>> is_same_crs("EPSG:4326", "OGC:CRS84")
    True
    """
    if a == b:
        return True
    return _parse(a).equals(_parse(b), ignore_axis_order=True)


def _parse(text: str) -> CRS:
    from pyproj import CRS
    from pyproj.exceptions import CRSError as ProjError

    try:
        return CRS.from_user_input(text)
    except ProjError as error:
        raise CrsError(f"unknown coordinate reference system {text!r}: {error}") from error


@lru_cache(maxsize=256)
def is_geographic(crs: str) -> bool:
    """True for longitude and latitude.

    >>> is_geographic("EPSG:4326"), is_geographic("EPSG:3857")
    (True, False)
    """
    return _parse(crs).is_geographic


def common_crs(a: str | None, b: str | None) -> str | None:
    """The CRS of two values that meet; one that is unknown fits any. Raises CrsError naming both if they differ.

    >>> common_crs("EPSG:4326", None)
    'EPSG:4326'
    """
    if a is None or b is None:
        return a if b is None else b
    if not is_same_crs(a, b):
        raise CrsError(f"coordinate reference systems differ: {a} and {b}")
    return a


def crs_of_srids(srids: NDArray[np.int64]) -> str | None:
    """The CRS that the rows of a column name by SRID (-1 or 0: none); two different ones are a CrsError.

    >>> crs_of_srids(np.array([-1, 4326]))
    'EPSG:4326'
    """
    named = srids[srids > 0]
    if named.size == 0:
        return None
    other = named[named != named[0]]
    if other.size:
        row = int(np.flatnonzero(srids == other[0])[0])
        raise CrsError(f"row {row} has SRID {other[0]}, rows before it {named[0]}: one column has one CRS")
    return f"EPSG:{named[0]}"
