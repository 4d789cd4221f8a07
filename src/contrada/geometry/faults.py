"""Reasons why a row is not a valid region: kernel codes as sentences, rejections as data."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from contrada.codes import NESTED, NOT_FINITE, SELF_INTERSECTION, WRONG_TYPE
from contrada.errors import CrsError, RegionError
from contrada.limits import limit, variable

# By the types of WKB, from 1 on.
CIRCLE_CODE = 99  # of circles, in place of a geometry type of WKB, which has none for them
_KINDS = (
    "Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection",
    "CircularString", "CompoundCurve", "CurvePolygon", "MultiCurve", "MultiSurface", "Curve", "Surface",
    "PolyhedralSurface", "TIN", "Triangle",
)  # fmt: skip


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
# By the codes of faults (codes.py).
_FAULTS = (
    ("valid", FaultCode.VALUE),
    ("no geometry (null)", FaultCode.NULL),
    ("empty geometry", FaultCode.EMPTY),
    ("wrong geometry type", FaultCode.WRONG_TYPE),
    ("malformed or truncated geometry", FaultCode.MALFORMED),
    ("coordinate is not finite", FaultCode.BAD_COORDINATE),
    ("coordinate outside 1e-120..1e120 in magnitude", FaultCode.BAD_COORDINATE),
    ("fewer than three distinct vertices", FaultCode.TOO_FEW_VERTICES),
    ("zero area", FaultCode.ZERO_AREA),
    ("self-intersection", FaultCode.SELF_INTERSECTION),
    ("outside its shell", FaultCode.HOLE_OUTSIDE),
    ("crosses or shares an edge with its shell", FaultCode.HOLE_CROSSES_SHELL),
    ("overlaps or shares an edge with another hole", FaultCode.HOLES_OVERLAP),
    ("interior is not connected", FaultCode.NOT_CONNECTED),
    ("overlaps another part", FaultCode.PARTS_OVERLAP),
    ("shares an edge with another part", FaultCode.PARTS_SHARE_EDGE),
    ("nested too deeply", FaultCode.TOO_DEEP),
)
_PLACED = range(NOT_FINITE, NESTED)
MENDABLE = range(SELF_INTERSECTION, NESTED)  # faults that make_valid may repair


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
        return error_of(self, self.row)


def error_of(bad: Rejection, row: int | None = None) -> RegionError | CrsError:
    """Return a rejection as an error; it names the row unless `row` is None, as for a value that is in no column."""
    text = bad.reason if row is None else f"row {row}: {bad.reason}"
    if bad.fault in CRS_FAULTS:
        return CrsError(text)
    return RegionError(text, row=row, part=bad.part, ring=bad.ring, place=bad.place)


def first_error(rejected: Sequence[Rejection]) -> RegionError | CrsError:
    """Return the first rejection as an error that also counts the others."""
    error = rejected[0].error()
    if len(rejected) > 1:
        error.args = (f"{error.args[0]} (and {len(rejected) - 1} more bad rows)",)
    return error


def rejection(row: int, report: ArrayLike, spot: ArrayLike = (0.0, 0.0), kind: int = -1) -> Rejection:
    """Return the rejection of a row from the kernels' report: (fault, part, ring), a place, the geometry type.

    >>> rejection(3, [9, 0, 0], [3.0, 4.0], 3).reason
    'self-intersection near (3.0, 4.0)'
    >>> rejection(0, [3, 0, 0], [0.0, 0.0], 2).reason
    'wrong geometry type LineString; a region is a Polygon or MultiPolygon'
    >>> rejection(0, [NESTED, 0, 0]).reason
    'nested too deeply (more than 64 levels; CONTRADA_MAX_NESTING)'
    >>> rejection(0, [10, 2, 1], [5.0, 5.0], 6).reason
    'part 2, hole 1: outside its shell near (5.0, 5.0)'
    """
    fault, part, ring = np.asarray(report).tolist()
    x, y = np.asarray(spot).tolist()
    reason, code = _FAULTS[fault]
    if fault == NESTED:
        reason += f" (more than {limit('nesting')} levels; {variable('nesting')})"
    if fault == WRONG_TYPE and kind < 0:
        return Rejection(row, "curves, surfaces and triangles are not supported", FaultCode.CURVED)
    if fault == WRONG_TYPE:
        name = _KINDS[kind - 1] if 1 <= kind <= len(_KINDS) else "Circle" if kind == CIRCLE_CODE else f"code {kind}"
        reason += f" {name}; a region is a Polygon or MultiPolygon"
        code = FaultCode.POINT if kind == 1 else code
    if fault not in _PLACED:
        return Rejection(row, reason, code)
    where = [f"part {part}"] if part else []
    where += [f"hole {ring}"] if ring else []
    prefix = ", ".join(where) + ": " if where else ""
    return Rejection(row, f"{prefix}{reason} near ({x!r}, {y!r})", code, part, ring, (x, y))
