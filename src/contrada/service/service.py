"""Service: the durable broker for whoever runs an event loop: HTTP, WebSocket and webhooks call it."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec

from contrada.errors import ContradaError, LimitError, UnknownKeyError
from contrada.service.catalog import FILTER, SEPARATOR, SUBSCRIPTION, Catalog, Definition, FeedPlaces
from contrada.service.commands import (
    Acknowledge,
    DeleteSubscription,
    PutSubscription,
    PutSubscriptions,
    SetCursor,
    SetPaused,
    SetRetention,
    Tick,
    TickAnswer,
    WriteRecords,
)
from contrada.service.core import Core, NewSubscription, Published
from contrada.service.cursors import Cursor, Position
from contrada.service.engine import Committed, Engine, EngineWork, GroupTimes, Work, WorkPublished
from contrada.service.feeds import EventReader, Feeds
from contrada.service.intake import Post
from contrada.service.kept_state import KeptState
from contrada.service.links.link_state import LinkEnd, LinkFrame, LinkState
from contrada.service.links.naming import broker_name
from contrada.service.links.payloads import frame_slices
from contrada.service.memory import release_free_memory
from contrada.service.service_limits import DEFAULT_LIMITS, DEFAULT_RETENTION
from contrada.service.service_limits import Retention as Retention
from contrada.service.service_limits import ServiceLimits as ServiceLimits
from contrada.service.shared_log.duties import SharedTick, Terms
from contrada.service.shared_log.following import Following
from contrada.service.shared_log.shared_core import SharedCore
from contrada.service.shared_log.shared_engine import SharedEngine
from contrada.service.shared_log.shared_log import SharedLog
from contrada.service.store.message_store import MessageStore, StoreChange, StoredMessage
from contrada.service.subscriber_retention import KeptFor
from contrada.service.table_files import TableFiles
from contrada.service.tracks.saving import save_tracks
from contrada.service.tracks.trackers import TrackCounts
from contrada.service.views import SubscriberView, SubscriptionView, stored_view

TICK_SECONDS = 1.0  # between looks at expiry, retention and acknowledgements
FRAME_BYTES = 200  # at most, that a subscription or record of a command takes besides its texts

C = TypeVar("C", bound=Core)
T = TypeVar("T")
StoreRecord: TypeAlias = tuple[str, str, bytes | None]  # kind, name, and value or None to delete
ChangeWatch: TypeAlias = Callable[[StoreChange, Catalog], None]


def wall_clock() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Service:
    """A durable broker on an event loop.

    Every coroutine that changes something returns after the change is durable. In the directory `tables` the brokers'
    tables are saved now and then, for a quick start. In a network the broker is called `name`, by default as the store
    has it. With a `log`, which is open, the store holds what the log says, and other servers may follow it too.
    """

    def __init__(
        self,
        store: MessageStore,
        *,
        retention: Retention = DEFAULT_RETENTION,
        limits: ServiceLimits = DEFAULT_LIMITS,
        clock: Callable[[], int] = wall_clock,
        tables: Path | None = None,
        name: str | None = None,
        log: SharedLog | None = None,
    ) -> None:
        self._log = log
        self._following: Following | None = None
        self._store, self._retention, self._limits, self._clock = store, retention, limits, clock
        self._tables = None if tables is None else TableFiles(tables)
        self._places = FeedPlaces()
        self._acknowledged: dict[tuple[str, str, str], Position] = {}  # not durable yet
        self._watches: dict[Any, Callable[[GroupTimes], None]] = {}  # by the futures of posts that are traced
        self.name = name or ""  # once it has started, that of the store if none was given
        self._carry: Callable[[Sequence[LinkFrame | LinkEnd] | None], None] = lambda outgoing: None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ticker: asyncio.Task[None] | None = None
        self._saving_tracks = asyncio.Lock()
        self._record_watches: dict[str, Callable[[str, bytes | None], None]] = {}  # by the kind of the records
        self._change_watch: ChangeWatch | None = None
        self.matched = 0  # pairs of a message and a subscription since the start

    # --- life ---

    async def start(self) -> None:
        """Load the store and start the engine."""
        self._loop = asyncio.get_running_loop()
        self.name = await asyncio.to_thread(broker_name, self._store, self.name)
        self._engine = await asyncio.to_thread(self._make_engine)
        span = self._store.span()
        self._feeds = Feeds(self._store, lambda: self._engine.core.catalog, self._engine.core.last, span.oldest)
        self._engine.start()
        if isinstance(self._engine, SharedEngine):
            limits = self._limits
            self._following = Following(self._engine, self._store, self.do, self.name)
            await self._following.agree(Terms(limits.window, limits.subscriptions, limits.track_expiry))
        self._ticker = asyncio.create_task(self._tick_for_ever())

    async def stop(self) -> None:
        """Finish what is queued, make acknowledgements durable and close the store."""
        if self._ticker is not None:
            self._ticker.cancel()
        try:
            if self._log is None or self.fault is None:  # a log that is away takes nothing, and comes back without us
                await self.tick()
                await self.save_tables(is_last=True)
        finally:  # also with a store that takes nothing
            await asyncio.to_thread(self._engine.stop)
            self._feeds.close()
            self._store.close()

    def _make_engine(self) -> Engine | SharedEngine:
        waiting = self._limits.waiting
        if self._log is None:
            return Engine(self._store, partial(self._load, Core), self._committed, waiting, self._relayed)
        return SharedEngine(
            self._store, partial(self._load, SharedCore), self._committed, self._log, self._clock, waiting
        )

    def _load(self, kind: Callable[..., C]) -> C:
        limits = self._limits
        return kind(
            self._store,
            self._clock,
            self._places,
            window=limits.window,
            most_subscriptions=limits.subscriptions,
            vertices=limits.vertices,
            tables=self._tables,
            track_expiry=limits.track_expiry,
            track_log=limits.track_log,
            name=self.name,
            backlog_bytes=limits.backlog_bytes,
            wrap=limits.wrap,
        )

    def _committed(self, committed: Committed) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._take, committed)

    def _relayed(self, frames: Sequence[LinkFrame]) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(lambda: self._carry(frames))

    def _take(self, committed: Committed) -> None:
        """Answer those who wait, push events, and hand on what goes to neighbours."""
        if committed.outgoing or committed.times is None:
            self._carry(committed.outgoing if committed.times is not None else None)
        if self._watches:
            self._show_times(committed)
        for future, answer in committed.answers:
            if future.done():
                continue
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        if committed.trimmed is not None:
            self._feeds.trimmed(committed.trimmed, self._places)
        for kind, name, value in committed.records if self._record_watches else ():
            if kind in self._record_watches:
                self._record_watches[kind](name, value)
        self.matched += sum(len(one.numbers) + len(one.tracked) for one in committed.deliveries)
        self._feeds.advance(committed.deliveries, committed.core.catalog)
        if self._change_watch is not None and committed.change is not None:
            self._change_watch(committed.change, committed.core.catalog)

    def _show_times(self, committed: Committed) -> None:
        for future, _ in committed.answers:
            watch = self._watches.pop(future, None)
            if watch is not None and committed.times is not None:
                watch(committed.times)

    def carry_by(self, carry: Callable[[Sequence[LinkFrame | LinkEnd] | None], None]) -> None:
        """Let `carry` take what goes to neighbours, in order; None says that the core was thrown away."""
        self._carry = carry

    @property
    def link_state(self) -> LinkState:
        """What the engine knows of links; only its counts may be read elsewhere."""
        return self._engine.core.links

    async def do(self, work: Work) -> Any:
        """Run work on the core, durably."""
        return await self._answer(self._engine.do, work)

    def submit(self, work: Work, done: Callable[[asyncio.Future[Any]], None]) -> None:
        """Queue work on the core; `done` is called when it is durable or has failed. BusyError: too much waits."""
        future = asyncio.get_running_loop().create_future()
        self._engine.do(future, work)
        future.add_done_callback(done)

    async def _answer(
        self, ask: Callable[..., None], *arguments: Any, watch: Callable[[GroupTimes], None] | None = None
    ) -> Any:
        """Give the engine a command and return its answer."""
        future = asyncio.get_running_loop().create_future()
        ask(future, *arguments)
        if watch is not None:
            self._watches[future] = watch
        try:
            return await future
        finally:
            del future  # it holds an error whose traceback holds this frame

    async def _tick_for_ever(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            try:
                await self.tick()
                await self.save_tables()
                await self.save_tracks()
                if self._following is not None:
                    await self._following.save_snapshot(self._limits.snapshot_bytes)
            except ContradaError:  # whoever publishes next hears of it
                continue

    async def tick(self) -> None:
        """Make acknowledgements durable, and remove what is past its time, part by part."""
        while await self._tick_once():
            pass

    async def _tick_once(self) -> bool:
        """Do one transaction of a tick; return True if there is more to remove."""
        acknowledged, self._acknowledged = self._acknowledged, {}
        places = [(*key, position) for key, position in acknowledged.items()]
        try:
            found = await self._ticked(places)
        except ContradaError:
            for (tenant, subscriber, reader), position in acknowledged.items():
                self.note_acknowledged(tenant, subscriber, position, reader)
            raise
        if found.oldest is not None:
            self._feeds.trimmed(found.oldest, self._places)
        return found.is_left

    async def _ticked(self, acknowledged: list[tuple[str, str, str, Position]]) -> TickAnswer:
        core, sent = self._engine.core, self._feeds.sent()
        if not isinstance(core, SharedCore):
            tick = Tick(acknowledged, *self._retention)
            found: TickAnswer = await self.do(lambda core, change: tick.run(core, change, sent))
        elif acknowledged or self._clock() >= core.place.ticked + TICK_SECONDS * 1_000:
            found = await self.do(SharedTick(acknowledged, *self._retention))
        else:  # another server has just done it for all
            found = TickAnswer(None, False)
        return found

    async def save_tables(self, is_last: bool = False) -> None:
        """Save the tables that have changed much since they were saved; the last time all that have changed."""
        tables, core = self._tables, self._engine.core
        if tables is None:
            return
        for tenant in tables.due(core.sizes(), is_last):
            broker = core.broker(tenant)
            if broker is None:
                continue
            directory = await asyncio.to_thread(tables.begin, tenant, broker)

            def complete(now: Core, change: StoreChange) -> None:
                if now is core:
                    tables.complete(tenant, broker, directory, change)  # noqa: B023

            await self.do(complete)
            await asyncio.to_thread(tables.remove_others, self._store)
            await asyncio.to_thread(release_free_memory)

    async def save_tracks(self) -> None:
        """Write snapshots of tracked objects that have changed much since the last one.

        One call at a time: two snapshots of the same state would have the same name, and the second would remove both.
        """
        async with self._saving_tracks:
            await save_tracks(self._engine.core, self.do)

    @property
    def following(self) -> Following | None:
        """What this server does for all that follow its log; None without a log."""
        return self._following

    # --- what is known ---

    async def inside_since(self, number: int, id: str | int) -> int | None:
        """Return since when an object is inside for a tracked subscription, in milliseconds; None if it is not."""

        def work(core: Core, change: StoreChange) -> int | None:
            group = core.trackers.group_of(number)
            inside = [] if group is None else group.tracks.inside(number, id)
            return inside[0].since if inside else None

        found: int | None = await self.do(work)
        return found

    @property
    def track_expiry(self) -> int | None:
        """Milliseconds without a fix after which a tracked object is forgotten."""
        return self._limits.track_expiry

    @property
    def tracks(self) -> TrackCounts:
        """How much is tracked."""
        return self._engine.core.trackers.counts

    def tracking_attributes(self, tenant: str) -> list[str]:
        """Return the attributes that name the tracked objects of a tenant."""
        return sorted(self._engine.core.trackers.attributes(tenant))

    def count(self, tenant: str) -> int:
        """Return the number of subscriptions of a tenant."""
        return self._engine.core.catalog.count(tenant)

    def now(self) -> int:
        """Return the time of the service in milliseconds: the clock's, but not before that of any message."""
        return max(self._engine.core.at, self._clock())

    @property
    def newest(self) -> int:
        """The sequence number of the last message."""
        return self._feeds.newest

    @property
    def oldest(self) -> int:
        """The sequence number of the oldest message that is kept."""
        return self._feeds.oldest

    @property
    def waiting(self) -> int:
        """The number of commands that wait for the engine."""
        return self._engine.waiting

    @property
    def delivered(self) -> int:
        """The number of events that were handed to readers."""
        return self._feeds.delivered

    @property
    def work(self) -> EngineWork:
        """How much the engine has done."""
        return self._engine.done

    @property
    def dropped(self) -> int:
        """The number of events that retention removed before they were delivered."""
        return sum(cursor.dropped for _, cursor in self._engine.core.cursors.items())

    @property
    def fault(self) -> ContradaError | None:
        """Why nothing can be written at the moment; None if it can."""
        return self._engine.fault

    def __len__(self) -> int:
        return len(self._engine.core.catalog)

    # --- messages ---

    async def publish(self, tenant: str, post: Post, watch: Callable[[GroupTimes], None] | None = None) -> Published:
        """Take the messages of a post; `watch` is called with the times of their transaction once it is durable."""
        found: Published = await self._answer(self._engine.publish, tenant, post, watch=watch)
        return found

    async def publish_together(
        self, tenant: str, posts: Sequence[Post], records: Callable[[list[Published]], Iterable[StoreRecord]]
    ) -> list[Published]:
        """Take posts in one transaction, all or none, together with the records that `records` makes of the answers.

        The thread of the engine calls `records`. In a shared log the records come after the messages: a crash in
        between leaves messages that are recognised by their ids when they are published again.
        """
        if self._log is not None:
            answers = list(await asyncio.gather(*(self.publish(tenant, post) for post in posts)))
            await self.write_records(records(answers))
            return answers

        def work(core: Core, change: StoreChange) -> WorkPublished:
            found, deliveries = core.publish([(tenant, post) for post in posts], change)
            change.records.extend(records(found))
            return WorkPublished(found, deliveries)

        found: list[Published] = await self.do(work)
        return found

    # --- subscriptions ---

    async def put(self, tenant: str, key: str, asked: NewSubscription, is_new: bool = False) -> Definition:
        """Add or replace a subscription."""
        found: Definition = await self.do(PutSubscription(tenant, key, asked, is_new))
        return found

    async def put_many(
        self, tenant: str, subscriptions: Sequence[tuple[str, NewSubscription]]
    ) -> list[Definition | ContradaError]:
        """Add or replace subscriptions; the answer has a Definition or an error for each."""
        parts = self._portions(subscriptions, lambda one: len(one[0]) + len(str(one[1].filter)))
        found = await asyncio.gather(*(self._put_portion(tenant, part) for part in parts))
        return [one for part in found for one in part]

    async def _put_portion(
        self, tenant: str, part: list[tuple[str, NewSubscription]]
    ) -> Sequence[Definition | ContradaError]:
        try:
            found: list[Definition | ContradaError] = await self.do(PutSubscriptions(tenant, part))
            return found
        except LimitError as error:  # one that is too large for a shared log
            return [error] * len(part)

    async def set_paused(self, tenant: str, key: str, is_paused: bool) -> Definition:
        """Pause or resume a subscription; a resumed one applies from the next message on."""
        found: Definition = await self.do(SetPaused(tenant, key, is_paused))
        return found

    def definition(self, tenant: str, key: str) -> Definition | None:
        """Return what is known of a subscription besides its filter; None if there is none."""
        return self._engine.core.catalog.get(tenant, key)

    async def delete(self, tenant: str, key: str) -> int:
        """Remove a subscription; return the last sequence number that it applies to."""
        last: int = await self.do(DeleteSubscription(tenant, key))
        return last

    async def subscription(self, tenant: str, key: str) -> SubscriptionView:
        """Return a subscription as it is stored; raise UnknownKeyError if there is none."""
        found = await asyncio.to_thread(stored_view, self._store, tenant, key)
        if found is None:
            raise UnknownKeyError(f"no subscription has the key {key!r:.80}")
        return found

    async def subscriptions(
        self, tenant: str, *, subscriber: str | None = None, prefix: str = "", after: str = "", limit: int = 100
    ) -> list[SubscriptionView]:
        """Return subscriptions by rising key, after a key, with a prefix or of a subscriber."""
        return await asyncio.to_thread(self._listed, tenant, subscriber, prefix, after, limit)

    def _listed(
        self, tenant: str, subscriber: str | None, prefix: str, after: str, limit: int
    ) -> list[SubscriptionView]:
        start = tenant + SEPARATOR
        found: list[SubscriptionView] = []
        place, size = start + after, max(limit, 100)
        decode = msgspec.msgpack.Decoder(Definition).decode
        while len(found) < limit:
            page = self._store.page(SUBSCRIPTION, start + prefix, place, size)
            read = ((name, decode(value)) for name, value in page)
            own = [(name, one) for name, one in read if subscriber in (None, one.subscriber)]
            filters = self._store.chosen(FILTER, [name for name, _ in own])
            found += [
                SubscriptionView(name.removeprefix(start), definition, msgspec.json.decode(filters[name]))
                for name, definition in own
                if name in filters  # those without one were removed meanwhile
            ]
            if len(page) < size:
                break
            place = page[-1][0]
        return found[:limit]

    # --- events ---

    async def reader(self, tenant: str, subscriber: str, position: Position | None, reader: str = "") -> EventReader:
        """Return a reader of events after a place; by default after what was acknowledged.

        The caller closes it. A place that the caller had from us proves that it received what comes before.
        """
        place = self._places.enter(tenant, subscriber)
        start = self.cursor(tenant, subscriber, reader).position if position is None else position
        return EventReader(
            self._feeds,
            place,
            start,
            lambda: self._engine.core.cursors.get(tenant, subscriber, reader).lost_position,
            lambda: self._engine.core.retentions.get(tenant, subscriber).floor,
            lambda: self._places.leave(place),
        )

    async def position_at(self, at: int) -> Position:
        """Return the place before the first message that came at a time or later."""
        return Position.after_message(await asyncio.to_thread(self._store.first_at, at) - 1)

    def cursor(self, tenant: str, subscriber: str, reader: str = "") -> Cursor:
        """Return how far a reader of a subscriber has acknowledged."""
        cursor = self._engine.core.cursors.get(tenant, subscriber, reader)
        later = self._acknowledged.get((tenant, subscriber, reader))
        if later is None or later <= cursor.position:
            return cursor
        return msgspec.structs.replace(cursor, sequence=later.sequence, number=later.number)

    def note_acknowledged(self, tenant: str, subscriber: str, position: Position, reader: str = "") -> None:
        """Acknowledge events up to a place; durable with the next tick."""
        key = (tenant, subscriber, reader)
        self._acknowledged[key] = max(position, self._acknowledged.get(key, position))

    async def acknowledge(self, tenant: str, subscriber: str, position: Position, reader: str = "") -> None:
        """Acknowledge events up to a place, durably."""
        await self.do(Acknowledge(tenant, subscriber, reader, position))

    async def set_cursor(self, tenant: str, subscriber: str, reader: str, position: Position | None) -> None:
        """Put the cursor of a reader at a place, also backwards, durably; None forgets the reader."""
        self._acknowledged.pop((tenant, subscriber, reader), None)
        await self.do(SetCursor(tenant, subscriber, reader, position))

    # --- subscribers and the past ---

    def subscribers(self, tenant: str | None = None) -> list[tuple[str, str]]:
        """Return tenants and subscribers that have subscriptions, readers or messages that are kept, in order."""
        return sorted(one for _, one in self._places.items() if tenant in (None, one[0]))

    def oldest_of(self, tenant: str, subscriber: str) -> int:
        """Return the oldest message whose events a subscriber is still given."""
        return max(self.oldest, self._engine.core.retentions.get(tenant, subscriber).floor)

    async def set_retention(self, tenant: str, subscriber: str, kept: KeptFor) -> None:
        """Give a subscriber a retention of its own, within that of the log, durably; what is gone stays gone."""
        await self.do(SetRetention(tenant, subscriber, kept))

    async def subscriber(self, tenant: str, name: str, pages: int = 1 << 40) -> SubscriberView:
        """Return how far a subscriber is; its oldest event is looked for on so many pages of the log."""
        place = self._places.known(tenant, name)
        if place is None:
            raise UnknownKeyError(f"no subscriber is called {name!r:.80}")
        cursor = self.cursor(tenant, name)
        oldest_kept = self.oldest_of(tenant, name)
        position = max(cursor.position, Position.after_message(self._feeds.sent_of(place)))
        position = max(position, Position.after_message(oldest_kept - 1))
        oldest = await self._feeds.first_after(place, position, pages)
        since = None
        if oldest is not None:
            bodies = await asyncio.to_thread(self._store.bodies, [oldest.sequence])
            since = None if oldest.sequence not in bodies else bodies[oldest.sequence].at
        lag = max(self.newest - position.sequence, 0)
        kept = self._engine.core.retentions.get(tenant, name)
        return SubscriberView(name, cursor, position, self._feeds.readers(place), lag, oldest, since, kept, oldest_kept)

    def latest_lags(self, count: int) -> list[tuple[str, str]]:
        """Return the tenants and subscribers whose delivered events end earliest."""
        sent = self._feeds.sent()
        cursors = {key[:2]: cursor.sequence for key, cursor in self._engine.core.cursors.items() if not key[2]}
        places = [(max(cursors.get(one, 0), sent.get(place, 0)), one) for place, one in self._places.items()]
        return [one for _, one in heapq.nsmallest(count, places)]

    async def history(self, first: int, limit: int) -> Sequence[StoredMessage]:
        """Return messages of all tenants from a sequence number on."""
        return await asyncio.to_thread(self._store.messages, first, limit)

    @property
    def kept(self) -> KeptState:
        """Messages and subscriptions as they are kept."""
        return KeptState(self._store, lambda: self._engine.core.catalog)

    # --- records of other parts, such as keys and webhooks ---

    async def write_records(self, records: Iterable[StoreRecord], is_new: bool = False) -> bool:
        """Make records durable; with `is_new` only if the first is not there yet. Return whether they were written."""
        parts = self._portions(list(records), lambda one: len(one[1]) + len(one[2] or b""))
        return all(await asyncio.gather(*(self.do(WriteRecords(part, is_new)) for part in parts)))

    async def write_here(self, records: list[StoreRecord]) -> None:
        """Make records durable that concern this server alone, also if it shares a log with others."""
        await self.do(lambda core, change: change.records.extend(records))

    def _portions(self, items: Sequence[T], size: Callable[[T], int]) -> list[list[T]]:
        """Return items in parts that fit into a record of a shared log; all together without one."""
        if self._log is None:
            return [list(items)]
        slices = frame_slices([size(item) + FRAME_BYTES for item in items], self._log.most_bytes // 2)
        return [list(items[start:stop]) for start, stop in slices]

    def watch_records(self, kind: str, changed: Callable[[str, bytes | None], None]) -> None:
        """Let `changed` hear of records of a kind that servers of a shared log write: names, and values or None."""
        if self._log is not None:
            self._record_watches[kind] = changed

    def watch_changes(self, look: ChangeWatch | None) -> None:
        """Let `look` see, on the event loop, each change once it is durable; None ends that."""
        self._change_watch = look

    async def records(self, kind: str) -> list[tuple[str, bytes]]:
        """Return the records of a kind."""
        return await asyncio.to_thread(lambda: list(self._store.records(kind)))

    async def record_page(self, kind: str, prefix: str, after: str, limit: int) -> list[tuple[str, bytes]]:
        """Return up to `limit` records whose names begin with `prefix` and come after `after`, by rising name."""
        return await asyncio.to_thread(self._store.page, kind, prefix, after, limit)
