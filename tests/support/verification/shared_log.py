"""Servers that share a log are killed under load, and its engine too: `python -m verification.shared_log`.

Publishers, subscribers and consumers ask any of the servers, go on at another when one dies, and send again what got no
answer. Servers are killed and come back in their directories, are replaced by new ones with empty directories, and
leave in good order; the engine is killed and starts again. In the end every message has one sequence number, sequence
numbers have no gaps, each consumer has the events that the answers promised, in order, whichever servers it read from,
every server has the same events with the same ids, and the stores of all servers are equal.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import random
import secrets
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp

import engine_servers
from verification.kill_load import PAUSE, KeyGroup, StreamConsumer, World, publish_for_ever, subscribe_to_end
from verification.kill_oracle import Got, Sent
from verification.kill_receivers import SocketConsumer, WebhookConsumer, got_of
from verification.kills import END_SECONDS, HOOK_FLAGS, Run, judged
from verification.shared_fleet import KillableEngine, SharedFleet, store_faults
from webhook_receivers import receiving

SERVERS, PUBLISHERS, KEYS = 3, 2, 2  # keys of each subscriber
STREAM, GOING, SOCKET, POLL, HOOK = "stream", "goes", "socket", "poll", "hook"
LOAD_SECONDS = (0.3, 1.5)  # between faults
POLLS = 20  # that a consumer asks of one server


class PollConsumer(StreamConsumer):
    """Receives the events of a subscriber by long polls, some from one server and some from another."""

    def __init__(self, world: World, session: aiohttp.ClientSession, name: str, rng: random.Random) -> None:
        super().__init__(world, session, name, True, rng)
        self._servers = world

    async def receive(self, got: list[Got]) -> bool:
        """Poll one server some times; return True at the end of all."""
        before = [one.got[-1] for one in self.connections if one.got]
        place = f"after={before[-1].sequence}.{before[-1].number}" if before else "from=1"
        at = self._servers.url
        for _ in range(POLLS):
            path = f"/subscribers/{self.name}/events?wait=1&limit=50&{place}"
            status, page = await self._servers.ask("GET", path, at=at)
            if status != 200:
                self._servers.faults.append(f"{self.name}: {status} {page}")
                return False
            got += map(got_of, page["events"])
            place = f"after={page['next']}" if page["next"] else place
            if got and got[-1].key == f"end-{self.name}":
                return True
        return False


@asynccontextmanager
async def clients(fleet: SharedFleet, rng: random.Random) -> AsyncIterator[tuple[World, aiohttp.ClientSession]]:
    """Give the clients of a fleet what they share."""
    timeout, connector = aiohttp.ClientTimeout(total=None), aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, read_bufsize=1 << 22) as session:
        yield World(fleet.urls, session, rng, is_shared=True), session


async def run_shared(directory: Path, engine: KillableEngine, log: str, rounds: int, seed: int = 0) -> Run:
    """Let so many faults happen to new servers on a new log; return what was wrong."""
    rng = random.Random(seed)
    fleet = SharedFleet(directory, engine, log, random.Random(rng.random()), *HOOK_FLAGS)
    async with clients(fleet, random.Random(rng.random())) as (world, session), receiving() as receiver:
        try:
            await asyncio.to_thread(fleet.start, SERVERS)
            hook = WebhookConsumer(world, HOOK, receiver)
            consumers: list[StreamConsumer | WebhookConsumer] = [
                StreamConsumer(world, session, STREAM, True, random.Random(rng.random())),
                StreamConsumer(world, session, GOING, False, random.Random(rng.random())),
                SocketConsumer(world, session, SOCKET, random.Random(rng.random())),
                PollConsumer(world, session, POLL, random.Random(rng.random())),
                hook,
            ]
            for consumer in consumers:
                await subscribe_to_end(world, consumer.name)
            await hook.register()
            groups = [
                KeyGroup(world, one.name, [f"{one.name}-{k}"], random.Random(rng.random()))
                for one in consumers
                for k in range(KEYS)
            ]
            taking = [asyncio.create_task(one.run()) for one in consumers]
            publishing = (publish_for_ever(world, random.Random(rng.random())) for _ in range(PUBLISHERS))
            load = [asyncio.create_task(work) for work in (*publishing, *(group.run() for group in groups))]
            for number in range(rounds):
                await asyncio.sleep(rng.uniform(*LOAD_SECONDS))
                faults = fleet.faults
                fault = faults[number] if number < len(faults) else rng.choice(faults)
                await asyncio.to_thread(fault)
            await asyncio.sleep(rng.uniform(*LOAD_SECONDS))
            world.is_over = True
            await asyncio.wait_for(asyncio.gather(*load), END_SECONDS)
            await world.publish([Sent(-(10**9), 0, 0)])
            await asyncio.wait_for(asyncio.gather(*taking), END_SECONDS)
            for group in groups:
                group.settle()
            faults_found = [*world.faults, *judged(world, consumers), *await differences(world, fleet, consumers)]
            await asyncio.to_thread(fleet.stop)
        finally:
            await asyncio.to_thread(fleet.end)
    faults_found += store_faults(fleet.servers)
    events = sum(len(connection.got) for one in consumers for connection in one.connections)
    return Run(faults_found, len(world.sequences), events, fleet.done, world.killed_requests, world.repeats)


async def differences(
    world: World, fleet: SharedFleet, consumers: Sequence[StreamConsumer | WebhookConsumer]
) -> list[str]:
    """Say which server has other events of a consumer than it got, once the server has the last one."""
    faults = []
    for consumer in consumers:
        got = sorted({event for connection in consumer.connections for event in connection.got})
        for url in fleet.urls:
            kept = await all_events(world, url, consumer.name)
            while not kept or kept[-1].key != f"end-{consumer.name}":
                await asyncio.sleep(PAUSE)
                kept = await all_events(world, url, consumer.name)
            if kept != got:
                differing = sorted(set(kept) ^ set(got))[:4]
                faults.append(f"{consumer.name}: {url} has {len(kept)} events, {len(got)} came: {differing}")
    return faults


async def all_events(world: World, url: str, subscriber: str) -> list[Got]:
    """Return what a server has for a subscriber from the first message on."""
    found: list[Got] = []
    place = "from=1"
    while True:
        path = f"/subscribers/{subscriber}/events?wait=0&limit=1000&{place}"
        status, page = await world.ask("GET", path, at=url)
        assert status == 200, (status, page)
        if not page["events"]:
            return found
        found += map(got_of, page["events"])
        place = f"after={page['next']}"


@contextmanager
def running_engine(name: str, place: Path) -> Iterator[tuple[KillableEngine, str]]:
    """Run an engine; yield it with the URL of a new log."""
    log = f"kills-{secrets.token_hex(4)}"
    engine: KillableEngine
    if name == "nats":
        nats = engine = engine_servers.nats_server(place)
        url = f"nats://127.0.0.1:{nats.port}/{log}"
    else:
        sys.path.append(str(Path(__file__).parents[2] / "pipeline"))
        kafka_broker = importlib.import_module("kafka_broker")
        kafka = engine = kafka_broker.Broker(kafka_broker.broker_jars(), place, partitions=1)
        url = f"kafka://{kafka.address}/{log}"
    engine.start()
    try:
        yield engine, url
    finally:
        engine.kill()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m verification.shared_log", description=__doc__)
    parser.add_argument("--engine", choices=("nats", "kafka"), default="nats")
    parser.add_argument("--rounds", type=int, default=20, help="faults (default: 20)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "engine"
        place.mkdir()
        with running_engine(options.engine, place) as (engine, log):
            run = asyncio.run(run_shared(Path(folder), engine, log, options.rounds, options.seed))
    for fault in run.faults:
        print(fault)
    print(", ".join(f"{count} {how}" for how, count in sorted(run.ends.items())))
    print(f"{run.requests_cut:,} requests cut off, {run.repeats:,} sent again")
    print(f"{run.messages:,} messages, {run.events:,} events; {len(run.faults)} faults")
    return 1 if run.faults else 0


if __name__ == "__main__":
    sys.exit(main())
