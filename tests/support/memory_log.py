"""MemoryLog: a shared log in the memory of a test, whose engine can be told to fail, to wait and to append twice."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from contrada.service.shared_log.shared_log import LogRecord, LogUnit, SharedLogError, SnapshotHead

MOST_BYTES = 1_000_000
MOST_UNITS = 1_000  # handed to a reader at once


class MemoryEngine:
    """Keeps one log for any number of MemoryLogs. Tests set its attributes at any time, from any thread.

    `down` says why the engine is not reached: appends wait until it is None, or fail after the `patience` of their log.
    `delay` is the number of seconds before each append. The next `refuse` appends fail; the next `lose` appends are
    kept although they fail; the next `double` appends are kept twice.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self.down: str | None = None
        self.delay = 0.0
        self.refuse = self.lose = self.double = 0
        self.changed = threading.Condition()
        self.units: list[LogUnit] = []
        self.trimmed = 0  # position of the last unit that was removed
        self.snapshots: dict[str, tuple[int, list[bytes]]] = {}
        self._written = 0

    def log(self, patience: float = 10.0, lag: float = 0.0) -> MemoryLog:
        """Return a log for one server, which hands units on `lag` seconds after it read them."""
        return MemoryLog(self, patience, lag)

    def end(self) -> int:
        """Return the position of the last unit."""
        with self.changed:
            return self.trimmed + len(self.units)

    def keep(self, records: Sequence[LogRecord]) -> SharedLogError | None:
        """Append a unit, as the attributes say; return why an append failed."""
        with self.changed:
            if self.refuse > 0:
                self.refuse -= 1
                return SharedLogError("the engine refuses the append")
            for _ in range(1 + (self.double > 0) if records else 0):
                self.units.append(LogUnit(self.trimmed + len(self.units) + 1, tuple(records)))
            self.double = max(0, self.double - 1)
            self.changed.notify_all()
            if self.lose > 0:
                self.lose -= 1
                return SharedLogError("the answer of the engine is lost")
        return None

    def after(self, position: int, most: int) -> list[LogUnit]:
        """Return units after a position; SharedLogError if the next one is not there any more."""
        with self.changed:
            if position < self.trimmed:
                raise SharedLogError(f"the log starts after position {self.trimmed}; position {position} is older")
            return self.units[position - self.trimmed :][:most]

    def keep_snapshot(self, position: int, parts: list[bytes]) -> None:
        """Keep a snapshot."""
        with self.changed:
            self._written += 1
            self.snapshots[f"snapshot-{self._written}"] = (position, parts)

    def newest_snapshot(self) -> SnapshotHead | None:
        """Return the snapshot with the highest position, the last of several."""
        with self.changed:
            heads = [SnapshotHead(position, place) for place, (position, _) in self.snapshots.items()]
        return max(reversed(heads), key=lambda head: head.position, default=None)

    def trim(self, position: int) -> None:
        """Remove units up to a position, and all snapshots but the newest."""
        newest = self.newest_snapshot()
        with self.changed:
            last = min(position, self.trimmed + len(self.units))
            if last > self.trimmed:
                del self.units[: last - self.trimmed]
                self.trimmed = last
            self.snapshots = {} if newest is None else {newest.place: self.snapshots[newest.place]}


class _Append(NamedTuple):
    records: Sequence[LogRecord]
    done: Callable[[SharedLogError | None], None]


class MemoryLog:
    """What one server has of a MemoryEngine: a thread that appends, and one that reads once `start` was called."""

    def __init__(self, engine: MemoryEngine, patience: float = 10.0, lag: float = 0.0) -> None:
        self.most_bytes, self.notices = engine.most_bytes, ()
        self._engine, self._patience, self._lag = engine, patience, lag
        self._waiting: queue.SimpleQueue[_Append | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._closing.set()
        self._lock = threading.Lock()  # so that no append is queued after the end
        self._threads: list[threading.Thread] = []
        self._fault: str | None = None

    def open(self) -> None:
        """Start to append."""
        if self._engine.down is not None:
            raise SharedLogError(self._engine.down)
        self._closing.clear()
        self._begin(self._append_all)

    def _begin(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, name="memory log", daemon=True)
        self._threads.append(thread)
        thread.start()

    def end(self) -> int:
        """Return the position of the last unit."""
        self._check()
        return self._engine.end()

    def _check(self) -> None:
        if self._engine.down is not None:
            raise SharedLogError(self._engine.down)

    def first(self) -> int:
        """Return the position of the oldest unit that is kept."""
        self._check()
        return self._engine.trimmed + 1

    def unit(self, position: int) -> LogUnit | None:
        """Return the unit at a position."""
        self._check()
        found = self._engine.after(position - 1, 1) if position > self._engine.trimmed else []
        return found[0] if found else None

    def start(self, after: int, take: Callable[[Sequence[LogUnit]], None]) -> None:
        """Hand units to `take` from a thread."""
        end = self._engine.end()
        if after > end:
            raise SharedLogError(f"the log ends at position {end}, before position {after}")
        self._engine.after(after, 0)
        self._begin(self._read, after, take)

    def _read(self, after: int, take: Callable[[Sequence[LogUnit]], None]) -> None:
        while not self._closing.is_set():
            try:
                units = [] if self._engine.down is not None else self._engine.after(after, MOST_UNITS)
            except SharedLogError as error:
                self._fault = str(error)
                return
            if units:
                after = units[-1].position
                time.sleep(self._lag)
                take(units)
            else:
                with self._engine.changed:
                    if self._engine.down is not None or self._engine.end() <= after:
                        self._engine.changed.wait(0.02)

    def append(self, records: Sequence[LogRecord], done: Callable[[SharedLogError | None], None]) -> None:
        """Append one unit from a thread."""
        size = max((len(key.encode()) + len(head) + len(value) for key, head, value in records), default=0)
        if size > self.most_bytes:
            done(SharedLogError(f"a record has {size:,} bytes; the log takes at most {self.most_bytes:,}"))
            return
        with self._lock:
            is_open = not self._closing.is_set()
            if is_open:
                self._waiting.put(_Append(records, done))
        if not is_open:
            done(SharedLogError("the log is closed"))

    def _append_all(self) -> None:
        while (item := self._waiting.get()) is not None:
            item.done(self._append_one(item.records))
        while not self._waiting.empty():
            if (item := self._waiting.get()) is not None:
                item.done(SharedLogError("the log is closed"))

    def _append_one(self, records: Sequence[LogRecord]) -> SharedLogError | None:
        until = time.monotonic() + self._patience
        if self._engine.delay:
            time.sleep(self._engine.delay)
        while not self._closing.is_set() and self._engine.down is not None:
            if time.monotonic() > until:
                return SharedLogError(self._engine.down)
            time.sleep(0.005)
        return SharedLogError("the log is closed") if self._closing.is_set() else self._engine.keep(records)

    def fault(self) -> str | None:
        """Return why the engine is down, or why reading ended."""
        return self._engine.down or self._fault

    def lost(self) -> str | None:
        """Return why reading ended."""
        return self._fault

    def write_snapshot(self, position: int, parts: Iterable[bytes]) -> None:
        """Keep a snapshot."""
        self._check()
        kept = [bytes(part) for part in parts]
        if any(len(part) > self.most_bytes for part in kept):
            raise SharedLogError(f"a part of a snapshot has more than {self.most_bytes:,} bytes")
        self._check()
        self._engine.keep_snapshot(position, kept)

    def newest_snapshot(self) -> SnapshotHead | None:
        """Return the snapshot with the highest position."""
        self._check()
        return self._engine.newest_snapshot()

    def read_snapshot(self, head: SnapshotHead) -> Iterator[bytes]:
        """Yield the parts of a snapshot."""
        self._check()
        found = self._engine.snapshots.get(head.place)
        if found is None:
            raise SharedLogError(f"the snapshot {head.place} is gone")
        yield from found[1]

    def trim(self, position: int) -> None:
        """Remove units."""
        self._check()
        self._engine.trim(position)

    def close(self) -> None:
        """End both threads; appends that wait fail. Not to be called by `take` or `done`."""
        with self._lock:
            self._closing.set()
            self._waiting.put(None)
        with self._engine.changed:
            self._engine.changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._threads = []
