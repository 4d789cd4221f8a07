"""Records of a source, and the clients that read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from contrada.service.intake import Post, post_of


class SourceRecord(NamedTuple):
    """A record of a topic.

    Records of Kafka and JetStream have an `offset` on a `lane`, a partition or a stream, by which they are known for
    ever. A message of MQTT has none (-1): `mark` is its packet id with a digest, and `is_again` says that the server
    sent it before. `headers` have names in lower case; `token` is for the client that read the record.
    """

    lane: str
    offset: int
    body: bytes
    headers: Mapping[str, str]
    token: Any = None
    mark: bytes = b""
    is_again: bool = False

    @property
    def place(self) -> str:
        """Where the record stands, for people."""
        return f"{self.lane}@{self.offset}" if self.offset >= 0 else self.lane


class SourceClient(Protocol):
    """Reads one topic. Errors that are raised mean: close, and open again a little later."""

    async def open(self, places: Mapping[str, int]) -> None:
        """Connect, and go on after the last offset of each lane that is known."""

    def moved(self) -> dict[str, int]:
        """Return, once, lanes whose reading starts after another offset than the one that was given to `open`."""

    async def read(self) -> list[SourceRecord]:
        """Return the next records, at least one unless lanes have moved."""

    async def commit(self, records: Sequence[SourceRecord]) -> None:
        """Tell the server that records, all that were read before included, are durable here."""

    @property
    def lag(self) -> int | None:
        """The number of records after the last one that was read; None if unknown."""

    async def close(self) -> None:
        """Close the connection."""


class SourceProgress(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a source is: the last offset of each lane, and the marks of the latest messages without an offset.

    It is written in the same transaction as the messages. `epoch` counts how often a lane began anew, with offsets that
    were there before. `letters` counts dead letters that are kept, and `numbered`
    all that there ever were.
    """

    places: dict[str, int] = {}
    marks: tuple[bytes, ...] = ()
    epoch: int = 0
    letters: int = 0
    numbered: int = 0

    def moved(self, places: Mapping[str, int]) -> SourceProgress:
        """Return the progress with lanes at other places."""
        is_back = any(offset < self.places.get(lane, -1) for lane, offset in places.items())
        return msgspec.structs.replace(self, places={**self.places, **places}, epoch=self.epoch + is_back)

    def origin(self, source: str, record: SourceRecord) -> str | None:
        """Return what identifies a record for ever; None if nothing does."""
        return f"{source}/{self.epoch}/{record.place}" if record.offset >= 0 else None

    def fresh(self, records: Sequence[SourceRecord]) -> list[SourceRecord]:
        """Return the records that were not published yet.

        >>> at = lambda offset: SourceRecord("a/0", offset, b"", {})
        >>> [one.offset for one in SourceProgress({"a/0": 4}).fresh([at(4), at(5), at(5)])]
        [5]
        """
        places, marks = dict(self.places), set(self.marks)
        found = []
        for record in records:
            if record.offset < 0:
                if not (record.is_again and record.mark in marks):
                    found.append(record)
            elif record.offset > places.get(record.lane, -1):
                found.append(record)
                places[record.lane] = record.offset
        return found

    def after(self, records: Sequence[SourceRecord], most_marks: int) -> SourceProgress:
        """Return the progress once records are published."""
        places = dict(self.places)
        for record in records:
            if record.offset >= 0:
                places[record.lane] = max(record.offset, places.get(record.lane, -1))
        marks = [*self.marks, *(record.mark for record in records if record.mark)][-most_marks:]
        return msgspec.structs.replace(self, places=places, marks=tuple(marks))


def post_from_record(record: SourceRecord, content_type: str, origin: str | None) -> Post:
    """Return a record as a post; a content type that it has itself counts. Raise FormatError if it cannot be read."""
    post = post_of(record.headers.get("content-type", content_type), record.headers, record.body)
    return post._replace(id=None, retry_key=None, origin=origin)
