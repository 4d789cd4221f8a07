"""Distances in metres between shapes in longitude and latitude, on the ellipsoid WGS 84."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import BEYOND_REACH, REACHED
from contrada.errors import ArgumentError, CrsError
from contrada.geometry.arrays import frozen
from contrada.geometry.column import RegionArray
from contrada.geometry.crs import Crs, is_geographic
from contrada.geometry.point import Point
from contrada.geometry.pool import run_sliced
from contrada.geometry.reading import Many
from contrada.geometry.region import Region
from contrada.geometry.relate import ALL_ROWS, shape_arrays

Outcomes = NDArray[np.uint8]
METRES = "m"
EARTH = 6_378_137.0, 6_356_752.0  # metres: the semi-axes of WGS 84
SAME_EARTH = 1_000.0  # metres by which the semi-axes of ellipsoids of the Earth differ from these, at most
MOST_METRES = 20_004_000.0  # more than the distance of any two points
LARGEST_LONGITUDE, LARGEST_LATITUDE = 540.0, 90.0
NO_PLACE = "distances in metres need latitudes of -90..90 and longitudes of -540..540"
NO_LINES = "distances in metres take no lines: they are between regions and points"
RELATIVE = 2e-7  # of distances that are shown with six digits
_FIRST = frozen(np.zeros(1, np.int64))


def checked_unit(unit: Any) -> str | None:
    """Return the unit of a distance: "m", or None for the units of the coordinates; others are an ArgumentError.

    >>> checked_unit("km")
    Traceback (most recent call last):
    contrada.errors.ArgumentError: unit: need 'm' (metres), or none for the units of the coordinates; got 'km'
    """
    if unit is None or (isinstance(unit, str) and unit == METRES):
        return unit
    raise ArgumentError(f"unit: need 'm' (metres), or none for the units of the coordinates; got {unit!r:.60}")


@lru_cache(maxsize=256)
def check_degrees(crs: Crs | None) -> None:
    """Raise a CrsError if coordinates are known not to be degrees of longitude and latitude on the Earth.

    >>> check_degrees(Crs.of("EPSG:3857"))
    Traceback (most recent call last):
    contrada.errors.CrsError: distances in metres need longitude and latitude in degrees, not EPSG:3857
    """
    if crs is None or crs in ("EPSG:4326", "OGC:CRS84"):
        return
    if is_geographic(crs):
        from pyproj import CRS

        system = CRS.from_user_input(str(crs))
        units = {axis.unit_name for axis in system.axis_info[:2]}
        ellipsoid, meridian = system.ellipsoid, system.prime_meridian
        axes = (ellipsoid.semi_major_metre, ellipsoid.semi_minor_metre) if ellipsoid is not None else (0.0, 0.0)
        is_earth = all(abs(one - other) <= SAME_EARTH for one, other in zip(axes, EARTH, strict=True))
        if units <= {"degree", "degree (supplier to define representation)"} and is_earth and meridian is not None:
            return
    raise CrsError(f"distances in metres need longitude and latitude in degrees, not {crs.label}")


def bad_places(column: Many) -> NDArray[np.int64]:
    """Return the rows of a column with a latitude beyond 90 or a longitude beyond 540."""
    boxes = column.arrays.bounds if isinstance(column, RegionArray) else np.concatenate([column.xy, column.xy], axis=1)
    limits = np.array([LARGEST_LONGITUDE, LARGEST_LATITUDE] * 2)
    return np.flatnonzero((np.abs(boxes) > limits).any(axis=1))


def check_places(column: Many) -> None:
    """Raise an ArgumentError if a shape leaves the longitudes and latitudes that distances in metres take."""
    bad = bad_places(column)
    if len(bad):
        where = f" in row {bad[0]}" if len(column) > 1 else ""
        raise ArgumentError(f"{NO_PLACE};{where} got {column[int(bad[0])].to_wkt():.60}")


def are_within_metres(a: Many, b: Many, distances: NDArray[np.float64], rows: int, threads: int | None) -> Any:
    """Return for each row whether shapes of two columns are within a distance in metres; one row counts for all."""
    for column in (a, b):
        check_degrees(column.crs)
        check_places(column)
    out = np.empty(rows, np.uint8)
    if rows:
        run_sliced(
            lambda start, stop: kernels.metres_rows(
                *shape_arrays(a), *shape_arrays(b), distances, ALL_ROWS, ALL_ROWS, start, stop, out
            ),
            rows,
            threads,
        )
    return out != BEYOND_REACH


def metre_outcomes(
    a: Many, b: Many, a_rows: NDArray[np.int64], b_rows: NDArray[np.int64], distances: NDArray[np.float64]
) -> Outcomes:
    """Return the outcome for each pair of rows: reached, beyond, or elsewhere for shapes that are nowhere on Earth.

    If `a_rows` is empty, `a` has one row, which is used for all pairs.
    """
    out = np.empty(len(b_rows), np.uint8)
    if len(out):
        kernels.metres_rows(
            *shape_arrays(a), *shape_arrays(b), frozen(distances), frozen(a_rows), frozen(b_rows), 0, len(out), out
        )
    return out


def within_metres(a: Region | Point, b: Region | Point, metres: float) -> bool:
    """Return True if two shapes are at most some metres apart.

    >>> within_metres(Point(0, 90), Point(77, 90), 0)
    True
    """
    outcomes = metre_outcomes(a._column, b._column, ALL_ROWS, _FIRST, np.array([float(metres)]))
    return bool(outcomes[0] == REACHED)


def rough_metres(a: Region | Point, b: Region | Point) -> float | None:
    """Return the distance of two shapes in metres, to show it; None if a shape is nowhere on Earth.

    >>> rough_metres(Point(179.999, 0), Point(-179.999, 0))
    222.639
    """
    if any(len(bad_places(shape._column)) for shape in (a, b)):
        return None
    if within_metres(a, b, 0.0):
        return 0.0
    low, high = 0.0, MOST_METRES
    while high - low > max(0.0005, RELATIVE * high):  # the closer to the distance, the longer each answer takes
        middle = (low + high) / 2
        low, high = (low, middle) if within_metres(a, b, middle) else (middle, high)
    return float(f"{high:.6g}")


def boxes_grown_by_metres(boxes: NDArray[np.float64], distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return boxes that hold every point within metres of the given ones, but for turns; maybe of all longitudes.

    >>> boxes_grown_by_metres(np.array([[0.0, 0.0, 0.0, 0.0]]), np.array([111_319.5])).round(3).tolist()
    [[-1.0, -1.007, 1.0, 1.007]]
    """
    grown = np.empty((len(boxes), 4))
    kernels.grow_by_metres(frozen(np.ascontiguousarray(boxes)), frozen(np.ascontiguousarray(distances)), grown)
    return grown


def strips_grown_by_metres(boxes: NDArray[np.float64], distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return boxes of all longitudes in the plane that hold every point within metres of the given boxes.

    >>> strips_grown_by_metres(np.array([[0.0, 0.0, 0.0, 0.0]]), np.array([111_319.5])).round(3).tolist()
    [[-540.0, -1.007, 540.0, 1.007]]
    """
    strips = boxes_grown_by_metres(boxes, distances)
    strips[:, 0], strips[:, 2] = -LARGEST_LONGITUDE, LARGEST_LONGITUDE
    return strips


def places_of(xy: NDArray[np.float64], distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points in metres from the Earth's centre, and chords that are surely within distances, by row."""
    places = np.empty((len(xy), 4))
    kernels.fill_places(frozen(np.ascontiguousarray(xy)), frozen(np.ascontiguousarray(distances)), places)
    return places
