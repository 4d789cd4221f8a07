"""EngineLog: what logs of all engines have in common: threads, appends that wait, and snapshots in parts."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from contrada.cancelling import end_tasks
from contrada.errors import ContradaError
from contrada.service.remotes import Remote
from contrada.service.shared_log.log_thread import LogThread, ThreadEndedError
from contrada.service.shared_log.outbox import CLOSED, Outbox
from contrada.service.shared_log.shared_log import LogRecord, LogUnit, SharedLogError, SnapshotHead

FIRST_WAIT, MOST_WAIT = 0.05, 1.0  # seconds between attempts
LOOK_SECONDS = 0.2  # between looks at appends whose time has run out
ATTEMPTS = 5  # to write a part of a snapshot

T = TypeVar("T")
Take = Callable[[Sequence[LogUnit]], None]

log = logging.getLogger(__name__)


class LogBrokenError(ContradaError):
    """The log does not have what follows the last unit that was read: reading can never go on."""


class SnapshotEntry(msgspec.Struct, frozen=True):
    """The record that makes parts a snapshot: `count` records from `first` on that have its id."""

    id: str
    position: int
    first: int
    last: int
    count: int
    digest: str


class EngineLog(ABC):
    """A log whose work is done by coroutines on a loop of its own.

    `timeout` is the number of seconds that the engine may take to answer, `patience` the number after which an append
    fails. `notices` are sentences about what could not be checked. `trust` takes an engine that may lose records.
    """

    faults: tuple[type[Exception], ...]  # what calls of the client may raise
    record_bytes: int  # that a record takes besides its key, head and value

    def __init__(self, remote: Remote, *, trust: bool = False, timeout: float = 5.0, patience: float = 10.0) -> None:
        self.most_bytes = 0
        self.notices: list[str] = []
        self._remote, self._trust, self._timeout = remote, trust, timeout
        self._name = remote.url.topic
        self._thread = LogThread(f"shared log {self._name}")
        self._outbox = Outbox(self._thread, patience, self.record_bytes)
        self._fault: str | None = None
        self._broken: str | None = None  # why nothing can be read or appended any more
        self._after = 0  # position of the last unit that was handed on
        self._take: Take | None = None
        self._started = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @abstractmethod
    async def _open(self) -> int:
        """Connect, make what is missing, check that it is durable; return the most bytes of a batch."""

    @abstractmethod
    def _work(self) -> Sequence[Coroutine[Any, Any, None]]:
        """Return what runs while the log is open."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Close connections; raise nothing."""

    @abstractmethod
    async def _look(self) -> None:
        """See whether an engine that has a fault is well again, and note it."""

    @abstractmethod
    async def _ends(self) -> tuple[int, int]:
        """Return the positions of the first unit that there is or will be, and of the last one."""

    @abstractmethod
    async def _unit(self, position: int) -> LogUnit | None:
        """Return the unit at a position between the ends; None if there is none."""

    @abstractmethod
    async def _store_part(self, id: str, number: int, part: bytes) -> int:
        """Keep a part of a snapshot, and return its place."""

    @abstractmethod
    async def _store_entry(self, entry: SnapshotEntry) -> None:
        """Keep an entry."""

    @abstractmethod
    async def _oldest_part(self) -> int:
        """Return the place of the first part that there is or will be."""

    @abstractmethod
    async def _entries(self) -> list[tuple[int, SnapshotEntry]]:
        """Return all entries with their places."""

    @abstractmethod
    def _parts(self, entry: SnapshotEntry) -> Iterator[bytes]:
        """Yield the parts of an entry, in the caller's thread."""

    @abstractmethod
    async def _trim_log(self, position: int) -> None:
        """Remove units up to a position, which is not beyond the last."""

    @abstractmethod
    async def _trim_snapshots(self, place: int, entry: SnapshotEntry) -> None:
        """Remove what is older than a snapshot, of which the entry has a place."""

    def open(self) -> None:
        """Connect, create what is missing, check that it is durable."""
        self._thread.start()
        try:
            self._outbox.open(self._call(self._open()))
            self._call(self._begin())
        except BaseException:
            self.close()
            raise
        self.most_bytes = self._outbox.most_bytes - self.record_bytes

    async def _begin(self) -> None:
        self._tasks = [asyncio.create_task(self._lasting(work)) for work in (self._watch(), *self._work())]
        await asyncio.sleep(0)  # so that all of them have begun before they can be cancelled

    async def _lasting(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work that must not end; an error that nothing foresees breaks the log, so that it is seen."""
        try:
            await work
        except Exception as error:
            log.exception("the shared log stops")
            self._broken = f"the log stopped: {self._text(error)}"

    async def _watch(self) -> None:
        """Fail appends whose time has run out."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._outbox.expire(self.fault())
            if self._fault is not None:
                await self._look()

    def _refuse(self, reason: str) -> None:
        """Raise an error about an engine that may lose records, unless it is trusted."""
        if not self._trust:
            raise SharedLogError(reason)

    def _text(self, error: BaseException | None) -> str:
        """Return an error as a reason."""
        if error is None:
            return "the connection ended"
        if isinstance(error, ContradaError):
            return str(error)
        return f"{type(error).__name__}: {str(error) or f'no answer within {self._timeout:g} s'}"

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop; faults of the engine are SharedLogErrors."""
        try:
            return self._thread.call(work)
        except SharedLogError:
            raise
        except ThreadEndedError as error:
            raise SharedLogError(CLOSED) from error
        except self.faults as error:
            raise SharedLogError(f"{', '.join(self._remote.url.addresses)}: {self._text(error)}") from error

    def fault(self) -> str | None:
        """Return why the engine is not reached."""
        return self._broken or self._fault

    def lost(self) -> str | None:
        """Return why the log can never be read on."""
        return self._broken

    def append(self, records: Sequence[LogRecord], done: Callable[[SharedLogError | None], None]) -> None:
        """Queue records; `done` is called by the loop and must not block."""
        self._outbox.put(records, done)

    def end(self) -> int:
        """Return the position of the last unit."""
        return self._call(self._ends())[1]

    def first(self) -> int:
        """Return the position of the oldest unit."""
        return self._call(self._ends())[0]

    def unit(self, position: int) -> LogUnit | None:
        """Return the unit at a position."""
        first, last = self._call(self._ends())
        return self._call(self._unit(position)) if first <= position <= last else None

    def start(self, after: int, take: Take) -> None:
        """Start to read; SharedLogError if the log does not have what follows `after`."""
        self._after, self._take = after, take
        self._call(self._check_place())
        self._thread.post(self._started.set)

    async def _check_place(self) -> None:
        """Raise LogBrokenError if the log does not have what follows the last unit that was read."""
        first, last = await self._ends()
        if last < self._after:
            text = f"the log ends at position {last}, before position {self._after}: the engine has lost records"
            raise LogBrokenError(text)
        if first > self._after + 1:
            raise LogBrokenError(f"the log starts at position {first}: what follows position {self._after} is gone")

    async def _hand(self, units: Sequence[LogUnit]) -> None:
        """Hand units on, and wait until they are taken. They count as taken before: nothing is handed on twice."""
        if units:
            self._after = units[-1].position
            await self._thread.block(lambda: self._give(units))
        if self._broken is not None:
            raise LogBrokenError(self._broken)

    def _give(self, units: Sequence[LogUnit]) -> None:
        if self._take is None or self._broken is not None:
            return
        try:
            self._take(units)
        except Exception as error:
            log.exception("units of the shared log were not taken")
            self._broken = f"units up to position {units[-1].position} were not taken: {error}"

    def write_snapshot(self, position: int, parts: Iterable[bytes]) -> None:
        """Keep parts, then an entry that makes them a snapshot."""
        id, places, digest = secrets.token_hex(8), list[int](), hashlib.sha256()
        for part in parts:
            if len(part) > self.most_bytes:
                raise SharedLogError(f"a part of a snapshot has {len(part):,} bytes; need at most {self.most_bytes:,}")
            number = len(places) + 1
            places.append(self._stored(lambda part=part, number=number: self._store_part(id, number, part)))  # type: ignore[misc]
            digest.update(part)
        if places and self._call(self._oldest_part()) > places[0]:
            raise SharedLogError("a newer snapshot has replaced this one before it was whole")
        first, last = (places[0], places[-1]) if places else (0, 0)
        entry = SnapshotEntry(id, position, first, last, len(places), digest.hexdigest())
        self._stored(lambda: self._store_entry(entry))

    def _stored(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run work that may be done twice until it succeeds, or for the last time."""
        for _ in range(ATTEMPTS - 1):
            try:
                return self._call(work())
            except SharedLogError:
                self._call(asyncio.sleep(FIRST_WAIT))
        return self._call(work())

    def newest_snapshot(self) -> SnapshotHead | None:
        """Return the snapshot with the highest position whose parts are there."""
        found = self._call(self._newest())
        return None if found is None else SnapshotHead(found[1].position, str(found[0]))

    async def _newest(self) -> tuple[int, SnapshotEntry] | None:
        oldest = await self._oldest_part()
        whole = [found for found in await self._entries() if not found[1].count or found[1].first >= oldest]
        return max(whole, key=lambda found: (found[1].position, found[0]), default=None)

    def read_snapshot(self, head: SnapshotHead) -> Iterator[bytes]:
        """Yield parts."""
        entry = dict(self._call(self._entries())).get(int(head.place))
        if entry is None:
            raise SharedLogError(f"the snapshot at position {head.position} is gone")
        count, digest = 0, hashlib.sha256()
        for part in self._parts(entry):
            digest.update(part)
            count += 1
            yield part
        if count != entry.count or digest.hexdigest() != entry.digest:
            raise SharedLogError(f"the snapshot at position {head.position} is not whole")

    def trim(self, position: int) -> None:
        """Remove units up to a position, and snapshots that are older than the newest."""
        self._call(self._trim(position))

    async def _trim(self, position: int) -> None:
        first, last = await self._ends()
        if first <= min(position, last):
            await self._trim_log(min(position, last))
        newest = await self._newest()
        if newest is not None:
            await self._trim_snapshots(*newest)

    def close(self) -> None:
        """End both threads; appends that wait fail."""
        self._thread.stop(self._close(), self._timeout)

    async def _close(self) -> None:
        self._outbox.close()
        await end_tasks(*self._tasks)
        await self._disconnect()
