"""A publish across links: four servers in a chain, published at one end and received at the other.

The same messages go through one server alone, by turns. Every event is compared with plain matching of points with
boxes.
"""

import json
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import uvloop

from benchmarks.broker.clients import Consumer, PublisherPool, Tally, close, connect, post
from benchmarks.broker.process import KEY, SERVE, ServerProcess
from benchmarks.broker.work import owner_name
from contrada.collecting import collections_paused

GEOJSON, LINES = "application/geo+json", "application/x-ndjson"
SIDE = 32  # boxes along one side of the square; each message is in one of them
RATE = 40.0  # messages per second
LINK_VARIABLES = {"CONTRADA_LINKS_KEYS": KEY}
SETTLE_SECONDS = 60.0


class Latencies(NamedTuple):
    """Seconds from a request that is due to its event; how many events came, and how many are wrong."""

    seconds: list[float]
    compared: int
    different: int


class Chain:
    """Servers of which each calls the one before it; subscriptions are at the last one."""

    def __init__(self, folder: Path, length: int, opened: ExitStack) -> None:
        self.servers: list[ServerProcess] = []
        for number in range(length):
            flags = ["--name", f"b{number}"]
            if number:
                flags += ["--link", f"ws://127.0.0.1:{self.servers[-1].port}"]
            server = ServerProcess(folder / f"chain-{length}-{number}", SERVE, *flags, variables=LINK_VARIABLES)
            self.servers.append(opened.enter_context(server))
        rows = [_subscription(number) for number in range(SIDE * SIDE)]
        self.servers[-1].ask("POST", "/subscriptions", "\n".join(rows).encode(), LINES)
        self._settle()

    def _settle(self) -> None:
        """Wait until all links are up and subscriptions have arrived."""
        end = time.perf_counter() + SETTLE_SECONDS
        while time.perf_counter() < end:
            links = [
                link
                for server in self.servers
                for tenant in server.ask("GET", "/network")["tenants"]
                for link in tenant["links"]
            ]
            is_quiet = all(link["phase"] == "up" and not link["unacknowledged"] for link in links)
            if is_quiet and len(links) == 2 * (len(self.servers) - 1):
                return
            time.sleep(0.1)
        raise SystemExit("the links do not settle")

    def publish(self, first: int, count: int, rate: float = RATE) -> Latencies:
        """Publish at the first server, and receive at the last one."""
        return uvloop.run(self._publish(first, count, rate))

    async def _publish(self, first: int, count: int, rate: float) -> Latencies:
        tally, draw = Tally(), random.Random(first)
        (consumer,) = consumers = await connect(self.servers[-1].port, Consumer, 1, tally)
        places = [(draw.uniform(0, SIDE), draw.uniform(0, SIDE)) for _ in range(count)]
        requests = [post(_message(first + k, *place), GEOJSON) for k, place in enumerate(places)]
        expected = {(first + k, int(y) * SIDE + int(x)) for k, (x, y) in enumerate(places)}
        async with PublisherPool.connected(self.servers[0].port, 8) as pool:
            with collections_paused():
                sent = await pool.send(requests, rate)
                await tally.reached(count)
        close(consumers)
        arrivals = list(consumer.take())
        got = [one.event for one in arrivals]
        wrong = len(expected ^ set(got)) + len(got) - len(set(got))
        return Latencies([one.at - sent.at[one.event[0] - first] for one in arrivals], len(got), wrong)


def _subscription(number: int) -> str:
    """Return a subscription to the messages in one box."""
    x, y = number % SIDE, number // SIDE
    area = f"S_INTERSECTS(geometry, POLYGON(({x} {y}, {x + 1} {y}, {x + 1} {y + 1}, {x} {y + 1}, {x} {y})))"
    return json.dumps({"key": f"s{number}", "subscriber": owner_name(0), "filter": area})


def _message(number: int, x: float, y: float) -> bytes:
    geometry = {"type": "Point", "coordinates": [x, y]}
    return json.dumps({"type": "Feature", "properties": {"n": number}, "geometry": geometry}).encode()


def measured(folder: Path, lengths: tuple[int, ...], turns: int, count: int) -> Iterator[tuple[int, Latencies]]:
    """Yield the latencies of chains of several lengths, by turns; the first turn, which warms all up, is left out."""
    with ExitStack() as opened:
        chains = {length: Chain(folder, length, opened) for length in lengths}
        first = 0
        for turn in range(turns + 1):
            for length, chain in chains.items():
                found = chain.publish(first, count)
                first += count
                if turn:
                    yield length, found
