"""Tell exactly whether regions and points lie within a distance of each other, for single values or columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contrada import kernels
from contrada.arguments import checks_arguments
from contrada.codes import BEYOND_REACH, WITHIN_MASK
from contrada.errors import ArgumentError
from contrada.geometry.arrays import frozen
from contrada.geometry.column import RegionArray
from contrada.geometry.crs import common_crs
from contrada.geometry.point import Point
from contrada.geometry.pool import run_sliced
from contrada.geometry.reading import Many, geometry_of
from contrada.geometry.region import Region
from contrada.geometry.relate import ALL_ROWS

Outcomes = NDArray[np.uint8]
ShapeArrays = tuple[NDArray[Any], ...]  # coordinates, rings, regions, bounds, edge index and where it begins

NO_RADII = frozen(np.empty(0))
ASKS_WITHIN = frozen(np.array([WITHIN_MASK], np.uint8))
_NO_RINGS = (
    frozen(np.zeros(1, np.int64)), frozen(np.empty(0, np.int32)), frozen(np.empty((0, 4))), np.empty((0, 4)),
    frozen(np.empty(0, np.int64)),
)  # fmt: skip


@checks_arguments
def within_distance(a: Any, b: Any, distance: ArrayLike, *, threads: int | None = None) -> Any:
    """Return whether `a` and `b` have points that are at most `distance` apart: True or False, exact.

    Regions that meet are at distance 0. Regions, points and their columns are taken as `relate` takes them, and
    broadcast with an array of distances as NumPy arrays do. Distances are in the units of the coordinates, in the
    plane. A negative, infinite or NaN distance is an ArgumentError.

    >>> within_distance(Point(0, 0), Point(3, 4), 5), within_distance(Point(0, 0), Point(3, 4), 4.999999999999999)
    (True, False)
    >>> within_distance(Region.box(0, 0, 1, 1), Region.box(2, 0, 3, 1), [0.5, 1.0]).tolist()
    [False, True]
    """
    a, b = geometry_of(a), geometry_of(b)
    distances = checked_distances(distance)
    is_single = all(isinstance(value, (Region, Point)) for value in (a, b)) and np.ndim(distance) == 0
    first, second = (value._column if isinstance(value, (Region, Point)) else value for value in (a, b))
    common_crs(first.crs, second.crs)
    sizes = {len(first), len(second), len(distances)} - {1}
    if len(sizes) > 1:
        shown = f"{len(first)}, {len(second)} and {len(distances)}"
        raise ArgumentError(f"columns and distances have {shown} rows; the numbers must be equal, or 1")
    out = np.empty(sizes.pop() if sizes else 1, np.uint8)
    if len(out):
        run_sliced(
            lambda start, stop: kernels.near_rows(
                *shape_arrays(first), NO_RADII, *shape_arrays(second), distances, ASKS_WITHIN, ALL_ROWS, ALL_ROWS,
                start, stop, out,
            ),
            len(out),
            threads,
        )  # fmt: skip
    are_near = out != BEYOND_REACH
    return bool(are_near[0]) if is_single else are_near


def rough_distance(a: Region | Point, b: Region | Point) -> float:
    """Return the distance of two shapes in floating point, to show it; 0.0 if they meet.

    >>> rough_distance(Region.box(0, 0, 1, 1), Point(4, 5))
    5.0
    """
    import shapely

    return float(shapely.distance(a.to_shapely(), b.to_shapely()))


def checked_distances(distance: ArrayLike) -> NDArray[np.float64]:
    """Return distances as a read-only array; raise ArgumentError unless all are finite numbers of at least 0."""
    try:
        given = np.atleast_1d(np.asarray(distance))
        if given.dtype.kind not in "iuf" or given.ndim != 1:
            raise TypeError
        made = given.astype(np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"distance: need a number or an array of numbers, got {distance!r:.60}") from None
    bad = np.flatnonzero(~((made >= 0) & (made < np.inf)))
    if len(bad):
        where = f" in row {bad[0]}" if np.ndim(distance) else ""
        raise ArgumentError(f"distance{where}: need a finite number of at least 0, got {made[bad[0]]}")
    return frozen(np.ascontiguousarray(made + 0.0))


def shape_arrays(column: Many) -> ShapeArrays:
    """Return the arrays of a column as the kernels for distances take them; points have no rings."""
    if isinstance(column, RegionArray):
        xy, rings, regions, _, bounds, boxes, chains = column._kernel_arrays()
        return xy, rings, regions, bounds, boxes, chains
    return (column.xy, *_NO_RINGS)


def near_outcomes(
    a: Many, b: Many, a_rows: NDArray[np.int64], b_rows: NDArray[np.int64], distances: NDArray[np.float64],
    masks: NDArray[np.uint8], radii: NDArray[np.float64] = NO_RADII,
) -> Outcomes:  # fmt: skip
    """Return the outcome for each pair of rows, exact enough to decide its mask: enclosed, reached or beyond.

    If `a_rows` is empty, `a` has one row, which is used for all pairs. `radii` grow the shapes of `a`, by row.
    """
    out = np.empty(len(b_rows), np.uint8)
    if len(out):
        kernels.near_rows(
            *shape_arrays(a), radii, *shape_arrays(b), frozen(distances), frozen(masks), frozen(a_rows), frozen(b_rows),
            0, len(out), out,
        )  # fmt: skip
    return out
