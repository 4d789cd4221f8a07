"""Subscriptions and subscribers as their owners see them."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from contrada.service.catalog import FILTER, SEPARATOR, SUBSCRIPTION, Definition
from contrada.service.cursors import Cursor, Position
from contrada.service.store.message_store import MessageStore
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


def stored_view(store: MessageStore, tenant: str, key: str) -> SubscriptionView | None:
    """Return a subscription as one transaction left it; None if there is none.

    The engine's memory is ahead of the store while a change is written, and stays so if the store fails.
    """
    name = tenant + SEPARATOR + key
    definition = store.record(SUBSCRIPTION, name)
    while definition is not None:
        found, later = store.record(FILTER, name), store.record(SUBSCRIPTION, name)
        if later == definition:  # no transaction came between the two
            known = msgspec.msgpack.decode(definition, type=Definition)
            return None if found is None else SubscriptionView(key, known, msgspec.json.decode(found))
        definition = later
    return None
