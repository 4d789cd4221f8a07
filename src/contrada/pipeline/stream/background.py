"""Run a function in a thread beside the batches of a stream."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """A function that runs in a background thread; `result` waits for its result or error.

    >>> work = Background(lambda: 7)
    >>> work.result()
    7
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(function,), daemon=True)
        self._thread.start()

    def _run(self, function: Callable[[], T]) -> None:
        try:
            self._result = function()
        except Exception as error:  # any error is raised again by `result`
            self.error = error

    @property
    def is_running(self) -> bool:
        """Return True until the function is done."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Wait until the function is done."""
        self._thread.join()

    def result(self) -> T:
        """Wait, then return the function's result or raise its error."""
        self.wait()
        if self.error is not None:
            raise self.error
        return self._result
