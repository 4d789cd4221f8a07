"""OpenStreams: who holds streams, sockets and long polls open, and why the server ends some of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from contrada.service.access.keys import Principal

LOOK_SECONDS = 1.0  # between looks for keys that have expired
STOPS, REVOKED, EXPIRED = "the server stops", "the key was revoked", "the key has expired"


class OpenStreams:
    """The tasks that serve connections which stay open, with the principals that opened them.

    A task is ended by its cancellation; `reason` then tells why, unless the client has gone.
    """

    def __init__(self, clock: Callable[[], float], look: float = LOOK_SECONDS) -> None:
        self._clock, self._seconds = clock, look
        self._holders: dict[asyncio.Task[None], Principal | None] = {}
        self._reasons: dict[asyncio.Task[None], str] = {}
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def held(self, principal: Principal | None) -> Iterator[asyncio.Task[None]]:
        """Count the running task in while a block runs; `principal` is None before the client has told its key."""
        task = asyncio.current_task()
        assert task is not None
        is_outer = task not in self._holders
        self._holders[task] = principal
        if principal is not None and principal.expires is not None and (self._looking is None or self._looking.done()):
            self._looking = asyncio.create_task(self._look())
        try:
            yield task
        finally:
            if is_outer:
                del self._holders[task]
                self._reasons.pop(task, None)

    def reason(self, task: asyncio.Task[None]) -> str | None:
        """Return why the server ended a task; None if it did not."""
        return self._reasons.get(task)

    def end_of_key(self, tenant: str, name: str) -> None:
        """End what was opened with a key, or with stream tokens that it made."""
        self._end(lambda one: one is not None and (one.tenant, one.name) == (tenant, name), REVOKED)

    async def end_all(self, seconds: float = 5.0) -> None:
        """End everything, within some seconds."""
        ended = self._end(lambda one: True, STOPS)
        if self._looking is not None:
            self._looking.cancel()
        if ended:
            await asyncio.wait(ended, timeout=seconds)

    def _end(self, is_meant: Callable[[Principal | None], bool], reason: str) -> list[asyncio.Task[None]]:
        ended = [task for task, holder in self._holders.items() if is_meant(holder) and task not in self._reasons]
        for task in ended:
            self._reasons[task] = reason
            task.cancel()
        return ended

    async def _look(self) -> None:
        """End what was opened with keys that have expired; ends with the last stream of a key that expires."""
        while any(one is not None and one.expires is not None for one in self._holders.values()):
            await asyncio.sleep(self._seconds)
            now = self._clock()
            self._end(lambda one: one is not None and one.expires is not None and one.expires <= now, EXPIRED)  # noqa: B023
