"""Engine: one thread that takes all queued commands, writes one transaction for them, and answers after the commit."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from queue import Empty, SimpleQueue
from time import perf_counter, time_ns
from typing import Any, NamedTuple, TypeAlias

from contrada.errors import ContradaError
from contrada.service.core import Core, Delivery
from contrada.service.intake import Post
from contrada.service.links.link_state import LinkEnd, LinkFrame
from contrada.service.store.message_store import MessageStore, StoreChange, StoreError

GROUP_COMMANDS = 1_024  # in one transaction, at most
GROUP_BYTES = 8 << 20  # of bodies in one transaction; one command alone may have more
DURATIONS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)  # seconds
PROBE = "probe"  # kind of a record that is written to find out whether the store takes anything again

Work: TypeAlias = Callable[[Core, StoreChange], Any]


class BusyError(ContradaError):
    """More commands wait than may wait; the same command may be sent again a little later."""


class Task(NamedTuple):
    """A command and the ticket that its answer goes to; `work` is None for a post."""

    ticket: Any
    tenant: str
    post: Post | None
    work: Work | None


class WorkPublished(NamedTuple):
    """The answer of work that published messages besides, and what is to be delivered of them."""

    answer: Any
    deliveries: list[Delivery]


class GroupTimes(NamedTuple):
    """When a transaction began, was matched and was durable, in nanoseconds since 1970, and how large it was."""

    began: int
    matched: int
    durable: int
    commands: int
    messages: int


class Committed(NamedTuple):
    """What a transaction did: answers by ticket (errors are answers too), and what is to be delivered and sent on.

    `times` is None if it failed; then `core` is thrown away, and with it what it knows of connections to neighbours.
    `trimmed` and `records` tell servers that follow a log what others have changed. `change` is what was written.
    """

    core: Core
    answers: list[tuple[Any, Any]]
    deliveries: list[Delivery]
    times: GroupTimes | None = None
    outgoing: Sequence[LinkFrame | LinkEnd] = ()
    trimmed: int | None = None
    records: Sequence[tuple[str, str, bytes | None]] = ()
    change: StoreChange | None = None


class Durations:
    """How long something took each time: `counts[k]` times at most `DURATIONS[k]` seconds but above those before.

    >>> durations = Durations()
    >>> durations.add(0.0007)
    >>> durations.add(60.0)
    >>> durations.counts[:4], durations.counts[-1], durations.total
    ([0, 0, 0, 1], 1, 60.0007)
    """

    def __init__(self) -> None:
        self.counts = [0] * (len(DURATIONS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count one time."""
        self.counts[bisect_left(DURATIONS, seconds)] += 1
        self.total += seconds


class EngineWork:
    """How much an engine has done: the seconds that it took to match the posts of a group, and to commit a group."""

    def __init__(self) -> None:
        self.match, self.commit = Durations(), Durations()


class EngineQueue:
    """Commands that wait for the thread of an engine; of more than `most` BusyError is raised."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._queue: SimpleQueue[Any] = SimpleQueue()

    @property
    def waiting(self) -> int:
        """The number of commands that wait."""
        return self._queue.qsize()

    def publish(self, ticket: Any, tenant: str, post: Post) -> None:
        """Queue a post; the answer is a Published."""
        self._submit(Task(ticket, tenant, post, None))

    def do(self, ticket: Any, work: Work) -> None:
        """Queue work on the core; the answer is what it returns, or the ContradaError that it raises."""
        self._submit(Task(ticket, "", None, work))

    def _submit(self, task: Task) -> None:
        if self.waiting >= self._most:
            raise BusyError(f"{self._most:,} commands wait already")
        self._queue.put(task)


class Engine(EngineQueue):
    """Runs commands in the order in which they came; each is durable when it is answered.

    `committed` is called by the engine's thread after each transaction, `relayed` before one that has publications of
    neighbours to pass on. Records that can wait are written with the next transaction.
    """

    def __init__(
        self,
        store: MessageStore,
        load: Callable[[], Core],
        committed: Callable[[Committed], None],
        most_waiting: int = 100_000,
        relayed: Callable[[Sequence[LinkFrame]], None] = lambda frames: None,
    ) -> None:
        super().__init__(most_waiting)
        self._store, self._load, self._committed, self._relayed = store, load, committed, relayed
        self.core = load()
        self._unwritten = StoreChange()  # what earlier transactions left for the next one
        self._fault: StoreError | None = None
        self.done = EngineWork()
        self._thread = threading.Thread(target=self._run, name="contrada-engine", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what is queued, and end the thread."""
        self._queue.put(None)
        self._thread.join()

    @property
    def fault(self) -> StoreError | None:
        """Why the store takes nothing at the moment; None if it does."""
        return self._fault

    def _run(self) -> None:
        while (tasks := self._next_group()) is not None:
            self._committed(self._process(tasks))

    def _next_group(self) -> list[Task] | None:
        """Wait for a command, then take what else is there; None at the end."""
        task = self._queue.get()
        tasks: list[Task] = []
        size = 0
        while task is not None:
            tasks.append(task)
            size += 0 if task.post is None else len(task.post.body)
            if len(tasks) >= GROUP_COMMANDS or size >= GROUP_BYTES:
                return tasks
            try:
                task = self._queue.get_nowait()
            except Empty:
                return tasks
        if tasks:
            self._queue.put(None)  # the end comes after these
            return tasks
        return None

    def _process(self, tasks: list[Task]) -> Committed:
        if self._fault is not None and not self._recovered():
            return self._failed(tasks, self._fault)
        change, self._unwritten = self._unwritten, StoreChange()
        answers: list[tuple[Any, Any]] = []
        deliveries: list[Delivery] = []
        began = time_ns()
        try:
            self.core.expire(change)
            deliveries += self.core.take_logged()
            for group in _runs(tasks):
                if group[0].work is not None:
                    answer = self._work(group[0].work, change)
                    if isinstance(answer, WorkPublished):
                        answer, published = answer
                        deliveries += published
                    answers.append((group[0].ticket, answer))
                    deliveries += self.core.take_logged()
                    continue
                posts = [(task.tenant, task.post) for task in group if task.post is not None]
                start = perf_counter()
                found, delivered = self.core.publish(posts, change)
                self.done.match.add(perf_counter() - start)
                answers += zip((task.ticket for task in group), found, strict=True)
                deliveries += delivered
            self.core.trackers.flush(change)
            start, matched = perf_counter(), time_ns()
            if relayed := self.core.links.take_relayed():
                self._relayed(relayed)
            if change.is_urgent:
                self._store.write(change)
                self.done.commit.add(perf_counter() - start)
            else:
                change, self._unwritten = StoreChange(), change
        except StoreError as error:
            self._fault = error
            return self._failed(tasks, error)
        except Exception as error:  # a bug: whoever asked must not wait for ever, and the core may be half changed
            self._fault = StoreError("the engine failed; it starts again from the store")
            return self._failed(tasks, error)
        times = GroupTimes(began, matched, time_ns(), len(tasks), len(change.messages))
        return Committed(self.core, answers, deliveries, times, self.core.links.take_outgoing(), change=change)

    def _work(self, work: Work, change: StoreChange) -> Any:
        try:
            return work(self.core, change)
        except StoreError:
            raise
        except ContradaError as error:
            return error

    def _recovered(self) -> bool:
        """Return True if the store takes changes again; then the core is loaded from it."""
        try:
            self._store.write(StoreChange(records=[(PROBE, "", b"")]))
            self.core = self._load()
        except Exception:  # a fault of the store, or a bug: the thread must go on to answer
            return False
        self._fault = None
        return True

    def _failed(self, tasks: list[Task], error: Exception) -> Committed:
        return Committed(self.core, [(task.ticket, error) for task in tasks], [])


def _runs(tasks: list[Task]) -> Iterable[list[Task]]:
    """Yield tasks in order: posts that follow one another together, everything else alone."""
    posts: list[Task] = []
    for task in tasks:
        if task.post is not None:
            posts.append(task)
            continue
        if posts:
            yield posts
            posts = []
        yield [task]
    if posts:
        yield posts
