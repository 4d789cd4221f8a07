"""How fast covers are found while subscriptions come and go: k-d tree and Z-curve against scans; mixed filters.

    python benchmarks/cover.py [--quick] [--only scan,numpy,mixed] [--seed 7] [--write]

Whole sequences of commands on the relation graph G_1 are run, as [COVER] draws them: 15 % unsubscriptions, 16 point
dimensions (eight attributes). The scan is compiled: row by row with an exit at the first dimension that fails, or block
by block, column by column, with an exit when no point of a block is left. The faster of the two, on a fifth of the
commands, is the peer. Which rows are forwarded is compared. Mixed filters: see cover_mixed.py. Writes
build/bench/cover.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import cover_mixed
import numpy as np
from command import run_sections
from cover_peers import numpy_run, numpy_search, row_scan
from numpy.typing import NDArray
from report import Report, Row
from timing import say, take_turns

from contrada.papers.cover import KdTree, Scan, ZCurve, replay
from contrada.papers.cover.commands import rectangle_commands
from contrada.papers.cover.point_index import PointIndex

COMMANDS, ATTRIBUTES, P = 100_000, 8, 0.15
INDEXES: dict[str, Callable[[int], PointIndex]] = {"k-d tree": KdTree, "Z-curve": ZCurve}
BARS = {"k-d tree": 8.0, "Z-curve": 3.0}
NUMPY_BAR = 20.0
NUMPY_PLANS = {"one whole column": 1, "three whole columns": 3}
NUMPY_QUERIES = 300


def against_scan(report: Report) -> Iterator[Row]:
    """Whole sequences of commands, for three dimensions; the paper's bar is at the largest."""
    section = "Covering: indexes against a compiled scan"
    commands = 5_000 if report.quick else COMMANDS
    repeats = 1 if report.quick else 3
    for attributes in (3, 5, ATTRIBUTES):
        steps, points = rectangle_commands(commands, attributes, P, report.seed)
        part = steps[: commands // 5]
        say(f"{len(part):,} commands on {attributes} attributes, two scans")
        scans = {"blocks": partial(forwarded, Scan, points, part), "rows": partial(row_scan, points, part)}
        timed = take_turns(scans, repeats)
        rows, blocks = timed["rows"], timed["blocks"]
        work = f"{len(part):,} commands, {2 * attributes} dimensions"
        yield Row(
            section, f"scan, block by block: {work}", "scan, row by row", blocks.seconds, rows.seconds,
            rows.seconds / blocks.seconds, compared=len(rows.answer), different=len(rows.answer ^ blocks.answer),
        )  # fmt: skip
        is_blocks = blocks.seconds < rows.seconds
        say(f"{commands:,} commands on {attributes} attributes")
        peer = partial(forwarded, Scan, points, steps) if is_blocks else partial(row_scan, points, steps)
        ours = {name: partial(forwarded, make, points, steps) for name, make in INDEXES.items()}
        timed = take_turns(ours | {"peer": peer}, repeats)
        expected, seconds = timed["peer"].answer, timed["peer"].seconds
        for name in INDEXES:
            yield Row(
                section, f"{name}: {commands:,} commands, {2 * attributes} dimensions",
                f"scan, {'block by block' if is_blocks else 'row by row'}",
                timed[name].seconds, seconds, seconds / timed[name].seconds,
                at_least=BARS[name] if attributes == ATTRIBUTES else None,
                compared=len(expected), different=len(expected ^ timed[name].answer),
            )  # fmt: skip


def forwarded(make: Callable[[int], PointIndex], points: NDArray[np.float64], steps: NDArray[np.int64]) -> set[int]:
    """The rows that G_1 above an index forwards at some time."""
    return set(replay(make(points.shape[1]), points, steps).forwarded.tolist())


def against_numpy(report: Report) -> Iterator[Row]:
    """Whole sequences of commands, and single queries called from Python at the load that half of them leave."""
    section = "Covering: the k-d tree against NumPy"
    commands = 2_000 if report.quick else COMMANDS
    steps, points = rectangle_commands(commands, ATTRIBUTES, P, report.seed)
    peers = {name: partial(numpy_run, points, steps, first) for name, first in NUMPY_PLANS.items()}
    say(f"{commands:,} commands on {ATTRIBUTES} attributes, NumPy")
    timed = take_turns({"ours": partial(forwarded, KdTree, points, steps)} | peers, 1)
    ours = timed["ours"]
    for name in peers:
        yield Row(
            section, f"{commands:,} commands, {2 * ATTRIBUTES} dimensions", f"NumPy, {name} and then what is left",
            ours.seconds, timed[name].seconds, timed[name].seconds / ours.seconds, at_least=NUMPY_BAR,
            compared=len(ours.answer), different=len(ours.answer ^ timed[name].answer),
        )  # fmt: skip
    half = steps[: commands // 2]
    rows = np.setdiff1d(half[half >= 0], -1 - half[half < 0])
    queries = rectangle_commands(NUMPY_QUERIES, ATTRIBUTES, 0.0, report.seed + 1)[1]
    columns = np.ascontiguousarray(points[rows].T)
    index = KdTree(2 * ATTRIBUTES)
    for row in rows:
        index.add(row, points[row])
    say(f"{len(rows):,} live points, {len(queries)} queries from Python")
    singles = {
        name: partial(numbers_found, partial(numpy_search, columns, len(rows), first=first), queries)
        for name, first in NUMPY_PLANS.items()
    }
    timed = take_turns({"ours": partial(numbers_found, partial(index.find_covers, k=None), queries)} | singles, 3)
    for name in singles:
        different = sum(a != b for a, b in zip(timed["ours"].answer, timed[name].answer, strict=True))
        yield Row(
            section, f"one query for all covers, from Python, {len(rows):,} points, {2 * ATTRIBUTES} dimensions",
            f"NumPy, {name} and then what is left",
            timed["ours"].seconds / len(queries), timed[name].seconds / len(queries),
            timed[name].seconds / timed["ours"].seconds, compared=len(queries), different=different,
        )  # fmt: skip


def numbers_found(find: Callable[..., NDArray[np.int64]], queries: NDArray[np.float64]) -> list[int]:
    """How many covers each query has."""
    return [len(find(query)) for query in queries]


SECTIONS: dict[str, Callable[[Report], Iterator[Row]]] = {
    "scan": against_scan,
    "numpy": against_numpy,
    "mixed": cover_mixed.run,
}


if __name__ == "__main__":
    run_sections("cover", __doc__, SECTIONS, Report)
