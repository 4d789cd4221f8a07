"""MessageStore: what the service asks of a database. One thread writes, any thread reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, Protocol

from contrada.errors import ContradaError


class StoreError(ContradaError):
    """The store cannot be read or written, or holds what this version does not understand."""


class StoredMessage(NamedTuple):
    """A message of the log.

    `at` is in milliseconds since 1970 and never falls from one message to the next; `id` is empty for a message without
    an id of its own; `total` counts the bytes of all bodies up to and including this one, removed ones too.
    """

    sequence: int
    at: int
    tenant: str
    id: str
    format: str
    body: bytes
    matches: bytes
    total: int


class StoredBody(NamedTuple):
    """What is delivered of a message; `tracks` is its match list if that has events of tracked objects."""

    at: int
    format: str
    body: bytes
    tracks: bytes | None = None


class Span(NamedTuple):
    """The messages that are kept: from `oldest` to `newest`; none if `newest` is below `oldest`."""

    oldest: int
    newest: int


@dataclass
class StoreChange:
    """What one transaction writes: messages, then records (None deletes); messages before `trim` are removed.

    The newest message stays whatever `trim` is: it keeps the place where sequence numbers go on. `patient` of the
    records need not be durable before the next transaction is.
    """

    messages: list[StoredMessage] = field(default_factory=list)
    records: list[tuple[str, str, bytes | None]] = field(default_factory=list)  # kind, name, value
    trim: int | None = None
    patient: int = 0
    _latest: dict[tuple[str, str], bytes | None] = field(default_factory=dict, repr=False)
    _known: int = 0  # records that `_latest` has

    def latest(self) -> Mapping[tuple[str, str], bytes | None]:
        """Return records by kind and name: the last one of a name counts. A call takes O(records since the last)."""
        for kind, name, value in islice(self.records, self._known, None):
            self._latest[kind, name] = value
        self._known = len(self.records)
        return self._latest

    @property
    def is_urgent(self) -> bool:
        """Whether anything of the change must be durable before it is answered."""
        return bool(self.messages or self.trim is not None or len(self.records) > self.patient)

    def __bool__(self) -> bool:
        return bool(self.messages or self.records or self.trim is not None)


class MessageStore(Protocol):
    """A durable log of messages with rising sequence numbers, and records by kind and name."""

    def write(self, change: StoreChange) -> None:
        """Make a change durable, all of it or nothing; raise StoreError if that fails."""

    def records(self, kind: str) -> Iterator[tuple[str, bytes]]:
        """Yield the records of a kind by rising name, as they are now."""

    def names(self, kind: str) -> list[str]:
        """Return the names of the records of a kind."""

    def record(self, kind: str, name: str) -> bytes | None:
        """Return a record; None if there is none."""

    def chosen(self, kind: str, names: Collection[str]) -> dict[str, bytes]:
        """Return the records of a kind that have these names, by name."""

    def page(self, kind: str, prefix: str, after: str, limit: int) -> list[tuple[str, bytes]]:
        """Return up to `limit` records whose names begin with `prefix` and come after `after`, by rising name."""

    def span(self) -> Span:
        """Return which messages are kept."""

    def newest(self) -> StoredMessage | None:
        """Return the last message; None if there was never one."""

    def matches(self, first: int, stop: int) -> list[tuple[int, bytes]]:
        """Return sequence numbers and match lists of the kept messages in a range that match anything."""

    def tenant_matches(self, tenant: str, first: int, stop: int) -> list[tuple[int, int, bytes]]:
        """Return sequence numbers, times and match lists of the kept messages of a tenant in a range."""

    def bodies(self, sequences: Collection[int]) -> dict[int, StoredBody]:
        """Return the bodies of messages that are kept."""

    def sizes(self, sequences: Collection[int]) -> dict[int, int]:
        """Return the bytes of the bodies of messages that are kept."""

    def messages(self, first: int, limit: int) -> Sequence[StoredMessage]:
        """Return up to `limit` messages from a sequence number on."""

    def first_at(self, at: int) -> int:
        """Return the sequence of the first kept message that came at a time or later; one past the newest if none."""

    def first_with_total(self, total: int) -> int:
        """Return the first kept message whose `total` is above a number of bytes; one past the newest if none."""

    def ids(self, count: int) -> list[tuple[str, str, int]]:
        """Return tenants, ids and sequences of messages with an id among the latest `count`, oldest first."""

    def close(self) -> None:
        """Close the store; what was written stays."""
