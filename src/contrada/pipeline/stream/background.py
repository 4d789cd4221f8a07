"""Run a function in a thread beside the batches of a stream."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_background(function: Callable[[], T]) -> Future[T]:
    """Run a function in a daemon thread, which the end of the process does not wait for.

    >>> in_background(lambda: 7).result()
    7
    """
    future = Future[T]()

    def run() -> None:
        try:
            future.set_result(function())
        except Exception as error:  # any error is raised again by `result`
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
