"""Work that goes on beside the batches of a stream, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """A function that runs in the background; what it returned or raised is there when it is done.

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
        except Exception as error:  # whatever it is: who asks for the result is told
            self.error = error

    @property
    def is_running(self) -> bool:
        """True until it is done."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Wait until it is done."""
        self._thread.join()

    def result(self) -> T:
        """What it returned, as soon as it is done; what it raised is raised."""
        self.wait()
        if self.error is not None:
            raise self.error
        return self._result
