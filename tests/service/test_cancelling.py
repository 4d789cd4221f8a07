"""A task that swallows a cancellation, as libraries do at times, ends all the same."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from contrada.cancelling import end_tasks
from contrada.service.sources.sources import TopicSources
from contrada.service.table_settings import SourceTable
from serving import run, site


async def swallow(times):
    """Sleep, and go on as often as it is cancelled less than this many times."""
    for _ in range(times):
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


async def fail():
    raise ValueError("before it was cancelled")


@pytest.mark.parametrize("times", [1, 2, 5])
def test_tasks_end(times):
    async def work():
        tasks = [asyncio.create_task(swallow(times)), asyncio.create_task(fail())]
        await asyncio.sleep(0)
        async with asyncio.timeout(30):
            await end_tasks(*tasks, again=0.01)
        assert all(task.done() for task in tasks)

    run(work())


class Swallowing:
    """A client whose first attempt to connect is not cancelled but fails."""

    def __init__(self):
        self.begun = asyncio.Event()

    async def open(self, places):
        if not self.begun.is_set():
            self.begun.set()
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
        raise OSError("not reached")

    async def read(self):
        return []

    def moved(self):
        return {}

    async def commit(self, records):
        pass

    async def close(self):
        pass


def test_a_source_whose_library_swallows_a_cancellation_stops(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            client = Swallowing()
            table = SourceTable(name="in", url="nats://127.0.0.1:1/t", tenant="t")
            sources = TopicSources(here.server.context.service, [table], open_client=lambda table: client)
            sources.start()
            async with asyncio.timeout(30):
                await client.begun.wait()
                await sources.stop()

    run(work())
