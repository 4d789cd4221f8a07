"""What grows with the number of subscriptions: time per message, memory, loading; and what threads bring."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from match_large import ask_plan
from match_report import MatchReport
from match_sets import (
    KINDS,
    PolygonSet,
    ask_regions,
    large_messages,
    read_set,
    settle_answers,
    small_messages,
    table_of,
)
from match_shapely import single_plan
from report import Row
from timing import say, take_turns, time_once

import contrada as ct

GROWTH = "S_INTERSECTS, messages that 100 of N subscriptions match (time per message)"
LOADING = "Loading, memory and threads"
ANSWERS = 100
AGAINST = "Shapely: one STRtree, prepared predicate"
INTERSECTS = ct.RelationSet.S_INTERSECTS


def run(report: MatchReport) -> Iterator[Row]:
    """Growth, memory and loading with the Los Angeles buildings, threads with SoCal."""
    whole = read_set("LA", report)
    if whole is not None:
        yield from growth(whole, report)
    socal = read_set("SoCal", report)
    if socal is not None:
        yield from threads(socal, report)


def growth(whole: PolygonSet, report: MatchReport) -> Iterator[Row]:
    """Time per message from 10,000 polygons on, when messages shrink so that the answer keeps its size."""
    sizes = [10_000, 30_000, 100_000] if report.quick else [10_000, 30_000, 100_000, 300_000, len(whole.shapes)]
    chosen = np.random.default_rng(report.seed).permutation(len(whole.shapes))
    times = []
    for size in sizes:
        some = sample(whole, chosen[:size])
        start = take_turns({"load": partial(table_of, some, INTERSECTS)}, 1)["load"]
        table = start.answer
        messages = messages_of_100(table, some, 30 if report.quick else 100, report.seed)
        plan = single_plan(some.shapes, INTERSECTS)
        contenders = {"ours": partial(ask_regions, table, messages), "peer": partial(ask_plan, plan, messages)}
        found = take_turns(contenders, 5)
        ours, theirs = found["ours"], found["peer"]
        times.append(ours.seconds / len(messages))
        work = f"N = {size:,}"
        settled = settle_answers((work, AGAINST), some, messages, ours.answer, theirs.answer, INTERSECTS)
        say(work)
        each = times[-1], theirs.seconds / len(messages)
        yield report.compare(GROWTH, work, AGAINST, *each, settled, None)
    work = f"from N = {sizes[0]:,} to {sizes[-1]:,}"
    yield Row(GROWTH, work, "ourselves", times[-1], times[0], times[-1] / times[0], "times the time", at_most=4)
    yield from loading(some, table, start.seconds)


def sample(whole: PolygonSet, rows: np.ndarray) -> PolygonSet:
    """Some of the polygons."""
    rows = np.sort(rows)
    return whole._replace(
        wkb=whole.wkb.take(pa.array(rows)), shapes=whole.shapes[rows], operators=whole.operators[rows]
    )


def messages_of_100(table: ct.ForwardingTable, polygons: PolygonSet, count: int, seed: int) -> list[bytes]:
    """Messages of such a size that they have 100 answers on average."""
    share = ANSWERS / len(polygons.shapes)
    for _ in range(8):
        messages = small_messages(polygons, share, count, np.random.default_rng(seed))
        mean = np.mean([len(rows) for rows in ask_regions(table, messages)])
        if abs(mean - ANSWERS) < 5:
            break
        share *= ANSWERS / max(mean, 1)
    return messages


def loading(polygons: PolygonSet, table: ct.ForwardingTable, seconds: float) -> Iterator[Row]:
    """subscribe_many from Arrow, bytes per constraint, and a saved table opened, with its first answer."""
    count = len(polygons.shapes)
    work = f"subscribe_many of {count:,} polygons (WKB in Arrow), validation included"
    bar = 15 * count / 1_000_000
    yield Row(LOADING, work, "", seconds, None, seconds, "s", at_most=bar)
    rest = table.stats().nbytes / count
    work = f"memory per constraint beyond coordinates, {count:,} polygons"
    yield Row(LOADING, work, "", None, None, rest, "bytes", at_most=64)
    with tempfile.TemporaryDirectory(prefix="contrada-match-") as folder:
        table.save(path := Path(folder) / "table")
        message = {"area": ct.Region.from_wkb(polygons.wkb[0].as_py())}
        opening = time_once(lambda: ct.ForwardingTable.open(path).match_keys(message))
    yield Row(LOADING, f"open of {count:,} filters, and a first match", "", opening, None, opening, "s", at_most=1)


def threads(polygons: PolygonSet, report: MatchReport) -> Iterator[Row]:
    """match_many of large messages on two cores against one."""
    table = table_of(polygons)
    count = 30 if report.quick else 330
    messages = [wkb for kind in KINDS for wkb in large_messages(polygons, kind, count, report.seed)]
    rows = pa.table({"area": pa.array(messages, pa.binary())})
    one, two = (partial(table.match_many, rows, threads=count) for count in (1, 2))
    found = take_turns({"1": one, "2": two}, 3 if report.quick else 9)
    first, second = found["1"].seconds / len(messages), found["2"].seconds / len(messages)
    work = f"match_many, SoCal, random operators, {len(messages)} messages, 2 threads (time per message)"
    yield Row(LOADING, work, "1 thread", second, first, first / second, at_least=1.6)
