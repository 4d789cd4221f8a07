"""How fast covers are found while subscriptions come and go: k-d tree and Z-curve against scans; mixed filters.

    python -m benchmarks.cover [--quick] [--only scan,numpy,mixed,broker] [--seed 7] [--write]

Whole sequences of commands on the relation graph G_1 are run, as [COVER] draws them: 15 % unsubscriptions, 16 point
dimensions (eight attributes). The scan is compiled: row by row with an exit at the first dimension that fails, or block
by block, column by column, with an exit when no point of a block is left. The faster of the two, on a fifth of the
commands, is the peer. Which rows are forwarded is compared. Mixed filters: see benchmarks/cover/mixed.py; memory, calls
and unsubscribing what covers 1,000 others at a broker: see benchmarks/cover/broker.py. Writes build/bench/cover.json.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.command import run_sections
from benchmarks.cover import broker, mixed
from benchmarks.peers.cover_scans import numpy_run, numpy_search, row_scan
from benchmarks.report import Report, Row
from benchmarks.timing import Timed, take_turns
from contrada.papers.cover import KdTree, Scan, ZCurve, replay
from contrada.papers.cover.commands import rectangle_commands
from contrada.papers.cover.point_index import PointIndex

COMMANDS, ATTRIBUTES, P = 100_000, 8, 0.15
INDEXES: dict[str, tuple[Callable[[int], PointIndex], float]] = {"k-d tree": (KdTree, 8.0), "Z-curve": (ZCurve, 3.0)}
BLOCKS, ROWS = "scan, block by block", "scan, row by row"
NUMPY_BAR = 20.0
PLANS = {"NumPy, one whole column and then what is left": 1, "NumPy, three whole columns and then what is left": 3}
QUERIES = 300


def against_scan(report: Report) -> Iterator[Row]:
    """Measure whole sequences of commands, for three dimensions; the paper's bar is at the largest."""
    section = "Covering: indexes against a compiled scan"
    commands = 5_000 if report.quick else COMMANDS
    repeats = 1 if report.quick else 3
    for attributes in (3, 5, ATTRIBUTES):
        steps, points = rectangle_commands(commands, attributes, P, report.seed)
        part = steps[: commands // 5]
        scans = {BLOCKS: partial(forwarded, Scan, points), ROWS: partial(row_scan, points)}
        timed = take_turns({name: partial(scan, part) for name, scan in scans.items()}, repeats)
        work = f"{len(part):,} commands, {2 * attributes} dimensions"
        yield versus(section, f"{BLOCKS}: {work}", ROWS, timed[BLOCKS], timed[ROWS])
        best = min(timed, key=lambda name: timed[name].seconds)
        ours = {name: partial(forwarded, make, points, steps) for name, (make, _) in INDEXES.items()}
        timed = take_turns(ours | {best: partial(scans[best], steps)}, repeats)
        for name, (_, bar) in INDEXES.items():
            work = f"{name}: {commands:,} commands, {2 * attributes} dimensions"
            yield versus(section, work, best, timed[name], timed[best], bar if attributes == ATTRIBUTES else None)


def versus(section: str, work: str, against: str, ours: Timed, theirs: Timed, bar: float | None = None) -> Row:
    """Return a comparison of two that tell which rows are forwarded."""
    counts = {"compared": len(theirs.answer), "different": len(theirs.answer ^ ours.answer)}
    return Row.versus(section, work, against, ours, theirs, bar, **counts)


def forwarded(make: Callable[[int], PointIndex], points: NDArray[np.float64], steps: NDArray[np.int64]) -> set[int]:
    """Return the rows that G_1 above an index forwards at some time."""
    return set(replay(make(points.shape[1]), points, steps).forwarded.tolist())


def against_numpy(report: Report) -> Iterator[Row]:
    """Yield whole sequences of commands, and single queries called from Python at the load that half of them leave."""
    section = "Covering: the k-d tree against NumPy"
    commands = 2_000 if report.quick else COMMANDS
    steps, points = rectangle_commands(commands, ATTRIBUTES, P, report.seed)
    peers = {name: partial(numpy_run, points, steps, first) for name, first in PLANS.items()}
    timed = take_turns({"ours": partial(forwarded, KdTree, points, steps)} | peers, 1)
    work = f"{commands:,} commands, {2 * ATTRIBUTES} dimensions"
    for name in peers:
        yield versus(section, work, name, timed["ours"], timed[name], NUMPY_BAR)
    half = steps[: commands // 2]
    rows = np.setdiff1d(half[half >= 0], -1 - half[half < 0])
    queries = rectangle_commands(QUERIES, ATTRIBUTES, 0.0, report.seed + 1)[1]
    columns = np.ascontiguousarray(points[rows].T)
    index = KdTree(2 * ATTRIBUTES)
    for row in rows:
        index.add(row, points[row])
    singles = {
        name: partial(numbers_found, partial(numpy_search, columns, len(rows), first=first), queries)
        for name, first in PLANS.items()
    }
    singles["ours"] = partial(numbers_found, partial(index.find_covers, k=None), queries)
    timed = take_turns(singles, 3, len(queries))
    ours = timed.pop("ours")
    work = f"one query for all covers, from Python, {len(rows):,} points, {2 * ATTRIBUTES} dimensions"
    for name, theirs in timed.items():
        different = sum(a != b for a, b in zip(ours.answer, theirs.answer, strict=True))
        yield Row.versus(section, work, name, ours, theirs, compared=len(queries), different=different)


def numbers_found(find: Callable[..., NDArray[np.int64]], queries: NDArray[np.float64]) -> list[int]:
    """Return how many covers each query has."""
    return [len(find(query)) for query in queries]


SECTIONS = {"scan": against_scan, "numpy": against_numpy, "mixed": mixed.run, "broker": broker.run}

if __name__ == "__main__":
    run_sections("cover", __doc__, SECTIONS)
