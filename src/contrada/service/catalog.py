"""Catalog: the subscriptions of all tenants, by key and by number, and whose they are."""

from __future__ import annotations

import heapq
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from contrada.errors import UnknownKeyError
from contrada.service.store.message_store import MessageStore, StoreChange
from contrada.service.tracks.asking import TrackAsked

SUBSCRIPTION, FILTER, RETIRED = "subscription", "filter", "retired"  # kinds of records
SEPARATOR = "\0"  # between a tenant and a name


class Definition(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of a subscription besides its filter; times are in milliseconds since 1970.

    Messages from the sequence number `applies_from` on are matched against it. `track` is there if it tracks objects.
    """

    number: int
    subscriber: str
    applies_from: int
    created: int
    on: str = "match"
    expires: int | None = None
    is_paused: bool = False
    track: TrackAsked | None = None


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
    """Places of subscribers, which stay the same while anything refers to them, also when a catalog is loaded again.

    A place is forgotten when no subscription of a kept message and no reader is left, and is never used again. The
    engine and the event loop use places at once.

    >>> places = FeedPlaces()
    >>> places.of("t", "ann"), places.of("t", "bob"), places.of("t", "ann"), places.known("u", "ann")
    (0, 1, 0, None)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 0
        self._names: dict[int, tuple[str, str]] = {}  # tenant and subscriber, by place
        self._places: dict[tuple[str, str], int] = {}
        self._owned: set[int] = set()
        self._readers: defaultdict[int, int] = defaultdict(int)

    def of(self, tenant: str, subscriber: str) -> int:
        """Return the place of a subscriber, a new one for a new subscriber; subscriptions own it."""
        with self._lock:
            place = self._place(tenant, subscriber)
            self._owned.add(place)
            return place

    def enter(self, tenant: str, subscriber: str) -> int:
        """Return the place of a subscriber, a new one for a new subscriber, for a reader, which leaves it later."""
        with self._lock:
            place = self._place(tenant, subscriber)
            self._readers[place] += 1
            return place

    def leave(self, place: int) -> None:
        """Count a reader out."""
        with self._lock:
            self._readers[place] -= 1
            if not self._readers[place]:
                del self._readers[place]
                self._forget_unused(place)

    def disown(self, place: int) -> None:
        """No subscription of a kept message has this place any more."""
        with self._lock:
            self._owned.discard(place)
            self._forget_unused(place)

    def known(self, tenant: str, subscriber: str) -> int | None:
        """Return the place of a subscriber; None for those that have none."""
        return self._places.get((tenant, subscriber))

    def name(self, place: int) -> tuple[str, str] | None:
        """Return the tenant and subscriber of a place; None if it was forgotten."""
        return self._names.get(place)

    def items(self) -> list[tuple[int, tuple[str, str]]]:
        """Return places with their tenants and subscribers."""
        with self._lock:
            return list(self._names.items())

    def _place(self, tenant: str, subscriber: str) -> int:
        place = self._places.get((tenant, subscriber))
        if place is None:
            place = self._places[tenant, subscriber] = self._next
            self._names[place] = tenant, subscriber
            self._next += 1
        return place

    def _forget_unused(self, place: int) -> None:
        if place not in self._owned and place not in self._readers:
            del self._places[self._names.pop(place)]


class Catalog:
    """Subscriptions and subscribers. A number is never used again, so that an old event keeps its id.

    Only the engine changes a catalog. Others may look up owners by number: one goes when no message that is kept has
    its number.
    """

    def __init__(self, feeds: FeedPlaces) -> None:
        self.owners: list[NumberOwner | None] = [None]  # by number
        self.feeds = feeds
        self._live: dict[tuple[str, str], Definition] = {}  # by tenant and key
        self._counts: dict[str, int] = {}  # by tenant
        self._numbers: Counter[int] = Counter()  # with an owner, by feed
        self._vacant: list[int] = []  # feeds that had no number after the last time that some were forgotten
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

    def keys(self, tenant: str) -> list[str]:
        """Return the keys of a tenant; any thread may ask."""
        return [key for owner, key in list(self._live) if owner == tenant]  # a list is made at once

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
        self._disown_vacant()
        last = len(self.owners) - 1
        for number in [number for number, until in self._retired.items() if until < oldest and number != last]:
            del self._retired[number]
            self._disown(number)
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
        self._numbers[feed] += self.owners[number] is None
        self.owners[number] = NumberOwner(feed, key)

    def _disown(self, number: int) -> None:
        owner = self.owners[number]
        assert owner is not None
        self.owners[number] = None
        self._numbers[owner.feed] -= 1
        self._vacant.append(owner.feed)

    def _disown_vacant(self) -> None:
        # Not at once: if the change that forgets numbers cannot be written, a reloaded catalog needs the places again.
        for feed in set(self._vacant):
            if not self._numbers[feed]:
                del self._numbers[feed]
                self.feeds.disown(feed)
        self._vacant = []
