"""Mixed filters come and go: how many a second, and what readers beside it notice."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import mixed_ours
import numpy as np
from match_live import beside
from match_report import MatchReport
from mixed_sets import Filters
from mixed_work import prepared
from report import Row
from timing import say

import contrada as ct

SECTION = "Updates of a table of mixed filters, and readers beside them (99.9th percentile of match_keys)"
RATE = 5_000  # subscribe or unsubscribe per second
DISTURBED = 5  # times the time of an idle reader


def run(report: MatchReport) -> Iterator[Row]:
    """Updates alone, and beside one reader."""
    prepared_work = prepared(report)
    if prepared_work is None:
        return
    filters, messages, _, table = prepared_work
    asked = [mixed_ours.read(message) for message in mixed_ours.as_dicts(messages)]
    updates = Updates(table, filters, np.random.default_rng(report.seed))
    work = f"{len(filters):,} filters, "
    alone = updates.rate(500 if report.quick else 5_000)
    yield Row(SECTION, work + "updates alone", "", 1 / alone, None, alone, "updates/s", at_least=RATE)
    count = 5_000 if report.quick else 20_000
    idle = percentile(table, asked, count)
    for change, name, limit in (
        (updates.change_one, "as many updates as can be", None),
        (Paced(updates), f"{RATE:,} updates a second", DISTURBED),
    ):
        busy, done, seconds = beside(change, lambda: percentile(table, asked, count))
        done *= 2  # one in, one out
        say(f"{done} updates in {seconds:.2f} s")
        rate, told = done / seconds, f"{work}{name}"
        least = RATE if limit is None else 0.99 * RATE
        yield Row(SECTION, f"{told}, beside a reader", "", seconds / done, None, rate, "updates/s", at_least=least)
        ratio = busy / idle
        yield Row(SECTION, f"{told}: a reader", "idle reader", busy, idle, ratio, "times the time", at_most=limit)


def percentile(table: ct.ForwardingTable, messages: Sequence[dict[str, Any]], count: int) -> float:
    """Seconds that 999 of 1,000 answers stay below."""
    seconds = np.empty(count)
    for k in range(count):
        start = time.perf_counter()
        table.match_keys(messages[k % len(messages)])
        seconds[k] = time.perf_counter() - start
    return float(np.quantile(seconds, 0.999))


class Paced:
    """Changes that come at RATE, if they can."""

    def __init__(self, updates: Updates) -> None:
        self.updates, self.due = updates, time.perf_counter()

    def __call__(self) -> None:
        """The next one, when it is due."""
        self.due = max(self.due + 2 / RATE, time.perf_counter() - 0.1)  # what was late long ago is not made up for
        while (left := self.due - time.perf_counter()) > 0:
            time.sleep(left)
        self.updates.change_one()


class Updates:
    """Changes to a table that leave it at its size."""

    def __init__(self, table: ct.ForwardingTable, filters: Filters, rng: np.random.Generator) -> None:
        self.table = table
        self.keys = rng.permutation(len(filters)).tolist()
        self.filters = list(mixed_ours.filters_of(filters.part(0, 1000)))
        self.done = 0

    def change_one(self) -> None:
        """A new subscription in, an old one out."""
        key = self.table.subscribe("someone", self.filters[self.done % len(self.filters)])
        self.table.unsubscribe(self.keys[self.done])
        self.keys.append(key)
        self.done += 1

    def rate(self, count: int) -> float:
        """Updates a second without any reader."""
        start = time.perf_counter()
        for _ in range(count):
            self.change_one()
        return 2 * count / (time.perf_counter() - start)
