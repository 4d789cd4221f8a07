"""A server that tracks objects is killed at random moments under load: what is told equals the model."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from contrada.client import AsyncClient
from effort import slow
from oracles.track_model import Fence, ModelFix, TrackModel
from served import ADMIN, Served, served

PUBLISHERS, OBJECTS, SIZE = 3, 40, 20


class Run:
    """Publishers with objects of their own, and a consumer, of a server that is killed now and then."""

    def __init__(self, server: Served, seed: int) -> None:
        self._server, self._random = server, Random(seed)
        self.model, self.wanted = TrackModel(), list[tuple[int, str, str, str]]()
        self._serial, self._is_over = 0, False

    def _fixes(self, publisher: int) -> list[dict]:
        """Return the next messages of a publisher; the model takes them too."""
        messages = []
        for _ in range(self._random.randrange(1, SIZE)):
            bus = f"b{publisher}-{self._random.randrange(OBJECTS)}"
            fix = ModelFix(bus, self._random.randrange(12), self._random.randrange(12))
            self._serial += 1
            self.wanted += [(self._serial, *event) for event in self.model.fix(fix)]
            message = fix.feature()
            message["properties"]["serial"] = self._serial
            messages.append(message)
        return messages

    async def publish(self, publisher: int) -> None:
        """Publish until the run is over; a request whose answer was lost is sent again."""
        async with AsyncClient(self._server.url, ADMIN, patience=60) as client:
            while not self._is_over:
                receipt = await client.publish(self._fixes(publisher))
                assert receipt.rejected == []

    async def kill(self, rounds: int) -> None:
        """Kill the server and start it again, so many times."""
        for _ in range(rounds):
            await asyncio.sleep(self._random.uniform(0.2, 1.5))
            await asyncio.to_thread(self._server.end)
            self._server.start()
            await asyncio.to_thread(self._server.wait_until_ready)
        await asyncio.sleep(0.3)
        self._is_over = True

    async def listen(self, found: list[tuple[int, str, str, str]], count: int | None = None) -> None:
        """Collect the events of the subscriber from the first on, until there are `count`, or for ever."""
        async with (
            AsyncClient(self._server.url, ADMIN, patience=60) as client,
            client.matches("ann", start=1) as stream,
        ):
            while count is None or len(found) < count:
                event = await anext(stream)
                found.append((event.message["properties"]["serial"], event.key, event.track.id, event.track.kind))


@pytest.mark.parametrize("rounds", [slow(5)])
def test_kills_change_nothing_that_is_told_of_objects(tmp_path, rounds):
    async def work(server: Served) -> None:
        run = Run(server, rounds)
        async with AsyncClient(server.url, ADMIN) as client:
            for number in range(10):
                fence = Fence(number, number % 4, 3, 5)
                run.model.put(f"f{number}", fence)
                await client.subscribe(f"f{number}", "ann", fence.filter, track="bus", on=["enter", "exit"])
            heard: list[tuple[int, str, str, str]] = []
            listening = asyncio.create_task(run.listen(heard))
            await asyncio.gather(run.kill(rounds), *(run.publish(publisher) for publisher in range(PUBLISHERS)))
            assert len(run.wanted) > 1_000
            stored: list[tuple[int, str, str, str]] = []
            await asyncio.wait_for(run.listen(stored, len(run.wanted)), 60)
            assert sorted(stored) == sorted(run.wanted)
            while len(heard) < len(stored):
                await asyncio.sleep(0.01)
            listening.cancel()
            assert heard == stored  # over all kills, each once and in order
            assert (await client.explain("f0", ModelFix("nobody", 0, 0).feature())).track["inside"] is False
        metrics = await asyncio.to_thread(_metrics, server)
        assert metrics["contrada_tracked_pairs"] == run.model.inside()

    with served(tmp_path / "state") as server:
        asyncio.run(work(server))


def _metrics(server: Served) -> dict[str, float]:
    import urllib.request

    with urllib.request.urlopen(f"{server.url}/metrics") as answer:
        lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}
