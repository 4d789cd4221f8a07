"""Dead letters of sources: records that could not be published, kept with the reason until they are replayed."""

from __future__ import annotations

import msgspec

from contrada.errors import FormatError, UnknownKeyError
from contrada.service.catalog import SEPARATOR
from contrada.service.deliveries.dead_letters import read_letters
from contrada.service.service import Service, StoreRecord
from contrada.service.sources.records import SourceRecord

SOURCE_LETTER = "source-letter"  # kind of the records


class SourceLetter(msgspec.Struct, frozen=True):
    """A record that was not published, or of several messages not all; `at` is in milliseconds since 1970."""

    number: int
    at: int
    reason: str
    lane: str
    offset: int
    body: bytes
    headers: dict[str, str]
    origin: str | None

    @classmethod
    def of(cls, number: int, at: int, reason: str, record: SourceRecord, origin: str | None) -> SourceLetter:
        """Return a letter of a record."""
        return cls(number, at, reason, record.lane, record.offset, record.body, dict(record.headers), origin)

    def record(self) -> SourceRecord:
        """Return the record that was not published."""
        return SourceRecord(self.lane, self.offset, self.body, self.headers)


class SourceLetters:
    """The dead letters of one source, in the store of a service."""

    def __init__(self, service: Service, source: str) -> None:
        self._service, self._source = service, source

    def put(self, letter: SourceLetter) -> StoreRecord:
        """Return a record that keeps a letter."""
        return SOURCE_LETTER, self._name(letter.number), msgspec.msgpack.encode(letter)

    def removal(self, letter: SourceLetter) -> StoreRecord:
        """Return a record that removes a letter."""
        return SOURCE_LETTER, self._name(letter.number), None

    async def page(self, after: str | None, limit: int) -> tuple[list[SourceLetter], str | None]:
        """Return letters, oldest first, after an id, and the id to go on after; None at the end."""
        start = "" if after is None else self._name(_number(after))
        found, is_end = await read_letters(self._service, SOURCE_LETTER, self._prefix, start, limit)
        letters = [msgspec.msgpack.decode(value, type=SourceLetter) for value in found]
        return letters, None if is_end else str(letters[-1].number)

    async def get(self, id: str) -> SourceLetter:
        """Return a letter; raise UnknownKeyError if there is none."""
        found = await self._service.record_page(SOURCE_LETTER, self._name(_number(id)), "", 1)
        if not found:
            raise UnknownKeyError(f"source {self._source!r} has no dead letter {id!r:.60}")
        return msgspec.msgpack.decode(found[0][1], type=SourceLetter)

    @property
    def _prefix(self) -> str:
        return self._source + SEPARATOR

    def _name(self, number: int) -> str:
        return f"{self._prefix}{number:019}"


def _number(id: str) -> int:
    if not (id.isascii() and id.isdigit() and len(id) <= 18):
        raise FormatError(f"dead letter: need a number such as 12, got {id!r:.60}")
    return int(id)
