"""Two regions of 100,000 vertices each, against GEOS with the first one prepared."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import shapely

import contrada as ct
from benchmarks.peers.geos import relation_codes
from benchmarks.report import Report, Row
from benchmarks.timing import take_turns
from generators import synthetic

YES_NO = "shapely.intersects, prepared, again (only yes/no)"
SECTION = "Two regions of {:,} vertices each"


def scaled(region: ct.Region, factor: float) -> ct.Region:
    """Return the region shrunk towards the origin."""
    ((shell, _),) = region.parts
    return ct.Region(np.asarray(shell) * factor)


def pairs(rng: np.random.Generator, vertices: int) -> Iterator[tuple[str, ct.Region, ct.Region]]:
    """Yield pairs that are hard for different reasons."""
    island = synthetic.coastline(rng, vertices)
    yield "coastlines that cross", island, synthetic.coastline(rng, vertices, centre=(200.0, 0.0))
    yield "a coastline and itself, 1 % smaller", island, scaled(island, 0.99)
    yield "a coastline and itself, 0.001 % smaller", island, scaled(island, 0.99999)
    west, east = synthetic.neighbours(rng, vertices)
    yield "neighbours with a common border", west, east
    ((shell, _),) = east.parts
    yield "neighbours a hair apart", west, ct.Region(np.asarray(shell) + np.array([1e-6, 0.0]))
    ((shell, _),) = island.parts
    yield "a coastline and its copy", island, ct.Region(np.roll(np.asarray(shell)[:-1], 7, axis=0))


def contenders(a: ct.Region, b: ct.Region) -> dict[str, Callable[[], Any]]:
    """Return ours and GEOS with warm indexes, and both from untouched objects."""
    wkb_a, wkb_b = a.to_wkb(), b.to_wkb()
    shape_a, shape_b = a.to_shapely(), b.to_shapely()
    shapely.prepare(shape_a)
    fresh_ours = iter([(ct.Region.from_wkb(wkb_a), ct.Region.from_wkb(wkb_b)) for _ in range(FRESH)])
    fresh_peer = iter([shapely.from_wkb([wkb_a, wkb_b]) for _ in range(FRESH)])

    def peer_first() -> Any:
        first, second = next(fresh_peer)
        shapely.prepare(first)
        return shapely.relate(first, second)

    return {
        "ours": lambda: ct.relate(a, b, threads=1),
        "relate": lambda: shapely.relate(shape_a, shape_b),
        "intersects": lambda: shapely.intersects(shape_a, shape_b),
        "ours first": lambda: ct.relate(*next(fresh_ours), threads=1),
        "relate first": peer_first,
    }


FRESH = 8  # one for each repetition, one to warm up


def run(report: Report) -> Iterator[Row]:
    """Measure every pair, warm and for the first time."""
    vertices, repeats = (5_000, 3) if report.quick else (100_000, FRESH - 1)
    for name, a, b in pairs(np.random.default_rng(report.seed), vertices):
        found = take_turns(contenders(a, b), repeats)
        ours = found["ours"].answer
        work = f"{name}: {ct.Relation(ours).name.lower()}"
        different = int(relation_codes(found["relate"].answer)[0] != ours)
        other_meets = int((ours != ct.Relation.DISJOINT) != bool(found["intersects"].answer))
        # Intersects may stop at the first common point, where the relation must look on: no bar against it.
        for against, mine, other, bar, answers in (
            ("shapely.relate, prepared, again", "ours", "relate", 1, different),
            ("shapely.relate, prepared, first time", "ours first", "relate first", 1, different),
            (YES_NO, "ours", "intersects", None, other_meets),
        ):
            each = found[mine].seconds, found[other].seconds
            yield Row.versus(SECTION.format(vertices), work, against, *each, bar, compared=1, different=answers)
