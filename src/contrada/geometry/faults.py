"""Why a row is no region: codes from the kernels as sentences, rejections as data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from contrada.errors import CrsError, RegionError
from contrada.limits import limit, variable

_KINDS = {
    1: "Point",
    2: "LineString",
    3: "Polygon",
    4: "MultiPoint",
    5: "MultiLineString",
    6: "MultiPolygon",
    7: "GeometryCollection",
    8: "CircularString",
    9: "CompoundCurve",
    10: "CurvePolygon",
    11: "MultiCurve",
    12: "MultiSurface",
    13: "Curve",
    14: "Surface",
    15: "PolyhedralSurface",
    16: "TIN",
    17: "Triangle",
}

# By the codes of kernels/read/faults.py.
_SENTENCES = (
    "valid",
    "no geometry (null)",
    "empty geometry",
    "wrong geometry type",
    "malformed or truncated geometry",
    "coordinate is not finite",
    "coordinate outside 1e-120..1e120 in magnitude",
    "fewer than three distinct vertices",
    "zero area",
    "self-intersection",
    "outside its shell",
    "crosses or shares an edge with its shell",
    "overlaps or shares an edge with another hole",
    "interior is not connected",
    "overlaps another part",
    "shares an edge with another part",
    "nested too deeply",
)
_OF_CRS = ("coordinate reference systems differ", "SRID ", "unknown coordinate reference system")  # how reasons begin
_PLACED = frozenset(range(5, 16))
_MENDABLE = frozenset(range(9, 16))  # the faults that make_valid can mend


class Rejection(NamedTuple):
    """A row that is no region: the row of the input, the reason, and where."""

    row: int
    reason: str
    part: int | None
    ring: int | None
    place: tuple[float, float] | None

    @property
    def is_of_crs(self) -> bool:
        """True if the row is in another coordinate reference system than its column, or in none that exists."""
        return self.reason.startswith(_OF_CRS)

    def error(self) -> RegionError | CrsError:
        """The same as an error that names the row."""
        if self.is_of_crs:
            return CrsError(f"row {self.row}: {self.reason}")
        return RegionError(
            f"row {self.row}: {self.reason}", row=self.row, part=self.part, ring=self.ring, place=self.place
        )


def is_mendable(fault: int) -> bool:
    """True if repair has a chance."""
    return fault in _MENDABLE


def rejection(row: int, report: ArrayLike, spot: ArrayLike, kind: int) -> Rejection:
    """The rejection of a row from what the kernels report of it: (fault, part, ring), a place, the geometry type.

    >>> rejection(3, [9, 0, 0], [3.0, 4.0], 3).reason
    'self-intersection near (3.0, 4.0)'
    >>> rejection(0, [3, 0, 0], [0.0, 0.0], 2).reason
    'wrong geometry type LineString; a region is a Polygon or MultiPolygon'
    >>> rejection(0, [10, 2, 1], [5.0, 5.0], 6).reason
    'part 2, hole 1: outside its shell near (5.0, 5.0)'
    """
    fault, part, ring = np.asarray(report).tolist()
    x, y = np.asarray(spot).tolist()
    reason = _SENTENCES[fault]
    if fault == 16:
        reason += f" (more than {limit('nesting')} levels; {variable('nesting')})"
    if fault == 3 and kind < 0:
        return Rejection(row, "curves, surfaces and triangles are not read", None, None, None)
    if fault == 3:
        reason += f" {_KINDS.get(kind, f'code {kind}')}; a region is a Polygon or MultiPolygon"
    if fault not in _PLACED:
        return Rejection(row, reason, None, None, None)
    where = [f"part {part}"] if part else []
    where += [f"hole {ring}"] if ring else []
    prefix = ", ".join(where) + ": " if where else ""
    return Rejection(row, f"{prefix}{reason} near ({x!r}, {y!r})", part, ring, (x, y))
