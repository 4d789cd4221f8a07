"""Followed attributes: for tracked objects neighbours are asked for all messages about objects, not only for matches.

An object leaves a region by a message that matches nothing. So a broker with neighbours subscribes to every message
that has the tracking attribute of one of its subscriptions.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from contrada.service.catalog import SEPARATOR
from contrada.service.store.message_store import MessageStore, StoreChange

FOLLOWED = "followed"  # kind of the records, and what keys of such subscriptions begin with
FOLLOWER = "followed objects"  # their client


class FollowedAttributes:
    """The attributes whose messages the brokers of tenants ask for."""

    def __init__(self) -> None:
        self._names: defaultdict[str, set[str]] = defaultdict(set)  # by tenant

    @classmethod
    def load(cls, store: MessageStore) -> FollowedAttributes:
        """Return what a store holds."""
        followed = cls()
        for name in store.names(FOLLOWED):
            tenant, _, attribute = name.partition(SEPARATOR)
            followed._names[tenant].add(attribute)
        return followed

    def of(self, tenant: str) -> set[str]:
        """Return the attributes of a tenant."""
        return set(self._names.get(tenant, ()))

    def put(self, tenant: str, attribute: str, is_followed: bool, change: StoreChange) -> None:
        """Note that an attribute is followed, or not any more."""
        (self._names[tenant].add if is_followed else self._names[tenant].discard)(attribute)
        change.records.append((FOLLOWED, tenant + SEPARATOR + attribute, b"" if is_followed else None))


def followed_key(attribute: str) -> str:
    """Return the key of the subscription to messages that have an attribute."""
    return FOLLOWED + SEPARATOR + attribute


def followed_filter(attribute: str) -> dict[str, Any]:
    """Return the filter of the subscription to messages that have an attribute, as CQL2 JSON."""
    return {"op": "not", "args": [{"op": "isNull", "args": [{"property": attribute}]}]}
