"""The records of a group of tracked objects: a snapshot of its state in parts, and what changed since.

A change is written in the transaction of the messages that made it. Changes are numbered 1, 2, 3, ...; a snapshot holds
those up to its own number.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import msgspec

from contrada.service.catalog import SEPARATOR
from contrada.service.store.message_store import MessageStore, StoreChange
from contrada.service.tracks.groups import GroupKey, TrackGroup
from contrada.tracking import Tracks

GROUP, SNAPSHOT, DELTA = "track-group", "track-snapshot", "track-delta"  # kinds of records
PART_BYTES = 1 << 20  # of a snapshot in one record
SNAPSHOT_AFTER = 4 << 20  # bytes of changes, unless the state has more
REMOVED_TOGETHER = 2_000  # records of old snapshots and changes in one transaction

Record = tuple[str, str, bytes | None]


class GroupHead(msgspec.Struct, frozen=True, array_like=True):
    """What is known of a group besides its state: `snapshot` is the number of its snapshot, which has `parts` parts."""

    key: GroupKey
    snapshot: int
    parts: int
    newest: int = 0
    came: int = 0


class TrackDelta(msgspec.Struct, frozen=True, array_like=True):
    """A change of a group."""

    newest: int
    came: int
    data: bytes


class BegunSnapshot(NamedTuple):
    """A snapshot that is not in force yet."""

    id: str
    head: GroupHead
    data: bytes
    logged: int = 0  # bytes of changes that it holds, since the snapshot before

    def records(self) -> Iterator[Record]:
        """Yield its parts."""
        for part in range(self.head.parts):
            data = self.data[part * PART_BYTES : (part + 1) * PART_BYTES]
            yield SNAPSHOT, _part_name(self.id, self.head.snapshot, part), data


class GroupJournal:
    """Writes the changes of one group; `logged` counts their bytes since the snapshot."""

    def __init__(self, id: str, group: TrackGroup, head: GroupHead, last: int, logged: int) -> None:
        self.id, self.group, self.head, self.last, self.logged = id, group, head, last, logged

    @classmethod
    def begin(cls, id: str, group: TrackGroup, change: StoreChange) -> GroupJournal:
        """Begin the journal of a new group, which nothing watches yet."""
        data = group.tracks.snapshot()
        group.tracks.take_delta()
        begun = BegunSnapshot(id, GroupHead(group.key, 0, _parts(data)), data)
        change.records += [*begun.records(), (GROUP, id, msgspec.msgpack.encode(begun.head))]
        return cls(id, group, begun.head, 0, 0)

    def flush(self, change: StoreChange) -> None:
        """Write what has changed."""
        data = self.group.tracks.take_delta()
        if data:
            self.last += 1
            self.logged += len(data)
            delta = TrackDelta(self.group.newest, self.group.came, data)
            change.records.append((DELTA, _delta_name(self.id, self.last), msgspec.msgpack.encode(delta)))

    def is_due(self, least: int) -> bool:
        """Return True if the changes have `least` bytes, and as many as the state has."""
        return self.logged >= max(least, self.group.tracks.nbytes)

    def begin_snapshot(self, change: StoreChange) -> BegunSnapshot:
        """Return the whole state; what changes meanwhile is written as before."""
        self.flush(change)
        data, group = self.group.tracks.snapshot(), self.group
        head = GroupHead(group.key, self.last, _parts(data), group.newest, group.came)
        return BegunSnapshot(self.id, head, data, self.logged)

    def complete(self, begun: BegunSnapshot, change: StoreChange) -> Iterator[tuple[str, str]]:
        """Put a snapshot in force whose parts are written; return the names of the records that it replaces."""
        old, self.head = self.head, begun.head
        self.logged -= begun.logged
        change.records.append((GROUP, self.id, msgspec.msgpack.encode(begun.head)))
        return _names(self.id, old, begun.head.snapshot)

    def end(self, change: StoreChange) -> Iterator[tuple[str, str]]:
        """Forget the group; return the names of its other records."""
        change.records.append((GROUP, self.id, None))
        return _names(self.id, self.head, self.last)


class JournalRest:
    """Records that are of no use any more, which are removed part by part."""

    def __init__(self, names: Iterable[tuple[str, str]] = ()) -> None:
        self._names: deque[Iterator[tuple[str, str]]] = deque()
        if records := list(names):
            self._names.append(iter(records))

    def add(self, names: Iterator[tuple[str, str]]) -> None:
        """Take records."""
        self._names.append(names)

    @property
    def is_empty(self) -> bool:
        """True if no records are left to remove."""
        return not self._names

    def remove_some(self, change: StoreChange) -> bool:
        """Remove some records; return True if there are more."""
        while self._names:
            found = list(islice(self._names[0], REMOVED_TOGETHER))
            change.records += [(kind, name, None) for kind, name in found]
            if len(found) == REMOVED_TOGETHER:
                return True
            self._names.popleft()
            if found:
                break
        return bool(self._names)


def load_journals(store: MessageStore, expiry: int | None) -> tuple[list[GroupJournal], JournalRest]:
    """Return the groups that a store holds, with their journals; tracks without a fix for `expiry` ms end."""
    heads = {id: msgspec.msgpack.decode(data, type=GroupHead) for id, data in store.records(GROUP)}
    rest: list[tuple[str, str]] = []
    snapshots: defaultdict[str, list[bytes]] = defaultdict(list)
    for name, data in store.records(SNAPSHOT):
        id, number, _ = name.split(SEPARATOR)
        if id in heads and heads[id].snapshot == int(number):
            snapshots[id].append(data)
        else:
            rest.append((SNAPSHOT, name))
    deltas: defaultdict[str, list[TrackDelta]] = defaultdict(list)
    for name, data in store.records(DELTA):
        id, number = name.split(SEPARATOR)
        if id in heads and heads[id].snapshot < int(number):
            deltas[id].append(msgspec.msgpack.decode(data, type=TrackDelta))
        else:
            rest.append((DELTA, name))
    found = [_journal(id, head, b"".join(snapshots[id]), deltas[id], expiry) for id, head in heads.items()]
    return found, JournalRest(rest)


def _journal(id: str, head: GroupHead, snapshot: bytes, deltas: list[TrackDelta], expiry: int | None) -> GroupJournal:
    assert _parts(snapshot) == head.parts
    tracks = Tracks.restore(snapshot, [delta.data for delta in deltas])
    tracks.expire_after = expiry  # the setting may have changed since
    newest, came = (deltas[-1].newest, deltas[-1].came) if deltas else (head.newest, head.came)
    group = TrackGroup(head.key, tracks, newest, came)
    logged = sum(len(delta.data) for delta in deltas)
    return GroupJournal(id, group, head, head.snapshot + len(deltas), logged)


def _parts(data: bytes) -> int:
    return -(-len(data) // PART_BYTES)


def _part_name(id: str, snapshot: int, part: int) -> str:
    return f"{id}{SEPARATOR}{snapshot:012}{SEPARATOR}{part:06}"


def _delta_name(id: str, number: int) -> str:
    return f"{id}{SEPARATOR}{number:012}"


def _names(id: str, head: GroupHead, last: int) -> Iterator[tuple[str, str]]:
    """Yield the names of the parts of a snapshot, and of the changes after it up to `last`."""
    for part in range(head.parts):
        yield SNAPSHOT, _part_name(id, head.snapshot, part)
    for number in range(head.snapshot + 1, last + 1):
        yield DELTA, _delta_name(id, number)
