"""Tell exactly whether regions, points and lines lie within a distance of each other, for values or columns."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contrada import kernels
from contrada.arguments import checks_arguments
from contrada.codes import BEYOND_REACH, WITHIN_MASK
from contrada.errors import ArgumentError
from contrada.geometry.arrays import frozen
from contrada.geometry.circle import Circle, CircleArray, are_circles_near
from contrada.geometry.crs import common_crs
from contrada.geometry.line import Line
from contrada.geometry.line_column import LineArray
from contrada.geometry.line_relating import AnyValue, AnyValues, ShapeColumn
from contrada.geometry.metres import NO_LINES, are_within_metres, checked_unit
from contrada.geometry.point import Point
from contrada.geometry.pool import run_sliced
from contrada.geometry.reading import shape_of
from contrada.geometry.region import Region
from contrada.geometry.relate import ALL_ROWS, shape_arrays

Outcomes = NDArray[np.uint8]

NO_RADII = frozen(np.empty(0))
ASKS_WITHIN = frozen(np.array([WITHIN_MASK], np.uint8))


@checks_arguments
def within_distance(
    a: Any, b: Any, distance: ArrayLike, unit: Literal["m"] | None = None, *, threads: int | None = None
) -> Any:
    """Return whether `a` and `b` have points that are at most `distance` apart: True or False, exact.

    Shapes that meet are at distance 0. Regions, points, lines, circles and columns are taken as `relate` and `de9im`
    take them, and broadcast with an array of distances as NumPy arrays do. Distances are in the units of the
    coordinates, in the plane; with the unit "m" they are metres on the ellipsoid WGS 84, right to a millimetre, and
    coordinates are longitude and latitude; lines have no distance in metres. A negative, infinite or NaN distance is
    an ArgumentError.

    >>> within_distance(Point(0, 0), Point(3, 4), 5), within_distance(Point(0, 0), Point(3, 4), 4.999999999999999)
    (True, False)
    >>> within_distance(Region.box(0, 0, 1, 1), Region.box(2, 0, 3, 1), [0.5, 1.0]).tolist()
    [False, True]
    >>> within_distance(Line([(0, 0), (8, 0)]), Point(3, 2), 2)
    True
    >>> within_distance(Point(179.999, 0), Point(-179.999, 0), [222, 223], "m").tolist()
    [False, True]
    """
    metric = checked_unit(unit)
    a, b = (one if isinstance(one, Circle) else shape_of(one) for one in (a, b))
    distances = checked_distances(distance)
    is_single = all(isinstance(value, (Region, Point, Line, Circle)) for value in (a, b)) and np.ndim(distance) == 0
    if metric is not None and any(isinstance(value, Circle) for value in (a, b)):
        raise ArgumentError("distances in metres take no circles: these have radii in the units of the coordinates")
    if metric is not None and any(isinstance(value, (Line, LineArray)) for value in (a, b)):
        raise ArgumentError(NO_LINES)
    if isinstance(a, Circle) and isinstance(b, Circle):
        are_near = np.array([are_circles_near(a, b, each) for each in distances.tolist()])
        return bool(are_near[0]) if is_single else are_near
    first, second = (value._column if isinstance(value, (Region, Point, Line, Circle)) else value for value in (a, b))
    common_crs(first.crs, second.crs)
    if isinstance(second, CircleArray):  # kernels take circles first, and distances are symmetric
        first, second = second, first
    assert not isinstance(second, CircleArray)
    sizes = {len(first), len(second), len(distances)} - {1}
    if len(sizes) > 1:
        shown = f"{len(first)}, {len(second)} and {len(distances)}"
        raise ArgumentError(f"columns and distances have {shown} rows; the numbers must be equal, or 1")
    rows = sizes.pop() if sizes else 1
    if metric is None:
        are_near = _are_within(first, second, distances, rows, threads)
    else:
        assert not isinstance(first, CircleArray | LineArray)
        assert not isinstance(second, LineArray)
        are_near = are_within_metres(first, second, distances, rows, threads)
    return bool(are_near[0]) if is_single else are_near


def _are_within(
    first: AnyValues, second: ShapeColumn, distances: NDArray[np.float64], rows: int, threads: int | None
) -> NDArray[np.bool_]:
    out = np.empty(rows, np.uint8)
    if rows:
        others = shape_arrays(second)
        run_sliced(
            lambda start, stop: kernels.near_rows(
                *message_arrays(first), *others, distances, ASKS_WITHIN, ALL_ROWS, ALL_ROWS, start, stop, out
            ),
            rows,
            threads,
        )
    return np.asarray(out != BEYOND_REACH)


def rough_distance(a: AnyValue, b: Region | Point | Line) -> float:
    """Return the distance of two shapes in floating point, to show it; 0.0 if they meet.

    >>> rough_distance(Region.box(0, 0, 1, 1), Point(4, 5))
    5.0
    """
    import shapely

    if isinstance(a, Circle):
        return max(0.0, rough_distance(a.center, b) - a.radius)
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


def message_arrays(column: AnyValues) -> tuple[NDArray[Any], ...]:
    """Return the arrays of messages as the kernels for distances take them, with radii: a circle is a grown point."""
    if isinstance(column, CircleArray):
        return *shape_arrays(column.centers), column.radii
    return *shape_arrays(column), NO_RADII


def near_outcomes(
    a: AnyValues, b: ShapeColumn, a_rows: NDArray[np.int64], b_rows: NDArray[np.int64], distances: NDArray[np.float64],
    masks: NDArray[np.uint8], radii: NDArray[np.float64] = NO_RADII,
) -> Outcomes:  # fmt: skip
    """Return the outcome for each pair of rows, exact enough to decide its mask: enclosed, reached or beyond.

    If `a_rows` is empty, `a` has one row, which is used for all pairs. `radii` grow the shapes of `a`, by row; circles
    have their own.
    """
    out = np.empty(len(b_rows), np.uint8)
    if len(out):
        *shapes, own = message_arrays(a)
        kernels.near_rows(
            *shapes, radii if len(radii) else own, *shape_arrays(b), frozen(distances), frozen(masks),
            frozen(a_rows), frozen(b_rows), 0, len(out), out,
        )  # fmt: skip
    return out
