"""Batches in Arrow against Shapely and NumPy, one thread against two, and messages one by one."""

import statistics
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

import contrada as ct
from benchmarks.columns.processes import TwoProcesses
from benchmarks.columns.work import MIXED, SPATIAL, messages, subscription_rows, table_for
from benchmarks.report import Report, Row
from benchmarks.timing import Timed, take_turns

BATCHES = "Batches of messages in Arrow, 20,000 subscriptions (time per message)"
RATES = "Batches of messages in Arrow: messages per second"
SINGLE = "Messages one by one, 20,000 mixed subscriptions"
PEER = "STRtree, then NumPy"
FLOOR, SMALL, LARGE = 600_000, 100, 1_000_000


class TreeAndNumpy:
    """What a user of Shapely writes: all points against one tree, and the scalars of the pairs in NumPy."""

    def __init__(self, rows: pa.Table, is_mixed: bool) -> None:
        self._tree = shapely.STRtree(shapely.from_wkb(rows.column("geometry").to_numpy()))
        self._severity = rows.column("sev").to_numpy()
        self._codes = rows.column("kind").combine_chunks().dictionary_encode()
        self._is_mixed = is_mixed

    def match(self, batch: pa.Table) -> tuple[Any, Any]:
        """Return messages and subscriptions of all matches."""
        owners, keys = self._tree.query(shapely.from_wkb(batch.column("area").to_numpy()), predicate="intersects")
        if not self._is_mixed:
            return owners, keys
        kinds = np.asarray(pa.compute.index_in(batch.column("kind"), self._codes.dictionary))
        kept = batch.column("severity").to_numpy()[owners] >= self._severity[keys]
        kept &= kinds[owners] == np.asarray(self._codes.indices)[keys]
        return owners[kept], keys[kept]


def in_batches(report: Report) -> Iterator[Row]:
    """Measure both templates on one and two threads, on batches of two sizes, beside the peer."""
    for template, name in ((SPATIAL, "region"), (MIXED, "region, number and text")):
        for count in (50_000, 100_000) if report.quick else (50_000, LARGE):
            yield from _batch(report, template, name, count)
    yield from small_batches(report)


def _batch(report: Report, template: str, name: str, count: int) -> Iterator[Row]:
    table, batch = table_for(template, report.seed), messages(report.seed, count)
    peer = TreeAndNumpy(subscription_rows(report.seed), template == MIXED)
    contenders: dict[Any, Any] = {
        threads: partial(table.match_many, batch, by="subscription", threads=threads) for threads in (1, 2)
    }
    contenders["peer"] = partial(peer.match, batch)
    with TwoProcesses(template, report.seed, count) as processes:
        contenders["processes"] = processes.match
        found = take_turns(contenders, 5 if report.quick else 11 if count == LARGE else 101, count)
    apart = Timed(statistics.median(processes.seconds[1:]) / count, processes.found)
    work = f"{name}, {count:,} messages"
    different = _different(found[1], found["peer"])
    for threads in (1, 2):
        counts = {"compared": found["peer"].answer[0].size, "different": different}
        yield Row.versus(BATCHES, f"{work}, threads={threads}", PEER, found[threads], found["peer"], **counts)
    rate = 1 / found[1].seconds
    yield Row.alone(RATES, f"{work}, 1 thread", rate, "/s", at_least=FLOOR if template == MIXED else None)
    bar = 1.7 if template == MIXED or count == LARGE else 0.95
    yield Row.versus(RATES, f"{work}, 2 threads", "1 thread", found[2], found[1], bar)
    counts = {"compared": len(found[1].answer.rows), "different": abs(len(found[1].answer.rows) - apart.answer)}
    yield Row.versus(RATES, f"{work}, 2 processes that share nothing", "1 thread", apart, found[1], **counts)


def small_batches(report: Report) -> Iterator[Row]:
    """Measure lists of few messages by default, which chooses the threads, beside one thread."""
    for template, name in ((SPATIAL, "region"), (MIXED, "region, number and text")):
        table = table_for(template, report.seed)
        given = as_mappings(messages(report.seed, SMALL))
        contenders = {
            threads: partial(table.match_many, given, by="subscription", threads=threads) for threads in (1, None)
        }
        found = take_turns(contenders, 50 if report.quick else 501, SMALL)
        work = f"{name}, a list of {SMALL} messages, threads by default"
        yield Row.versus(RATES, work, "1 thread", found[None], found[1], 0.95)


def as_mappings(batch: pa.Table) -> list[dict[str, Any]]:
    """Return messages with a Point, a number and a text each."""
    points = shapely.from_wkb(batch.column("area").to_numpy())
    scalars = zip(batch.column("severity").to_pylist(), batch.column("kind").to_pylist(), strict=True)
    return [
        {"area": ct.Point(point.x, point.y), "severity": severity, "kind": kind}
        for point, (severity, kind) in zip(points, scalars, strict=True)
    ]


def _different(ours: Timed, theirs: Timed) -> int:
    """Return how many pairs only one side found."""
    answer: ct.ManyMatches = ours.answer
    width = 1 << 32
    mine = np.repeat(np.arange(len(answer)), np.diff(answer.offsets)) * width + answer.rows
    return len(np.setxor1d(mine, theirs.answer[0].astype(np.int64) * width + theirs.answer[1]))


def one_by_one(report: Report) -> Iterator[Row]:
    """Measure `match_keys` of messages with a Point, beside a query of the peer's tree and Python for the rest."""
    count = 500 if report.quick else 5_000
    table, batch = table_for(MIXED, report.seed), messages(report.seed, count)
    given = as_mappings(batch)
    points = shapely.from_wkb(batch.column("area").to_numpy())
    scalars = [(one["severity"], one["kind"]) for one in given]
    rows = subscription_rows(report.seed)
    tree = shapely.STRtree(shapely.from_wkb(rows.column("geometry").to_numpy()))
    least, kinds = rows.column("sev").to_pylist(), rows.column("kind").to_pylist()

    def ours() -> list[set[Any]]:
        return [set(table.match_keys(message)) for message in given]

    def theirs() -> list[set[Any]]:
        found = []
        for point, (severity, kind) in zip(points, scalars, strict=True):
            near = tree.query(point, predicate="intersects").tolist()
            found.append({key for key in near if severity >= least[key] and kind == kinds[key]})
        return found

    found = take_turns({"ours": ours, "theirs": theirs}, 15, count)
    different = sum(a != b for a, b in zip(found["ours"].answer, found["theirs"].answer, strict=True))
    work = "match_keys, a Point, a number and a text"
    counts = {"compared": count, "different": different}
    yield Row.versus(SINGLE, work, "STRtree.query, then Python", found["ours"], found["theirs"], **counts)
    micros = found["ours"].seconds * 1e6
    yield Row.alone(SINGLE, work, micros, "us", found["ours"].seconds, at_most=12)
