"""End tasks of an event loop, also those that run libraries which swallow a cancellation."""

from __future__ import annotations

import asyncio
from typing import Any

AGAIN_SECONDS = 5.0  # until a task that goes on is cancelled again; what it still has to close takes less


async def end_tasks(*tasks: asyncio.Future[Any], again: float = AGAIN_SECONDS) -> None:
    """Cancel tasks until all have ended; what they raise is dropped.

    Once is not enough: `asyncio.wait_for` of Python 3.11 and the client of NATS swallow a cancellation at times, and
    the task goes on. A server that waited for such a task never stopped.

    >>> async def work():
    ...     task = asyncio.create_task(asyncio.sleep(60))
    ...     await end_tasks(task)
    ...     return task.cancelled()
    >>> asyncio.run(work())
    True
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=again)
    await asyncio.gather(*tasks, return_exceptions=True)  # marks errors as seen
