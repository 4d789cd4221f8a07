"""Dead letters: events that a receiver did not take in time, kept until they are replayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from contrada.errors import FormatError, UnknownKeyError
from contrada.service.catalog import SEPARATOR
from contrada.service.cursors import Position
from contrada.service.deliveries.bodies import Parcel
from contrada.service.deliveries.progress import DeliveryKey
from contrada.service.feeds import Event
from contrada.service.service import Service

DEAD_LETTER = "dead-letter"  # kind of the records
PAGE = 100
PAGE_BYTES = 4 << 20  # of letters in one page; one letter alone may have more
READ_LETTERS = 8  # at once, since each may be as large as a message may be
NO_MESSAGE = msgspec.Raw(b"null")


class DeadLetter(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event with why it was given up; times are in milliseconds since 1970. `track` is there for tracked objects.

    A reset that was given up has no key and no message, and names the oldest message that was kept.
    """

    id: str
    sequence: int
    reason: str
    attempts: int
    since: int
    at: int
    type: Literal["match", "reset"] = "match"
    key: str = ""
    message: msgspec.Raw = NO_MESSAGE
    oldest: int | None = None
    track: msgspec.Raw = NO_MESSAGE

    def parcel(self) -> Parcel:
        """Return the delivery that was given up."""
        if self.oldest is not None:
            return Parcel.of_reset(self.oldest)
        track = b"" if self.track == NO_MESSAGE else bytes(self.track)
        return Parcel.of_events([Event(*Position.of_id(self.id), self.key, bytes(self.message), track)])


class DeadLetterPage(NamedTuple):
    """Dead letters by rising place; `next` is the id to continue after, None at the end."""

    letters: list[DeadLetter]
    next: str | None = None


def letters_of(parcel: Parcel, reason: str, attempts: int, since: int, at: int) -> list[DeadLetter]:
    """Return a letter for each event of a parcel."""
    if not parcel.events:
        sequence = parcel.place.sequence
        return [DeadLetter(parcel.id, sequence, reason, attempts, since, at, "reset", oldest=parcel.oldest)]
    return [
        DeadLetter(
            *(event.position.id, event.sequence, reason, attempts, since, at),
            key=event.key,
            message=msgspec.Raw(event.body),
            track=msgspec.Raw(event.track) if event.track else NO_MESSAGE,
        )
        for event in parcel.events
    ]


async def read_letters(service: Service, kind: str, prefix: str, start: str, limit: int) -> tuple[list[bytes], bool]:
    """Return records of letters by rising name after `start`, and whether they are the last ones.

    They are fewer than `limit` if they have many bytes.
    """
    values: list[bytes] = []
    size = 0
    while len(values) < limit and size < PAGE_BYTES:
        count = min(READ_LETTERS, limit - len(values))
        found = await service.record_page(kind, prefix, start, count)
        values += [value for _, value in found]
        if len(found) < count:
            return values, True
        start, size = found[-1][0], size + sum(len(value) for _, value in found)
    return values, not values


class DeadLetters:
    """The dead letters of deliveries, in the store of a service."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def records(self, key: DeliveryKey, letters: Sequence[DeadLetter]) -> list[tuple[str, str, bytes | None]]:
        """Return letters as records."""
        return [(DEAD_LETTER, _name(key, letter.id), msgspec.json.encode(letter)) for letter in letters]

    def removals(self, key: DeliveryKey, letters: Sequence[DeadLetter]) -> list[tuple[str, str, bytes | None]]:
        """Return records that remove letters."""
        return [(DEAD_LETTER, _name(key, letter.id), None) for letter in letters]

    async def page(self, key: DeliveryKey, after: str | None = None, limit: int = PAGE) -> DeadLetterPage:
        """Return letters of a delivery, oldest first, after an id; fewer than `limit` if they have many bytes."""
        start = "" if after is None else _name(key, after)
        found, is_end = await read_letters(self._service, DEAD_LETTER, _prefix(key), start, limit)
        letters = [msgspec.json.decode(value, type=DeadLetter) for value in found]
        return DeadLetterPage(letters, None if is_end else letters[-1].id)

    async def get(self, key: DeliveryKey, id: str) -> DeadLetter:
        """Return a letter; raise UnknownKeyError if there is none."""
        name = _name(key, id)
        found = await self._service.record_page(DEAD_LETTER, name, "", 1)
        if not found or found[0][0] != name:
            raise UnknownKeyError(f"{key.shown} has no dead letter {id!r:.60}")
        return msgspec.json.decode(found[0][1], type=DeadLetter)


def _prefix(key: DeliveryKey) -> str:
    return key.record + SEPARATOR


def _name(key: DeliveryKey, id: str) -> str:
    """Return the name of a letter's record; names of a delivery sort by place."""
    kind, dot, oldest = id.partition(".")
    if kind == "reset" and dot and oldest.isascii() and oldest.isdigit() and len(oldest) <= 18:
        place = Position.after_message(int(oldest) - 1)
    else:
        place = Position.of_id(id)
    if place.sequence < 0:
        raise FormatError(f"event id: need two numbers such as 12.3, got {id!r:.60}")
    _, number, *rank = place.id.split(".")
    return ".".join([f"{_prefix(key)}{place.sequence:019}", number.zfill(10), *rank])
