"""How fast covers are found while subscriptions come and go: k-d tree and Z-curve against scans.

    python benchmarks/cover.py [--quick] [--only scan,numpy] [--seed 7] [--write-docs]

Whole sequences of commands on the relation graph G_1 are run, as [COVER] draws them: 15 % unsubscriptions, 16 point
dimensions (eight attributes). The scan is compiled: row by row with an exit at the first dimension that fails, or block
by block, column by column, with an exit when no point of a block is left. The faster of the two, on a fifth of the
commands, is the peer. Which rows are forwarded is compared. Writes build/bench/cover.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from command import finish, parsed, parser_of, shown_at_least
from cover_peers import numpy_search, row_scan
from numpy.typing import NDArray
from report import Report, Row
from timing import say, take_turns

from contrada.covering import KdTree, Scan, ZCurve, replay
from contrada.covering.point_index import PointIndex
from contrada.testing.covering import rectangle_commands

COMMANDS, ATTRIBUTES, P = 100_000, 8, 0.15
INDEXES: dict[str, Callable[[int], PointIndex]] = {"k-d tree": KdTree, "Z-curve": ZCurve}
BARS = {"k-d tree": 8.0, "Z-curve": 3.0}
NUMPY_BAR = 20.0
NUMPY_QUERIES = 300  # a NumPy scan of all commands would take minutes: it answers some of the queries


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
    """Single queries at the load that half of the commands leave, called from Python, against NumPy."""
    count = 2_000 if report.quick else COMMANDS // 2
    steps, points = rectangle_commands(count, ATTRIBUTES, P, report.seed)
    rows = np.setdiff1d(steps[steps >= 0], -1 - steps[steps < 0])
    queries = rectangle_commands(NUMPY_QUERIES, ATTRIBUTES, 0.0, report.seed + 1)[1]
    columns = np.ascontiguousarray(points[rows].T)
    index = KdTree(2 * ATTRIBUTES)
    for row in rows:
        index.add(row, points[row])
    say(f"{len(rows):,} live points, {len(queries)} queries from Python")
    timed = take_turns(
        {
            "k-d tree": lambda: [len(index.find_covers(query)) for query in queries],
            **{
                name: (lambda first=first: [min(1, len(numpy_search(columns, query, first))) for query in queries])
                for name, first in (("one", 1), ("three", 3))
            },
        },
        3,
    )
    peer = min(("one", "three"), key=lambda name: timed[name].seconds)
    different = sum(a != b for a, b in zip(timed["k-d tree"].answer, timed[peer].answer, strict=True))
    for name in ("one", "three"):
        yield Row(
            "Covering: the k-d tree against NumPy",
            f"one query from Python, {len(rows):,} points, {2 * ATTRIBUTES} dimensions",
            f"NumPy, {name} whole column{'s' if name != 'one' else ''} and then what is left",
            timed["k-d tree"].seconds / len(queries),
            timed[name].seconds / len(queries),
            timed[name].seconds / timed["k-d tree"].seconds,
            at_least=NUMPY_BAR if name == peer else None,
            compared=len(queries) if name == peer else None,
            different=different if name == peer else None,
        )


SECTIONS: dict[str, Callable[[Report], Iterator[Row]]] = {"scan": against_scan, "numpy": against_numpy}


def main() -> None:
    """Measure, print, save."""
    arguments, chosen = parsed(parser_of(__doc__, SECTIONS), SECTIONS)
    report = Report(arguments.seed, arguments.quick)
    with shown_at_least(report):
        for name, run in SECTIONS.items():
            if name in chosen:
                report.rows.extend(run(report))
    finish(report, "cover", arguments.write_docs, chosen == set(SECTIONS))


if __name__ == "__main__":
    main()
