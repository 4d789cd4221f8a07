"""Catalog: the subscriptions of all tenants, by key and by number, and whose they are."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from contrada.errors import UnknownKeyError
from contrada.service.store.message_store import MessageStore, StoreChange

SUBSCRIPTION, FILTER, RETIRED = "subscription", "filter", "retired"  # kinds of records
SEPARATOR = "\0"  # between a tenant and a name


class Definition(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of a subscription besides its filter; times are in milliseconds since 1970.

    Messages from the sequence number `applies_from` on are matched against it.
    """

    number: int
    subscriber: str
    applies_from: int
    created: int
    on: str = "match"
    expires: int | None = None
    is_paused: bool = False


class Retired(msgspec.Struct, frozen=True):
    """A subscription that is gone, and of which messages up to `until` may be delivered still."""

    tenant: str
    key: str
    subscriber: str
    until: int


class NumberOwner(NamedTuple):
    """Whose a number is: the place of the subscriber's feed, and the key of the subscription."""

    feed: int
    key: str


class FeedPlaces:
    """Places of subscribers, which stay the same while a process runs, also when a catalog is loaded again.

    >>> places = FeedPlaces()
    >>> places.of("t", "ann"), places.of("t", "bob"), places.of("t", "ann"), places.known("u", "ann")
    (0, 1, 0, None)
    """

    def __init__(self) -> None:
        self.names: list[tuple[str, str]] = []  # tenant and subscriber, by place
        self._places: dict[tuple[str, str], int] = {}

    def of(self, tenant: str, subscriber: str) -> int:
        """Return the place of a subscriber, a new one for a new subscriber."""
        place = self._places.get((tenant, subscriber))
        if place is None:
            place = self._places[tenant, subscriber] = len(self.names)
            self.names.append((tenant, subscriber))
        return place

    def known(self, tenant: str, subscriber: str) -> int | None:
        """Return the place of a subscriber that was ever seen; None for others."""
        return self._places.get((tenant, subscriber))


class Catalog:
    """Subscriptions and subscribers. A number is never used again, so that an old event keeps its id.

    Only the engine changes a catalog. Others may look up owners by number, which are only ever added.
    """

    def __init__(self, feeds: FeedPlaces) -> None:
        self.owners: list[NumberOwner | None] = [None]  # by number
        self.feeds = feeds
        self._live: dict[tuple[str, str], Definition] = {}  # by tenant and key
        self._counts: dict[str, int] = {}  # by tenant
        self._retired: dict[int, int] = {}  # last sequence numbers, by number
        self._expiries: list[tuple[int, str, str]] = []

    @classmethod
    def load(cls, store: MessageStore, feeds: FeedPlaces) -> Catalog:
        """Return what a store holds."""
        catalog = cls(feeds)
        decode = msgspec.msgpack.Decoder(Definition).decode
        for name, value in store.records(SUBSCRIPTION):
            tenant, _, key = name.partition(SEPARATOR)
            catalog._put(tenant, key, decode(value))
        for name, value in store.records(RETIRED):
            gone = msgspec.msgpack.decode(value, type=Retired)
            catalog._own(int(name), feeds.of(gone.tenant, gone.subscriber), gone.key)
            catalog._retired[int(name)] = gone.until
        return catalog

    def __len__(self) -> int:
        return len(self._live)

    def count(self, tenant: str) -> int:
        """Return the number of subscriptions of a tenant."""
        return self._counts.get(tenant, 0)

    def get(self, tenant: str, key: str) -> Definition | None:
        """Return a subscription; None if there is none."""
        return self._live.get((tenant, key))

    def require(self, tenant: str, key: str) -> Definition:
        """Return a subscription; raise UnknownKeyError if there is none."""
        found = self._live.get((tenant, key))
        if found is None:
            raise UnknownKeyError(f"no subscription has the key {key!r:.80}")
        return found

    def items(self) -> Iterator[tuple[str, str, Definition]]:
        """Yield tenants, keys and subscriptions."""
        return ((tenant, key, definition) for (tenant, key), definition in self._live.items())

    def new_number(self) -> int:
        """Return a number that was never used."""
        self.owners.append(None)
        return len(self.owners) - 1

    def put(self, tenant: str, key: str, definition: Definition, change: StoreChange) -> None:
        """Add or replace a subscription."""
        self._put(tenant, key, definition)
        change.records.append((SUBSCRIPTION, tenant + SEPARATOR + key, msgspec.msgpack.encode(definition)))

    def remove(self, tenant: str, key: str, last: int, change: StoreChange) -> Definition:
        """Remove a subscription; events of messages up to `last` stay deliverable."""
        definition = self.require(tenant, key)
        del self._live[tenant, key]
        self._counts[tenant] -= 1
        self._retired[definition.number] = last
        name = tenant + SEPARATOR + key
        retired = Retired(tenant, key, definition.subscriber, last)
        change.records += [
            (SUBSCRIPTION, name, None),
            (FILTER, name, None),
            (RETIRED, str(definition.number), msgspec.msgpack.encode(retired)),
        ]
        return definition

    def forget_before(self, oldest: int, change: StoreChange) -> None:
        """Forget removed subscriptions of which no message is kept; the last number is kept so that none comes back."""
        last = len(self.owners) - 1
        for number in [number for number, until in self._retired.items() if until < oldest and number != last]:
            del self._retired[number]
            change.records.append((RETIRED, str(number), None))

    def expired(self, now: int) -> Iterator[tuple[str, str]]:
        """Yield the tenants and keys of subscriptions whose time is over, once each."""
        while self._expiries and self._expiries[0][0] <= now:
            at, tenant, key = heapq.heappop(self._expiries)
            definition = self.get(tenant, key)
            if definition is not None and definition.expires == at:
                yield tenant, key

    def _put(self, tenant: str, key: str, definition: Definition) -> None:
        if (tenant, key) not in self._live:
            self._counts[tenant] = self._counts.get(tenant, 0) + 1
        self._live[tenant, key] = definition
        self._own(definition.number, self.feeds.of(tenant, definition.subscriber), key)
        if definition.expires is not None:
            heapq.heappush(self._expiries, (definition.expires, tenant, key))

    def _own(self, number: int, feed: int, key: str) -> None:
        if number >= len(self.owners):
            self.owners += [None] * (number + 1 - len(self.owners))
        self.owners[number] = NumberOwner(feed, key)
