"""SharedCore: the core of a server that follows a shared log. Its clock is that of the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from contrada.broker.effects import Persist
from contrada.service.core import Delivery
from contrada.service.intake import BodyReader, Part, Post, Taken
from contrada.service.links.payloads import MessagePayload
from contrada.service.matches import TrackedEvent, list_matches
from contrada.service.reading_again import read_again
from contrada.service.shared_log.duties import LogPlace, PlacedCore
from contrada.service.shared_log.entries import MessageEntry, mark_of
from contrada.service.shared_log.shared_log import LogUnit
from contrada.service.store.message_store import MessageStore, StoreChange
from contrada.service.tracks.groups import MatchedPart

PLACE = "log-place"  # kind of the record that says how far the log was applied
ALL_VERTICES = 1 << 40  # of a message that another server has taken already
DAY = 86_400_000  # milliseconds


class Proposal(NamedTuple):
    """Messages of posts before they are in the log, with what this server finds for them now.

    `again` has sequence numbers of equal earlier messages, `found` numbers of subscriptions and `refused` reasons, all
    by place in `taken`; `version` counts the changes of the table that was asked.
    """

    taken: Taken
    again: dict[int, int]
    found: dict[int, list[int]]
    refused: dict[int, str]
    version: int


class SharedCore(PlacedCore):
    """A core that is changed by what it reads in a log, and by nothing else: all that read it come to the same state.

    `place` says how far the log was applied.
    """

    def __init__(self, store: MessageStore, *arguments: Any, **options: Any) -> None:
        super().__init__(store, *arguments, **options)
        data = store.record(PLACE, "")
        self.place = LogPlace() if data is None else msgspec.msgpack.decode(data, type=LogPlace)
        self.at = max(self.at, self.place.at)
        self.trackers.note_looked(self.at)
        self._all_reader = BodyReader(vertices=ALL_VERTICES)
        self.rematched = 0  # messages whose table had changed before they came into the log

    def now(self) -> int:
        """Return the time of the record that is applied."""
        return self.at

    # --- before the log ---

    def propose(self, tenant: str, posts: Sequence[Post]) -> Proposal:
        """Read and match the messages of posts; nothing changes."""
        taken = self._reader.read_singly(posts) or self._reader.read(posts)
        again = {place: -first for place, first in self._known(tenant, taken.ids).items() if first < 0}
        found: dict[int, list[int]] = {}
        refused: dict[int, str] = {}
        for part, reasons in self._matched(tenant, taken.parts):
            found.update(zip(part.places, part.numbers, strict=True))
            refused |= reasons
        return Proposal(taken, again, found, refused, self.place.versions.get(tenant, 0))

    def _matched(self, tenant: str, parts: Iterable[Part]) -> list[tuple[MatchedPart, dict[int, str]]]:
        """Return messages with the subscriptions that they satisfy, and why some cannot be matched, by place."""
        broker = self._brokers.get(tenant)
        if broker is None:
            return []
        found = []
        for table, places in parts:
            keys, rejected = broker.match(table)
            reasons = {places[item.row]: item.reason for item in rejected}
            found.append((MatchedPart(table, places, keys, [item.row for item in rejected]), reasons))
        return found

    # --- what the log says ---

    def begin(self, at: int, change: StoreChange) -> list[Delivery]:
        """Go on to the time of a record; return the messages that time makes."""
        self.at = max(self.at, at)
        self.expire(change)
        return self.take_logged()

    def take(
        self, tenant: str, messages: Sequence[MessageEntry], change: StoreChange
    ) -> tuple[list[int | str], list[Delivery]]:
        """Take messages of a tenant that came at one time, in order.

        Return, for each, its sequence number, minus that of an equal earlier message, or why it was refused; and what
        is to be delivered. A message is matched again if the table has changed since its server matched it.
        """
        outcomes: list[int | str] = [0] * len(messages)
        deliveries: list[Delivery] = []
        version, is_tracked = self.place.versions.get(tenant, 0), self.trackers.watches(tenant)
        again = self._known(tenant, [entry.head.id or None for entry in messages])
        fresh = [place for place in range(len(messages)) if place not in again]
        found, refused, tracked = self._found(tenant, messages, fresh)
        for place, entry in enumerate(messages):
            if place in again:
                first = again[place]
                outcome = first if first < 0 else outcomes[first]
                outcomes[place] = outcome if isinstance(outcome, str) else -abs(outcome)
            elif place in refused:
                outcomes[place] = refused[place]
            else:
                head, events = entry.head, tracked.get(place, ())
                payload = MessagePayload(head.format, entry.body)
                numbers = sorted(found.get(place, ()))
                matches = head.matches if head.version == version and not is_tracked else None
                one = self._log(tenant, head.id or None, payload, numbers, events, self.at, change, matches)
                deliveries.append(one)
                outcomes[place] = self.last
        return outcomes, deliveries

    def _found(
        self, tenant: str, messages: Sequence[MessageEntry], fresh: list[int]
    ) -> tuple[dict[int, list[int]], dict[int, str], dict[int, list[TrackedEvent]]]:
        """Return what messages match, why some cannot be matched, and events of tracked objects, as Core does."""
        version, is_tracked = self.place.versions.get(tenant, 0), self.trackers.watches(tenant)
        is_stale = any(messages[place].head.version != version for place in fresh)
        heads: dict[int, list[int]] = {}
        if not is_stale:
            heads = {place: list_matches(messages[place].head.matches) for place in fresh}
            if not is_tracked:
                return heads, {}, {}
        parts = self._read(messages, fresh)
        if not is_stale:
            matched = [MatchedPart(table, places, [heads[place] for place in places], []) for table, places in parts]
            return self._tracked(tenant, matched, {})
        self.rematched += len(fresh)
        found = self._matched(tenant, parts)
        refused = {place: reason for _, reasons in found for place, reason in reasons.items()}
        return self._tracked(tenant, [part for part, _ in found], refused)

    def _read(self, messages: Sequence[MessageEntry], chosen: list[int]) -> list[Part]:
        """Return the attributes of some messages, with their places among all."""
        parts = read_again([messages[place] for place in chosen], self._all_reader)
        assert sum(len(part.rows) for part in parts) == len(chosen)  # all were read before
        return [Part(part.table, [chosen[row] for row in part.rows]) for part in parts]

    def _tracked(
        self, tenant: str, matched: list[MatchedPart], refused: dict[int, str]
    ) -> tuple[dict[int, list[int]], dict[int, str], dict[int, list[TrackedEvent]]]:
        found = {
            place: list(numbers) for part in matched for place, numbers in zip(part.places, part.numbers, strict=True)
        }
        if not self.trackers.watches(tenant):
            return found, refused, {}
        events: Mapping[int, list[TrackedEvent]] = self.trackers.apply(tenant, matched, self.at)
        return {place: self.trackers.plain(numbers) for place, numbers in found.items()}, refused, dict(events)

    def _note(self, tenant: str, effect: Persist, change: StoreChange) -> None:
        """Note the records of a broker, and count how often its table changes."""
        super()._note(tenant, effect, change)
        if any(key[0] == "subscription" for key, _ in effect.records):
            versions = self.place.versions
            self.place = structs.replace(self.place, versions={**versions, tenant: versions.get(tenant, 0) + 1})

    # --- how far it is ---

    def last_count(self, origin: str) -> int:
        """Return the count of the last record of a server that was applied: earlier ones may be in the log again."""
        return self.place.origins.get(origin, (0, 0))[0]

    def advance(self, unit: LogUnit, size: int, last: Mapping[str, int], change: StoreChange) -> None:
        """Note that units up to one are applied, `size` bytes; `last` has the last count of each origin."""
        place, at = self.place, self.at
        origins = place.origins | {origin: (count, at) for origin, count in last.items()}
        if any(at - seen > DAY for _, seen in origins.values()):
            origins = {origin: one for origin, one in origins.items() if at - one[1] <= DAY}
        done = {"position": unit.position, "mark": mark_of(unit), "grown": place.grown + size}
        self.place = structs.replace(place, at=at, origins=origins, **done)
        change.records.append((PLACE, "", msgspec.msgpack.encode(self.place)))
