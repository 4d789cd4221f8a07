"""Thread pool: kernels release the GIL, so slices of one array run in parallel."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from contrada.errors import ArgumentError

T = TypeVar("T")
R = TypeVar("R")
MAX_THREADS = 1024
MIN_SLICE_ROWS = 4096  # below, a second thread does not pay off


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the pool of this process: threads do not survive a fork."""
    return ThreadPoolExecutor(max_workers=cores(), thread_name_prefix="contrada")


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
    if count <= 1 or threading.current_thread().name.startswith("contrada"):
        return [work(item) for item in items]
    return _map(work, items, count=count)


def _map(work: Callable[..., R], *arguments: Sequence[Any], count: int) -> list[R]:
    """Run `work` for every item on `count` threads; for all cores it uses the pool, whose threads keep their memory."""
    if count == cores():
        return list(_pool(os.getpid()).map(work, *arguments))
    with ThreadPoolExecutor(max_workers=count, thread_name_prefix="contrada") as pool:
        return list(pool.map(work, *arguments))


def run_sliced(work: Callable[[int, int], object], rows: int, threads: int | None) -> None:
    """Call work(start, stop) on slices that make up 0..rows, on `threads` threads (None: as many as pay off)."""
    check_threads(threads)
    count = min(threads or cores(), max(1, rows // MIN_SLICE_ROWS))
    # A pool thread that waits for the pool could wait forever.
    if count == 1 or threading.current_thread().name.startswith("contrada"):
        work(0, rows)
        return
    # More slices than threads, so that one slow slice does not leave the other threads idle.
    slices = min(count * 4, max(1, rows // MIN_SLICE_ROWS))
    limits = [rows * k // slices for k in range(slices + 1)]
    _map(work, limits[:-1], limits[1:], count=count)
