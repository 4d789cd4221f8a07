"""Cursors: how far each subscriber has acknowledged its events, and what retention took from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Set
from typing import NamedTuple

import msgspec

from contrada.errors import FormatError
from contrada.service.catalog import SEPARATOR
from contrada.service.matches import NUMBER_BITS, NUMBER_MASK
from contrada.service.store.message_store import MessageStore, StoreChange

CURSOR = "cursor"  # kind of the records
LAST_NUMBER = (1 << 62) - 1  # after every event of a message
MOST_RANK = LAST_NUMBER >> NUMBER_BITS


def event_id(sequence: int, number: int) -> str:
    """Return the id of an event: the message, the subscription, and the rank of a second or later event of both."""
    rank = number >> NUMBER_BITS
    if not rank or number == LAST_NUMBER:
        return f"{sequence}.{number & NUMBER_MASK}"
    return f"{sequence}.{number & NUMBER_MASK}.{rank}"


class Position(NamedTuple):
    """A place between events: after the event of this message with this number (see contrada.service.matches)."""

    sequence: int
    number: int

    @property
    def id(self) -> str:
        """The id of the event before the place.

        >>> Position(12, 3).id, Position(12, 3 + (2 << NUMBER_BITS)).id, Position.after_message(12).id
        ('12.3', '12.3.2', '12.4294967295')
        """
        return event_id(self.sequence, self.number)

    @classmethod
    def after_message(cls, sequence: int) -> Position:
        """Return the place after all events of a message."""
        return cls(sequence, LAST_NUMBER)

    @classmethod
    def of_id(cls, id: str) -> Position:
        """Return the place after an event; raise FormatError if it is not the id of one.

        >>> Position.of_id("12.3"), Position.of_id("12.3.2").id
        (Position(sequence=12, number=3), '12.3.2')
        """
        sequence, *rest = id.split(".", 3)
        is_known = 1 <= len(rest) <= 2 and all(map(_is_count, (sequence, *rest)))
        number, rank = map(int, (*rest, "0")[:2]) if is_known else (0, 0)
        if not is_known or number > NUMBER_MASK or rank > MOST_RANK:
            raise FormatError(f"event id: need two numbers such as 12.3, got {id!r:.60}")
        return cls(int(sequence), LAST_NUMBER if number == NUMBER_MASK else rank << NUMBER_BITS | number)


class Cursor(msgspec.Struct, frozen=True):
    """Where a reader of a subscriber's events stands.

    `dropped` counts the events that retention removed before they were acknowledged; the last event that it removed is
    that of the message `lost` and the subscription `lost_number`.
    """

    sequence: int = 0
    number: int = 0
    dropped: int = 0
    lost: int = 0
    lost_number: int = 0

    @property
    def lost_position(self) -> Position:
        """The place after the last event that retention removed."""
        return Position(self.lost, self.lost_number)

    @property
    def position(self) -> Position:
        """The place after the last event that was acknowledged."""
        return Position(self.sequence, self.number)


class Cursors:
    """Cursors by tenant, subscriber and reader: the subscriber itself is the reader "", a webhook has a name."""

    def __init__(self) -> None:
        self._cursors: dict[tuple[str, str, str], Cursor] = {}
        self._readers: defaultdict[tuple[str, str], set[str]] = defaultdict(set)  # by tenant and subscriber

    @classmethod
    def load(cls, store: MessageStore) -> Cursors:
        """Return what a store holds."""
        cursors = cls()
        for name, value in store.records(CURSOR):
            tenant, subscriber, reader = name.split(SEPARATOR)
            cursors._cursors[tenant, subscriber, reader] = msgspec.msgpack.decode(value, type=Cursor)
            cursors._readers[tenant, subscriber].add(reader)
        return cursors

    def get(self, tenant: str, subscriber: str, reader: str = "") -> Cursor:
        """Return a cursor; one at the beginning for an unknown reader."""
        return self._cursors.get((tenant, subscriber, reader), Cursor())

    def items(self) -> Iterator[tuple[tuple[str, str, str], Cursor]]:
        """Yield tenants, subscribers and readers with their cursors."""
        return iter(list(self._cursors.items()))

    def readers(self, tenant: str, subscriber: str) -> Set[str]:
        """Return the readers of a subscriber that have a cursor."""
        return self._readers.get((tenant, subscriber), frozenset())

    def acknowledge(
        self, tenant: str, subscriber: str, position: Position, change: StoreChange, reader: str = ""
    ) -> None:
        """Move a cursor forward; one that is further already stays."""
        old = self.get(tenant, subscriber, reader)
        if position > old.position:
            new = msgspec.structs.replace(old, sequence=position.sequence, number=position.number)
            self.put(tenant, subscriber, reader, new, change)

    def put(self, tenant: str, subscriber: str, reader: str, cursor: Cursor, change: StoreChange) -> None:
        """Set a cursor."""
        self._cursors[tenant, subscriber, reader] = cursor
        self._readers[tenant, subscriber].add(reader)
        change.records.append((CURSOR, SEPARATOR.join((tenant, subscriber, reader)), msgspec.msgpack.encode(cursor)))

    def remove(self, tenant: str, subscriber: str, reader: str, change: StoreChange) -> None:
        """Forget a reader."""
        if self._cursors.pop((tenant, subscriber, reader), None) is not None:
            readers = self._readers[tenant, subscriber]
            readers.remove(reader)
            if not readers:
                del self._readers[tenant, subscriber]
            change.records.append((CURSOR, SEPARATOR.join((tenant, subscriber, reader)), None))


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18
