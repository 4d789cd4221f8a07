"""What the stores in SQL databases share: queries over their two tables, and connections for readers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from contrada.service.matches import TRACKED
from contrada.service.store.message_store import Span, StoredBody, StoredMessage, StoreError

COLUMNS = "sequence, at, tenant, id, format, body, matches, total"
TRIM = "DELETE FROM messages WHERE sequence < ? AND sequence < (SELECT max(sequence) FROM messages)"
ROWS_PER_QUERY = 500  # SQLite takes 999 parameters in its oldest builds
IDLE_READERS = 8  # connections that wait for the next reader
LARGEST = (1 << 63) - 1  # integer of a database
# Most match lists have no tracked objects in them, and some are long: only those with some are read with the bodies.
TRACKS = "CASE WHEN substr(matches, 1, 1) = ? THEN matches END"


class Closable(Protocol):
    """A connection."""

    def close(self) -> None:
        """Close it."""


C = TypeVar("C", bound=Closable)
T = TypeVar("T")


class Readers(Generic[C]):
    """Connections for readers: one thread uses one at a time. A connection that saw an error is not used again."""

    def __init__(self, connect: Callable[[], C], idle: int = IDLE_READERS) -> None:
        self._connect, self._most = connect, idle
        self._lock = threading.Lock()
        self._idle: list[C] = []
        self._is_closed = False

    @contextmanager
    def borrow(self) -> Iterator[C]:
        """Lend a connection, which is a new one if none is idle."""
        with self._lock:
            if self._is_closed:
                raise StoreError("the store is closed")
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._take_back(connection)

    def _take_back(self, connection: C) -> None:
        with self._lock:
            if not self._is_closed and len(self._idle) < self._most:
                self._idle.append(connection)
                return
        connection.close()

    def drop_idle(self) -> None:
        """Close the connections that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Lend nothing more. Connections in use are closed when they come back: SQLite must not lose one in a call."""
        self._is_closed = True
        self.drop_idle()


class SqlStore:
    """Reads the tables `messages` and `records`. Subclasses connect, write and run queries with `?` for values."""

    BYTES_AS_NAME = "?"  # SQL that takes UTF-8 bytes and compares like a name

    def _rows(self, query: str, *values: Any) -> list[Any]:
        """Return the rows of a query."""
        raise NotImplementedError

    def names(self, kind: str) -> list[str]:
        """Return the names of the records of a kind."""
        return [name for (name,) in self._rows("SELECT name FROM records WHERE kind = ?", kind)]

    def record(self, kind: str, name: str) -> bytes | None:
        """Return a record."""
        found = self._rows("SELECT value FROM records WHERE kind = ? AND name = ?", kind, name)
        return found[0][0] if found else None

    def chosen(self, kind: str, names: Collection[str]) -> dict[str, bytes]:
        """Return records by name."""
        found: dict[str, bytes] = {}
        for part, marks in _parts(list(names)):
            query = f"SELECT name, value FROM records WHERE kind = ? AND name IN ({marks})"
            found.update(self._rows(query, kind, *part))
        return found

    def page(self, kind: str, prefix: str, after: str, limit: int) -> list[tuple[str, bytes]]:
        """Return some records whose names begin with `prefix`."""
        least, sign = (after, ">") if after >= prefix else (prefix, ">=")
        end = prefix.encode(errors="surrogatepass") + b"\xff"  # a byte above all those of UTF-8
        return self._rows(
            f"SELECT name, value FROM records WHERE kind = ? AND name {sign} ? AND name < {self.BYTES_AS_NAME}"
            " ORDER BY name LIMIT ?",
            *(kind, least, end, limit),
        )

    def span(self) -> Span:
        """Return which messages are kept."""
        # SQLite finds a least or a greatest value in an index only if the query asks for nothing else.
        ((oldest, newest),) = self._rows(
            "SELECT (SELECT min(sequence) FROM messages), (SELECT max(sequence) FROM messages)"
        )
        return Span(1, 0) if oldest is None else Span(oldest, newest)

    def newest(self) -> StoredMessage | None:
        """Return the last message."""
        found = self._rows(f"SELECT {COLUMNS} FROM messages ORDER BY sequence DESC LIMIT 1")
        return StoredMessage(*found[0]) if found else None

    def matches(self, first: int, stop: int) -> list[tuple[int, bytes]]:
        """Return match lists that are not empty."""
        return self._rows(
            "SELECT sequence, matches FROM messages WHERE sequence >= ? AND sequence < ? AND length(matches) > 0"
            " ORDER BY sequence",
            *(_bounded(first), _bounded(stop)),
        )

    def tenant_matches(self, tenant: str, first: int, stop: int) -> list[tuple[int, int, bytes]]:
        """Return sequence numbers, times and match lists of a tenant's messages."""
        return self._rows(
            "SELECT sequence, at, matches FROM messages WHERE sequence >= ? AND sequence < ? AND tenant = ?"
            " ORDER BY sequence",
            *(_bounded(first), _bounded(stop), tenant),
        )

    def bodies(self, sequences: Collection[int]) -> dict[int, StoredBody]:
        """Return the bodies of messages."""
        found: dict[int, StoredBody] = {}
        for part, marks in _parts([_bounded(sequence) for sequence in sequences]):
            query = f"SELECT sequence, at, format, body, {TRACKS} FROM messages WHERE sequence IN ({marks})"
            found.update({sequence: StoredBody(*rest) for sequence, *rest in self._rows(query, TRACKED, *part)})
        return found

    def sizes(self, sequences: Collection[int]) -> dict[int, int]:
        """Return the bytes of bodies."""
        found: dict[int, int] = {}
        for part, marks in _parts([_bounded(sequence) for sequence in sequences]):
            found.update(self._rows(f"SELECT sequence, length(body) FROM messages WHERE sequence IN ({marks})", *part))
        return found

    def messages(self, first: int, limit: int) -> Sequence[StoredMessage]:
        """Return messages from a sequence number on."""
        query = f"SELECT {COLUMNS} FROM messages WHERE sequence >= ? ORDER BY sequence LIMIT ?"
        return [StoredMessage(*row) for row in self._rows(query, _bounded(first), _bounded(limit))]

    def first_at(self, at: int) -> int:
        """Return the first message that came at a time or later."""
        return self._first("at", at)

    def first_with_total(self, total: int) -> int:
        """Return the first message whose total is above a number."""
        return self._first("total", total + 1)

    def _first(self, column: str, least: int) -> int:
        """Return the first sequence whose column, which never falls, is at least `least`, by halving the range."""
        low, newest = self.span()
        high = answer = newest + 1
        query = f"SELECT sequence, {column} FROM messages WHERE sequence >= ? ORDER BY sequence LIMIT 1"
        while low < high:
            middle = (low + high) // 2
            found = self._rows(query, middle)
            if found and found[0][1] < least:
                low = found[0][0] + 1
            else:
                high = middle
                answer = found[0][0] if found else answer
        return answer

    def ids(self, count: int) -> list[tuple[str, str, int]]:
        """Return the ids of the latest messages."""
        query = "SELECT tenant, id, sequence FROM messages WHERE sequence > ? AND id <> '' ORDER BY sequence"
        return self._rows(query, _bounded(self.span().newest - count))


def _parts(values: list[T]) -> Iterator[tuple[list[T], str]]:
    """Yield the values of one query after the other, with the marks that stand for them in its text."""
    for start in range(0, len(values), ROWS_PER_QUERY):
        part = values[start : start + ROWS_PER_QUERY]
        yield part, ",".join("?" * len(part))


def _bounded(number: int) -> int:
    """Return the nearest integer that a database takes; no message has the outermost ones."""
    return max(-LARGEST, min(number, LARGEST))
