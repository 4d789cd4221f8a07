"""Feeds: the events of each subscriber, pushed to readers that keep up and read from the store for those behind."""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from math import inf
from typing import NamedTuple, TypeAlias, TypeVar

from contrada.service.catalog import Catalog, FeedPlaces, NumberOwner
from contrada.service.core import Delivery
from contrada.service.cursors import LAST_NUMBER, Position
from contrada.service.match_page import MatchPage
from contrada.service.matches import NUMBER_MASK, unpack_tracks
from contrada.service.store.message_store import MessageStore, StoredBody

PAGE_BYTES = 4 << 20  # of the bodies of events that are read together
PAGE_MESSAGES = 1_024  # whose match lists are read together
KEPT_PAGES = 128
TAIL_EVENTS = 1_024  # kept in memory for a subscriber with readers; those further behind read the store
CACHE_BYTES = 32 << 20  # of bodies of the latest messages

R = TypeVar("R")


class Event(NamedTuple):
    """A message that satisfies a subscription, or what it says of a tracked object.

    `track` is the JSON of the member of that name, empty for a plain match.
    """

    sequence: int
    number: int
    key: str
    body: bytes
    track: bytes = b""

    @property
    def position(self) -> Position:
        """The place after this event."""
        return Position(self.sequence, self.number)


class Reset(NamedTuple):
    """Events after the reader's place are gone; it goes on at the oldest message that is kept."""

    oldest: int


# Takes events at once; returns False, and takes none, if whoever receives them has to catch up first.
Sink: TypeAlias = Callable[[list[Event]], bool]


def _refuse(events: list[Event]) -> bool:
    return False


class Feed:
    """The latest events of a subscriber that has readers: all those of messages after `since`.

    A message may go to thousands of feeds, which are not in the processor's caches: what is touched for each of them
    costs more than what is computed, so feeds, readers and streams have slots, and few objects lie between them.
    """

    __slots__ = ("_pushed", "_tail", "_waiting", "place", "readers", "sent", "since")

    def __init__(self, place: int, since: int) -> None:
        self.place, self.since = place, since
        self._tail = array("q")  # sequence and number of each event by turns
        self.readers = 0
        self.sent = 0  # the last message of which a reader was handed an event
        self._pushed: tuple[EventReader, ...] = ()
        self._waiting: set[asyncio.Future[None]] = set()

    def push(self, events: list[Event]) -> int:
        """Hand events to the readers that take them at once, wake the others, and return how many were handed.

        `events` are all those of their messages, which are newer than any before.
        """
        sequence, taken = events[-1][0], 0
        position = tuple.__new__(Position, (sequence, LAST_NUMBER))
        for reader in self._pushed:
            if reader.sink(events):
                reader.position = position
                taken += 1
        if taken:
            self.sent = sequence
        if taken == self.readers:
            self.since = sequence
            if self._tail:
                del self._tail[:]
        else:
            self._keep(events)
        return taken * len(events)

    def _keep(self, events: list[Event]) -> None:
        """Keep events that not all readers have, and wake those readers."""
        tail, position = self._tail, Position.after_message(events[-1].sequence)
        for event in events:
            tail.append(event.sequence)
            tail.append(event.number)
        if len(tail) > 2 * TAIL_EVENTS:
            sequences = tail[::2]
            self.since = sequences[-TAIL_EVENTS // 2 - 1]  # part of its events may be left: the store has them
            del tail[: 2 * bisect_right(sequences, self.since)]
        late = [reader for reader in self._pushed if reader.position < position]
        # They leave now: what comes later must not overtake these events.
        self._pushed = tuple(reader for reader in self._pushed if reader.position >= position)
        woken, self._waiting = [*self._waiting, *(reader.waiter for reader in late)], set()
        for future in woken:
            if future is not None and not future.done():
                future.set_result(None)

    def after(self, position: Position, limit: int) -> list[Position]:
        """Return events after a place, at most `limit`."""
        sequences, numbers = self._tail[::2], self._tail[1::2]
        start = bisect_left(sequences, position.sequence)
        while start < len(sequences) and (sequences[start], numbers[start]) <= position:
            start += 1
        stop = start + limit
        return list(map(Position, sequences[start:stop], numbers[start:stop]))

    async def wait(self) -> None:
        """Wait for an event."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)

    async def push_to(self, reader: EventReader) -> None:
        """Hand events to a reader until it does not take some."""
        reader.waiter = asyncio.get_running_loop().create_future()
        self._pushed = (*self._pushed, reader)
        try:
            await reader.waiter
        finally:
            self._pushed = tuple(one for one in self._pushed if one is not reader)


class Feeds:
    """All feeds. Everything but the reading of pages happens on the event loop."""

    def __init__(self, store: MessageStore, catalog: Callable[[], Catalog], newest: int, oldest: int) -> None:
        self._store, self._catalog = store, catalog
        self.newest, self.oldest = newest, oldest
        self._feeds: dict[int, Feed] = {}
        self._sent: dict[int, int] = {}  # of feeds without readers
        self._bodies: OrderedDict[int, bytes] = OrderedDict()
        self.tracks: dict[int, dict[int, bytes]] = {}  # of `_bodies`, by message and number of the event
        self._cached = 0
        self._pages: OrderedDict[int, MatchPage] = OrderedDict()
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="contrada-reader")
        self.delivered = 0

    def close(self) -> None:
        """Stop reading."""
        self._threads.shutdown(cancel_futures=True)

    def sent(self) -> dict[int, int]:
        """Return, by feed, the last message of which an event was handed to a reader."""
        return self._sent | {place: feed.sent for place, feed in self._feeds.items() if feed.sent}

    def sent_of(self, place: int) -> int:
        """Return the last message of which an event of a feed was handed to a reader; 0 if none was."""
        feed = self._feeds.get(place)
        return self._sent.get(place, 0) if feed is None else feed.sent

    def advance(self, deliveries: Sequence[Delivery], catalog: Catalog) -> None:
        """Take new messages, and push their events to the readers whom they concern."""
        owners, feeds, make = catalog.owners, self._feeds, tuple.__new__  # calling a class takes three times as long
        fresh: dict[int, list[Event]] = {}
        for sequence, body, numbers, tracked in deliveries:
            self._keep(sequence, body)
            if tracked:
                self.tracks[sequence] = dict(tracked)
                self._take_tracked(sequence, body, numbers, owners, fresh)
                continue
            for number in numbers:
                owner = owners[number]
                if owner is not None and (place := owner[0]) in feeds:
                    event = make(Event, (sequence, number, owner[1], body, b""))
                    if place in fresh:
                        fresh[place].append(event)
                    else:
                        fresh[place] = [event]
        if deliveries:
            self.newest = deliveries[-1].sequence
        for place, events in fresh.items():
            self.delivered += feeds[place].push(events)

    def _take_tracked(
        self,
        sequence: int,
        body: bytes,
        numbers: Sequence[int],
        owners: Sequence[NumberOwner | None],
        fresh: dict[int, list[Event]],
    ) -> None:
        """Add the events of a message that says something of a tracked object, by rising number."""
        tracks = self.tracks[sequence]
        for number in sorted([*numbers, *tracks]):
            owner = owners[number & NUMBER_MASK]
            if owner is not None and owner.feed in self._feeds:
                event = Event(sequence, number, owner.key, body, tracks.get(number, b""))
                fresh.setdefault(owner.feed, []).append(event)

    def trimmed(self, oldest: int, places: FeedPlaces) -> None:
        """Forget messages before a sequence number, and feeds that have no place any more."""
        self.oldest = oldest
        for place in [place for place in self._sent if places.name(place) is None]:
            del self._sent[place]
        for page in [page for page in self._pages if (page + 1) * PAGE_MESSAGES <= oldest]:
            del self._pages[page]

    def attach(self, place: int) -> Feed:
        """Count a reader of a feed in."""
        feed = self._feeds.get(place)
        if feed is None:
            feed = self._feeds[place] = Feed(place, self.newest)
            feed.sent = self._sent.pop(place, 0)
        feed.readers += 1
        return feed

    def detach(self, feed: Feed) -> None:
        """Count a reader out; without readers nothing is kept in memory."""
        feed.readers -= 1
        if not feed.readers:
            del self._feeds[feed.place]
            if feed.sent:
                self._sent[feed.place] = feed.sent

    async def page(self, first: int) -> tuple[MatchPage, int]:
        """Return the page that a message is on, and the last message on it."""
        number = first // PAGE_MESSAGES
        last = min((number + 1) * PAGE_MESSAGES - 1, self.newest)
        page = self._pages.get(number)
        if page is not None:
            self._pages.move_to_end(number)
            return page, last
        page = await self._in_thread(self._read_page, number, last)
        if last == (number + 1) * PAGE_MESSAGES - 1:
            self._pages[number] = page
            while len(self._pages) > KEPT_PAGES:
                self._pages.popitem(last=False)
        return page, last

    async def first_after(self, place: int, position: Position, pages: int) -> Position | None:
        """Return the first event of a feed after a position, if one is on the next `pages` pages."""
        feed = self._feeds.get(place)
        if feed is not None and position >= Position.after_message(feed.since):
            return next(iter(feed.after(position, 1)), None)
        last = position.sequence - 1
        while last < self.newest and pages:
            page, last = await self.page(max(last + 1, self.oldest))
            pages -= 1
            found = next((one for one in page.events(place) if one > position), None)
            if found is not None:
                return found
        return None

    def readers(self, place: int) -> int:
        """Return the number of readers of a feed."""
        feed = self._feeds.get(place)
        return 0 if feed is None else feed.readers

    async def fetch(
        self, positions: list[Position], most: int
    ) -> tuple[list[Position], dict[int, bytes], Mapping[int, Mapping[int, bytes]]]:
        """Return events, the first ones with at most `most` bytes, with their bodies and what they say of objects.

        At least one event is returned. A message without a body is not kept any more.
        """
        found = {sequence: self._bodies.get(sequence) for sequence, _ in positions}
        tracks = {sequence: self.tracks[sequence] for sequence in found if sequence in self.tracks}
        missing = [sequence for sequence, body in found.items() if body is None]
        stored, end = await self._in_thread(self._read_bodies, missing, most)
        found |= {sequence: one.body for sequence, one in stored.items()}
        bodies = {sequence: body for sequence, body in found.items() if body is not None}
        tracks |= {sequence: unpack_tracks(one.tracks) for sequence, one in stored.items() if one.tracks}
        return [position for position in positions if position.sequence < end], bodies, tracks

    def _read_bodies(self, sequences: list[int], most: int) -> tuple[dict[int, StoredBody], float]:
        """Return the first bodies of rising messages, and the message before which all were read."""
        sizes = sorted(self._store.sizes(sequences).items())
        totals = list(accumulate(size for _, size in sizes))
        count = max(bisect_right(totals, most), 1)
        end = sizes[count][0] if count < len(sizes) else inf
        return self._store.bodies([sequence for sequence, _ in sizes[:count]]), end

    def events(
        self, positions: Sequence[Position], bodies: dict[int, bytes], tracks: Mapping[int, Mapping[int, bytes]]
    ) -> list[Event]:
        """Return events in full; those whose message is gone are left out."""
        owners = self._catalog().owners
        found = []
        for sequence, number in positions:
            owner, body = owners[number & NUMBER_MASK], bodies.get(sequence)
            if owner is not None and body is not None:
                track = tracks[sequence].get(number, b"") if sequence in tracks else b""
                found.append(Event(sequence, number, owner.key, body, track))
        return found

    def cached(self, positions: Sequence[Position]) -> dict[int, bytes] | None:
        """Return the bodies of messages if all are in memory; None otherwise."""
        try:
            return {sequence: self._bodies[sequence] for sequence, _ in positions}
        except KeyError:
            return None

    def _keep(self, sequence: int, body: bytes) -> None:
        self._bodies[sequence] = body
        self._cached += len(body)
        while self._cached > CACHE_BYTES:
            gone, old = self._bodies.popitem(last=False)
            self._cached -= len(old)
            if self.tracks:
                self.tracks.pop(gone, None)

    def _read_page(self, number: int, last: int) -> MatchPage:
        return MatchPage(self._store.matches(number * PAGE_MESSAGES, last + 1), self._catalog())

    async def _in_thread(self, function: Callable[..., R], *arguments: object) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)


class EventReader:
    """Reads the events of one subscriber in order, from a place on."""

    __slots__ = ("_closed", "_feed", "_feeds", "_floor", "_lost", "position", "sink", "waiter")

    def __init__(
        self,
        feeds: Feeds,
        place: int,
        position: Position,
        lost: Callable[[], Position],
        floor: Callable[[], int],
        closed: Callable[[], None] = lambda: None,
    ) -> None:
        self._feeds, self._lost, self._floor, self._closed = feeds, lost, floor, closed
        self._feed = feeds.attach(place)
        self.position = position
        self.sink: Sink = _refuse  # of events that are pushed
        self.waiter: asyncio.Future[None] | None = None  # done when the sink has not taken some

    def close(self) -> None:
        """End reading; once."""
        self._feeds.detach(self._feed)
        self._closed()

    @property
    def is_caught_up(self) -> bool:
        """True if there is no event after the reader's place."""
        is_in_memory = self.position >= Position.after_message(self._feed.since)
        return is_in_memory and not self._feed.after(self.position, 1)

    async def push(self, sink: Sink) -> None:
        """Hand new events to a sink as they come, until it does not take some: those are for `read`.

        Nothing happens unless the reader is caught up.
        """

        if self.is_caught_up:
            self.sink = sink
            await self._feed.push_to(self)

    def _note_handed(self, position: Position, count: int) -> None:
        self.position = position
        self._feed.sent = max(self._feed.sent, position.sequence)
        self._feeds.delivered += count

    async def read(self, limit: int = 256, wait: bool = True, most: int = PAGE_BYTES) -> list[Event] | Reset:
        """Return the next events, at least one unless `wait` is False; Reset if events are gone.

        At most `limit` events are returned, and of several no more than `most` bytes.
        """
        while True:
            if self.position < (lost := self._lost()):
                # `oldest` moves when the removal is committed, `lost` before that: a reader that went on at `oldest`
                # meanwhile would be reset again and again.
                oldest = max(self._feeds.oldest, self._floor(), lost.sequence + 1)
                self.position = Position.after_message(oldest - 1)
                return Reset(oldest)
            if self.position >= Position.after_message(self._feed.since):
                positions = self._feed.after(self.position, limit)
                if not positions:
                    if not wait:
                        return []
                    await self._feed.wait()
                    continue
            else:
                positions = await self._stored(limit)
                if not positions:
                    continue
            bodies = self._feeds.cached(positions)
            tracks: Mapping[int, Mapping[int, bytes]] = self._feeds.tracks
            if bodies is None:
                positions, bodies, tracks = await self._feeds.fetch(positions, most)
            totals = accumulate(len(bodies.get(sequence, b"")) for sequence, _ in positions)
            positions = positions[: max(bisect_right(list(totals), most), 1)]
            events = self._feeds.events(positions, bodies, tracks)
            if len(events) < len(positions) and self.position < self._lost():
                continue  # retention removed some meanwhile: the reader is told
            self._note_handed(positions[-1], len(events))
            if events:
                return events

    async def _stored(self, limit: int) -> list[Position]:
        """Return events from the next page; none moves on to the page after it."""
        sequence, number = self.position
        first = max(sequence + (number == LAST_NUMBER), self._feeds.oldest)
        page, last = await self._feeds.page(first)
        found = [position for position in page.events(self._feed.place) if position > self.position][:limit]
        if not found:
            self.position = Position.after_message(last)
        return found
