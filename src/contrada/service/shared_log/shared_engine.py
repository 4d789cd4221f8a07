"""SharedEngine: an engine whose commands go through a shared log. It applies what the log says, its own and others'.

Messages are read and matched before they go into the log, by the server that took them, with its table of that moment.
Each record says which table that was: whoever applies it takes the matches as they are if the table is still the same,
which is nearly always so, and matches again if it is not. So every server has all matches, in one order, while each
has matched a share of the messages.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from queue import Empty
from time import monotonic, perf_counter, time_ns
from typing import Any, NamedTuple

from contrada.errors import ContradaError, LimitError
from contrada.service.commands import ServiceCommand
from contrada.service.core import Delivery, Published
from contrada.service.engine import PROBE, Committed, EngineQueue, EngineWork, GroupTimes, Task, Work
from contrada.service.intake import Post, Refusal
from contrada.service.matches import pack_matches
from contrada.service.shared_log.entries import (
    TICK,
    CommandEntry,
    EntryHead,
    MessageEntry,
    MessageHead,
    command_record,
    message_record,
    read_entry,
)
from contrada.service.shared_log.shared_core import Proposal, SharedCore
from contrada.service.shared_log.shared_log import LogRecord, LogUnit, SharedLog, SharedLogError
from contrada.service.store.message_store import MessageStore, StoreChange, StoreError

GROUP_TASKS = 1_024  # taken from the queue at once
GROUP_BYTES = 8 << 20  # of records in one transaction, about
WAITING_UNITS = 16  # deliveries of the log that wait for the engine; then the log is read no further
RETRY_SECONDS = 1.0  # until a store that takes nothing is tried again

Entry = MessageEntry | CommandEntry


class UnknownOutcomeError(StoreError):
    """The server stops, or has lost its log: what was asked for may have been done or not."""


class _Posted:
    """A post whose messages are on their way through the log."""

    def __init__(self, ticket: Any, rejected: list[Refusal]) -> None:
        self.ticket, self.left = ticket, 0
        self._rejected, self._sequences = rejected, list[int]()
        self._duplicates: list[tuple[int, int]] = []

    def note(self, row: int, outcome: int | str) -> None:
        """Take what became of a message: its sequence number, minus that of an earlier one, or why it was refused."""
        if isinstance(outcome, str):
            self._rejected.append(Refusal(row, outcome))
        elif outcome < 0:
            self._duplicates.append((row, -outcome))
        else:
            self._sequences.append(outcome)

    @property
    def answer(self) -> Published:
        """What became of the post."""
        bounds = (self._sequences[0], self._sequences[-1]) if self._sequences else (0, 0)
        duplicates, rejected = tuple(sorted(self._duplicates)), tuple(sorted(self._rejected))
        return Published(*bounds, duplicates, rejected, len(self._sequences))


class _Commanded(NamedTuple):
    """A command on its way through the log, as it was given."""

    ticket: Any
    command: ServiceCommand


class _Settled(NamedTuple):
    """A record of ours that a transaction has applied, by its count; with a ticket, whose command it answers."""

    record: int
    ticket: Any = None
    answer: Any = None


class _Lost(NamedTuple):
    """Records of ours that did not get into the log, as far as is known."""

    counts: range
    error: SharedLogError


class SharedEngine(EngineQueue):
    """Runs commands in the order of a shared log; each is durable, and applied here, when it is answered.

    Commands go into the log; other work is done at once, for this server alone.

    `committed` is called by the engine's thread after each transaction. `clock` gives the times of our records.
    """

    def __init__(
        self,
        store: MessageStore,
        load: Callable[[], SharedCore],
        committed: Callable[[Committed], None],
        log: SharedLog,
        clock: Callable[[], int],
        most_waiting: int = 100_000,
    ) -> None:
        super().__init__(most_waiting)
        self._store, self._load, self._committed = store, load, committed
        self.log, self._clock = log, clock
        self.core = load()
        self.origin = secrets.token_hex(8)
        self._count = 0  # of our records
        self._waiting: dict[int, tuple[_Posted, int] | _Commanded] = {}  # by count; of a message with its row
        self._room = threading.Semaphore(WAITING_UNITS)
        self._fault: StoreError | None = None
        self._is_stopping = False
        self.foreign = 0  # records of the log that no server wrote
        self.done = EngineWork()
        self._thread = threading.Thread(target=self._run, name="contrada-engine", daemon=True)

    def start(self) -> None:
        """Start the thread, and read the log from where the core is."""
        self.log.start(self.core.place.position, self._take_units)
        self._thread.start()

    def stop(self) -> None:
        """Finish what was read, and end the thread; who still waits is told that the outcome is unknown."""
        self._is_stopping = True
        self._room.release(WAITING_UNITS)
        self.log.close()
        self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join()

    @property
    def waiting(self) -> int:
        """The number of commands that wait."""
        return self._queue.qsize() + len(self._waiting)

    @property
    def fault(self) -> StoreError | None:
        """Why nothing can be written at the moment; None if it can."""
        if self._fault is None and (reason := self.log.fault()) is not None:
            return StoreError(reason)
        return self._fault

    def _take_units(self, units: Sequence[LogUnit]) -> None:
        self._room.acquire()
        if not self._is_stopping:
            self._queue.put(units)

    # --- the thread ---

    def _run(self) -> None:
        is_last = False
        while not is_last:
            tasks: list[Task] = []
            units: list[LogUnit] = []
            for item in self._next_items():
                if isinstance(item, Task):
                    tasks.append(item)
                elif isinstance(item, _Lost):
                    self._forget(item.counts, StoreError(str(item.error)))
                elif item is None:
                    is_last = True
                else:
                    self._room.release()
                    units += item
            self._propose_all(tasks)
            if is_last:
                self._queue.put(None)  # for `_recovered`, which otherwise waits for a store that may never return
            self._apply_all(units)
        self._forget(range(self._count + 1), UnknownOutcomeError("the server stops"))

    def _next_items(self) -> Iterator[Any]:
        """Yield an item, waited for if need be, and what else is there."""
        yield self._queue.get()
        for _ in range(GROUP_TASKS):
            try:
                yield self._queue.get_nowait()
            except Empty:
                return

    def _forget(self, counts: range, error: Exception) -> None:
        """Tell those who wait for some of our records that they failed."""
        answers: dict[Any, Exception] = {}
        for count in [count for count in self._waiting if count in counts]:
            waiter = self._waiting.pop(count)
            answers[waiter.ticket if isinstance(waiter, _Commanded) else waiter[0].ticket] = error
        self._answer(list(answers.items()))

    def _answer(self, answers: list[tuple[Any, Any]]) -> None:
        if answers:
            now = time_ns()
            self._committed(Committed(self.core, answers, [], GroupTimes(now, now, now, len(answers), 0)))

    # --- into the log ---

    def _propose_all(self, tasks: list[Task]) -> None:
        fault = self.fault if tasks else None
        if fault is not None:
            self._answer([(task.ticket, fault) for task in tasks])
            return
        for tenant, group in groupby(tasks, key=lambda task: None if task.post is None else task.tenant):
            own = list(group)
            try:
                if tenant is not None:
                    self._propose_posts(tenant, own)
                else:
                    for task in own:
                        self._propose_work(task)
            except Exception as error:  # a bug: whoever asked must not wait for ever
                self._answer([(task.ticket, error) for task in own])

    def _propose_posts(self, tenant: str, tasks: list[Task]) -> None:
        posts = [task.post for task in tasks if task.post is not None]
        start = perf_counter()
        found = self.core.propose(tenant, posts)
        self.done.match.add(perf_counter() - start)
        posted = [_Posted(task.ticket, list(bad)) for task, bad in zip(tasks, found.taken.rejected, strict=True)]
        records = list(self._message_records(tenant, posts, found, posted))
        self._answer([(one.ticket, one.answer) for one in posted if not one.left])
        self._append(records)

    def _message_records(
        self, tenant: str, posts: list[Post], found: Proposal, posted: list[_Posted]
    ) -> Iterator[LogRecord]:
        """Yield the records of new messages; note for the others what became of them."""
        taken, at = found.taken, self._clock()
        most = self.log.most_bytes * 15 // 16  # a dead letter of the message, which has a reason besides, fits too
        for place, (id, body) in enumerate(zip(taken.ids, taken.bodies, strict=True)):
            post, row = taken.posts[place], taken.rows[place]
            if place in found.again or place in found.refused:
                outcome = found.refused[place] if place in found.refused else -found.again[place]
                posted[post].note(row, outcome)
                continue
            matches = pack_matches(sorted(found.found.get(place, ())))
            self._count += 1
            head = MessageHead(
                *(self.origin, self._count, at, tenant, id or "", posts[post].format, found.version, matches)
            )
            record = message_record(head, body)
            if (size := record.size) > most:
                self._count -= 1
                posted[post].note(row, _too_large(size, most))
                continue
            posted[post].left += 1
            self._waiting[self._count] = posted[post], row
            yield record

    def _propose_work(self, task: Task) -> None:
        """Put a command into the log, or do at once what concerns this server alone."""
        assert task.work is not None
        if not isinstance(task.work, ServiceCommand):
            self._work_here(task.ticket, task.work)
            return
        self._count += 1
        record = command_record(EntryHead(self.origin, self._count, self._clock()), task.work)
        if (size := record.size) > self.log.most_bytes:
            self._count -= 1
            self._answer([(task.ticket, LimitError(_too_large(size, self.log.most_bytes)))])
            return
        self._waiting[self._count] = _Commanded(task.ticket, task.work)
        self._append([record])

    def _append(self, records: list[LogRecord]) -> None:
        if not records:
            return
        counts = range(self._count - len(records) + 1, self._count + 1)

        def done(error: SharedLogError | None) -> None:
            if error is not None:
                self._queue.put(_Lost(counts, error))

        self.log.append(records, done)

    def _work_here(self, ticket: Any, work: Work) -> None:
        change = StoreChange()
        try:
            answer = work(self.core, change)
            if change:
                self._store.write(change)
        except ContradaError as error:
            answer = error
        self._answer([(ticket, answer)])

    # --- out of the log ---

    def _apply_all(self, units: list[LogUnit]) -> None:
        """Apply units, again and again until the store has taken all of them."""
        while units:
            try:
                for part, size in _parts(units):
                    self._apply(part, size)
                return
            except StoreError as error:
                self._fault = error
            except Exception as error:  # a bug, or a table that cannot be: never go on without a record of the log
                self._fault = StoreError(f"a record of the log cannot be applied: {error}")
            self._forget(range(self._count + 1), self._fault)
            if not self._recovered(units, self._fault):
                return
            units = [unit for unit in units if unit.position > self.core.place.position]

    def _recovered(self, units: list[LogUnit], fault: StoreError) -> bool:
        """Load the core from the store once that takes changes again; return False if the engine stops before.

        Meanwhile commands are answered with the fault, and what the log brings is added to `units`.
        """
        stashed = 0
        while True:
            end = monotonic() + RETRY_SECONDS
            while (left := end - monotonic()) > 0:
                try:
                    item = self._queue.get(timeout=left)
                except Empty:
                    break
                if item is None:
                    self._queue.put(None)  # for the loop that ends the thread
                    return False
                if isinstance(item, Task):
                    self._answer([(item.ticket, fault)])
                elif not isinstance(item, _Lost):
                    units += item
                    stashed += 1
            try:
                self._store.write(StoreChange(records=[(PROBE, "", b"")]))
                self.core = self._load()
            except Exception:  # a fault of the store, or a bug: the thread must go on to answer
                continue
            self._fault = None
            if stashed:
                self._room.release(stashed)
            return True

    def _apply(self, units: Sequence[LogUnit], size: int) -> None:
        """Apply units, which have so many bytes, in one transaction."""
        core, change, began = self.core, StoreChange(), time_ns()
        settled: list[_Settled] = []  # callers hear of the commit, or that it failed
        deliveries: list[Delivery] = []
        last: dict[str, int] = {}
        for run in _runs(self._entries(units, last)):
            head = run[0].head
            deliveries += core.begin(head.at, change)
            if isinstance(run[0], CommandEntry):
                settled += self._command(run[0], change)
                deliveries += core.take_logged()
            else:
                messages = [entry for entry in run if isinstance(entry, MessageEntry)]
                outcomes, delivered = core.take(messages[0].head.tenant, messages, change)
                deliveries += delivered
                settled += self._outcomes(messages, outcomes)
        core.trackers.flush(change)
        core.advance(units[-1], size, last, change)
        start, matched = perf_counter(), time_ns()
        self._store.write(change)
        self.done.commit.add(perf_counter() - start)
        for one in settled:
            del self._waiting[one.record]
        answers = [(one.ticket, one.answer) for one in settled if one.ticket is not None]
        times = GroupTimes(began, matched, time_ns(), len(answers), len(change.messages))
        self._committed(Committed(core, answers, deliveries, times, (), change.trim, change.records, change))

    def _entries(self, units: Sequence[LogUnit], last: dict[str, int]) -> Iterator[Entry]:
        """Yield what records hold, but those that were applied before; note the last count of each origin."""
        for unit in units:
            for record in unit.records:
                entry = read_entry(record)
                if entry is None:
                    self.foreign += 1
                    continue
                origin, count = entry.head.origin, entry.head.count
                if count > (last[origin] if origin in last else self.core.last_count(origin)):
                    last[origin] = count
                    yield entry

    def _command(self, entry: CommandEntry, change: StoreChange) -> Iterator[_Settled]:
        waiter = self._waiting.get(entry.head.count) if entry.head.origin == self.origin else None
        command = waiter.command if isinstance(waiter, _Commanded) else entry.command
        try:
            answer = command(self.core, change)
        except StoreError:
            raise
        except ContradaError as error:
            answer = error
        if isinstance(waiter, _Commanded):
            yield _Settled(entry.head.count, waiter.ticket, answer)

    def _outcomes(self, messages: list[MessageEntry], outcomes: list[int | str]) -> Iterator[_Settled]:
        for entry, outcome in zip(messages, outcomes, strict=True):
            if entry.head.origin != self.origin:
                continue
            waiter = self._waiting.get(entry.head.count)
            if not isinstance(waiter, tuple) or isinstance(waiter, _Commanded):
                continue
            posted, row = waiter
            posted.note(row, outcome)
            posted.left -= 1
            yield (
                _Settled(entry.head.count) if posted.left else _Settled(entry.head.count, posted.ticket, posted.answer)
            )


def _too_large(size: int, most: int) -> str:
    return f"this takes {size:,} bytes in the log, which takes {most:,} at most"


def _runs(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    """Yield entries in order: messages of one tenant that came at one time together, everything else alone."""
    run: list[Entry] = []
    kind: Any = None
    for entry in entries:
        own = (entry.head.tenant, entry.head.at) if isinstance(entry, MessageEntry) else None
        if run and (own is None or own != kind):
            yield run
            run = []
        run.append(entry)
        kind = own
    if run:
        yield run


def _parts(units: list[LogUnit]) -> Iterator[tuple[list[LogUnit], int]]:
    """Yield the units of one transaction after the other, and their bytes.

    A tick, which reads what is stored, has a transaction of its own.
    """
    part: list[LogUnit] = []
    size = 0
    for unit in units:
        own, is_tick = sum(record.size for record in unit.records), any(record.key == TICK for record in unit.records)
        if part and (is_tick or size > GROUP_BYTES):
            yield part, size
            part, size = [], 0
        part.append(unit)
        size += own
        if is_tick:
            yield part, size
            part, size = [], 0
    if part:
        yield part, size
