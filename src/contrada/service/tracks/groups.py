"""TrackGroup: the objects that some subscriptions of a tenant watch, and what messages and time make of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any, NamedTuple

import msgspec
import numpy as np

from contrada.geometry import Relation
from contrada.service.matches import NUMBER_BITS, TrackedEvent
from contrada.tracking import KINDS, REASONS, Fixes, FixReader, Tracks, Transitions

_RELATIONS = {-1: b"null"} | {int(relation): b'"%b"' % str(relation).encode() for relation in Relation}
_KINDS = [kind.encode() for kind in KINDS]
_REASONS = [b"" if reason == "fix" else b',"reason":"%b"' % reason.encode() for reason in REASONS]
_encode = msgspec.json.Encoder().encode


class GroupKey(NamedTuple):
    """What the subscriptions of a group have in common: names of attributes, and the rule for late fixes."""

    tenant: str
    track: str
    time: str | None
    geometry: str
    late: str


class MatchedPart(NamedTuple):
    """Messages in a table or a list: their places among all, and the numbers of the subscriptions that each satisfies.

    `refused` are rows of messages that could not be matched.
    """

    messages: Any
    places: list[int]
    numbers: list[list[Any]]
    refused: list[int]

    def sliced(self, start: int, stop: int) -> MatchedPart:
        """Return some consecutive messages."""
        is_list = isinstance(self.messages, list)
        messages = self.messages[start:stop] if is_list else self.messages.slice(start, stop - start)
        refused = [row - start for row in self.refused if start <= row < stop]
        return MatchedPart(messages, self.places[start:stop], self.numbers[start:stop], refused)


class ObjectNews(NamedTuple):
    """Events of an object that no message made: a body that names the object, and the events."""

    body: bytes
    events: list[TrackedEvent]


class TrackGroup:
    """The objects of a tenant by one tracking attribute, and the subscriptions that watch them.

    If the messages have times of their own, `newest` is the latest, and it came at `came`.
    """

    def __init__(self, key: GroupKey, tracks: Tracks, newest: int = 0, came: int = 0) -> None:
        self.key, self.tracks, self.newest, self.came = key, tracks, newest, came
        self._reader = FixReader(key.track, time=key.time)
        self.unread = 0  # messages whose id or time could not be read

    def now(self, wall: int) -> int:
        """Return the time of the objects.

        Times of messages may be long past, as in a replay: time goes on from the newest one, so that nothing is due
        before its time. A clock of an object that is ahead has no effect on others beyond `wall`.
        """
        return wall if self.key.time is None else min(wall, self.newest + wall - self.came)

    def apply(
        self, parts: Sequence[MatchedPart], arrival: int, arrivals: Sequence[int] | None = None
    ) -> dict[int, list[TrackedEvent]]:
        """Take messages that came at a time, or by place at the times `arrivals`; return their events by place."""
        read = [(part, self._fixes(part, arrival)) for part in parts]
        if len(read) > 1 and _share_an_object([fixes for _, fixes in read]):
            read = [(part, self._fixes(part, arrival)) for part in _in_order(parts)]
        found: dict[int, list[TrackedEvent]] = {}
        for part, fixes in read:
            if arrivals is not None and self.key.time is None:
                fixes = fixes._replace(times=np.array([arrivals[place] for place in part.places], np.int64))
            transitions = self.tracks.apply(fixes)
            if len(transitions):
                places = [part.places[row] for row in transitions.rows.tolist()]
                _collect(transitions, places, found)
        return found

    def _fixes(self, part: MatchedPart, arrival: int) -> Fixes:
        key = self.key
        fixes, bad = self._reader.read(part.messages, key.geometry, arrival)
        if bad:
            self.unread += len(bad) - _count_without(part.messages, key.track)
        if key.time is not None:
            known = [time for id, time in zip(fixes.ids, fixes.times.tolist(), strict=True) if id is not None]
            if known and (newest := max(known)) > self.newest:
                self.newest, self.came = newest, arrival
        counts = [len(numbers) for numbers in part.numbers]
        rows = np.repeat(np.arange(len(counts)), counts)
        numbers = np.fromiter(chain.from_iterable(part.numbers), np.int64, len(rows))
        fixes = fixes._replace(rows=rows, numbers=numbers)
        return fixes.without(part.refused) if part.refused else fixes

    def news(self, transitions: Transitions) -> Iterator[ObjectNews]:
        """Yield the events of each object, by rising id, of transitions that no message made."""
        found: dict[Any, list[TrackedEvent]] = {}
        _collect(transitions, transitions.objects, found)
        bodies = {_encode({self.key.track: id}): sorted(events) for id, events in found.items()}
        for body in sorted(bodies):  # objects have no order of their own that a restart would keep
            yield ObjectNews(body, bodies[body])


def _count_without(messages: Any, name: str) -> int:
    """Return how many messages have no value of an attribute: they are about nothing that is tracked."""
    if isinstance(messages, list):
        return sum(message.get(name) is None for message in messages)
    return int(messages.column(name).null_count) if name in messages.column_names else len(messages)


def _share_an_object(parts: Sequence[Fixes]) -> bool:
    """Return True if messages of several parts are about one object: then their order counts."""
    objects = [{id for id in fixes.ids if id is not None} for fixes in parts]
    return len(set().union(*objects)) < sum(map(len, objects))


def _in_order(parts: Sequence[MatchedPart]) -> Iterator[MatchedPart]:
    """Cut parts into slices that follow one another by place."""
    places = sorted((place, number, row) for number, part in enumerate(parts) for row, place in enumerate(part.places))
    for number, run in groupby(places, lambda one: one[1]):
        rows = [row for _, _, row in run]
        yield parts[number].sliced(rows[0], rows[-1] + 1)


def _collect(transitions: Transitions, places: Sequence[Any], found: dict[Any, list[TrackedEvent]]) -> None:
    """Add events by place; a second event of a place and a subscription has the next rank."""
    ranks: Counter[tuple[Any, int]] = Counter()
    for place, number, member in zip(places, transitions.numbers.tolist(), members_of(transitions), strict=True):
        rank = ranks[place, number]
        ranks[place, number] += 1
        found.setdefault(place, []).append((rank << NUMBER_BITS | number, member))


def members_of(transitions: Transitions) -> Iterator[bytes]:
    """Yield the member `track` of each event as JSON.

    It has the id of the object, the kind of the event, the relations of the object to the region before and after, null
    if there was none, and the time; a reason if no fix is the cause.
    """
    times = np.datetime_as_string(transitions.times.astype("datetime64[ms]"), unit="ms").tolist()
    columns = (transitions.kinds, transitions.befores, transitions.afters, transitions.reasons)
    kinds, befores, afters, reasons = (column.tolist() for column in columns)
    for id, kind, before, after, time, reason in zip(
        transitions.objects, kinds, befores, afters, times, reasons, strict=True
    ):
        relations = b'"before":%b,"after":%b' % (_RELATIONS[before], _RELATIONS[after])
        head = b'{"id":%b,"kind":"%b",%b' % (_encode(id), _KINDS[kind], relations)
        yield b'%b,"time":"%bZ"%b}' % (head, time.encode(), _REASONS[reason])


def track_of(member: bytes) -> Mapping[str, Any]:
    """Return a member `track` as a mapping."""
    found: Mapping[str, Any] = msgspec.json.decode(member)
    return found
