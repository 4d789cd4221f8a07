"""Core: everything that the engine thread owns. Commands change it in memory and fill a StoreChange for the disk."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import structs

from contrada.broker.broker import Broker
from contrada.broker.effects import CloseLink, Deliver, Effect, Persist, Refused, RejectedMessages, Send
from contrada.broker.messages import Messages
from contrada.broker.record_bytes import record_bytes
from contrada.broker.routing import ClientMatches
from contrada.broker.wire import travels
from contrada.cql2.queries import bound_predicate
from contrada.errors import KeyInUseError, LimitError
from contrada.formats.wrapping import wrapped_predicate
from contrada.geometry import Rejection
from contrada.geometry.globe import globes_of
from contrada.model import Predicate
from contrada.service.broker_records import BROKER, BROKER_SUBSCRIPTION, restored_brokers
from contrada.service.catalog import FILTER, SEPARATOR, Catalog, Definition, FeedPlaces
from contrada.service.cursors import Cursors, Position
from contrada.service.intake import BodyReader, Post, Refusal, Taken
from contrada.service.links.greeting import RESERVED_NAME
from contrada.service.links.link_state import BACKLOG_BYTES, ExpectingError, LinkState
from contrada.service.links.payloads import MessagePayload, frame_slices, network_ids, payload_of, read_payload
from contrada.service.match_page import MatchPage
from contrada.service.matches import TrackedEvent, pack_matches
from contrada.service.recent_ids import RecentIds
from contrada.service.state_wrap import check_wrap, note_wrap
from contrada.service.store.message_store import MessageStore, StoreChange, StoredMessage
from contrada.service.subscriber_retention import SubscriberRetentions
from contrada.service.table_files import TableFiles
from contrada.service.tracks.asking import TrackAsked
from contrada.service.tracks.followed import FOLLOWER, FollowedAttributes, followed_filter, followed_key
from contrada.service.tracks.groups import MatchedPart, ObjectNews
from contrada.service.tracks.journal import SNAPSHOT_AFTER
from contrada.service.tracks.trackers import Trackers
from contrada.tracking.watch import check_no_cross

BROKER_NAME = "here"  # in a network, unless there is another one
CLIENT = RESERVED_NAME  # all are one client of the broker core, which then delivers a batch once: numbers tell whose
TRACK_FORMAT = "track"  # of messages that the service makes itself, about tracked objects
# Removed by one transaction, so that others do not wait long; and of how many it is noted at once who loses them.
TRIM_ROWS, NOTED_ROWS = 1_000, 4_000


class NewSubscription(NamedTuple):
    """A subscription as it is asked for; `expires` in milliseconds since 1970.

    `predicate` is what `filter` says, for callers that have it already: reading the text takes longer than the rest.
    """

    subscriber: str
    filter: Any
    on: str = "match"
    expires: int | None = None
    is_paused: bool = False
    predicate: Predicate | None = None
    track: TrackAsked | None = None


class Published(NamedTuple):
    """What became of a post: `first` and `last` are sequence numbers, 0 if nothing was taken.

    `duplicates` are rows whose message was published before, with its sequence number. `taken` messages were new:
    in a shared log messages of others may have come between those of a large post.
    """

    first: int
    last: int
    duplicates: tuple[tuple[int, int], ...]
    rejected: tuple[Refusal, ...]
    taken: int


class Delivery(NamedTuple):
    """A message with the subscriptions that it satisfies, by rising number, and its events of tracked objects."""

    sequence: int
    body: bytes
    numbers: list[int]
    tracked: Sequence[TrackedEvent] = ()


class Core:
    """The state of the service, as the store holds it plus what the running commands have changed.

    When a change cannot be written, the core is thrown away and loaded again, with the `feeds` of the one before.
    """

    def __init__(
        self,
        store: MessageStore,
        clock: Callable[[], int],
        feeds: FeedPlaces,
        *,
        window: int = 100_000,
        most_subscriptions: int = 1_000_000,
        vertices: int | None = None,
        tables: TableFiles | None = None,
        track_expiry: int | None = None,
        track_log: int = SNAPSHOT_AFTER,
        name: str = BROKER_NAME,
        backlog_bytes: int = BACKLOG_BYTES,
        wrap: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.store, self._tables = store, tables
        self._clock, self._window, self._most = clock, window, most_subscriptions
        self.catalog = Catalog.load(store, feeds)
        check_wrap(store, wrap, len(self.catalog) > 0)
        self.wrap = wrap
        self.cursors = Cursors.load(store)
        self.retentions = SubscriberRetentions.load(store)
        newest = store.newest()
        self.last = 0 if newest is None else newest.sequence
        self.at = 0 if newest is None else newest.at  # the latest time that was given out
        self.total = 0 if newest is None else newest.total
        self._noted = 0  # of messages before it is noted who loses them; most of them are removed already
        self._oldest: tuple[int, int] | None = None  # time and total of the oldest message that is kept, once known
        self._recent = RecentIds(window, store.ids(window), self.last)
        self.name, self.links = name, LinkState(backlog_bytes)
        self._logged: list[Delivery] = []  # messages of neighbours, and of our own, that were not taken yet
        self._brokers = restored_brokers(store, max(window, 1), tables, name, self.links)
        self._reader = BodyReader(vertices=vertices, wrap=wrap)
        self.trackers = Trackers.load(store, track_expiry, track_log)
        self._followed = FollowedAttributes.load(store)

    def now(self) -> int:
        """Return the time in milliseconds; it never falls, whatever the clock does."""
        self.at = max(self.at, self._clock())
        return self.at

    # --- messages ---

    def publish(self, posts: Sequence[tuple[str, Post]], change: StoreChange) -> tuple[list[Any], list[Delivery]]:
        """Take posts of tenants, in order; return a Published or an error for each, and what is to be delivered."""
        answers: list[Any] = [None] * len(posts)
        deliveries: list[Delivery] = []
        start = 0
        while start < len(posts):  # posts of one tenant that follow one another are read together
            stop = start + 1
            while stop < len(posts) and posts[stop][0] == posts[start][0]:
                stop += 1
            broker, part = self._brokers.get(posts[start][0]), [post for _, post in posts[start:stop]]
            if broker is not None and broker.expected:
                answers[start:stop] = [ExpectingError(broker.expected)] * len(part)
            else:
                answers[start:stop] = self._publish_of(posts[start][0], part, change, deliveries)
            start = stop
        return answers, deliveries

    def _publish_of(
        self, tenant: str, posts: list[Post], change: StoreChange, deliveries: list[Delivery]
    ) -> Iterable[Published]:
        """Take posts of one tenant; yield what became of each."""
        broker = self._brokers.get(tenant)
        taken = self._reader.read_singly(posts)
        if taken is not None and not (broker is None or broker.is_alone or travels(taken.parts[0].table)):
            taken = None  # neighbours take such messages as columns only
        taken = taken or self._reader.read(posts)
        outcomes = self._take(tenant, posts, taken, change, deliveries)
        accepted: list[list[int]] = [[] for _ in posts]
        duplicates: list[list[tuple[int, int]]] = [[] for _ in posts]
        for outcome, post, row in zip(outcomes, taken.posts, taken.rows, strict=True):
            if isinstance(outcome, str):
                taken.rejected[post].append(Refusal(row, outcome))
            elif outcome < 0:
                duplicates[post].append((row, -outcome))
            else:
                accepted[post].append(outcome)
        for sequences, again, bad in zip(accepted, duplicates, taken.rejected, strict=True):
            bounds = (sequences[0], sequences[-1]) if sequences else (0, 0)
            yield Published(*bounds, tuple(again), tuple(sorted(bad)), len(sequences))

    def _take(
        self, tenant: str, posts: list[Post], taken: Taken, change: StoreChange, deliveries: list[Delivery]
    ) -> list[int | str]:
        """Return the sequence number of each message, minus that of an equal earlier one, or why it was refused."""
        outcomes: list[int | str] = [0] * len(taken.bodies)
        again = self._known(tenant, taken.ids)
        found, refused, tracked = self._match(tenant, posts, taken, again, change)
        at = self.now()
        for place, (id, body) in enumerate(zip(taken.ids, taken.bodies, strict=True)):
            if place in again:
                first = again[place]
                outcome = first if first < 0 else outcomes[first]
                outcomes[place] = outcome if isinstance(outcome, str) else -abs(outcome)
                continue
            if place in refused:
                outcomes[place] = refused[place]
                continue
            numbers, events = sorted(found.get(place, ())), tracked.get(place, ())
            message = MessagePayload(posts[taken.posts[place]].format, body)
            deliveries.append(self._log(tenant, id, message, numbers, events, at, change))
            outcomes[place] = self.last
        return outcomes

    def _log(
        self,
        tenant: str,
        id: str | None,
        message: MessagePayload,
        numbers: list[int],
        tracked: Sequence[TrackedEvent],
        at: int,
        change: StoreChange,
        matches: bytes | None = None,
    ) -> Delivery:
        """Give a message the next sequence number and a place in the log; `matches` are its numbers and events."""
        self.last += 1
        self.total += len(message.body)
        if matches is None:
            matches = pack_matches(numbers, tracked)
        change.messages.append(StoredMessage(self.last, at, tenant, id or "", *message, matches, self.total))
        self._recent.add(tenant, id, self.last)
        return Delivery(self.last, message.body, numbers, tracked)

    def _known(self, tenant: str, ids: Sequence[str | None]) -> dict[int, int]:
        """Return messages that were there before, by place: minus the sequence number, or the place of the first."""
        known: dict[int, int] = {}
        firsts: dict[str, int] = {}
        for place, id in enumerate(ids):
            if id is None:
                continue
            sequence = self._recent.get(tenant, id)
            if sequence is not None:
                known[place] = -sequence
            elif firsts.setdefault(id, place) != place:
                known[place] = firsts[id]
        return known

    def _match(
        self, tenant: str, posts: list[Post], taken: Taken, again: Mapping[int, int], change: StoreChange
    ) -> tuple[dict[int, list[Any]], dict[int, str], dict[int, list[TrackedEvent]]]:
        """Return the numbers that new messages satisfy, why some cannot be matched, and events of tracked objects.

        All are by place; the numbers are those of subscriptions that are not tracked. Messages of a broker with
        neighbours are also passed on to those that want them.
        """
        found: dict[int, list[Any]] = {}
        refused: dict[int, str] = {}
        broker, is_tracked = self._brokers.get(tenant), self.trackers.watches(tenant)
        matched: list[MatchedPart] = []
        if broker is None:
            return found, refused, {}
        for table, places in taken.parts:
            if again:
                fresh = [row for row, place in enumerate(places) if place not in again]
                if not fresh:
                    continue
                if len(fresh) < len(places):
                    table, places = _chosen(table, fresh), [places[row] for row in fresh]
            if broker.is_alone:
                keys, rejected = broker.match(table)
            else:
                ids = network_ids([taken.ids[place] for place in places])
                payloads = [payload_of(posts[taken.posts[place]].format, taken.bodies[place]) for place in places]
                keys, rejected = self._publish_on(tenant, broker, table, ids, payloads, change)
            found.update(zip(places, keys, strict=True))
            refused |= {places[item.row]: item.reason for item in rejected}
            if is_tracked:
                matched.append(MatchedPart(table, places, keys, [item.row for item in rejected]))
        if not is_tracked:
            return found, refused, {}
        events = self.trackers.apply(tenant, matched, self.now())
        return {place: self.trackers.plain(numbers) for place, numbers in found.items()}, refused, events

    def _publish_on(
        self, tenant: str, broker: Broker, table: Any, ids: list[str], payloads: list[bytes], change: StoreChange
    ) -> ClientMatches:
        """Match messages, and pass them on to the neighbours that want them."""
        keys: list[list[Any]] = [[] for _ in ids]
        rejected: list[Rejection] = []
        rows = {id: row for row, id in enumerate(ids)}
        for start, stop in frame_slices([len(payload) for payload in payloads]):
            part = table[start:stop] if isinstance(table, list) else table.slice(start, stop - start)
            effects = broker.publish(part, ids[start:stop], payloads=payloads[start:stop])
            for effect in effects:
                if isinstance(effect, Deliver):
                    if effect.client != CLIENT:
                        continue
                    for row, numbers in zip(effect.rows, effect.keys, strict=True):
                        keys[rows[effect.batch.ids[row]]] = list(numbers)
                elif isinstance(effect, RejectedMessages):
                    rejected += [item._replace(row=start + item.row) for item in effect.rows]
                else:
                    self.apply(tenant, [effect], change)
        self.bound_backlogs(tenant, change)
        return ClientMatches(keys, rejected)

    # --- subscriptions ---

    def put(self, tenant: str, key: str, asked: NewSubscription, is_new: bool, change: StoreChange) -> Definition:
        """Add or replace a subscription; with `is_new` an existing key is an error. An error changes nothing."""
        old = self.catalog.get(tenant, key)
        if old is not None and is_new:
            raise KeyInUseError(f"a subscription has the key {key!r:.80} already")
        if old is None and self.catalog.count(tenant) >= self._most:
            raise LimitError(f"the tenant has {self._most:,} subscriptions, as many as it may")
        keeps = old is not None and old.subscriber == asked.subscriber
        number = old.number if keeps and old is not None else len(self.catalog.owners)
        broker = self.open_broker(tenant)
        filter = asked.filter if asked.predicate is None else asked.predicate
        watch = None
        if self.wrap:
            filter = wrapped_predicate(bound_predicate(filter), globes_of(self.wrap))
        if not len(self.catalog):
            note_wrap(self.store, self.wrap, change)
        if asked.track is not None:
            filter = bound_predicate(filter)
            watch = asked.track.watch(filter)
            check_no_cross(watch, self.wrap)
        if asked.is_paused:
            bound_predicate(filter)
        else:
            self.apply(tenant, broker.subscribe(CLIENT, number, filter), change)
        if old is not None and not old.is_paused and (asked.is_paused or not keeps):
            self.apply(tenant, broker.unsubscribe(old.number), change)
        if old is not None and (asked.is_paused or not keeps or watch is None):
            reason = "unsubscribed" if asked.is_paused and keeps else "replaced"
            self._tell(tenant, self.trackers.unwatch(old.number, self.now(), reason, change), change)
        if not keeps:
            if old is not None:
                self.catalog.remove(tenant, key, self.last, change)
            assert self.catalog.new_number() == number
        if asked.track is not None and watch is not None and not asked.is_paused:
            told = self.trackers.watch(tenant, number, asked.track, watch, self.now(), change)
            self._tell(tenant, told, change)
        self.follow_objects(tenant, change)
        created = self.now() if old is None else old.created
        definition = Definition(
            *(number, asked.subscriber, self.last + 1, created, asked.on, asked.expires, asked.is_paused, asked.track)
        )
        self.catalog.put(tenant, key, definition, change)
        change.records.append((FILTER, tenant + SEPARATOR + key, msgspec.json.encode(asked.filter)))
        return definition

    def delete(self, tenant: str, key: str, change: StoreChange, reason: str = "unsubscribed") -> Definition:
        """Remove a subscription; its matches so far stay deliverable, and the objects that it tracks leave it."""
        definition = self.catalog.require(tenant, key)
        if not definition.is_paused:
            self.apply(tenant, self.open_broker(tenant).unsubscribe(definition.number), change)
        self._tell(tenant, self.trackers.unwatch(definition.number, self.now(), reason, change), change)
        self.follow_objects(tenant, change)
        return self.catalog.remove(tenant, key, self.last, change)

    def expire(self, change: StoreChange) -> None:
        """Do what is due: remove the subscriptions whose time is over, and tell what time makes of tracked objects."""
        for tenant, news in self.trackers.advance(self.now()):
            self._tell(tenant, [news], change)
        for tenant, key in list(self.catalog.expired(self.now())):
            self.delete(tenant, key, change, "expired-subscription")

    def take_logged(self) -> list[Delivery]:
        """Return messages that nobody posted here since the last call: of neighbours, and about tracked objects."""
        logged, self._logged = self._logged, []
        return logged

    def _tell(self, tenant: str, told: Iterable[ObjectNews], change: StoreChange) -> None:
        """Put events that no message made into the log, in messages of our own that name the objects."""
        for body, events in told:
            message = MessagePayload(TRACK_FORMAT, body)
            self._logged.append(self._log(tenant, None, message, [], events, self.now(), change))

    # --- retention ---

    def retain(self, age: int, size: int, store: MessageStore, sent: Mapping[int, int], change: StoreChange) -> bool:
        """Remove messages older than `age`, and those before the latest `size` bytes; see `trim`."""
        at, total = self.now() - age, self.total - size
        if self._oldest is None:
            self._oldest = next(((one.at, one.total) for one in store.messages(store.span().oldest, 1)), None)
        if self._oldest is not None and (self._oldest[0] < at or self._oldest[1] <= total):
            return self.trim(max(store.first_at(at), store.first_with_total(total)), store, sent, change)
        return False

    def trim(self, bound: int, store: MessageStore, sent: Mapping[int, int], change: StoreChange) -> bool:
        """Remove messages before a sequence number, but not the last one; count the events that nobody had.

        `sent` is, by feed, the last message of which an event was handed to a consumer. Return True if some are left,
        since only so many are removed at a time.
        """
        oldest, wanted = store.span().oldest, min(bound, self.last)
        if wanted <= oldest:
            return False
        if self._noted <= oldest:
            self._noted = min(wanted, oldest + NOTED_ROWS)
            self._note_lost(store, oldest, sent, change)
        bound = min(self._noted, oldest + TRIM_ROWS)
        self._oldest = None
        self.catalog.forget_before(bound, change)
        change.trim = bound
        return bound < wanted

    def _note_lost(self, store: MessageStore, oldest: int, sent: Mapping[int, int], change: StoreChange) -> None:
        """Note what subscribers lose with the messages before `_noted`, which this transaction begins to remove."""
        floors = {self.catalog.feeds.known(*one): kept.floor for one, kept in self.retentions.items()}
        for feed, positions in MatchPage(store.matches(oldest, self._noted), self.catalog).items():
            floor = floors.get(feed, 0)
            if gone := [position for position in positions if position.sequence >= floor]:
                self._count_dropped(feed, gone, sent.get(feed, 0), change)

    def raise_floors(self, store: MessageStore, sent: Mapping[int, int], change: StoreChange) -> bool:
        """Take from subscribers with a retention of their own what is too old for them; count what nobody had.

        Return True if some of it is left, since only so much is read at a time.
        """
        oldest, now = store.span().oldest, self.now()
        due: dict[int, tuple[int, int]] = {}  # by feed, the messages that it is no longer given
        names: dict[int, tuple[str, str]] = {}
        for one, kept in self.retentions.items():
            floor, bound = max(kept.floor, oldest), kept.bound(store, now, self.total)
            place = self.catalog.feeds.known(*one)  # none: nothing of it is kept
            if place is not None and floor < bound:
                due[place], names[place] = (floor, bound), one
        if not due:
            return False
        first, wanted = min(floor for floor, _ in due.values()), max(bound for _, bound in due.values())
        stop = min(wanted, first + TRIM_ROWS)
        gone: dict[int, list[Position]] = {}
        for feed, positions in MatchPage(store.matches(first, stop), self.catalog).items():
            floor, bound = due.get(feed, (0, 0))
            if found := [position for position in positions if floor <= position.sequence < bound]:
                gone[feed] = found
        for feed, (floor, bound) in due.items():
            if floor < stop:
                if feed in gone:
                    self._count_dropped(feed, gone[feed], sent.get(feed, 0), change)
                kept = structs.replace(self.retentions.get(*names[feed]), floor=min(bound, stop))
                self.retentions.put(*names[feed], kept, change)
        return stop < wanted

    def _count_dropped(self, feed: int, gone: list[Position], sent: int, change: StoreChange) -> None:
        name = self.catalog.feeds.name(feed)
        assert name is not None  # a number of the messages that are removed now has it
        tenant, subscriber = name
        for reader in {"", *self.cursors.readers(tenant, subscriber)}:
            cursor = self.cursors.get(tenant, subscriber, reader)
            had = max(cursor.position, Position.after_message(sent)) if reader == "" else cursor.position
            had = max(had, cursor.lost_position)  # a removal that was interrupted had counted some of them
            dropped = cursor.dropped + (0 if gone[-1] <= had else sum(position > had for position in gone))
            new = structs.replace(cursor, dropped=dropped, lost=gone[-1].sequence, lost_number=gone[-1].number)
            self.cursors.put(tenant, subscriber, reader, new, change)

    # --- the broker core ---

    def broker(self, tenant: str) -> Broker | None:
        """Return the broker of a tenant; None if it has none."""
        return self._brokers.get(tenant)

    def networks(self) -> list[tuple[str, Broker]]:
        """Return the tenants whose brokers have neighbours, with the brokers."""
        return [(tenant, broker) for tenant, broker in self._brokers.items() if not broker.is_alone]

    def sizes(self) -> dict[str, int]:
        """Return the number of subscriptions that each tenant's broker holds."""
        return {tenant: len(broker) for tenant, broker in self._brokers.items()}

    def open_broker(self, tenant: str, expected: Collection[str] = ()) -> Broker:
        """Return the broker of a tenant; a new one waits for the neighbours `expected` to tell what they want."""
        broker = self._brokers.get(tenant)
        if broker is None:
            made = Broker(self.name, secrets.randbits(30), window=max(self._window, 1), expected=expected)
            broker = self._brokers[tenant] = made
        return broker

    def apply(self, tenant: str, effects: Iterable[Effect], change: StoreChange, relays: bool = False) -> None:
        """Do what a broker asks for: records go into `change`, frames wait for its commit, messages into the log.

        With `relays` the effects are of a neighbour's frame: what it published may go on before the commit.
        """
        delivered: dict[int, list[Deliver]] = {}  # by batch
        for effect in effects:
            match effect:
                case Persist():
                    self._note(tenant, effect, change)
                case Deliver():
                    delivered.setdefault(id(effect.batch), []).append(effect)
                case Send() | CloseLink():
                    self.links.add(tenant, effect, relays)
                case RejectedMessages():
                    self.links.note_rejected(tenant, effect)
                case Refused():
                    self.links.note_refused(tenant, effect)
        for own in delivered.values():
            self._take_delivered(tenant, own, change)

    def follow_objects(self, tenant: str, change: StoreChange) -> None:
        """Let neighbours send all messages about tracked objects, also those that match nothing."""
        broker, followed = self._brokers.get(tenant), self._followed.of(tenant)
        if broker is None:
            return
        wanted = set() if broker.is_alone else self.trackers.attributes(tenant)
        for name in sorted(wanted ^ followed):
            key, is_new = followed_key(name), name in wanted
            effects = broker.subscribe(FOLLOWER, key, followed_filter(name)) if is_new else broker.unsubscribe(key)
            self.apply(tenant, effects, change)
            self._followed.put(tenant, name, is_new, change)

    def bound_backlogs(self, tenant: str, change: StoreChange) -> None:
        """Drop old messages for neighbours that have too many waiting."""
        for neighbour in self.links.backlogs.above(tenant, self.links.backlog_bytes):
            broker = self._brokers[tenant]
            before = broker.dropped
            self.apply(tenant, broker.shed(neighbour), change)
            self.links.dropped += broker.dropped - before

    def _take_delivered(self, tenant: str, delivered: Sequence[Deliver], change: StoreChange) -> None:
        """Log the messages of a neighbour's batch that concern somebody here, unless they are in the log already."""
        at, batch = self.now(), delivered[0].batch
        numbers: dict[int, list[Any]] = {}
        for deliver in delivered:
            for row, keys in zip(deliver.rows, deliver.keys, strict=True):
                numbers.setdefault(row, []).extend(keys if deliver.client == CLIENT else ())
        rows = [row for row in sorted(numbers) if self._recent.get(tenant, batch.ids[row]) is None]
        payloads = [read_payload(batch.payloads[row]) if batch.payloads else None for row in rows]
        self.links.rejected += payloads.count(None)
        good = [(row, payload) for row, payload in zip(rows, payloads, strict=True) if payload is not None]
        tracked = self._follow(tenant, batch, [row for row, _ in good], numbers)
        for place, (row, payload) in enumerate(good):
            wanted, events = self.trackers.plain(numbers[row]), tracked.get(place, ())
            if wanted or events:
                self.links.received += 1
                self._logged.append(self._log(tenant, batch.ids[row], payload, wanted, events, at, change))

    def _follow(
        self, tenant: str, batch: Messages, rows: list[int], numbers: Mapping[int, list[Any]]
    ) -> dict[int, list[TrackedEvent]]:
        """Return the events that messages of a neighbour make of tracked objects, by place in `rows`."""
        if not (rows and self.trackers.watches(tenant)):
            return {}
        columns = batch.chosen(np.array(rows)).columns
        messages = columns if isinstance(columns, list) else pa.Table.from_batches([columns])
        part = MatchedPart(messages, list(range(len(rows))), [numbers[row] for row in rows], [])
        return self.trackers.apply(tenant, [part], self.now())

    def _note(self, tenant: str, effect: Persist, change: StoreChange) -> None:
        """Note the records of a broker."""
        for key, value in effect.records:
            data = None if value is None else record_bytes(key, value)
            if key[0] == "subscription":
                change.records.append((BROKER_SUBSCRIPTION, f"{tenant}{SEPARATOR}{key[1]}", data))
                if self._tables is not None:
                    self._tables.note_change(tenant)
            else:
                name = tenant + SEPARATOR + msgspec.json.encode(key).decode()
                change.records.append((BROKER, name, data))
                self.links.note_record(tenant, key, value, data)
        if effect.can_wait:
            change.patient += len(effect.records)


def _chosen(messages: Any, rows: list[int]) -> Any:
    """Return some rows of a table or a list of messages."""
    return [messages[row] for row in rows] if isinstance(messages, list) else messages.take(np.asarray(rows))
