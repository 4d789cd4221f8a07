"""Snapshot: what a table held at one moment. Readers take one by reference and never wait."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.matching.level import Level, Message, merged

MAX_MARKS_PER_ROW = 64  # of so many subscribers one is found: then marking them all beats sorting


class Snapshot(NamedTuple):
    """Levels and the arrays that lead from filters to subscriptions to subscribers.

    The arrays are append-only, and `died` is written in place: a subscription is alive here iff it died, if ever, after
    this version. So later updates do not show in earlier snapshots.
    """

    version: int
    levels: tuple[Level, ...]
    rows: int
    filters: int
    filter_subscription: NDArray[np.int32] | None  # None: filter k belongs to subscription k
    subscription_subscriber: NDArray[np.int32] | None  # None: subscription k belongs to subscriber k
    died: NDArray[np.int64] | None  # None: nobody did
    several_filters: bool

    def subscriptions(self, message: Message) -> NDArray[np.int64]:
        """Rows of the subscriptions that a message satisfies, sorted.

        Filters and the subscriptions they belong to are numbered in the same order, so what is sorted stays so.
        """
        found = []
        for level in self.levels:
            if level.filters:
                found.append(level.match(message))
        rows = found[0] if len(found) == 1 else merged(found)
        if self.filter_subscription is not None:
            rows = self.filter_subscription[rows].astype(np.int64)
        if self.died is not None:
            rows = rows[self.is_alive(rows)]
        if self.several_filters and len(rows) > 1:
            rows = rows[np.append(True, rows[1:] != rows[:-1])]
        return rows

    def is_alive(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Which subscriptions are alive."""
        if self.died is None:
            return np.ones(len(rows), bool)
        alive: NDArray[np.bool_] = self.died[rows] > self.version
        return alive

    def is_filter_alive(self, filters: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which filters belong to a subscription that is alive."""
        return self.is_alive(filters if self.filter_subscription is None else self.filter_subscription[filters])

    def subscribers(self, message: Message) -> NDArray[np.int64]:
        """Rows of the subscribers that a message goes to, sorted."""
        rows = self.subscriptions(message)
        if self.subscription_subscriber is None:
            return rows
        subscribers = self.subscription_subscriber[rows]
        most = int(subscribers.max(initial=0))
        if len(rows) * MAX_MARKS_PER_ROW < most:
            return np.unique(subscribers).astype(np.int64)
        marks = np.zeros(most + 1, bool)
        marks[subscribers] = True
        return np.flatnonzero(marks[: most + 1 if len(rows) else 0])
