"""Tables that are updated: how many updates a second they take, and how long a reader's slowest answers take meanwhile.

Section `live` of benchmarks.match, with regions alone, and of benchmarks.mixed.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np
import pyarrow as pa

import contrada as ct
from benchmarks.answers import INTERSECTS, table_of
from benchmarks.mixed import matching, sets
from benchmarks.polygons import PolygonSet, read_set, small_messages
from benchmarks.report import Report, Row
from benchmarks.timing import measured, repeated, time_each

REGIONS = "Readers while the table is updated (99.9th percentile of match_keys)"
REGIONS_RATE = 1000  # updates a second
MIXED = "Updates of a table of mixed filters, and readers beside them (99.9th percentile of match_keys)"
MIXED_RATE = 5_000  # subscribe or unsubscribe per second
DISTURBED = 5  # times the time of an idle reader


class Live:
    """A table, changes that leave it at its size, and a reader; keys are rows of subscriptions, in the order to go."""

    def __init__(
        self, table: ct.ForwardingTable, keys: Sequence[int], filters: Sequence[Any], messages: Sequence[dict[str, Any]]
    ) -> None:
        self.table, self.keys, self.filters, self.messages = table, list(keys), filters, messages
        self.done = 0
        self.change_one()  # the first one may compile a kernel

    def change_one(self) -> None:
        """Replace one subscription: a new one in, an old one out."""
        self.keys.append(self.table.subscribe("someone", self.filters[self.done % len(self.filters)]))
        self.table.unsubscribe(self.keys[self.done])
        self.done += 1

    def rate(self, count: int) -> float:
        """Return the replacements a second without any reader."""

        def change_all() -> None:
            for _ in range(count):
                self.change_one()

        return count / measured(change_all, warm_up=self.change_one).seconds

    def slowest(self, count: int) -> float:
        """Return the seconds that 999 of 1,000 answers stay below."""
        seconds, _ = time_each(self.table.match_keys, ((message,) for message in islice(cycle(self.messages), count)))
        return float(np.quantile(seconds, 0.999))

    def beside(self, update: Callable[[], None], count: int) -> tuple[float, float]:
        """Return the same while another thread updates without a pause, and the updates a second."""
        done = 0

        def write() -> None:
            nonlocal done
            update()
            done += 1

        start = time.perf_counter()
        with repeated(write):
            busy = self.slowest(count)
        return busy, max(1, done) / (time.perf_counter() - start)


def regions_table(report: Report) -> tuple[PolygonSet, Live]:
    """Return a table of a million subscriptions, a part of it in a quick run, and its polygons."""
    polygons = read_set("SoCal" if report.quick else "LA", report.seed)
    rng = np.random.default_rng(report.seed)
    messages = [{"area": ct.Region.from_wkb(wkb)} for wkb in small_messages(polygons, 1e-6, 500, rng)]
    rows = rng.permutation(len(polygons.shapes)).tolist()
    regions = [ct.Region.from_wkb(polygons.wkb[row].as_py()) for row in rows[:1000]]
    filters = [ct.Constraint("area", INTERSECTS, region) for region in regions]
    return polygons, Live(table_of(polygons, INTERSECTS), rows, filters, messages)


def run_regions(report: Report) -> Iterator[Row]:
    """Measure single updates as fast as they go, and rebuilds of the whole table, next to one reader."""
    polygons, live = regions_table(report)
    count = 5_000 if report.quick else 20_000

    def rebuild() -> None:
        """Add ten subscriptions at once, and pack the whole table again."""
        few = pa.table({"geometry": polygons.wkb[:10]})
        live.table.subscribe_many(few, ct.Constraint("area", INTERSECTS, ct.Column("geometry")))
        live.table.pack()

    rebuild()  # the first one may compile a kernel
    idle = live.slowest(count)
    work = f"{polygons.name}, {len(polygons.shapes):,} subscriptions, "
    busy, rate = live.beside(live.change_one, count)
    yield disturbed(REGIONS, f"{work}single updates", busy, idle)
    yield updates(REGIONS, f"{work}updates beside a reader", rate, REGIONS_RATE)
    yield updates(REGIONS, f"{work}updates alone", live.rate(500), REGIONS_RATE)
    busy, _ = live.beside(rebuild, count)
    yield disturbed(REGIONS, f"{work}rebuilds", busy, idle, DISTURBED)


def run_mixed(report: Report) -> Iterator[Row]:
    """Measure updates of mixed filters alone, and beside one reader."""
    filters, messages, _, table = matching.prepared(report.seed, report.quick)
    asked = [sets.read(message) for message in sets.as_dicts(messages)]
    keys = np.random.default_rng(report.seed).permutation(len(filters)).tolist()
    live = Live(table, keys, list(sets.filters_of(filters.part(0, 1000))), asked)
    work = f"{len(filters):,} filters, "
    alone = 2 * live.rate(500 if report.quick else 5_000)  # one in, one out
    yield updates(MIXED, f"{work}updates alone", alone, MIXED_RATE)
    count = 5_000 if report.quick else 20_000
    idle = live.slowest(count)
    for change, name, least, limit in (
        (live.change_one, "as many updates as can be", MIXED_RATE, None),
        (paced(live.change_one), f"{MIXED_RATE:,} updates a second", 0.99 * MIXED_RATE, DISTURBED),
    ):
        busy, rate = live.beside(change, count)
        yield updates(MIXED, f"{work}{name}, beside a reader", 2 * rate, least)
        yield disturbed(MIXED, f"{work}{name}: a reader", busy, idle, limit)


def paced(change: Callable[[], None]) -> Callable[[], None]:
    """Return changes of two updates each that come at MIXED_RATE, if they can."""
    due = time.perf_counter()

    def change_when_due() -> None:
        nonlocal due
        due = max(due + 2 / MIXED_RATE, time.perf_counter() - 0.1)  # what was late long ago is not made up for
        while (left := due - time.perf_counter()) > 0:
            time.sleep(left)
        change()

    return change_when_due


def updates(section: str, work: str, rate: float, least: float) -> Row:
    """Return the row of a rate of updates."""
    return Row.alone(section, work, rate, "updates/s", 1 / rate, at_least=least)


def disturbed(section: str, work: str, busy: float, idle: float, limit: float | None = None) -> Row:
    """Return the row of a reader beside updates."""
    return Row(section, work, "idle reader", busy, idle, busy / idle, "times the time", at_most=limit)
