"""How reading and relating grow with the vertices of shapes made to be slow, beside Shapely in the same run.

    python benchmarks/growth.py [--quick] [--only reading,relating] [--seed 7] [--write-docs]

Shapes are those of contrada.testing.families.shapes: fans, stars, spirals, slivers, combs. Each is measured at n, 2n,
4n and 8n vertices; the exponent e of the fitted time c * n ** e is what the bar speaks of. Times are those of the
processor, the least of a few runs, so that a busy machine does not bend the curve. Writes build/bench/growth.json.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import shapely
from command import run_sections
from report import Report, Row
from timing import say

import contrada as ct
from contrada.testing.families.shapes import HOSTILE
from contrada.testing.oracle import NAMES, shapely_codes

READING = "Growth: reading shapes made to be slow (parse and validate)"
RELATING = "Growth: relating such a shape to itself"
HIGHEST = 1.35  # exponent; n log n is fitted by 1.1 over these sizes
PATIENCE = 1.0  # seconds; a peer that took longer is not asked for larger sizes

Calls = tuple[Callable[[], Any], Callable[[], Any], Callable[[Any, Any], bool]]


def reading_calls(shape: Any) -> Calls:
    """Our reading, Shapely's, and whether both accept the shape."""
    data = shapely.to_wkb(shape)
    return (
        lambda: ct.RegionArray.from_wkb([data], on_invalid="reject"),
        lambda: shapely.is_valid(shapely.from_wkb(data)),
        lambda ours, theirs: (len(ours.regions) == 1) == bool(theirs),
    )


def relating_calls(shape: Any) -> Calls:
    """Our relation of the shape to itself, Shapely's, and whether they are equal."""
    region = ct.Region.from_wkb(shapely.to_wkb(shape))
    ct.relate(region, region)  # an edge index is built once for a column
    shapes = np.array([shape], dtype=object)
    return (
        lambda: ct.relate(region, region),
        lambda: shapely_codes(shapes, shapes),
        lambda ours, theirs: NAMES[ours] == NAMES[theirs[0]],
    )


def least_time(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The least processor time of some calls, and the last answer."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        answer = call()
        times.append(time.process_time() - start)
    return min(times), answer


def measure(section: str, calls_of: Callable[[Any], Calls], report: Report) -> Iterator[Row]:
    """Rows of all shapes and sizes, and the exponent of each shape."""
    first = 500 if report.quick else 2_000
    sizes = [first, 2 * first, 4 * first, 8 * first]
    for name, make in HOSTILE.items():
        times = []
        patient = True
        for size in sizes:
            ours, theirs, are_equal = calls_of(make(size))
            seconds, answer = least_time(ours, 4)
            times.append(seconds)
            work = f"{name}, {size:,} vertices"
            if not patient:
                yield Row(section, work, "", times[-1], None, times[-1] / times[0], "times the first")
                continue
            peer, their_answer = least_time(theirs, 1)
            patient = peer < PATIENCE
            different = int(not are_equal(answer, their_answer))
            yield Row(section, work, "Shapely", times[-1], peer, peer / times[-1], compared=1, different=different)
        exponent = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
        say(f"{section}: {name}, exponent {exponent:.2f}")
        yield Row(section, f"{name}, exponent", "ourselves", None, None, exponent, "", at_most=HIGHEST)


SECTIONS = {
    "reading": partial(measure, READING, reading_calls),
    "relating": partial(measure, RELATING, relating_calls),
}

if __name__ == "__main__":
    run_sections("growth", __doc__, SECTIONS, Report)
