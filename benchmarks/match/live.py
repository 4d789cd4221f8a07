"""Readers while a table is updated: the slowest one in a thousand answers, idle and not."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import contrada as ct
from benchmarks.answers import table_of
from benchmarks.polygons import PolygonSet, read_set, small_messages
from benchmarks.report import Report, Row
from benchmarks.updates import Updates, beside, slowest

SECTION = "Readers while the table is updated (99.9th percentile of match_keys)"
INTERSECTS = ct.RelationSet.S_INTERSECTS
RATE = 1000  # updates a second


class Live(NamedTuple):
    """A set, messages for it, and updates of its table."""

    polygons: PolygonSet
    messages: list[dict[str, ct.Region]]
    updates: Updates


def prepared(report: Report) -> Live:
    """Make a table of a million subscriptions, a part of it in a quick run."""
    polygons = read_set("SoCal" if report.quick else "LA", report.seed)
    rng = np.random.default_rng(report.seed)
    messages = [{"area": ct.Region.from_wkb(wkb)} for wkb in small_messages(polygons, 1e-6, 500, rng)]
    rows = rng.permutation(len(polygons.shapes)).tolist()
    regions = [ct.Region.from_wkb(polygons.wkb[row].as_py()) for row in rows[:1000]]
    filters = [ct.Constraint("area", INTERSECTS, region) for region in regions]
    return Live(polygons, messages, Updates(table_of(polygons, INTERSECTS), rows, filters))


def run(report: Report) -> Iterator[Row]:
    """Measure single updates as fast as they go, and rebuilds of the whole table, next to one reader."""
    polygons, messages, updates = prepared(report)
    table, count = updates.table, 5_000 if report.quick else 20_000

    def rebuild() -> None:
        """Add ten subscriptions at once, and pack the whole table again."""
        few = pa.table({"geometry": polygons.wkb[:10]})
        table.subscribe_many(few, ct.Constraint("area", INTERSECTS, ct.Column("geometry")))
        table.pack()

    rebuild()  # the first one may compile a kernel
    idle = slowest(table, messages, count)
    work = f"{polygons.name}, {len(polygons.shapes):,} subscriptions, "
    for name, update in (("single updates", updates.change_one), ("rebuilds", rebuild)):
        busy, done, seconds = beside(update, lambda: slowest(table, messages, count))
        bar = 5 if update is rebuild else None
        yield Row(SECTION, work + name, "idle reader", busy, idle, busy / idle, "times the time", at_most=bar)
        if update is not rebuild:
            for where, rate in (("beside a reader", done / seconds), ("alone", updates.rate(500))):
                yield Row.alone(SECTION, f"{work}updates {where}", rate, "updates/s", 1 / rate, at_least=RATE)
