"""Outbox: appends of any thread that wait for the loop of a log, which takes them in batches."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from contrada.service.shared_log.log_thread import LogThread
from contrada.service.shared_log.shared_log import LogRecord, SharedLogError

CLOSED = "the log is closed"

log = logging.getLogger(__name__)


class PendingAppend:
    """A call of `append`; it is over when all its pieces are durable, one has failed, or its time has run out."""

    __slots__ = ("_done", "deadline", "is_over", "pieces")

    def __init__(self, pieces: int, done: Callable[[SharedLogError | None], None], deadline: float) -> None:
        self.pieces, self._done, self.deadline = pieces, done, deadline
        self.is_over = False

    def end(self, error: SharedLogError | None) -> None:
        """Tell the caller the outcome, once."""
        if self.is_over:
            return
        self.is_over = True
        try:
            self._done(error)
        except Exception:  # of the caller: the log must go on
            log.exception("what was to be done after an append has failed")


class LogPiece(NamedTuple):
    """Records of one append that go to the log together, and their size."""

    append: PendingAppend
    records: Sequence[LogRecord]
    size: int


class LogBatch(NamedTuple):
    """Pieces of one append or several, in order, that are sent as one."""

    pieces: Sequence[LogPiece]

    def records(self) -> list[LogRecord]:
        """Return all records."""
        return [record for piece in self.pieces for record in piece.records]

    def is_wanted(self) -> bool:
        """Return True if anybody still waits for one of the appends."""
        return any(not piece.append.is_over for piece in self.pieces)

    def end(self, error: SharedLogError | None) -> None:
        """Note that all pieces are durable, or failed."""
        for append, _, _ in self.pieces:
            append.pieces -= 1
            if error is not None or append.pieces == 0:
                append.end(error)


class Outbox:
    """Keeps the order of `put`. Batches form by themselves: all that waits is taken, up to `most_bytes`.

    `patience` is the number of seconds after which an append fails. A record counts with `extra` bytes more than its
    key, head and value have.
    """

    def __init__(self, thread: LogThread, patience: float, extra: int) -> None:
        self._thread, self._patience, self._extra = thread, patience, extra
        self.most_bytes = 0  # of a batch
        self._lock = threading.Lock()
        self._waiting: deque[LogPiece] = deque()
        self._open: deque[PendingAppend] = deque()
        self._ready = asyncio.Event()
        self._is_closed = True

    def open(self, most_bytes: int) -> None:
        """Take appends; a batch has at most as many bytes."""
        self.most_bytes, self._is_closed = most_bytes, False

    def put(self, records: Sequence[LogRecord], done: Callable[[SharedLogError | None], None]) -> None:
        """Queue an append; a record that is too large makes it fail at once. Callable from any thread."""
        deadline = time.monotonic() + self._patience
        groups, error = self._split(records)
        append = PendingAppend(len(groups), done, deadline)
        with self._lock:
            is_closed = self._is_closed
            if not is_closed:
                if error is not None or not groups:
                    self._thread.post(append.end, error)
                    return
                if not self._waiting:
                    self._thread.post(self._ready.set)
                self._waiting.extend(LogPiece(append, *group) for group in groups)
                self._open.append(append)
        if is_closed:
            append.end(SharedLogError(CLOSED))

    def _split(self, records: Sequence[LogRecord]) -> tuple[list[tuple[list[LogRecord], int]], SharedLogError | None]:
        """Return records in groups that fit into a batch, with their sizes."""
        groups: list[tuple[list[LogRecord], int]] = []
        group: list[LogRecord] = []
        total = 0
        for record in records:
            size = (len(record.key) if record.key.isascii() else len(record.key.encode())) + self._extra
            size += len(record.head) + len(record.value)
            if size > self.most_bytes:
                have, most = size - self._extra, self.most_bytes - self._extra
                return [], SharedLogError(f"a record has {have:,} bytes; the log takes at most {most:,}")
            if group and total + size > self.most_bytes:
                groups.append((group, total))
                group, total = [], 0
            group.append(record)
            total += size
        if group:
            groups.append((group, total))
        return groups, None

    async def take(self) -> LogBatch:
        """Wait for pieces, and return as many as fit into a batch; those whose append is over are left out."""
        while True:
            pieces, total = [], 0
            with self._lock:
                while self._waiting and total + self._waiting[0].size <= self.most_bytes:
                    piece = self._waiting.popleft()
                    if not piece.append.is_over:
                        pieces.append(piece)
                        total += piece.size
                if not self._waiting and not pieces:
                    self._ready.clear()
            if pieces:
                return LogBatch(pieces)
            await self._ready.wait()

    def expire(self, reason: str | None) -> None:
        """Fail appends whose time has run out, and forget those that are over. For the loop."""
        now = time.monotonic()
        late = []
        with self._lock:
            while self._open and (self._open[0].is_over or self._open[0].deadline <= now):
                late.append(self._open.popleft())
        for append in late:
            append.end(
                SharedLogError(f"no acknowledgement within {self._patience:g} s" + (f": {reason}" if reason else ""))
            )

    def close(self) -> None:
        """Fail what waits, and whatever comes. For the loop."""
        with self._lock:
            self._is_closed = True
            appends = list(self._open)
            self._open.clear()
            self._waiting.clear()
        for append in appends:
            append.end(SharedLogError(CLOSED))
