"""Compute the exact relation between regions and points, for single values or columns."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import OF_LINES
from contrada.errors import ArgumentError
from contrada.geometry.arrays import frozen
from contrada.geometry.circle import Circle, CircleArray, SpatialValues, relate_two_circles
from contrada.geometry.column import KernelArrays, RegionArray
from contrada.geometry.crs import common_crs
from contrada.geometry.line_column import LineArray
from contrada.geometry.point import Point, PointArray
from contrada.geometry.pool import run_sliced
from contrada.geometry.reading import Many, One, geometry_of
from contrada.geometry.region import Region
from contrada.geometry.relation import Relation

Codes = NDArray[np.uint8]
ShapeArrays = tuple[NDArray[Any], ...]  # coordinates, rings, regions, bounds, edge index and where it begins

ALL_ROWS, NO_MASKS = frozen(np.empty(0, np.int64)), frozen(np.empty(0, np.uint8))
_NO_RINGS = (
    frozen(np.zeros(1, np.int64)), frozen(np.empty(0, np.int32)), frozen(np.empty((0, 4))), np.empty((0, 4)),
    frozen(np.empty(0, np.int64)),
)  # fmt: skip
ONE_MASK = [frozen(np.array([mask], np.uint8)) for mask in range(256)]
INVERSE_CODES: Codes = np.array([relation.inverse for relation in Relation], np.uint8)

# Table 2 of [SPATIAL], corrected: for each relation of two regions, the mask of the relations their boxes can have.
# `covers` also needs `contains`, `covered-by` also needs `inside`; with several parts `disjoint` also needs `equals`.
BOX_RELATIONS: Codes = np.array(
    [
        0b11111111,  # disjoint: any; `equals` only with several parts
        0b11111110,  # meets: all but disjoint
        0b11111100,  # overlaps: all but disjoint and meets
        0b00001000,  # equals: equals
        0b00010000,  # inside: inside
        0b00100000,  # contains: contains
        0b01101000,  # covers: covers, equals, contains
        0b10011000,  # covered-by: covered-by, equals, inside
    ],
    np.uint8,
)

# For each mask of relations of two regions, the mask of the relations their boxes can have.
_IS_MEMBER = np.arange(256)[:, None] >> np.arange(8) & 1 == 1
BOX_MASKS: Codes = np.bitwise_or.reduce(np.where(_IS_MEMBER, BOX_RELATIONS, 0), axis=1)


@overload
def relate(a: One | Circle, b: One | Circle, *, threads: int | None = None) -> Relation: ...
@overload
def relate(a: Many, b: One | Circle | Many, *, threads: int | None = None) -> Codes: ...
@overload
def relate(a: One | Circle, b: Many, *, threads: int | None = None) -> Codes: ...
@overload
def relate(a: Any, b: Any, *, threads: int | None = None) -> Any: ...
def relate(a: Any, b: Any, *, threads: int | None = None) -> Any:
    """Return the exact relation of `a` to `b`: exactly one of the eight holds.

    Two single values give a Relation; columns broadcast like NumPy arrays and give an array of relation codes. A point
    is inside, meets or is disjoint from a region; two points are equal or disjoint. A Circle is related as the region
    that it is, or as a point if its radius is 0. Columns run on all cores unless
    `threads` says otherwise. Two regions with n vertices together take O(n log n) time, whatever their shape. Geometry
    of Shapely, GeoPandas and GeoArrow, and objects with `__geo_interface__`, are accepted too.

    >>> relate(Region.box(0, 0, 4, 4), Region.box(2, 2, 6, 6))
    <Relation.OVERLAPS: 2>
    >>> relate(Point(4, 2), Region.box(0, 0, 4, 4))
    <Relation.MEETS: 1>
    """
    if isinstance(a, Circle) and isinstance(b, Circle):
        return relate_two_circles(a, b)
    first, second = (one if isinstance(one, Circle) else geometry_of(one) for one in (a, b))
    a, b = _column(first), _column(second)
    common_crs(a.crs, b.crs)
    if isinstance(b, CircleArray):
        assert not isinstance(a, CircleArray)
        codes = INVERSE_CODES[_relate_columns(b, a, threads)]
    else:
        codes = _relate_columns(a, b, threads)
    single = isinstance(first, (Region, Point, Circle)) and isinstance(second, (Region, Point, Circle))
    return Relation(int(codes[0])) if single else codes


def relate_arrays(a: KernelArrays, b: KernelArrays, mask: int) -> int:
    """Return a code of two regions of one CRS, given their kernel arrays; it is only certain to be in `mask` or not.

    This takes a fifth of the time of `relate` for two small regions.
    """
    out = np.empty(1, np.uint8)
    kernels.relate_rows(*a, *b, ALL_ROWS, ALL_ROWS, ONE_MASK[mask], 0, 1, out)
    return out.item()


def _column(value: One | Circle | Many) -> SpatialValues:
    return value._column if isinstance(value, (Region, Point, Circle)) else value


def broadcast_length(a: Sized, b: Sized) -> int:
    """Return the length of the result; a column of one row is used for every row."""
    if len(a) != len(b) and len(a) != 1 and len(b) != 1:
        raise ArgumentError(f"columns have {len(a)} and {len(b)} rows; the lengths must be equal, or one of them 1")
    return len(b) if len(a) == 1 else len(a)


def _relate_columns(a: SpatialValues, b: Many, threads: int | None) -> Codes:
    rows = broadcast_length(a, b)
    out = np.empty(rows, np.uint8)
    if rows == 0:
        return out
    if isinstance(a, CircleArray):
        arrays: tuple[Any, ...] = (*circle_arrays(a), *shape_arrays(b), ALL_ROWS, ALL_ROWS)
        run_sliced(lambda start, stop: kernels.relate_circles(*arrays, start, stop, out), rows, threads)
    elif isinstance(a, PointArray) and isinstance(b, PointArray):
        np.multiply((a.xy == b.xy).all(axis=1), np.uint8(Relation.EQUALS), out=out)
    elif isinstance(a, PointArray):
        assert isinstance(b, RegionArray)
        _relate_points(a, b, out, threads)
    elif isinstance(b, PointArray):
        _relate_points(b, a, out, threads)
        out = INVERSE_CODES[out]
    elif len(b) == 1 and len(a) > 1:
        _relate_regions(b, a, out, threads)  # the kernel prepares its first region if that is used for all rows
        out = INVERSE_CODES[out]
    else:
        _relate_regions(a, b, out, threads)
    return out


def _relate_regions(a: RegionArray, b: RegionArray, out: Codes, threads: int | None) -> None:
    arrays: tuple[Any, ...] = (*a._kernel_arrays(), *b._kernel_arrays(), ALL_ROWS, ALL_ROWS, NO_MASKS)
    run_sliced(lambda start, stop: kernels.relate_rows(*arrays, start, stop, out), len(out), threads)


def _relate_points(points: PointArray, regions: RegionArray, out: Codes, threads: int | None) -> None:
    arrays: tuple[Any, ...] = (points.xy, *_without_flags(regions), ALL_ROWS, ALL_ROWS)
    run_sliced(lambda start, stop: kernels.relate_points(*arrays, start, stop, out), len(out), threads)


def _without_flags(regions: RegionArray) -> tuple[Any, ...]:
    xy, rings, offsets, _, *others = regions._kernel_arrays()
    return xy, rings, offsets, *others


def shape_arrays(column: Many | LineArray) -> ShapeArrays:
    """Return the arrays of a column as the kernels for distances take them; points have no rings, lines no area."""
    if isinstance(column, RegionArray):
        xy, rings, regions, _, bounds, boxes, chains = column._kernel_arrays()
        return xy, rings, regions, bounds, boxes, chains
    if isinstance(column, LineArray):
        a = column._arrays
        boxes, chains = column._edge_index()
        return a.xy, a.ring_offsets, a.region_offsets, a.bounds, boxes, frozen(OF_LINES - chains)
    return (column.xy, *_NO_RINGS)


def circle_arrays(column: CircleArray) -> ShapeArrays:
    """Return the arrays of circles as kernels take them: centres and radii."""
    return column.centers.xy, column.radii


def relate_rows(
    a: SpatialValues, b: Many, a_rows: NDArray[np.int64], b_rows: NDArray[np.int64], masks: Codes = NO_MASKS
) -> Codes:
    """Return the relation codes of the values of `a` in `a_rows` to those of `b` in `b_rows`, pair by pair.

    Values are not copied, and no CRS is checked. If `a_rows` is empty, `a` has one row, which is used for all pairs;
    pairs with the same row of `a` should be adjacent. With masks, a code is only certain to be in its mask or not.
    """
    out = np.empty(len(b_rows), np.uint8)
    if not len(out):
        return out  # and `a` may have no row at all
    first, second = frozen(a_rows), frozen(b_rows)
    if isinstance(a, CircleArray):
        kernels.relate_circles(*circle_arrays(a), *shape_arrays(b), first, second, 0, len(out), out)
    elif isinstance(a, RegionArray) and isinstance(b, RegionArray):
        arrays: tuple[Any, ...] = (*a._kernel_arrays(), *b._kernel_arrays(), first, second, frozen(masks))
        kernels.relate_rows(*arrays, 0, len(out), out)
    elif isinstance(a, PointArray) and isinstance(b, PointArray):
        equal = (a.xy[first if len(first) else [0]] == b.xy[second]).all(axis=1)
        np.multiply(equal, np.uint8(Relation.EQUALS), out=out)
    elif isinstance(a, PointArray):
        assert isinstance(b, RegionArray)
        kernels.relate_points(a.xy, *_without_flags(b), first, second, 0, len(out), out)
    else:
        assert isinstance(b, PointArray)
        kernels.relate_points(b.xy, *_without_flags(a), second, first, 0, len(out), out)
        out = INVERSE_CODES[out]
    return out


def relate_boxes(a: NDArray[np.float64], b: NDArray[np.float64]) -> Codes:
    """Return relation codes of boxes (n, 4) of positive area; a single box is used for every row.

    >>> relate_boxes(np.array([[0.0, 0, 4, 4]]), np.array([[1.0, 1, 2, 2], [0, 0, 4, 4]])).tolist()
    [5, 3]
    """
    first, second = (frozen(np.ascontiguousarray(boxes, np.float64).reshape(-1, 4)) for boxes in (a, b))
    out = np.empty(broadcast_length(first, second), np.uint8)
    kernels.box_relations(first, second, out)
    return out
