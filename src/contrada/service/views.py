"""Subscriptions and subscribers as their owners see them."""

from __future__ import annotations

from typing import Any, NamedTuple

from contrada.service.catalog import Definition
from contrada.service.cursors import Cursor, Position
from contrada.service.subscriber_retention import KeptFor


class SubscriptionView(NamedTuple):
    """A subscription as its owner sees it."""

    key: str
    definition: Definition
    filter: Any


class SubscriberView(NamedTuple):
    """How far a subscriber is.

    `position` is the place after the last event that was acknowledged, handed to a reader or removed. `lag` counts
    messages of the log after it, not events. `oldest` is the first event after it, and `waits_since` when its message
    came, in milliseconds since 1970; both are None if there is none among the messages that were looked at. Events of
    messages before `oldest_kept` are gone for it; `kept` is its own retention.
    """

    name: str
    cursor: Cursor
    position: Position
    readers: int
    lag: int
    oldest: Position | None
    waits_since: int | None
    kept: KeptFor
    oldest_kept: int
