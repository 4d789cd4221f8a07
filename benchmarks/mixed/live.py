"""Mixed filters come and go: how many a second, and what readers beside it notice."""

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.mixed import tables
from benchmarks.mixed.matching import prepared
from benchmarks.report import Report, Row
from benchmarks.updates import Updates, beside, slowest

SECTION = "Updates of a table of mixed filters, and readers beside them (99.9th percentile of match_keys)"
RATE = 5_000  # subscribe or unsubscribe per second
DISTURBED = 5  # times the time of an idle reader


def run(report: Report) -> Iterator[Row]:
    """Measure updates alone, and beside one reader."""
    filters, messages, _, table = prepared(report.seed, report.quick)
    asked = [tables.read(message) for message in tables.as_dicts(messages)]
    keys = np.random.default_rng(report.seed).permutation(len(filters)).tolist()
    updates = Updates(table, keys, list(tables.filters_of(filters.part(0, 1000))))
    work = f"{len(filters):,} filters, "
    alone = 2 * updates.rate(500 if report.quick else 5_000)  # one in, one out
    yield Row.alone(SECTION, work + "updates alone", alone, "updates/s", 1 / alone, at_least=RATE)
    count = 5_000 if report.quick else 20_000
    idle = slowest(table, asked, count)
    for change, name, limit in (
        (updates.change_one, "as many updates as can be", None),
        (Paced(updates), f"{RATE:,} updates a second", DISTURBED),
    ):
        busy, done, seconds = beside(change, lambda: slowest(table, asked, count))
        rate, title = 2 * done / seconds, f"{work}{name}"
        least = RATE if limit is None else 0.99 * RATE
        yield Row.alone(SECTION, f"{title}, beside a reader", rate, "updates/s", 1 / rate, at_least=least)
        ratio = busy / idle
        yield Row(SECTION, f"{title}: a reader", "idle reader", busy, idle, ratio, "times the time", at_most=limit)


class Paced:
    """Changes that come at RATE, if they can."""

    def __init__(self, updates: Updates) -> None:
        self.updates, self.due = updates, time.perf_counter()

    def __call__(self) -> None:
        """Make the next one when it is due."""
        self.due = max(self.due + 2 / RATE, time.perf_counter() - 0.1)  # what was late long ago is not made up for
        while (left := self.due - time.perf_counter()) > 0:
            time.sleep(left)
        self.updates.change_one()
