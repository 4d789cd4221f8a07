"""Store: the published snapshot of a table, the buffer that takes its updates, and the threads that pack it.

Levels, oldest first: the base; what is being packed into it; the middle and the small level; what is being packed into
these; the buffer. Two threads do the packing, one for the base and one for the rest; writers only ever append to the
buffer, and readers take the snapshot.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada import forking, kernels
from contrada.index.packed import GATE
from contrada.index.scalars import ScalarIndex
from contrada.matching.buffer import Buffer
from contrada.matching.encoding import MessageSample, Places
from contrada.matching.level import EMPTY, Added, Alive, Level, merge_levels
from contrada.matching.snapshot import Snapshot
from contrada.model import Predicate

ALIVE = np.iinfo(np.int64).max
LEVEL_COUNT = 6
FROZEN, MIDDLE, SEALED = 1, 2, 4
# The buffer and the small level hold so many filters before they are packed, the middle one this share of the base.
BUFFER_FILTERS, SMALL_FILTERS = 1024, 8192
BASE_TO_MIDDLE_RATIO = 8
# So many messages after another, and each time after twice as many, those seen are held against what was expected of
# them: the base is packed anew if they reach so many times as many filters, and so many at least.
RELEARN_AFTER_MESSAGES, REPACK_REACH_FACTOR, REPACK_MIN_REACH = 2048, 3, 1000
# Writers wait for readers until there was no question for so many updates: they look so many times, at least and at
# most (60 and 300 microseconds); or sleep for so many seconds, if a thread that packs needs the processor.
MAX_WAITING_UPDATES, GATE_POLLS, PACKING_SLEEP_SECONDS = 16, (72_000, 360_000), 3e-4


class Packed(NamedTuple):
    """Levels, from the first on, and what they were packed into."""

    first: int
    old: tuple[Level, ...]
    new: tuple[Level, ...]


class Store:
    """What a table holds: one snapshot is published at a time, and every update publishes the next."""

    def __init__(self, snapshot: Snapshot | None = None, places: Places | None = None) -> None:
        self.lock = forking.make_lock(forking.UPDATING)  # for all who publish
        self.snapshot = snapshot or Snapshot(0, (EMPTY,) * LEVEL_COUNT, 0, 0, None, None, None, False)
        self.places = places or Places()
        self.sample = MessageSample()
        self._buffer = Buffer(self.places)
        self._patience = 0
        self._next_look = RELEARN_AFTER_MESSAGES  # by the number of messages
        self._threads: dict[int, threading.Thread] = {}  # by the level that each packs
        forking.tell_child(self)

    def after_fork(self) -> None:
        """Forget threads that did not survive a fork; the next update packs what they left."""
        self._threads = {}
        GATE[:] = 0  # other threads were counted as readers

    # Readers

    def asked(self) -> Snapshot:
        """The snapshot for a question."""
        self._patience = MAX_WAITING_UPDATES
        if self.sample.turn >= self._next_look:
            self._look_again()
        return self.snapshot

    def _look_again(self) -> None:
        """Have the base packed anew if messages are no longer what they were when it was packed."""
        with self.lock:
            if self.sample.turn < self._next_look:  # another thread was quicker
                return
            self._next_look = 2 * self.sample.turn
            if FROZEN not in self._threads:
                self._start(FROZEN, self._pack_anew)

    # Writers, who hold the lock; they publish by one assignment, which readers see whole or not at all

    @contextmanager
    def updating(self, waits: bool = True) -> Iterator[None]:
        """Hold the lock and shut the gate for a short update, beside the kernels of readers if there were any lately.

        A thread keeps the interpreter for 5 ms when others want it. Readers want it back whenever a kernel returns, so
        next to a busy writer each of them would wait so long, several times for one question. So a writer waits,
        without the interpreter, until a reader is inside a kernel, and is done before the reader needs the interpreter
        again. An update that takes less time than getting there need not wait.
        """
        with self.lock:
            if waits and self._patience > 0:
                self._patience -= 1
                if self._threads:
                    time.sleep(PACKING_SLEEP_SECONDS)
                else:
                    kernels.shut_gate(GATE, *GATE_POLLS)
            GATE[0] = 1
            try:
                yield
            finally:
                GATE[0] = 0

    def append(self, subscriber: int, predicate: Predicate, instead_of: int | None = None) -> None:
        """Publish one more subscription, in place of another one if that is given; both are rows."""
        now = self.snapshot
        row, first, version = now.rows, now.filters, now.version + 1
        died = now.died
        if instead_of is not None:
            died = _with_entry(_mortal(now), instead_of, version)
        if died is not None:
            died = _with_entry(died, row, ALIVE)
        owners = now.filter_subscription
        for number in range(first, first + len(predicate)):
            owners = _with_entry(owners, number, row)
        self.snapshot = now._replace(
            version=version,
            levels=self._appended(first, predicate),
            rows=row + 1,
            filters=first + len(predicate),
            filter_subscription=owners,
            subscription_subscriber=_with_entry(now.subscription_subscriber, row, subscriber),
            died=died,
            several_filters=now.several_filters or len(predicate) > 1,
        )
        self._start_packing()

    def _appended(self, first: int, predicate: Predicate) -> tuple[Level, ...]:
        """The levels with the filters of a predicate in the buffer; a full one is sealed unless one is already."""
        *older, sealed, _ = self.snapshot.levels
        youngest = self._buffer.append(first, predicate)
        if youngest.filters >= BUFFER_FILTERS and not sealed.filters:
            sealed, youngest, self._buffer = youngest, EMPTY, Buffer(self.places)
        return *older, sealed, youngest

    def remove(self, row: int) -> None:
        """Publish the death of a subscription."""
        now = self.snapshot
        died = _with_entry(_mortal(now), row, now.version + 1)
        self.snapshot = now._replace(version=now.version + 1, died=died)

    def append_many(self, draft: Snapshot, added: Added, count: int) -> None:
        """Publish a draft of so many more filters, packed into the youngest level that is large enough for them."""
        base, frozen, middle, small, *young = draft.levels
        alive = draft.is_filter_alive
        size = count + small.filters + sum(level.filters for level in young)
        if size <= SMALL_FILTERS:
            small = self._merged([small, *young], alive, added)
        elif (size + middle.filters) * BASE_TO_MIDDLE_RATIO <= base.filters:
            middle, small = self._merged([middle, small, *young], alive, added), EMPTY
        else:
            base, frozen, middle, small = self._merged(draft.levels, alive, added), EMPTY, EMPTY, EMPTY
        self._publish_packed(draft, base, frozen, middle, small)

    def _publish_packed(self, draft: Snapshot, *levels: Level) -> None:
        """Publish a draft with these levels, and a new buffer after them."""
        self._buffer = Buffer(self.places)
        self._publish(draft, (*levels, *(EMPTY,) * (LEVEL_COUNT - len(levels))))

    def _publish(self, draft: Snapshot, levels: tuple[Level, ...]) -> None:
        self.snapshot = draft._replace(version=self.snapshot.version + 1, levels=levels)

    # Packing

    def pack(self) -> None:
        """Pack all levels into the base, without the dead."""
        with self.lock:
            self._publish_packed(self.snapshot, self.merged(self.snapshot))

    def settle(self) -> None:
        """Wait until nothing is being packed; readers and writers need not."""
        while True:
            with self.lock:  # whoever holds it has started the threads that are listed
                threads = list(self._threads.values())
            if not threads:
                return
            for thread in threads:
                thread.join()

    def _start_packing(self) -> None:
        """Start a thread for each level that waits to be packed."""
        for level, pack in ((SEALED, self._pack_sealed), (FROZEN, self._pack_frozen)):
            if self.snapshot.levels[level].filters and level not in self._threads:
                self._start(level, pack)

    def _start(self, level: int, pack: Callable[[Snapshot], Packed | None]) -> None:
        thread = threading.Thread(target=self._run, args=(level, pack), name="contrada-packing", daemon=True)
        self._threads[level] = thread
        thread.start()

    def _run(self, level: int, pack: Callable[[Snapshot], Packed | None]) -> None:
        packed = None
        try:
            packed = pack(self.snapshot)
        finally:  # without memory for it the level stays, and the next update tries again
            with self.lock:
                del self._threads[level]
                if packed is not None:
                    self._replace(packed)

    def merged(self, snapshot: Snapshot) -> Level:
        """All levels of a snapshot as one, without the dead."""
        return self._merged(snapshot.levels, snapshot.is_filter_alive)

    def _merged(self, levels: Iterable[Level], alive: Alive, added: Added | None = None) -> Level:
        return merge_levels(levels, alive, self.places, self.sample.seen(self.places), added)

    def _pack_sealed(self, snapshot: Snapshot) -> Packed:
        """The sealed buffer goes into the small level, and that into the middle one when it is full."""
        old = middle, small, sealed = snapshot.levels[MIDDLE : SEALED + 1]
        packed = self._merged([small, sealed], snapshot.is_filter_alive)
        if packed.filters <= SMALL_FILTERS:
            return Packed(MIDDLE, old, (middle, packed, EMPTY))
        return Packed(MIDDLE, old, (self._merged([middle, packed], snapshot.is_filter_alive), EMPTY, EMPTY))

    def _pack_frozen(self, snapshot: Snapshot) -> Packed:
        """The frozen level goes into the base."""
        old = snapshot.levels[: FROZEN + 1]
        return Packed(0, old, (self._merged(old, snapshot.is_filter_alive), EMPTY))

    def _pack_anew(self, snapshot: Snapshot) -> Packed | None:
        """The base with the frozen level once more, if the messages of late reach many more filters than expected."""
        scalars, seen = snapshot.levels[0].scalars, self.sample.seen(self.places)
        if not isinstance(scalars, ScalarIndex) or seen.messages is None:
            return None
        reach = scalars.reach(seen.messages)
        return (
            self._pack_frozen(snapshot)
            if reach > max(REPACK_REACH_FACTOR * scalars.expected, REPACK_MIN_REACH)
            else None
        )

    def _replace(self, packed: Packed) -> None:
        """Publish packed levels in place of the old ones, unless a batch has packed these meanwhile."""
        now = self.snapshot.levels
        end = packed.first + len(packed.old)
        if any(a is not b for a, b in zip(now[packed.first : end], packed.old, strict=True)):
            return
        base, frozen, middle, *young = (*now[: packed.first], *packed.new, *now[end:])
        if (
            middle.filters * BASE_TO_MIDDLE_RATIO > max(base.filters, SMALL_FILTERS * BASE_TO_MIDDLE_RATIO)
            and not frozen.filters
        ):
            frozen, middle = middle, EMPTY
        self._publish(self.snapshot, (base, frozen, middle, *young))
        self._start_packing()


def grown(old: Snapshot, subscribers: NDArray[np.int32], filters: int) -> Snapshot:
    """A draft with further subscriptions of so many filters each; full arrays are replaced, so `old` keeps its own."""
    row, first, count = old.rows, old.filters, len(subscribers)
    return old._replace(
        rows=row + count,
        filters=first + count * filters,
        filter_subscription=extended(old.filter_subscription, first, np.repeat(np.arange(row, row + count), filters)),
        subscription_subscriber=extended(old.subscription_subscriber, row, subscribers),
        died=None if old.died is None else extended(old.died, row, np.full(count, ALIVE)),
        several_filters=old.several_filters or filters > 1,
    )


def extended(array: NDArray[Any] | None, start: int, values: NDArray[Any]) -> NDArray[Any] | None:
    """An array whose entries from start on are values; None stands for 0, 1, 2, ... and stays if it can."""
    stop = start + len(values)
    if array is None and np.array_equal(values, np.arange(start, stop)):
        return None
    array = _with_room(array, start, stop)
    array[start:stop] = values
    return array


def _with_entry(array: NDArray[Any] | None, at: int, value: int) -> NDArray[Any] | None:
    """Return `array` with one entry set, as `extended` does for many."""
    if array is None and value == at:
        return None
    array = _with_room(array, at, at + 1)
    array[at] = value
    return array


def _with_room(array: NDArray[Any] | None, used: int, needed: int) -> NDArray[Any]:
    """An array that can be written to and has room for the entries needed, with those in use: the same if it has."""
    if array is None:
        return np.arange(_capacity(needed), dtype=np.int32)
    if len(array) >= needed and array.flags.writeable:  # a mapped array is read-only
        return array
    return np.concatenate([array[:used], np.empty(_capacity(needed) - used, array.dtype)])


def _mortal(snapshot: Snapshot) -> NDArray[np.int64]:
    """When each subscription died."""
    return np.full(_capacity(snapshot.rows), ALIVE) if snapshot.died is None else snapshot.died


def _capacity(length: int) -> int:
    return max(64, length + length // 2)
