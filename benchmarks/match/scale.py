"""What grows with the number of subscriptions: time per message, memory, loading; and what threads bring."""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import contrada as ct
from benchmarks.answers import INTERSECTS, ask_plan, ask_regions, settle_answers, table_of, with_answers
from benchmarks.peers.shapely_plans import single_plan
from benchmarks.polygons import KINDS, PolygonSet, large_messages, read_set, small_messages
from benchmarks.report import Report, Row
from benchmarks.timing import measured, race

GROWTH = "S_INTERSECTS, messages that 100 of N subscriptions match (time per message)"
LOADING = "Loading, memory and threads"
ANSWERS = 100
AGAINST = "Shapely: one STRtree, prepared predicate"


def run(report: Report) -> Iterator[Row]:
    """Measure growth, memory and loading with the Los Angeles buildings, threads with SoCal."""
    yield from growth(read_set("LA", report.seed), report)
    yield from threads(read_set("SoCal", report.seed), report)


def growth(whole: PolygonSet, report: Report) -> Iterator[Row]:
    """Time per message from 10,000 polygons on, when messages shrink so that the answer keeps its size."""
    sizes = [10_000, 30_000, 100_000] if report.quick else [10_000, 30_000, 100_000, 300_000, len(whole.shapes)]
    chosen = np.random.default_rng(report.seed).permutation(len(whole.shapes))
    times, count = [], 30 if report.quick else 100
    for size in sizes:
        some = whole.take(np.sort(chosen[:size]))
        loaded = measured(partial(table_of, some, INTERSECTS))
        table = loaded.answer
        messages = with_answers(
            lambda share, some=some: small_messages(some, share, count, np.random.default_rng(report.seed)),
            partial(ask_regions, table), ANSWERS, ANSWERS / size,
        )  # fmt: skip
        plan = single_plan(some.shapes, INTERSECTS)
        calls = partial(ask_regions, table, messages), partial(ask_plan, plan, messages)
        ours, theirs = race(*calls, 5, len(messages))
        times.append(ours.seconds)
        settle = settle_answers(some, messages, INTERSECTS)
        yield report.compare(GROWTH, f"N = {size:,}", AGAINST, ours, theirs, settle)
    yield Row.growing(GROWTH, sizes, times)
    yield from loading(some, table, loaded.seconds)


def loading(polygons: PolygonSet, table: ct.ForwardingTable, seconds: float) -> Iterator[Row]:
    """Measure subscribe_many from Arrow, bytes per constraint, and a saved table opened, with its first answer."""
    count = len(polygons.shapes)
    work = f"subscribe_many of {count:,} polygons (WKB in Arrow), validation included"
    yield Row.lasting(LOADING, work, seconds, at_most=15 * count / 1_000_000)
    work = f"memory per constraint beyond coordinates, {count:,} polygons"
    yield Row.alone(LOADING, work, table.stats().nbytes / count, "bytes", at_most=64)
    with tempfile.TemporaryDirectory(prefix="contrada-match-") as folder:
        table.save(path := Path(folder) / "table")
        message = {"area": ct.Region.from_wkb(polygons.wkb[0].as_py())}
        opening = measured(lambda: ct.ForwardingTable.open(path).match_keys(message), 3).seconds
    yield Row.lasting(LOADING, f"open of {count:,} filters, and a first match", opening, at_most=1)


def threads(polygons: PolygonSet, report: Report) -> Iterator[Row]:
    """Measure match_many of large messages on two cores against one."""
    table = table_of(polygons)
    count = 30 if report.quick else 330
    messages = [wkb for kind in KINDS for wkb in large_messages(polygons, kind, count, report.seed)]
    rows = pa.table({"area": pa.array(messages, pa.binary())})
    calls = (partial(table.match_many, rows, threads=number) for number in (2, 1))
    two, one = race(*calls, 3 if report.quick else 9, len(messages))
    work = f"match_many, SoCal, random operators, {len(messages)} messages, 2 threads (time per message)"
    yield Row.versus(LOADING, work, "1 thread", two, one, 1.6)
