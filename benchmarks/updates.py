"""Updates of a table, alone and beside a reader, and how long the reader's slowest answers take meanwhile."""

import threading
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np

import contrada as ct
from benchmarks.timing import measured, time_each


class Updates:
    """Changes to a table that leave it at its size; keys are the rows of its subscriptions, in the order to go."""

    def __init__(self, table: ct.ForwardingTable, keys: Sequence[int], filters: Sequence[Any]) -> None:
        self.table, self.keys, self.filters = table, list(keys), filters
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


def slowest(table: ct.ForwardingTable, messages: Sequence[dict[str, Any]], count: int) -> float:
    """Return the seconds that 999 of 1,000 answers stay below."""
    seconds, _ = time_each(table.match_keys, ((message,) for message in islice(cycle(messages), count)))
    return float(np.quantile(seconds, 0.999))


class Beside(NamedTuple):
    """What a reader found while another thread updated, the number of updates, and the seconds that both took."""

    found: float
    done: int
    seconds: float


def beside(update: Callable[[], None], read: Callable[[], float]) -> Beside:
    """Read while another thread updates without a pause."""
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
    return Beside(found, done[0], time.perf_counter() - start)
