"""How reading and relating grow with the vertices of shapes made to be slow, beside Shapely in the same run.

    python -m benchmarks.relate.growth [--quick] [--only reading,relating,column,points] [--seed 7] [--write]

Shapes are those of generators.families.shapes: fans, stars, spirals, slivers, combs. Each is measured at n, 2n,
4n and 8n vertices; the exponent e of the fitted time c * n ** e is what the bar speaks of. Columns grow with the shape:
n / 4 slivers or points, so that comparing all pairs would have the exponent 2. Times are those of the processor, the
least of a few runs, so that a busy machine does not bend the curve. Writes build/bench/growth.json.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import shapely

import contrada as ct
from benchmarks.command import run_sections
from benchmarks.report import Report, Row
from benchmarks.timing import Timed, measured
from generators.families.shapes import HOSTILE, slivers
from oracles.relations import shapely_codes, shapely_point_codes

READING = "Growth: reading shapes made to be slow (parse and validate)"
RELATING = "Growth: relating such a shape to itself"
COLUMN = "Growth: relating such a shape to a column of slivers, a quarter as many as it has vertices"
POINTS = "Growth: relating such a shape to a column of points, a quarter as many as it has vertices"
HIGHEST = 1.35  # exponent; n log n is fitted by 1.1 over these sizes
PATIENCE = 1.0  # seconds; a peer that took longer is not asked for larger sizes

Calls = tuple[Callable[[], Any], Callable[[], Any]]  # ours and Shapely's, whose answers should be equal


def reading_calls(shape: Any) -> Calls:
    """Return readings that say whether the shape is accepted."""
    data = shapely.to_wkb(shape)
    return lambda: len(ct.read_regions([data]).regions) == 1, lambda: shapely.is_valid(shapely.from_wkb(data))


def relating_calls(shape: Any) -> Calls:
    """Return relations of the shape to itself."""
    region = ct.Region.from_wkb(shapely.to_wkb(shape))
    ct.relate(region, region)  # an edge index is built once for a column
    shapes = np.array([shape], dtype=object)
    return lambda: ct.relate(region, region), lambda: shapely_codes(shapes, shapes)


def across(shape: Any, places: Any) -> Any:
    """Move and scale places, slivers or points, so that they lie all over the box of a shape."""
    flat = places.reshape(-1, 2)
    low, high = np.reshape(shape.bounds, (2, 2))
    return (places - flat.min(axis=0)) / np.ptp(flat, axis=0) * (high - low) + low


def column_calls(shape: Any) -> Calls:
    """Return relations of the shape to slivers all over it."""
    region = ct.Region.from_wkb(shapely.to_wkb(shape))
    others = shapely.polygons(across(shape, slivers(shapely.get_num_coordinates(shape))))
    column, shapes = ct.RegionArray.from_shapely(others), np.full(len(others), shape, dtype=object)
    shapely.prepare(shape)
    return lambda: ct.relate(region, column, threads=1), lambda: shapely_codes(shapes, others)


def point_calls(shape: Any) -> Calls:
    """Return relations of points all over the shape to it."""
    region = ct.Region.from_wkb(shapely.to_wkb(shape))
    count = shapely.get_num_coordinates(shape) // 4
    points = across(shape, np.random.default_rng(count).random((count, 2)))
    column, shapes = ct.PointArray(points), np.full(count, shape, dtype=object)
    shapely.prepare(shape)
    return lambda: ct.relate(column, region, threads=1), lambda: shapely_point_codes(points, shapes)


def least_time(call: Callable[[], Any], repeats: int) -> Timed:
    """Return the least processor time of some calls, so that a busy machine does not bend the curve."""
    return measured(call, repeats, clock=time.process_time, choose=min)


def measure(section: str, calls_of: Callable[[Any], Calls], report: Report) -> Iterator[Row]:
    """Yield rows of all shapes and sizes, and the exponent of each shape."""
    first = 500 if report.quick else 2_000
    sizes = [first, 2 * first, 4 * first, 8 * first]
    for name, make in HOSTILE.items():
        times, patient = [], True
        for size in sizes:
            ours, theirs = calls_of(make(size))
            seconds, answer = least_time(ours, 4)
            times.append(seconds)
            work = f"{name}, {size:,} vertices"
            if not patient:
                yield Row.alone(section, work, seconds / times[0], "times the first", seconds)
                continue
            peer, their_answer = least_time(theirs, 1)
            patient = peer < PATIENCE
            different = int(not np.all(answer == their_answer))
            yield Row.versus(section, work, "Shapely", seconds, peer, compared=1, different=different)
        exponent = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
        yield Row(section, f"{name}, exponent", "ourselves", None, None, exponent, "", at_most=HIGHEST)


SECTIONS = {
    "reading": partial(measure, READING, reading_calls),
    "relating": partial(measure, RELATING, relating_calls),
    "column": partial(measure, COLUMN, column_calls),
    "points": partial(measure, POINTS, point_calls),
}

if __name__ == "__main__":
    run_sections("growth", __doc__, SECTIONS)
