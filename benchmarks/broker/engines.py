"""Servers on one shared log in JetStream and Kafka, by turns with plain durable publishing to the same engine.

Publishers post to all servers, and each server has a share of the consumers. Every event is compared with what
Shapely's STRtree expects, and the events of three servers with those of two for the same messages.
"""

import asyncio
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from typing import NamedTuple

import numpy as np
import uvloop

from benchmarks.broker.clients import Arrival, Consumer, PublisherPool, Sent, Tally, close, connect, post
from benchmarks.broker.peers import BATCH
from benchmarks.broker.process import SERVE, ServerProcess
from benchmarks.broker.raw_logs import RawKafka, RawLog, RawNats
from benchmarks.broker.runs import CONNECTIONS, GEOJSON, LINES, Bench
from benchmarks.broker.work import Event, Messages, difference
from benchmarks.report import Row
from benchmarks.timing import say
from contrada.collecting import collections_paused

TITLE = "Servers on one log in {}: polygons in newline JSON x " + str(BATCH)
AGAINST_RAW = 0.5  # times the rate of plain publishing, at least
TURNS, MESSAGES, LATENCY_MESSAGES = 3, 30_000, 1_000
LOW_RATE = 50.0  # messages per second, where latency is measured


class SharedLoad(NamedTuple):
    """What a run found: messages per second, µs of all servers per message, the events, how many are wrong."""

    rate: float
    cpu: float
    events: list[Event]
    different: int


class LogServers:
    """Servers on one log; consumers are spread over them, and so are publishers."""

    def __init__(self, bench: Bench, engine: RawLog, opened: ExitStack) -> None:
        self._bench, self._engine, self._opened = bench, engine, opened
        self.servers: list[ServerProcess] = []

    def add(self) -> None:
        """Start a server; it is ready when it has applied the log."""
        state = self._bench.state.parent / f"{self._engine.name}-{len(self.servers)}"
        server = ServerProcess(state, SERVE, "--log", f"{self._engine.url}/benchmark")
        self.servers.append(self._opened.enter_context(server))

    async def _consumers(self, tally: Tally) -> list[Consumer]:
        owners, count = self._bench.workload.owners, len(self.servers)
        made = [
            await connect(server.port, Consumer, range(place, owners, count), tally)
            for place, server in enumerate(self.servers)
        ]
        return [consumer for part in made for consumer in part]

    async def _sent(self, requests: Sequence[bytes], answer: bytes, rate: float | None) -> list[Sent]:
        """Send each server its share of requests, at the same time."""
        async with AsyncExitStack() as opened:
            count = len(self.servers)
            pools = [
                await opened.enter_async_context(PublisherPool.connected(server.port, CONNECTIONS // count, answer))
                for server in self.servers
            ]
            parts = [requests[place::count] for place in range(count)]
            each = None if rate is None else rate / count
            with collections_paused():
                return await asyncio.gather(*(pool.send(part, each) for pool, part in zip(pools, parts, strict=True)))

    def _cpu(self) -> float:
        return sum(server.cpu() for server in self.servers)

    async def load(self, messages: Messages) -> SharedLoad:
        """Publish messages in batches as quickly as they are answered, while all owners listen."""
        tally, count = Tally(), len(messages.bodies)
        consumers = await self._consumers(tally)
        requests = [post(body, LINES) for body in messages.batches(BATCH)]
        cpu, start = self._cpu(), time.perf_counter()
        await self._sent(requests, b'"duplicates":[],"rejected":[]', None)
        seconds = time.perf_counter() - start
        await tally.reached(len(messages.expected))
        cpu = self._cpu() - cpu
        close(consumers)
        events = [one.event for consumer in consumers for one in consumer.take()]
        return SharedLoad(count / seconds, 1e6 * cpu / count, events, sum(difference(messages.expected, events)))

    async def latencies(self, messages: Messages) -> tuple[list[float], int]:
        """Publish single messages at LOW_RATE; return the seconds until each event came, and how many are wrong."""
        tally, count = Tally(), len(self.servers)
        consumers = await self._consumers(tally)
        sent = await self._sent([post(body, GEOJSON) for body in messages.bodies], b'{"sequence":', LOW_RATE)
        await tally.reached(len(messages.expected))
        close(consumers)
        arrivals: list[Arrival] = [one for consumer in consumers for one in consumer.take()]
        rows = [one.event[0] - messages.first for one in arrivals]
        late = [one.at - sent[row % count].at[row // count] for one, row in zip(arrivals, rows, strict=True)]
        return late, sum(difference(messages.expected, [one.event for one in arrivals]))


def jetstream(bench: Bench) -> Iterator[Row]:
    """Measure servers on a log in JetStream."""
    return _measured(bench, RawNats)


def kafka(bench: Bench) -> Iterator[Row]:
    """Measure servers on a log in Kafka."""
    return _measured(bench, RawKafka)


def _measured(bench: Bench, kind: type[RawLog]) -> Iterator[Row]:
    bench.stop()
    with bench.report.skipping(), ExitStack() as opened:
        engine = opened.enter_context(kind.running(bench.state.parent / kind.name))
        yield from _by_turns(bench, engine, LogServers(bench, engine, opened))


def _by_turns(bench: Bench, engine: RawLog, servers: LogServers) -> Iterator[Row]:
    """Measure two servers on one log by turns with plain publishing, then three with the same messages."""
    quick, polygons, title = bench.report.quick, bench.workload.polygons, TITLE.format(engine.name)
    servers.add()
    servers.add()
    say(f"{engine.name}: loaded in {servers.servers[0].load(bench.workload):.1f} s")
    uvloop.run(servers.load(polygons(bench.messages)))  # both have all subscriptions then, and are warm
    turns = [polygons(1_000 if quick else MESSAGES) for _ in range(1 if quick else TURNS)]
    raw, two, three = list[dict[str, float]](), list[SharedLoad](), list[SharedLoad]()
    for messages in turns:
        raw.append(engine.rates(messages.bodies, messages.batches(BATCH)))
        two.append(uvloop.run(servers.load(messages)))
        say(f"{engine.name}: {_shown(two[-1])}; raw {', '.join(f'{one:,.0f}/s' for one in raw[-1].values())}")
    yield from _against_raw(title, engine.is_judged, raw, two)
    yield from _latency_rows(title, *uvloop.run(servers.latencies(polygons(100 if quick else LATENCY_MESSAGES))))
    servers.add()
    uvloop.run(servers.load(polygons(bench.messages)))
    for messages in turns:
        three.append(uvloop.run(servers.load(messages)))
        say(f"{engine.name}, three servers: {_shown(three[-1])}")
    yield from _rows(title, "three servers", three)
    changed = sum(len(set(one.events) ^ set(other.events)) for one, other in zip(two, three, strict=True))
    compared = sum(len(one.events) for one in three)
    yield Row(
        title, "three servers", "two servers", None, None, changed, "changed events", at_most=0,
        compared=compared, different=changed,
    )  # fmt: skip


def _against_raw(title: str, is_judged: bool, raw: list[dict[str, float]], loads: list[SharedLoad]) -> Iterator[Row]:
    """Yield our rate, and plain publishing in each way; the bar holds for the first way."""
    work = "two servers"
    yield from _rows(title, work, loads)
    ours = statistics.median(one.rate for one in loads)
    for place, way in enumerate(raw[0]):
        theirs = statistics.median(one[way] for one in raw)
        against = f"plain, {way}, {theirs:,.0f}/s"
        yield Row(
            title, work, against, 1 / ours, 1 / theirs, ours / theirs, "times its rate",
            at_least=AGAINST_RAW if is_judged and not place else None,
        )  # fmt: skip


def _rows(title: str, work: str, loads: list[SharedLoad]) -> Iterator[Row]:
    """Yield the rate and the cost of servers."""
    rate, cpu = (statistics.median(values) for values in ([one.rate for one in loads], [one.cpu for one in loads]))
    compared, different = sum(len(one.events) for one in loads), sum(one.different for one in loads)
    yield Row(title, work, "", None, None, rate, "messages/s", compared=compared, different=different)
    yield Row.alone(title, f"{work}: CPU of all", cpu, "µs/message")


def _latency_rows(title: str, late: list[float], wrong: int) -> Iterator[Row]:
    for name, share in (("p50", 50), ("p99", 99)):
        value = float(np.percentile(late, share))
        work = f"two servers, {LOW_RATE:g} single messages/s until received: {name}"
        yield Row(title, work, "", value, None, 1e3 * value, "ms", compared=len(late), different=wrong)


def _shown(load: SharedLoad) -> str:
    wrong = f"{load.different} wrong of {len(load.events):,}"
    return f"{load.rate:,.0f}/s, {load.cpu:.0f} µs/message, {wrong}"
