"""Readers while a table is updated: the slowest one in a thousand answers, idle and not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from match_report import MatchReport
from match_sets import PolygonSet, read_set, small_messages, table_of
from report import Row
from timing import say

import contrada as ct

SECTION = "Readers while the table is updated (99.9th percentile of match_keys)"
AREA = ct.Constraint("area", ct.RelationSet.S_INTERSECTS, ct.Column("geometry"))


def run(report: MatchReport) -> Iterator[Row]:
    """Single updates as fast as they go, and rebuilds of the whole table, next to one reader."""
    polygons = read_set("SoCal" if report.quick else "LA", report)
    if polygons is None:
        return
    table = table_of(polygons, ct.RelationSet.S_INTERSECTS)
    rng = np.random.default_rng(report.seed)
    messages = [ct.Region.from_wkb(wkb) for wkb in small_messages(polygons, 1e-6, 500, rng)]
    count = 5_000 if report.quick else 20_000
    idle = percentile(table, messages, count)
    updates = Updates(table, polygons, rng)
    work = f"{polygons.name}, {len(polygons.shapes):,} subscriptions, "
    for name, update in (("single updates", updates.change_one), ("rebuilds", updates.rebuild)):
        busy, done, seconds = beside(update, lambda: percentile(table, messages, count))
        say(f"{name}: {done} in {seconds:.2f} s")
        bar = 5 if update == updates.rebuild else None
        yield Row(SECTION, work + name, "idle reader", busy, idle, busy / idle, "times the time", at_most=bar)
        if update == updates.change_one:
            rate, alone = done / seconds, updates.rate()
            yield Row(SECTION, work + "updates beside a reader", "", seconds / done, None, rate, "updates/s", 1000)
            yield Row(SECTION, work + "updates alone", "", 1 / alone, None, alone, "updates/s", at_least=1000)


def percentile(table: ct.ForwardingTable, messages: Sequence[ct.Region], count: int) -> float:
    """Seconds that 999 of 1,000 answers stay below."""
    seconds = np.empty(count)
    for k in range(count):
        start = time.perf_counter()
        table.match_keys({"area": messages[k % len(messages)]})
        seconds[k] = time.perf_counter() - start
    return float(np.quantile(seconds, 0.999))


def beside(update: Callable[[], None], read: Callable[[], float]) -> tuple[float, int, float]:
    """What a reader finds while another thread updates; the number of updates and the seconds it took."""
    stop, done = threading.Event(), [0]

    def write() -> None:
        while not stop.is_set():
            update()
            done[0] += 1

    writer = threading.Thread(target=write)
    start = time.perf_counter()
    writer.start()
    try:
        found = read()
    finally:
        stop.set()
        writer.join()
    return found, done[0], time.perf_counter() - start


class Updates:
    """Changes to a table that leave it at its size."""

    def __init__(self, table: ct.ForwardingTable, polygons: PolygonSet, rng: np.random.Generator) -> None:
        self.table, self.wkb = table, polygons.wkb
        self.rows = rng.permutation(len(polygons.shapes))
        self.regions = [ct.Region.from_wkb(polygons.wkb[int(row)].as_py()) for row in self.rows[:1000]]
        self.done = 0

    def change_one(self) -> None:
        """Replace one subscription: a new one in, an old one out."""
        region = self.regions[self.done % len(self.regions)]
        self.table.subscribe("someone", ct.Constraint("area", ct.RelationSet.S_INTERSECTS, region))
        self.table.unsubscribe(int(self.rows[self.done]))
        self.done += 1

    def rebuild(self) -> None:
        """Add ten subscriptions at once, and pack the whole table again."""
        self.table.subscribe_many(pa.table({"geometry": self.wkb[:10]}), AREA)
        self.table.pack()

    def rate(self, count: int = 500) -> float:
        """Replacements a second without any reader."""
        start = time.perf_counter()
        for _ in range(count):
            self.change_one()
        return count / (time.perf_counter() - start)
