"""Reasons why a row is not a valid region: kernel codes as sentences, rejections as data."""

from __future__ import annotations

from enum import StrEnum
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


class FaultCode(StrEnum):
    """Kind of fault of a row, for code to decide by; the sentences may change."""

    NULL = "null"
    EMPTY = "empty"
    POINT = "point"  # a point where a region is needed
    WRONG_TYPE = "wrong-type"
    CURVED = "curved"
    MALFORMED = "malformed"
    BAD_COORDINATE = "bad-coordinate"
    TOO_FEW_VERTICES = "too-few-vertices"
    ZERO_AREA = "zero-area"
    SELF_INTERSECTION = "self-intersection"
    HOLE_OUTSIDE = "hole-outside"
    HOLE_CROSSES_SHELL = "hole-crosses-shell"
    HOLES_OVERLAP = "holes-overlap"
    NOT_CONNECTED = "not-connected"
    PARTS_OVERLAP = "parts-overlap"
    PARTS_SHARE_EDGE = "parts-share-edge"
    TOO_DEEP = "too-deep"
    OTHER_CRS = "other-crs"  # names another system than the column's
    UNKNOWN_CRS = "unknown-crs"
    OFF_THE_GLOBE = "off-the-globe"
    VALUE = "value"  # an attribute of a message that cannot be matched


CRS_FAULTS = (FaultCode.OTHER_CRS, FaultCode.UNKNOWN_CRS)
# By the codes of kernels/read/faults.py, like the sentences.
_CODES = (
    FaultCode.VALUE, FaultCode.NULL, FaultCode.EMPTY, FaultCode.WRONG_TYPE, FaultCode.MALFORMED,
    FaultCode.BAD_COORDINATE, FaultCode.BAD_COORDINATE, FaultCode.TOO_FEW_VERTICES, FaultCode.ZERO_AREA,
    FaultCode.SELF_INTERSECTION, FaultCode.HOLE_OUTSIDE, FaultCode.HOLE_CROSSES_SHELL, FaultCode.HOLES_OVERLAP,
    FaultCode.NOT_CONNECTED, FaultCode.PARTS_OVERLAP, FaultCode.PARTS_SHARE_EDGE, FaultCode.TOO_DEEP,
)  # fmt: skip
_PLACED = frozenset(range(5, 16))
_MENDABLE = frozenset(range(9, 16))  # faults that make_valid can repair


class Rejection(NamedTuple):
    """Rejected row: its number in the input, the reason in words and as a code, and the place in the geometry.

    >>> from contrada import read_regions
    >>> (bad,) = read_regions(["POLYGON((0 0, 1 0, 0 1, 0 0))", "POINT(1 2)"]).rejected
    >>> bad.row, bad.fault.value, bad.reason
    (1, 'point', 'wrong geometry type Point; a region is a Polygon or MultiPolygon')
    """

    row: int
    reason: str
    fault: FaultCode
    part: int | None = None
    ring: int | None = None
    place: tuple[float, float] | None = None

    def error(self) -> RegionError | CrsError:
        """Return the rejection as an error that names the row."""
        if self.fault in CRS_FAULTS:
            return CrsError(f"row {self.row}: {self.reason}")
        return RegionError(
            f"row {self.row}: {self.reason}", row=self.row, part=self.part, ring=self.ring, place=self.place
        )


def is_mendable(fault: int) -> bool:
    """Return True if `fault` can possibly be repaired."""
    return fault in _MENDABLE


def rejection(row: int, report: ArrayLike, spot: ArrayLike, kind: int) -> Rejection:
    """Return the rejection of a row from the kernels' report: (fault, part, ring), a place, the geometry type.

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
        return Rejection(row, "curves, surfaces and triangles are not read", FaultCode.CURVED)
    if fault == 3:
        reason += f" {_KINDS.get(kind, f'code {kind}')}; a region is a Polygon or MultiPolygon"
    code = FaultCode.POINT if fault == 3 and kind == 1 else _CODES[fault]
    if fault not in _PLACED:
        return Rejection(row, reason, code)
    where = [f"part {part}"] if part else []
    where += [f"hole {ring}"] if ring else []
    prefix = ", ".join(where) + ": " if where else ""
    return Rejection(row, f"{prefix}{reason} near ({x!r}, {y!r})", code, part, ring, (x, y))
