"""Snapshot: what a table held at one moment. Readers take one by reference and never wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.matching.level import Level, Value


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

    def subscriptions(self, message: Mapping[str, Value]) -> NDArray[np.int64]:
        """Rows of the subscriptions that a message satisfies, sorted."""
        found = [level.match(message) for level in self.levels if level.filters]
        filters = found[0] if len(found) == 1 else np.concatenate([*found, np.empty(0, np.int32)])
        rows = filters if self.filter_subscription is None else self.filter_subscription[filters]
        rows = rows[self.is_alive(rows)] if self.died is not None else rows
        if self.several_filters:
            return np.unique(rows).astype(np.int64)
        rows.sort()  # a copy already
        return rows.astype(np.int64)

    def is_alive(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Which subscriptions are alive."""
        if self.died is None:
            return np.ones(len(rows), bool)
        alive: NDArray[np.bool_] = self.died[rows] > self.version
        return alive

    def is_filter_alive(self, filters: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which filters belong to a subscription that is alive."""
        return self.is_alive(filters if self.filter_subscription is None else self.filter_subscription[filters])

    def subscribers(self, message: Mapping[str, Value]) -> NDArray[np.int64]:
        """Rows of the subscribers that a message goes to, sorted."""
        rows = self.subscriptions(message)
        if self.subscription_subscriber is None:
            return rows
        return np.unique(self.subscription_subscriber[rows]).astype(np.int64)
