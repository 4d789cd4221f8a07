"""Retention of single subscribers: how much of the log each is given, within what the log keeps."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from contrada.service.catalog import SEPARATOR
from contrada.service.store.message_store import MessageStore, StoreChange

SUBSCRIBER = "subscriber"  # kind of the records


class KeptFor(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a subscriber is given: the messages of the last `age` milliseconds, the latest `bytes` or `messages`.

    Whatever is reached first ends it; None is as long as the log. Events of messages before `floor` are gone.
    """

    age: int | None = None
    bytes: int | None = None
    messages: int | None = None
    floor: int = 0

    def bound(self, store: MessageStore, now: int, total: int) -> int:
        """Return the first message that is still given, of those that are stored; `total` is that of the last."""
        newest = store.span().newest
        found = self.floor
        if self.age is not None:
            found = max(found, store.first_at(now - self.age))
        if self.bytes is not None:
            found = max(found, store.first_with_total(total - self.bytes))
        if self.messages is not None:
            found = max(found, newest + 1 - self.messages)
        return min(found, newest + 1)


class SubscriberRetentions:
    """What subscribers are given, by tenant and name; those that are not here are given all that the log keeps."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], KeptFor] = {}

    @classmethod
    def load(cls, store: MessageStore) -> SubscriberRetentions:
        """Return what a store holds."""
        found = cls()
        for name, value in store.records(SUBSCRIBER):
            tenant, _, subscriber = name.partition(SEPARATOR)
            found._kept[tenant, subscriber] = msgspec.msgpack.decode(value, type=KeptFor)
        return found

    def get(self, tenant: str, subscriber: str) -> KeptFor:
        """Return what a subscriber is given."""
        return self._kept.get((tenant, subscriber), KeptFor())

    def items(self) -> Iterator[tuple[tuple[str, str], KeptFor]]:
        """Yield tenants and subscribers with what they are given."""
        return iter(list(self._kept.items()))

    def put(self, tenant: str, subscriber: str, kept: KeptFor, change: StoreChange) -> None:
        """Set what a subscriber is given."""
        self._kept[tenant, subscriber] = kept
        change.records.append((SUBSCRIBER, tenant + SEPARATOR + subscriber, msgspec.msgpack.encode(kept)))
