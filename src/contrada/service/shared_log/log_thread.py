"""LogThread: an event loop in a thread of its own, and a thread beside it that may block."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from contrada.cancelling import end_tasks

CLOSING_SECONDS = 0.02  # in which sockets that were closed end

T = TypeVar("T")


class ThreadEndedError(Exception):
    """The loop of a thread does not run, or ended before the work did."""


class LogThread:
    """Runs coroutines for callers of other threads, and functions that block for coroutines."""

    def __init__(self, name: str) -> None:
        self._loop: asyncio.AbstractEventLoop
        self._running = threading.Thread(target=lambda: self._loop.run_forever(), name=name, daemon=True)
        self._blocking = threading.Thread(target=self._block, name=f"{name}, blocking", daemon=True)
        self._work: queue.SimpleQueue[tuple[Callable[[], None], asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()  # so that nothing is given to a loop that ends
        self._is_open = False

    def start(self) -> None:
        """Start both threads."""
        self._loop = asyncio.new_event_loop()
        self._is_open = True
        self._running.start()
        self._blocking.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, and return its result; ThreadEndedError if the loop ends before."""
        with self._lock:
            if not self._is_open:
                work.close()
                raise ThreadEndedError
            running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result()
        except CancelledError:
            raise ThreadEndedError from None

    def post(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function on the loop soon; do nothing if the loop has ended."""
        with self._lock:
            if self._is_open:
                self._loop.call_soon_threadsafe(function, *arguments)

    async def block(self, function: Callable[[], None]) -> None:
        """Call a function that raises nothing on the other thread, one at a time, and wait for its end."""
        ended: asyncio.Future[None] = self._loop.create_future()
        self._work.put((function, ended))
        await ended

    def _block(self) -> None:
        while (work := self._work.get()) is not None:
            function, ended = work
            function()
            self.post(_settle, ended)

    def stop(self, ending: Coroutine[Any, Any, None], seconds: float) -> None:
        """Run a last coroutine, cancel what still runs, and end both threads; a second call does nothing.

        A function that blocks is waited for, for as many seconds at most.
        """
        with self._lock:
            if not self._is_open:
                ending.close()
                return
            self._is_open = False
            ended = asyncio.run_coroutine_threadsafe(self._end(ending), self._loop)
        ended.result()
        self._work.put(None)
        if self._blocking is not threading.current_thread():
            self._blocking.join(seconds)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._running.join()
        self._loop.close()

    async def _end(self, ending: Coroutine[Any, Any, None]) -> None:
        await ending
        await end_tasks(*(task for task in asyncio.all_tasks() if task is not asyncio.current_task()))
        await self._loop.shutdown_asyncgens()
        await asyncio.sleep(CLOSING_SECONDS)


def _settle(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)
