"""Thread pool: kernels release the GIL, so slices of one array run in parallel."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TypeVar

import numpy as np

from contrada.errors import ArgumentError

T = TypeVar("T")
R = TypeVar("R")
MAX_THREADS = 1024
PREFIX = "contrada"  # of the names of threads
MIN_SLICE_ROWS = 4096  # below, a second thread does not pay off
# Memory that a thread of the pool keeps, and the blocks it is taken in: the C library maps larger ones apart.
KEPT_BYTES, BLOCK_BYTES = 1 << 24, 100_000
_kept = threading.local()


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the pool of this process: threads do not survive a fork. The caller is one more thread."""
    return ThreadPoolExecutor(max(1, cores() - 1), PREFIX, initializer=_keep_memory)


def _keep_memory() -> None:
    """Let the C library keep KEPT_BYTES for this thread: glibc returns memory at the end of a thread's heap.

    Without it, the pool's thread returned and got again 4 MB of pages, a tenth of its time, for each batch of 25,000
    messages. The last block stays in use, so the freed blocks before it are not at the end of the heap. Pages that the
    thread never uses take no memory. With other C libraries this does nothing.
    """
    blocks = [np.empty(BLOCK_BYTES, np.uint8) for _ in range(KEPT_BYTES // BLOCK_BYTES)]
    _kept.end = np.empty(BLOCK_BYTES, np.uint8)
    del blocks


def check_threads(threads: object) -> None:
    """Raise an ArgumentError unless `threads` is None or a valid number of threads."""
    if threads is not None and (not isinstance(threads, int) or not 1 <= threads <= MAX_THREADS):
        raise ArgumentError(f"threads: need a whole number from 1 to {MAX_THREADS}, got {_short(threads)}")


def _short(value: object) -> str:
    return repr(value) if isinstance(value, int | float) and abs(value) < 1e300 else type(value).__name__


def map_threaded(work: Callable[[T], R], items: Sequence[T], threads: int | None) -> list[R]:
    """Return work(item) for every item, in order, computed on `threads` threads (None: all cores).

    The calling thread is one of them: it is awake, and its caches are warm.
    """
    check_threads(threads)
    count = min(threads or cores(), len(items))
    if count <= 1 or _is_pooled():
        return [work(item) for item in items]
    if count == cores():  # the threads of the pool keep their memory
        return _shared(work, items, _pool(os.getpid()))
    with ThreadPoolExecutor(max_workers=count - 1, thread_name_prefix=PREFIX) as pool:
        return _shared(work, items, pool)


def _shared(work: Callable[[T], R], items: Sequence[T], pool: ThreadPoolExecutor) -> list[R]:
    """Return work(item) for every item: the pool begins with the first one, this thread with the last one."""
    begun = [pool.submit(work, item) for item in items[:-1]]
    try:
        own = {len(begun): work(items[-1])}
        for place in reversed(range(len(begun))):
            if begun[place].cancel():  # no thread of the pool has come to it
                own[place] = work(items[place])
        return [own[place] if place in own else begun[place].result() for place in range(len(items))]
    finally:
        for future in begun:
            future.cancel()


def _is_pooled() -> bool:
    """Return True in a thread of a pool: if it waited for the pool, it could wait forever."""
    return threading.current_thread().name.startswith(PREFIX)


def run_sliced(work: Callable[[int, int], object], rows: int, threads: int | None) -> None:
    """Call work(start, stop) on slices that make up 0..rows, on `threads` threads (None: as many as pay off)."""
    check_threads(threads)
    most = max(1, rows // MIN_SLICE_ROWS)
    count = min(threads or cores(), most)
    if count == 1 or _is_pooled():
        work(0, rows)
        return
    # More slices than threads, so that one slow slice does not leave the other threads idle.
    slices = min(count * 4, most)
    limits = [rows * k // slices for k in range(slices + 1)]
    map_threaded(lambda span: work(*span), list(pairwise(limits)), count)
