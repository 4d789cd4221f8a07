"""SharedLog: what servers that stand on one log ask of the engine that keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from contrada.errors import ContradaError


class SharedLogError(ContradaError):
    """The engine of a shared log cannot be reached, refuses something, or does not keep what it acknowledges."""


class LogRecord(NamedTuple):
    """A record of a shared log. `key` says what it is, `head` is what servers note about `value`.

    The value of a message is its body as it was published, so that other readers of the engine need no head.
    """

    key: str
    head: bytes
    value: bytes

    @property
    def size(self) -> int:
        """The bytes of all three; keys are ASCII."""
        return len(self.key) + len(self.head) + len(self.value)


class LogUnit(NamedTuple):
    """Records that have one place in a log; positions rise from unit to unit, the first is at least 1."""

    position: int
    records: Sequence[LogRecord]


class SnapshotHead(NamedTuple):
    """A snapshot of the state after the unit at `position`; `place` tells the engine where it is."""

    position: int
    place: str


class SharedLog(Protocol):
    """A log in total order. Methods may be called from any thread but that of the log, and block their caller."""

    most_bytes: int  # of the key, head and value of one record; `append` packs several records as it likes

    @property
    def notices(self) -> Sequence[str]:
        """What the operator should know, once the log is open."""

    def open(self) -> None:
        """Connect, create what is missing, and check that what is acknowledged is kept; SharedLogError says why not."""

    def end(self) -> int:
        """Return the position of the last unit; 0 if there was never one."""

    def first(self) -> int:
        """Return the position of the oldest unit that is kept; one past the last if none is."""

    def unit(self, position: int) -> LogUnit | None:
        """Return the unit at a position; None if there is none."""

    def start(self, after: int, take: Callable[[Sequence[LogUnit]], None]) -> None:
        """Hand all units after a position to `take`, in order, each once, for as long as the log is open.

        `take` is called by a thread of the log's own, and may block: meanwhile no more are read. A connection that
        breaks is made again, and reading goes on where it was.
        """

    def append(self, records: Sequence[LogRecord], done: Callable[[SharedLogError | None], None]) -> None:
        """Append records in order, after those of earlier calls; `done` is called when all are durable, or failed.

        The call itself does not block. An append whose acknowledgement is lost is sent again: a record may be in the
        log twice. After a failure records of later calls are still tried.
        """

    def fault(self) -> str | None:
        """Return why the engine is not reached at the moment; None if it is."""

    def lost(self) -> str | None:
        """Return why this log can never be read on; None if it can."""

    def write_snapshot(self, position: int, parts: Iterable[bytes]) -> None:
        """Keep a snapshot; it is found once all of it is durable. Parts have at most `most_bytes`."""

    def newest_snapshot(self) -> SnapshotHead | None:
        """Return the snapshot with the highest position; None if there is none."""

    def read_snapshot(self, head: SnapshotHead) -> Iterator[bytes]:
        """Yield the parts of a snapshot; SharedLogError if it is gone or incomplete."""

    def trim(self, position: int) -> None:
        """Remove units up to and including a position, and all snapshots but the newest."""

    def close(self) -> None:
        """Stop reading, drop what was not appended, and disconnect."""
