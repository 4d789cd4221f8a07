"""DutyKeeper: asks for a duty again and again, and tells when this server gets or loses it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic

from contrada.cancelling import end_tasks
from contrada.errors import ContradaError
from contrada.service.shared_log.duties import CLAIM_LASTS
from contrada.service.shared_log.following import Following

ASK_SECONDS = CLAIM_LASTS / 4_000  # so that a claim that fails can be made again before another server takes over
SURE_SECONDS = CLAIM_LASTS * 0.8 / 1_000  # that a duty is ours after we asked for it, with room for clocks

log = logging.getLogger("contrada.service")


class DutyKeeper:
    """Holds a duty if no other server does. `changed` is awaited with True when it is ours, with False when it is not.

    A server that cannot reach the log gives the duty up before another one can have it.
    """

    def __init__(
        self,
        following: Following,
        duty: str,
        changed: Callable[[bool], Awaitable[None]],
        *,
        every: float = ASK_SECONDS,
        sure: float = SURE_SECONDS,
    ) -> None:
        self._following, self._duty, self._changed = following, duty, changed
        self._every, self._sure = every, sure
        self._task: asyncio.Task[None] | None = None
        self.is_ours = False
        self._fault: str | None = None

    def start(self) -> None:
        """Begin to ask."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Give the duty back, so that another server need not wait."""
        if self._task is None:
            return
        await end_tasks(self._task)
        if self.is_ours:
            await self._set(False)
            with suppress(ContradaError, TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._following.claim(self._duty, 0)

    async def _run(self) -> None:
        end = 0.0
        while True:
            asked = monotonic()
            with suppress(ContradaError, TimeoutError):
                async with asyncio.timeout(self._every):
                    holder = await self._following.claim(self._duty)
                    is_ours = holder is not None and holder.origin == self._following.origin
                    end = asked + self._sure if is_ours else 0.0
            self._tell_fault()
            await self._set(monotonic() < end)
            await asyncio.sleep(self._every)

    def _tell_fault(self) -> None:
        """Log it when the log is lost or there again."""
        fault = self._following.fault
        if (fault is None) != (self._fault is None):
            log.warning("the shared log is %s", "there again" if fault is None else f"lost: {fault}")
        self._fault = fault

    async def _set(self, is_ours: bool) -> None:
        if is_ours != self.is_ours:
            self.is_ours = is_ours
            log.info("this server %s: %s", "takes over" if is_ours else "leaves to others", self._duty)
            await self._changed(is_ours)
