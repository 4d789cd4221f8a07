"""Trackers: all tracked subscriptions of the service with their objects; the engine's thread owns them."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from contrada.service.matches import TrackedEvent
from contrada.service.store.message_store import MessageStore, StoreChange
from contrada.service.tracks.asking import TrackAsked
from contrada.service.tracks.groups import GroupKey, MatchedPart, ObjectNews, TrackGroup
from contrada.service.tracks.journal import SNAPSHOT_AFTER, BegunSnapshot, GroupJournal, JournalRest, load_journals
from contrada.tracking import Tracks, Watch

LOOK_AFTER = 100  # milliseconds between looks at what time makes due, which are at multiples of it


class TenantNews(NamedTuple):
    """Events of an object of a tenant that no message made."""

    tenant: str
    news: ObjectNews


class TrackCounts(NamedTuple):
    """Objects that are tracked, pairs of an object and a subscription that it is inside, and fixes that had no effect.

    `late` fixes were older than one that came before; the ids or times of `unread` ones could not be read.
    """

    objects: int
    pairs: int
    late: int
    unread: int


class Trackers:
    """Groups of tracked objects, and the group of each tracked subscription by its number."""

    def __init__(self, expiry: int | None = None, log: int = SNAPSHOT_AFTER) -> None:
        self._expiry, self._log = expiry, log
        self._journals: dict[GroupKey, GroupJournal] = {}
        self._by_tenant: defaultdict[str, list[GroupJournal]] = defaultdict(list)
        self._of: dict[int, GroupJournal] = {}
        self._rest = JournalRest()
        self._looked = 0  # time in units of LOOK_AFTER up to which all objects were advanced

    @classmethod
    def load(cls, store: MessageStore, expiry: int | None, log: int = SNAPSHOT_AFTER) -> Trackers:
        """Return what a store holds; tracks without a fix for `expiry` milliseconds end.

        A group needs a snapshot after `log` bytes of changes, or as many as its state has.
        """
        trackers = cls(expiry, log)
        journals, trackers._rest = load_journals(store, expiry)
        for journal in journals:
            trackers._add(journal)
        return trackers

    def _add(self, journal: GroupJournal) -> None:
        key = journal.group.key
        self._journals[key] = journal
        self._by_tenant[key.tenant].append(journal)
        self._of |= dict.fromkeys(map(int, journal.group.tracks.numbers()), journal)

    def note_looked(self, now: int) -> None:
        """Take it that all objects were advanced to a time, as they were before a restart."""
        self._looked = now // LOOK_AFTER

    # --- messages ---

    def watches(self, tenant: str) -> bool:
        """Return True if a subscription of a tenant is tracked."""
        return tenant in self._by_tenant

    def attributes(self, tenant: str) -> set[str]:
        """Return the tracking attributes of the subscriptions of a tenant."""
        return {journal.group.key.track for journal in self._by_tenant.get(tenant, ())}

    def groups(self, tenant: str) -> list[TrackGroup]:
        """Return the groups of objects of a tenant."""
        return [journal.group for journal in self._by_tenant.get(tenant, ())]

    def plain(self, numbers: Iterable[int]) -> list[int]:
        """Return the numbers of subscriptions that are not tracked, rising."""
        return sorted(number for number in numbers if number not in self._of)

    def apply(self, tenant: str, parts: Sequence[MatchedPart], arrival: int) -> dict[int, list[TrackedEvent]]:
        """Take new messages of a tenant; return the events that they make, by place."""
        found: dict[int, list[TrackedEvent]] = {}
        for journal in self._by_tenant[tenant]:
            for place, events in journal.group.apply(parts, arrival).items():
                found.setdefault(place, []).extend(events)
        return found

    def advance(self, now: int) -> Iterator[TenantNews]:
        """Yield what the passing of time makes; a look at all objects takes time, so it is not done again at once.

        What is yielded, and in which order, depends on the times of the calls alone, so that servers which follow one
        log make the same of it.
        """
        if now // LOOK_AFTER == self._looked:
            return
        self._looked = now // LOOK_AFTER
        for key in sorted(self._journals, key=_order):
            group = self._journals[key].group
            due = group.tracks.next_due
            if due is not None and due <= (time := group.now(now)):
                for news in group.news(group.tracks.advance(time)):
                    yield TenantNews(group.key.tenant, news)

    # --- subscriptions ---

    def watch(
        self, tenant: str, number: int, asked: TrackAsked, watch: Watch, now: int, change: StoreChange
    ) -> Iterator[ObjectNews]:
        """Track objects for a subscription; yield the exits from what it was before, if that was another."""
        key = GroupKey(tenant, asked.track, asked.time, watch.attribute, asked.late)
        old = self._of.get(number)
        if old is not None and old.group.key != key:
            yield from self.unwatch(number, now, "replaced", change)
        journal = self._journals.get(key)
        if journal is None:
            group = TrackGroup(key, Tracks(late=asked.late, expire_after=self._expiry))
            journal = GroupJournal.begin(secrets.token_hex(8), group, change)
            self._add(journal)
        group = journal.group
        self._of[number] = journal
        yield from group.news(group.tracks.watch(number, watch, group.now(now), reason="replaced"))

    def unwatch(self, number: int, now: int, reason: str, change: StoreChange) -> Iterator[ObjectNews]:
        """Yield the exits of all objects from a subscription that ends; nothing if it is not tracked."""
        journal = self._of.pop(number, None)
        if journal is None:
            return
        group = journal.group
        yield from group.news(group.tracks.unwatch([number], group.now(now), reason=reason))
        if not len(group.tracks.numbers()):
            self._rest.add(journal.end(change))
            del self._journals[group.key]
            own = self._by_tenant[group.key.tenant]
            own.remove(journal)
            if not own:
                del self._by_tenant[group.key.tenant]

    def group_of(self, number: int) -> TrackGroup | None:
        """Return the objects that a subscription watches; None if it is not tracked."""
        journal = self._of.get(number)
        return None if journal is None else journal.group

    # --- the store ---

    def flush(self, change: StoreChange) -> None:
        """Write what has changed, in the transaction of what changed it."""
        for journal in self._journals.values():
            journal.flush(change)

    def remove_rest(self, change: StoreChange) -> bool:
        """Remove some records of the past; return True if there are more."""
        return self._rest.remove_some(change)

    def due(self) -> list[GroupKey]:
        """Return the groups that need a snapshot; none while old records are left to remove.

        Among these may be parts of a snapshot that was not completed before a restart. A new snapshot of the same state
        has the same names, and its parts must not be removed.
        """
        if not self._rest.is_empty:
            return []
        return [key for key, journal in list(self._journals.items()) if journal.is_due(self._log)]

    def begin_snapshot(self, key: GroupKey, change: StoreChange) -> BegunSnapshot | None:
        """Return a snapshot of a group, to be written part by part; None if there is no such group."""
        journal = self._journals.get(key)
        return None if journal is None else journal.begin_snapshot(change)

    def complete_snapshot(self, begun: BegunSnapshot, change: StoreChange) -> None:
        """Put a snapshot in force whose parts are written."""
        journal = self._journals.get(begun.head.key)
        if journal is not None and journal.id == begun.id:
            self._rest.add(journal.complete(begun, change))
        else:
            self._rest.add((kind, name) for kind, name, _ in begun.records())

    @property
    def counts(self) -> TrackCounts:
        """How much is tracked."""
        groups = [journal.group for journal in list(self._journals.values())]
        return TrackCounts(
            sum(group.tracks.objects for group in groups),
            sum(group.tracks.pairs for group in groups),
            sum(group.tracks.late for group in groups),
            sum(group.unread for group in groups),
        )


def _order(key: GroupKey) -> tuple[str, str, str, str, str]:
    tenant, track, time, geometry, late = key
    return tenant, track, time or "", geometry, late
