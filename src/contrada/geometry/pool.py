"""Thread pool: kernels release the GIL, so slices of one array run in parallel."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TypeVar

from contrada.errors import ArgumentError

T = TypeVar("T")
R = TypeVar("R")
MAX_THREADS = 1024
PREFIX = "contrada"  # of the names of threads
MIN_SLICE_ROWS = 4096  # below, a second thread does not pay off


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the pool of this process: threads do not survive a fork."""
    return ThreadPoolExecutor(max_workers=cores(), thread_name_prefix=PREFIX)


def check_threads(threads: object) -> None:
    """Raise an ArgumentError unless `threads` is None or a valid number of threads."""
    if threads is not None and (not isinstance(threads, int) or not 1 <= threads <= MAX_THREADS):
        raise ArgumentError(f"threads: need a whole number from 1 to {MAX_THREADS}, got {_short(threads)}")


def _short(value: object) -> str:
    return repr(value) if isinstance(value, int | float) and abs(value) < 1e300 else type(value).__name__


def map_threaded(work: Callable[[T], R], items: Sequence[T], threads: int | None) -> list[R]:
    """Return work(item) for every item, in order, computed on `threads` threads (None: all cores)."""
    check_threads(threads)
    count = min(threads or cores(), len(items))
    if count <= 1 or _is_pooled():
        return [work(item) for item in items]
    if count == cores():  # the threads of the pool keep their memory
        return list(_pool(os.getpid()).map(work, items))
    with ThreadPoolExecutor(max_workers=count, thread_name_prefix=PREFIX) as pool:
        return list(pool.map(work, items))


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
