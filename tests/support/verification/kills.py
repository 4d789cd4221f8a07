"""A server that is killed at random moments under load, and started again: `python -m verification.kills`.

Publishers, subscribers and consumers go on all the time; what got no answer is sent again. In the end every message has
one sequence number, sequence numbers have no gaps, and each consumer has the events that the answers promised: once and
in order if it resumes from its last id, at least once otherwise: over Server-Sent Events, a WebSocket and a webhook.
The store is SQLite, or with `--postgres` a PostgreSQL server that is killed too. Some rounds stop the server in good
order, which saves its tables, some remove the saved tables, and some kill it while it starts.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp

from postgres_server import PostgresServer
from served import Served
from verification.kill_load import (
    BULK,
    KeyGroup,
    StreamConsumer,
    World,
    publish_for_ever,
    subscribe_to_end,
)
from verification.kill_oracle import BUCKETS, Sent, delivery_faults, order_faults, sequence_faults, slice_faults
from verification.kill_receivers import SocketConsumer, WebhookConsumer
from webhook_receivers import receiving

PUBLISHERS = 4
SINGLE_KEYS = 4  # of each subscriber
RESUMING, BULK_SUBSCRIBER, GOING, SOCKET, HOOK = "resumes", "resumes-bulk", "goes", "socket", "hook"
HOOK_FLAGS = ("--webhooks-allow-private", "true", "--webhooks-retry-first", "0.01", "--webhooks-retry-most", "0.2")
LOAD_SECONDS = (0.05, 1.0)  # from a start to the next kill
END_SECONDS = 60.0  # until consumers have everything


class Run(NamedTuple):
    """What a run did, and what was wrong."""

    faults: list[str]
    messages: int
    events: int
    ends: Counter[str]
    requests_cut: int
    repeats: int


async def run_rounds(directory: Path, rounds: int, seed: int = 0, postgres: PostgresServer | None = None) -> Run:
    """Kill a server on a new state so many times; return what was wrong. With PostgreSQL, that is the store."""
    rng = random.Random(seed)
    flags = () if postgres is None else ("--store", postgres.new_database())
    server = Served(directory / "state", "--telemetry-log-level", "error", *HOOK_FLAGS, *flags)
    ends: Counter[str] = Counter()
    timeout = aiohttp.ClientTimeout(total=None)
    connector = aiohttp.TCPConnector(limit=0)
    async with (
        aiohttp.ClientSession(connector=connector, timeout=timeout, read_bufsize=1 << 22) as session,
        receiving() as receiver,
    ):
        world = World([server.url], session, random.Random(rng.random()))
        try:
            server.start()
            await asyncio.to_thread(server.wait_until_ready)
            hook = WebhookConsumer(world, HOOK, receiver)
            consumers: list[StreamConsumer | WebhookConsumer] = [
                *(
                    StreamConsumer(world, session, name, name != GOING, random.Random(rng.random()))
                    for name in (RESUMING, BULK_SUBSCRIBER, GOING)
                ),
                SocketConsumer(world, session, SOCKET, random.Random(rng.random())),
                hook,
            ]
            for consumer in consumers:
                await subscribe_to_end(world, consumer.name)
            await hook.register()
            groups = list(_groups(world, rng))
            taking = [asyncio.create_task(one.run()) for one in consumers]
            load = [
                asyncio.create_task(publish_for_ever(world, random.Random(rng.random()))) for _ in range(PUBLISHERS)
            ]
            load += [asyncio.create_task(group.run()) for group in groups]
            for _ in range(rounds):
                await asyncio.sleep(rng.uniform(*LOAD_SECONDS))
                await asyncio.to_thread(_end_and_start, server, rng, ends, postgres)
            await asyncio.sleep(rng.uniform(*LOAD_SECONDS))
            world.is_over = True
            await asyncio.wait_for(asyncio.gather(*load), END_SECONDS)
            await world.publish([Sent(-(10**9), 0, 0)])
            await asyncio.wait_for(asyncio.gather(*taking), END_SECONDS)
        finally:
            server.end()
    for group in groups:
        group.settle()
    faults = [*world.faults, *judged(world, consumers)]
    events = sum(len(connection.got) for one in consumers for connection in one.connections)
    return Run(faults, len(world.sequences), events, ends, world.killed_requests, world.repeats)


def _groups(world: World, rng: random.Random) -> Iterator[KeyGroup]:
    for name in (RESUMING, GOING, SOCKET, HOOK):
        for k in range(SINGLE_KEYS):
            yield KeyGroup(world, name, [f"{name}-{k}"], random.Random(rng.random()))
    keys = [f"{BULK}-{row}" for row in range(BUCKETS)]
    yield KeyGroup(world, BULK_SUBSCRIBER, keys, random.Random(rng.random()))


def _end_and_start(server: Served, rng: random.Random, ends: Counter[str], postgres: PostgresServer | None) -> None:
    """End a server somehow, and start it again."""
    if postgres is not None and rng.random() < 0.5:  # while the server runs, which then waits for it
        postgres.kill()
        time.sleep(rng.uniform(0.0, 0.5))
        postgres.start()
        ends["PostgreSQL killed"] += 1
    is_killed = rng.random() < 0.85
    server.end(signal.SIGKILL if is_killed else signal.SIGTERM)
    ends["killed" if is_killed else "stopped"] += 1
    tables = server.state / "tables"
    if rng.random() < 0.25:
        shutil.rmtree(tables, ignore_errors=True)
    ends["with saved tables" if any(tables.glob("*")) else "without saved tables"] += 1
    server.start()
    if rng.random() < 0.2:
        time.sleep(rng.uniform(0.0, 4.0))
        server.end()
        ends["killed while it started"] += 1
        server.start()
    server.wait_until_ready()


def judged(world: World, consumers: Sequence[StreamConsumer | WebhookConsumer]) -> Iterator[str]:
    """Say what was wrong."""
    yield from sequence_faults(world.sequences.values())
    log = {sequence: sent for sent, sequence in world.sequences.items()}
    for consumer in consumers:
        events = [event for connection in consumer.connections for event in connection.got]
        whole = events if consumer.resumes else sorted(set(events))
        yield from order_faults(consumer.name, whole)
        yield from delivery_faults(consumer.name, whole, world.leases[consumer.name], log)
        for connection in consumer.connections:
            yield from order_faults(consumer.name, connection.got)
            yield from slice_faults(consumer.name, connection.got, whole, connection.starts)


@contextmanager
def _database(is_wanted: bool) -> Iterator[PostgresServer | None]:
    if not is_wanted:
        yield None
        return
    server = PostgresServer()
    try:
        yield server
    finally:
        server.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m verification.kills", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="kills (default: 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--postgres", action="store_true", help="keep the state in PostgreSQL, and kill that too")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory, _database(options.postgres) as postgres:
        run = asyncio.run(run_rounds(Path(directory), options.rounds, options.seed, postgres))
    for fault in run.faults:
        print(fault)
    ends = ", ".join(f"{count} {how}" for how, count in sorted(run.ends.items()))
    print(f"{ends}; {run.requests_cut:,} requests cut off, {run.repeats:,} sent again")
    print(f"{run.messages:,} messages, {run.events:,} events; {len(run.faults)} faults")
    return 1 if run.faults else 0


if __name__ == "__main__":
    sys.exit(main())
