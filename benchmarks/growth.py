"""How reading and relating grow with the vertices of shapes made to be slow, beside Shapely in the same run.

    python benchmarks/growth.py [--quick] [--only reading,relating] [--seed 7] [--write-docs]

Shapes are those of contrada.testing.families.shapes: fans, stars, spirals, slivers, combs. Each is measured at n, 2n,
4n and 8n vertices; the exponent e of the fitted time c * n ** e is what the bar speaks of. Writes
build/bench/growth.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import shapely
from command import run_sections
from report import Report, Row
from timing import say, take_turns

import contrada as ct
from contrada.testing.families.shapes import HOSTILE
from contrada.testing.oracle import NAMES, shapely_codes

READING = "Growth: reading shapes made to be slow (parse and validate)"
RELATING = "Growth: relating such a shape to itself"
HIGHEST = 1.35  # exponent; n log n is fitted by 1.1 over these sizes
PATIENCE = 3.0  # seconds; a peer that took longer is not asked for larger sizes

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


def measure(section: str, calls_of: Callable[[Any], Calls], report: Report) -> Iterator[Row]:
    """Rows of all shapes and sizes, and the exponent of each shape."""
    sizes = [first * factor for first in ([500] if report.quick else [5_000]) for factor in (1, 2, 4, 8)]
    for name, make in HOSTILE.items():
        times = []
        patient = True
        for size in sizes:
            ours, theirs, are_equal = calls_of(make(size))
            contenders = {"ours": ours} | ({"peer": theirs} if patient else {})
            found = take_turns(contenders, 3 if report.quick else 5)
            times.append(found["ours"].seconds)
            work = f"{name}, {size:,} vertices"
            if not patient:
                yield Row(section, work, "", times[-1], None, times[-1] / times[0], "times the first")
                continue
            peer = found["peer"].seconds
            patient = peer < PATIENCE
            different = int(not are_equal(found["ours"].answer, found["peer"].answer))
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
