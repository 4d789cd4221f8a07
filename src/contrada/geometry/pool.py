"""Our thread pool: kernels release the GIL, so slices of one array run side by side."""

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
MOST_THREADS = 1024
SLICE = 4096  # rows below which a second thread does not pay


def cores() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """One pool per process: threads do not survive a fork."""
    return ThreadPoolExecutor(max_workers=cores(), thread_name_prefix="contrada")


def check_threads(threads: object) -> None:
    """Raise an ArgumentError unless a number of threads is one."""
    if threads is not None and (not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS):
        raise ArgumentError(f"threads is a whole number, at least 1 and at most {MOST_THREADS}, not {_short(threads)}")


def _short(value: object) -> str:
    return repr(value) if isinstance(value, int | float) and abs(value) < 1e300 else type(value).__name__


def map_threaded(work: Callable[[T], R], items: Sequence[T], threads: int | None) -> list[R]:
    """work(item) for every item, in order, on so many threads (None: all cores)."""
    check_threads(threads)
    count = min(threads or cores(), len(items))
    if count <= 1 or threading.current_thread().name.startswith("contrada"):
        return [work(item) for item in items]
    return _map(work, items, count=count)


def _map(work: Callable[..., R], *arguments: Sequence[Any], count: int) -> list[R]:
    """work for every item on so many threads: on all cores those of the pool, which keep their memory at hand."""
    if count == cores():
        return list(_pool(os.getpid()).map(work, *arguments))
    with ThreadPoolExecutor(max_workers=count, thread_name_prefix="contrada") as pool:
        return list(pool.map(work, *arguments))


def run_sliced(work: Callable[[int, int], object], rows: int, threads: int | None) -> None:
    """Call work(start, stop) on slices that make up 0..rows, on so many threads (None: as many as pay)."""
    check_threads(threads)
    count = min(threads or cores(), max(1, rows // SLICE))
    # A thread of the pool that waited for the pool could wait for ever.
    if count == 1 or threading.current_thread().name.startswith("contrada"):
        work(0, rows)
        return
    # More slices than threads, so that one slow slice does not leave the other threads idle.
    slices = min(count * 4, max(1, rows // SLICE))
    limits = [rows * k // slices for k in range(slices + 1)]
    _map(work, limits[:-1], limits[1:], count=count)
