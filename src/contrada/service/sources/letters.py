"""Dead letters of sources: records that could not be published, kept with the reason until they are replayed."""

from __future__ import annotations

import msgspec

from contrada.errors import FormatError, UnknownKeyError
from contrada.service.catalog import SEPARATOR
from contrada.service.service import Service, StoreRecord
from contrada.service.sources.records import SourceRecord

SOURCE_LETTER = "source-letter"  # kind of the records
READ_LETTERS = 8  # at once, since each may be as large as a message may be
PAGE_BYTES = 4 << 20  # of letters in one page; one letter alone may have more


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
        letters: list[SourceLetter] = []
        size = 0
        while len(letters) < limit and size < PAGE_BYTES:
            count = min(READ_LETTERS, limit - len(letters))
            found = await self._service.record_page(SOURCE_LETTER, self._prefix, start, count)
            letters += [msgspec.msgpack.decode(value, type=SourceLetter) for _, value in found]
            if len(found) < count:
                return letters, None
            start, size = found[-1][0], size + sum(len(value) for _, value in found)
        return letters, str(letters[-1].number) if letters else None

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
