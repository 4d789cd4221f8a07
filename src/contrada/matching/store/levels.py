"""Store: the published snapshot of a table, its buffer, and the background threads that pack levels.

Levels, oldest first: base; frozen (being packed into the base); middle; small; sealed (a full buffer being packed into
small or middle); buffer. Two threads pack, one for the base and one for the rest. Writers only append to the buffer;
readers take the snapshot.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada import forking, kernels
from contrada.index.packed import GATE
from contrada.index.scalars import ScalarIndex
from contrada.matching.encoding import MessageEncoder, MessageSample
from contrada.matching.store.buffer import Buffer
from contrada.matching.store.level import EMPTY, Added, Alive, Level, merge_levels
from contrada.matching.store.snapshot import Snapshot
from contrada.matching.store.tuning import DEFAULT_TUNING, Tuning
from contrada.model import Predicate

ALIVE = np.iinfo(np.int64).max
LEVEL_COUNT = 6
FROZEN, MIDDLE, SEALED = 1, 2, 4
BASE_TO_MIDDLE_RATIO = 8  # the middle level holds 1/8 of the filters of the base
# Pack the base again if recent messages reach over three times as many filters as the last packing estimated, and
# over 1,000.
REPACK_REACH_FACTOR, REPACK_MIN_REACH = 3, 1000
# Writers wait for readers, until 16 updates in a row saw no query: they poll the gate 72,000 to 360,000 times (60 to
# 300 microseconds), or sleep if a packing thread needs the processor.
MAX_WAITING_UPDATES, GATE_POLLS, PACKING_SLEEP_SECONDS = 16, (72_000, 360_000), 3e-4


Packed = tuple[int, tuple[Level, ...]]  # a position among the levels, and the levels that replace those from there on


class Store:
    """The contents of a table as one published snapshot; every update publishes the next one."""

    def __init__(
        self, snapshot: Snapshot | None = None, encoder: MessageEncoder | None = None, tuning: Tuning = DEFAULT_TUNING
    ) -> None:
        self.tuning = tuning
        self.lock = forking.make_lock(forking.UPDATING)  # held while publishing
        self.snapshot = snapshot or Snapshot(0, (EMPTY,) * LEVEL_COUNT, 0, 0, None, None, None, False)
        self.encoder = encoder or MessageEncoder()
        self.sample = MessageSample()
        self._buffer = Buffer(self.encoder, self.tuning)
        self._patience = 0
        self._next_look = tuning.relearn_after_messages  # in messages
        self._threads: dict[int, threading.Thread] = {}  # by the position of the level that each packs
        forking.tell_child(self)

    def after_fork(self) -> None:
        """Forget threads that a fork did not copy; the next update restarts their packing."""
        self._threads = {}
        GATE[:] = 0  # the parent's other threads were counted as readers

    # Readers

    def asked(self) -> Snapshot:
        """Return the snapshot for a query, and re-check estimates when it is time."""
        self._patience = MAX_WAITING_UPDATES
        if self.sample.turn >= self._next_look:
            self._look_again()
        return self.snapshot

    def _look_again(self) -> None:
        """Start packing the base again if recent messages differ from those it was packed for."""
        with self.lock:
            if self.sample.turn < self._next_look:  # another thread did it
                return
            self._next_look = 2 * self.sample.turn
            if FROZEN not in self._threads:
                self._start(FROZEN, self._pack_anew)

    # Writers hold the lock and publish by one assignment, so readers see all of an update or none of it.

    @contextmanager
    def updating(self, waits: bool = True) -> Iterator[None]:
        """Hold the lock and shut the gate for a short update, made while readers are in kernels if there are readers.

        A thread keeps the interpreter for 5 ms when others want it. Readers want it back whenever a kernel returns, so
        next to a busy writer each query would wait several times 5 ms. Therefore a writer waits, without the
        interpreter, until a reader is inside a kernel, and finishes before the reader needs the interpreter again. With
        `waits` False the writer does not wait: for updates that take less time than the waiting would.
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
        """Publish a subscription of subscriber row `subscriber`; it replaces the subscription in row `instead_of`."""
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
        """Return the levels with the filters of `predicate` in the buffer; a full one is sealed if none is sealed."""
        *older, sealed, _ = self.snapshot.levels
        youngest = self._buffer.append(first, predicate)
        if youngest.filters >= self.tuning.buffer_filters and not sealed.filters:
            sealed, youngest, self._buffer = youngest, EMPTY, Buffer(self.encoder, self.tuning)
        return *older, sealed, youngest

    def remove(self, row: int) -> None:
        """Publish the removal of the subscription in `row`."""
        now = self.snapshot
        died = _with_entry(_mortal(now), row, now.version + 1)
        self.snapshot = now._replace(version=now.version + 1, died=died)

    def append_many(self, draft: Snapshot, added: Added, count: int) -> None:
        """Publish `draft` with `count` filters of `added`, packed into the youngest level that is large enough."""
        base, frozen, middle, small, *young = draft.levels
        alive = draft.is_filter_alive
        size = count + small.filters + sum(level.filters for level in young)
        if size <= self.tuning.small_filters:
            small = self._merged([small, *young], alive, added)
        elif (size + middle.filters) * BASE_TO_MIDDLE_RATIO <= base.filters:
            middle, small = self._merged([middle, small, *young], alive, added), EMPTY
        else:
            base, frozen, middle, small = self._merged(draft.levels, alive, added), EMPTY, EMPTY, EMPTY
        self._publish_packed(draft, base, frozen, middle, small)

    def _publish_packed(self, draft: Snapshot, *levels: Level) -> None:
        """Publish `draft` with these levels and a new buffer."""
        self._buffer = Buffer(self.encoder, self.tuning)
        self._publish(draft, (*levels, *(EMPTY,) * (LEVEL_COUNT - len(levels))))

    def _publish(self, draft: Snapshot, levels: tuple[Level, ...]) -> None:
        self.snapshot = draft._replace(version=self.snapshot.version + 1, levels=levels)

    # Packing

    def pack(self) -> None:
        """Pack all live filters into the base."""
        with self.lock:
            self._publish_packed(self.snapshot, self.merged(self.snapshot))

    def wait_for_compaction(self) -> None:
        """Wait until no packing thread runs. Readers and writers do not wait for packing."""
        while True:
            with self.lock:  # every thread started before this is listed
                threads = list(self._threads.values())
            if not threads:
                return
            for thread in threads:
                thread.join()

    def _start_packing(self) -> None:
        """Start a thread for each level that waits to be packed, unless it runs."""
        for level, pack in ((SEALED, self._pack_sealed), (FROZEN, self._pack_frozen)):
            if self.snapshot.levels[level].filters and level not in self._threads:
                self._start(level, pack)

    def _start(self, level: int, pack: Callable[[Snapshot], Packed | None]) -> None:
        thread = threading.Thread(target=self._run, args=(level, pack), name="contrada-packing", daemon=True)
        self._threads[level] = thread
        thread.start()

    def _run(self, level: int, pack: Callable[[Snapshot], Packed | None]) -> None:
        snapshot = self.snapshot
        packed = None
        try:
            packed = pack(snapshot)
        finally:  # out of memory: the level stays, and the next update tries again
            with self.lock:
                del self._threads[level]
                if packed is not None:
                    self._replace(snapshot.levels, *packed)

    def merged(self, snapshot: Snapshot) -> Level:
        """Merge the live filters of all levels of `snapshot` into one level."""
        return self._merged(snapshot.levels, snapshot.is_filter_alive)

    def _merged(self, levels: Iterable[Level], alive: Alive, added: Added | None = None) -> Level:
        return merge_levels(levels, alive, self.encoder, self.sample.seen(self.encoder), added)

    def _pack_sealed(self, snapshot: Snapshot) -> Packed:
        """Pack the sealed buffer into the small level, and a full small level into the middle one."""
        middle, small, sealed = snapshot.levels[MIDDLE : SEALED + 1]
        packed = self._merged([small, sealed], snapshot.is_filter_alive)
        if packed.filters <= self.tuning.small_filters:
            return MIDDLE, (middle, packed, EMPTY)
        return MIDDLE, (self._merged([middle, packed], snapshot.is_filter_alive), EMPTY, EMPTY)

    def _pack_frozen(self, snapshot: Snapshot) -> Packed:
        """Pack the frozen level into the base."""
        return 0, (self._merged(snapshot.levels[: FROZEN + 1], snapshot.is_filter_alive), EMPTY)

    def _pack_anew(self, snapshot: Snapshot) -> Packed | None:
        """Pack the base and the frozen level again if recent messages reach many more filters than estimated."""
        scalars, seen = snapshot.levels[0].scalars, self.sample.seen(self.encoder)
        if not isinstance(scalars, ScalarIndex) or seen.messages is None:
            return None
        reach = scalars.reach(seen.messages)
        is_far = reach > max(REPACK_REACH_FACTOR * scalars.expected, REPACK_MIN_REACH)
        return self._pack_frozen(snapshot) if is_far else None

    def _replace(self, old: tuple[Level, ...], first: int, packed: tuple[Level, ...]) -> None:
        """Publish packed levels in place of the old ones; drop them if a batch has packed the old ones meanwhile."""
        now, end = self.snapshot.levels, first + len(packed)
        if all(a is b for a, b in zip(now[first:end], old[first:end], strict=True)):
            base, frozen, middle, *young = (*now[:first], *packed, *now[end:])
            most = max(base.filters // BASE_TO_MIDDLE_RATIO, self.tuning.small_filters)
            if middle.filters > most and not frozen.filters:
                frozen, middle = middle, EMPTY
            self._publish(self.snapshot, (base, frozen, middle, *young))
        self._start_packing()  # levels may have been sealed meanwhile


def grown(old: Snapshot, subscribers: NDArray[np.int32], filters: int) -> Snapshot:
    """Return a draft with new subscriptions of `filters` filters each; arrays of `old` keep their entries."""
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
    """Return `array` with `values` from `start` on; None stands for 0, 1, 2, ... and is kept if it still fits."""
    stop = start + len(values)
    if array is None and np.array_equal(values, np.arange(start, stop)):
        return None
    array = _with_room(array, start, stop)
    array[start:stop] = values
    return array


def _with_entry(array: NDArray[Any] | None, at: int, value: int) -> NDArray[Any] | None:
    """Return `array` with one entry set; like `extended` with one value."""
    if array is None and value == at:
        return None
    array = _with_room(array, at, at + 1)
    array[at] = value
    return array


def _with_room(array: NDArray[Any] | None, used: int, needed: int) -> NDArray[Any]:
    """Return `array` if it is writable and has room for `needed` entries, else a larger copy of its first `used`."""
    if array is None:
        return np.arange(_capacity(needed), dtype=np.int32)
    if len(array) >= needed and array.flags.writeable:  # a memory-mapped array is read-only
        return array
    return np.concatenate([array[:used], np.empty(_capacity(needed) - used, array.dtype)])


def _mortal(snapshot: Snapshot) -> NDArray[np.int64]:
    """Return the version at which each subscription was removed (ALIVE: not removed)."""
    return np.full(_capacity(snapshot.rows), ALIVE) if snapshot.died is None else snapshot.died


def _capacity(length: int) -> int:
    return max(64, length + length // 2)
