"""How fast polygons find the lines that they meet and that cross them, against the plans of Shapely, in one run.

    python -m benchmarks.lines [--quick] [--only intersects,crosses] [--seed 7] [--write]

100,000 lines of 2 to 50 vertices, 100 m to 20 km long, in a square of 200 km, and polygons of 8 to 60 vertices. Both
sides are timed from geometry in to pairs of a polygon and a line out, and answers are compared. The plans of Shapely: a
tree of the lines that is asked with the predicate, for which it prepares each polygon; and a tree of the polygons that
is asked with the lines. With --write the tables replace those of benchmarks/results.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

import contrada as ct
from benchmarks.command import run_sections
from benchmarks.report import Report, Row
from benchmarks.timing import take_turns

SIDE, SHORTEST, LONGEST = 200_000.0, 100.0, 20_000.0  # metres
MOST_VERTICES = 50
REPEATS = 3
BAR = 5.0
SECTIONS = {
    "intersects": "Polygons against lines, S_INTERSECTS, batch",
    "crosses": "Polygons against lines, S_CROSSES, batch",
}

Pairs = NDArray[np.int64]


class Work(NamedTuple):
    """Lines, and polygons that are messages."""

    lines: NDArray[Any]
    polygons: NDArray[Any]


def work_of(report: Report) -> Work:
    """Return wandering lines whose lengths are spread evenly over magnitudes, and star-shaped polygons."""
    rng = np.random.default_rng(report.seed)
    return Work(wandering_lines(rng, 5_000 if report.quick else 100_000), stars(rng, 300 if report.quick else 5_000))


def wandering_lines(rng: np.random.Generator, count: int) -> NDArray[Any]:
    """Return lines that turn a little at every vertex, as roads and rivers do."""
    sizes = rng.integers(2, MOST_VERTICES + 1, count)
    lengths = np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST), count))
    owners = np.repeat(np.arange(count), sizes)
    turns = rng.normal(0, 0.4, len(owners))
    starts = np.cumsum(sizes) - sizes
    turns[starts] = rng.uniform(0, 2 * np.pi, count)
    sums = np.cumsum(turns)
    angles = sums - (sums[starts] - turns[starts])[owners]
    steps = (lengths / (sizes - 1))[owners, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    steps[starts] = rng.uniform(0, SIDE, (count, 2))
    walks = np.cumsum(steps, axis=0)
    xy = walks - (walks[starts] - steps[starts])[owners]
    return np.asarray(shapely.linestrings(xy, indices=owners))


def stars(rng: np.random.Generator, count: int) -> NDArray[Any]:
    """Return polygons whose vertices lie around a centre."""
    made = []
    for size, radius in zip(
        rng.integers(8, 61, count), np.exp(rng.uniform(np.log(500), np.log(10_000), count)), strict=True
    ):
        angles = np.sort(rng.uniform(0, 2 * np.pi, size))
        reach = radius * rng.uniform(0.5, 1, size)
        made.append(
            shapely.Polygon(rng.uniform(0, SIDE, 2) + reach[:, None] * np.stack([np.cos(angles), np.sin(angles)], 1))
        )
    polygons = np.array(made, object)
    return polygons[shapely.is_valid(polygons)]


def table_of(work: Work, word: str) -> ct.ForwardingTable:
    """Return a packed table of the lines."""
    table = ct.ForwardingTable()
    table.subscribe_many(pa.table({"geometry": shapely.to_wkb(work.lines)}), f"S_{word.upper()}(area, $geometry)")
    table.pack()
    return table


def ours(table: ct.ForwardingTable, wkb: Any) -> Pairs:
    """Return the pairs of polygons and lines by a table, sorted."""
    answer = table.match_many(pa.table({"area": wkb}), by="subscription")
    return sorted_pairs(np.repeat(np.arange(len(wkb)), np.diff(answer.offsets)), answer.rows)


def by_lines(tree: shapely.STRtree, word: str, wkb: Any) -> Pairs:
    """Return the pairs by a tree of the lines, which prepares each polygon."""
    polygons, lines = tree.query(shapely.from_wkb(wkb), predicate=word)
    return sorted_pairs(polygons, lines)


def by_polygons(lines: NDArray[Any], word: str, wkb: Any) -> Pairs:
    """Return the pairs by a tree of the polygons, asked with the lines, which are prepared already."""
    found, polygons = shapely.STRtree(shapely.from_wkb(wkb)).query(lines, predicate=word)
    return sorted_pairs(polygons, found)


def sorted_pairs(polygons: NDArray[Any], lines: NDArray[Any]) -> Pairs:
    """Return pairs as numbers, sorted."""
    return np.sort(np.asarray(polygons, np.int64) << 32 | np.asarray(lines, np.int64))


def measure(word: str, report: Report) -> Iterator[Row]:
    """Measure one predicate: contenders take turns; the bar is against the best of the peers."""
    work = work_of(report)
    table, wkb = table_of(work, word), shapely.to_wkb(work.polygons)
    shapely.prepare(work.lines)
    contenders = {
        "ours": partial(ours, table, pa.array(wkb)),
        "Shapely, tree of the lines": partial(by_lines, shapely.STRtree(work.lines), word, wkb),
        "Shapely, tree of the polygons": partial(by_polygons, work.lines, word, wkb),
    }
    found = take_turns(contenders, REPEATS, len(work.polygons))
    mine, *peers = found.items()
    best = min(peers, key=lambda peer: peer[1].seconds)
    text = f"{len(work.polygons):,} polygons, {len(work.lines):,} lines, {len(mine[1].answer):,} pairs"
    for name, timed in peers:
        different = len(np.setxor1d(mine[1].answer, timed.answer))
        yield Row.versus(
            SECTIONS[word], text, name, mine[1], timed, BAR if name == best[0] else None,
            compared=len(mine[1].answer), different=different,
        )  # fmt: skip


if __name__ == "__main__":
    run_sections("lines", __doc__ or "", {word: partial(measure, word) for word in SECTIONS})
