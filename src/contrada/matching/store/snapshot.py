"""Snapshot: the contents of a table at one moment. Readers take one by reference and never wait."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.index.packed import NO_ROWS
from contrada.matching.store.level import Level, Message, merged

MAX_MARKS_PER_ROW = 64  # up to this many subscribers per row found, marking them in an array is faster than sorting


class Snapshot(NamedTuple):
    """Levels, and the arrays that map filters to subscriptions and subscriptions to subscribers.

    Arrays are append-only, except `died`, which is written in place: a subscription is alive in a snapshot iff its
    entry is larger than `version`. So later updates do not change earlier snapshots.
    """

    version: int
    levels: tuple[Level, ...]
    rows: int
    filters: int
    filter_subscription: NDArray[np.int32] | None  # None: filter k belongs to subscription k
    subscription_subscriber: NDArray[np.int32] | None  # None: subscription k belongs to subscriber k
    died: NDArray[np.int64] | None  # version at which a subscription was removed; None: none was
    several_filters: bool

    def subscriptions(self, message: Message) -> NDArray[np.int64]:
        """Return the rows of the subscriptions that a message satisfies, sorted.

        Filters have the order of their subscriptions, so sorted filters give sorted rows.
        """
        found = []
        for level in self.levels:
            if level.filters:
                found.append(level.match(message))
        rows = found[0] if len(found) == 1 else merged(found)
        if not len(rows):
            return NO_ROWS
        if self.filter_subscription is not None:
            rows = self.filter_subscription[rows].astype(np.int64)
        if self.died is not None:
            rows = rows[self.is_alive(rows)]
        if self.several_filters and len(rows) > 1:
            rows = rows[np.append(True, rows[1:] != rows[:-1])]
        return rows

    def is_alive(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which of the subscriptions `rows` are alive."""
        if self.died is None:
            return np.ones(len(rows), bool)
        alive: NDArray[np.bool_] = self.died[rows] > self.version
        return alive

    def living(self) -> NDArray[np.int64]:
        """Return the rows of live subscriptions."""
        return np.flatnonzero(self.is_alive(np.arange(self.rows)))

    def owners(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of the subscribers of the subscriptions `rows`."""
        whose = self.subscription_subscriber
        return rows if whose is None else whose[rows].astype(np.int64)

    def is_filter_alive(self, filters: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which filters belong to a live subscription."""
        return self.is_alive(filters if self.filter_subscription is None else self.filter_subscription[filters])

    def subscribers(self, message: Message) -> NDArray[np.int64]:
        """Return the rows of the subscribers that a message goes to, sorted."""
        rows = self.subscriptions(message)
        if self.subscription_subscriber is None or not len(rows):
            return rows
        subscribers = self.subscription_subscriber[rows]
        most = int(subscribers.max(initial=0))
        if len(rows) * MAX_MARKS_PER_ROW < most:
            return np.unique(subscribers).astype(np.int64)
        marks = np.zeros(most + 1, bool)
        marks[subscribers] = True
        return np.flatnonzero(marks[: most + 1 if len(rows) else 0])
