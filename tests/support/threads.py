"""Work that other threads repeat beside a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event


@contextmanager
def repeating(work: Callable[[], object], threads: int = 3) -> Iterator[None]:
    """Call `work` again and again in other threads while the block runs; what fails there fails here."""
    stop = Event()

    def loop() -> None:
        while not stop.is_set():
            work()

    with ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(loop) for _ in range(threads)]
        try:
            yield
        finally:
            stop.set()
    for one in running:
        one.result()
