"""Runs of the load against a server: publishing at full and at a given rate, fan-out, a consumer that never reads."""

import asyncio
import json
import signal
import socket
import time
from pathlib import Path
from typing import NamedTuple

import uvloop

from benchmarks.broker.clients import Consumer, PublisherPool, Tally, close, connect, post, stream_request
from benchmarks.broker.process import ServerProcess
from benchmarks.broker.work import Messages, Workload, difference, owner_name
from benchmarks.report import Report
from benchmarks.timing import say
from contrada.collecting import collections_paused

STALLED = "stalled"
GEOJSON, LINES, JSON = "application/geo+json", "application/x-ndjson", "application/json"
CONNECTIONS = 64
SETTLE_SECONDS = 5.0  # after the load: the server packs and saves its tables in the background
FAN_BYTES = 330  # of a message that all get
STALLED_MESSAGES, STALLED_BYTES = 20_000, 2_000  # sent past a consumer that never reads


class Bench:
    """The workload, and a server that loads it when a section first asks for the server."""

    def __init__(self, report: Report, folder: Path) -> None:
        self.report, self.state = report, folder / "state"
        self.workload = Workload(report)
        self.messages = 500 if report.quick else 6_000  # of a run
        self.single_rate: float | None = None
        self._is_fan_ready = False
        self._server: ServerProcess | None = None
        self._loaded: tuple[float, float] | None = None
        say(f"{self.workload.count:,} subscriptions: {self.workload.source}")

    @property
    def server(self) -> ServerProcess:
        """The server; it is started if none runs, and loads the workload if it has not."""
        if self._server is None:
            self._server = ServerProcess(self.state)
        if self._loaded is None:
            seconds = self._server.load(self.workload)
            self._loaded = seconds, self._server.memory()
            time.sleep(SETTLE_SECONDS)
            say(f"loaded in {seconds:.1f} s")
        return self._server

    @server.setter
    def server(self, server: ServerProcess) -> None:
        self._server = server

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Stop the server if it runs; who asks for it next gets a new one with the same state."""
        if self._server is not None:
            self._server.stop(number)
            self._server = None

    def after_load(self) -> tuple[float, float]:
        """Return the seconds that the load took, and the memory after it in MB."""
        assert self.server.port
        assert self._loaded is not None
        return self._loaded

    def load(self, messages: Messages, size: int) -> "Load":
        """Publish messages to the server, `size` in one request, while all owners listen."""
        return uvloop.run(load(self.server, self.workload.owners, messages, size))

    def subscribe_all(self) -> None:
        """Add a subscription of each owner that every message with `fan` satisfies, and one of a slow consumer."""
        if self._is_fan_ready:
            return
        self._is_fan_ready = True
        lines = [
            json.dumps({"key": f"f{owner}", "subscriber": owner_name(owner), "filter": "fan = 1"})
            for owner in range(self.workload.owners)
        ]
        lines.append(json.dumps({"key": STALLED, "subscriber": STALLED, "filter": "only = 1"}))
        found = self.server.ask("POST", "/subscriptions", "\n".join(lines).encode(), LINES)
        assert found["count"] == len(lines), found


class Load(NamedTuple):
    """What a run found: messages and deliveries per second, µs of the server per message, events compared."""

    rate: float
    delivered: float
    cpu: float
    mean: float
    compared: int
    different: int


async def load(server: ServerProcess, owners: int, messages: Messages, size: int) -> Load:
    """Publish messages as quickly as they are answered, `size` in one request, while all owners listen."""
    tally, count = Tally(), len(messages.bodies)
    consumers = await connect(server.port, Consumer, owners, tally)
    bodies = messages.bodies if size == 1 else messages.batches(size)
    requests = [post(body, GEOJSON if size == 1 else LINES) for body in bodies]
    answer = b'{"sequence":' if size == 1 else b'"duplicates":[],"rejected":[]'
    async with PublisherPool.connected(server.port, CONNECTIONS, answer) as pool:
        with collections_paused():
            cpu, start = server.cpu(), time.perf_counter()
            sent = await pool.send(requests)
            await tally.reached(len(messages.expected))
            seconds, cpu = time.perf_counter() - start, server.cpu() - cpu
    close(consumers)
    arrivals = [one.event for consumer in consumers for one in consumer.take()]
    wrong = sum(difference(messages.expected, arrivals))
    return Load(count / sent.seconds, len(arrivals) / seconds, 1e6 * cpu / count, messages.mean, len(arrivals), wrong)


async def load_at(bench: Bench, messages: Messages, rate: float) -> tuple[list[float], int]:
    """Publish single messages at a rate; return the seconds until each event came, and how many are wrong."""
    tally, port = Tally(), bench.server.port
    consumers = await connect(port, Consumer, bench.workload.owners, tally)
    requests = [post(body, GEOJSON) for body in messages.bodies]
    async with PublisherPool.connected(port, CONNECTIONS) as pool:
        with collections_paused():
            sent = await pool.send(requests, rate)
            await tally.reached(len(messages.expected))
    close(consumers)
    arrivals = [one for consumer in consumers for one in consumer.take()]
    wrong = sum(difference(messages.expected, [one.event for one in arrivals]))
    return [one.at - sent.at[one.event[0] - messages.first] for one in arrivals], wrong


def _fan_message(number: int, size: int = FAN_BYTES) -> bytes:
    return post(json.dumps({"fan": 1, "n": number, "text": "x" * (size - 34)}).encode(), JSON)


async def fan_out(bench: Bench, kind: type[Consumer], repeats: int, together: bool) -> tuple[float, int, int]:
    """Publish messages that all owners get; return deliveries per second, and how many were compared and are wrong.

    One at a time, the next message is sent when all have the last one, and the median counts.
    """
    tally, port, owners = Tally(), bench.server.port, bench.workload.owners
    consumers = await connect(port, kind, owners, tally)
    requests = [_fan_message(number) for number in range(repeats)]
    times, step = [], repeats if together else 1
    async with PublisherPool.connected(port, min(step, 4)) as pool:
        with collections_paused():
            for start in range(0, repeats, step):
                begun = time.perf_counter()
                await pool.send(requests[start : start + step])
                await tally.reached((start + step) * owners)
                times.append(time.perf_counter() - begun)
    close(consumers)
    arrivals = [one.event for consumer in consumers for one in consumer.take()]
    expected = {(number, owner) for number in range(repeats) for owner in range(owners)}
    seconds = sorted(times)[len(times) // 2]
    return step * owners / seconds, len(arrivals), sum(difference(expected, arrivals))


async def stall(bench: Bench, with_consumer: bool) -> float:
    """Publish for a subscriber whose consumer never reads, or who has none; return the memory of the server in MB."""
    tally, port = Tally(), bench.server.port
    consumers = await connect(port, Consumer, bench.workload.owners, tally)
    stuck = socket.socket()
    if with_consumer:
        stuck.connect(("127.0.0.1", port))
        stuck.sendall(stream_request(STALLED))
    count = STALLED_MESSAGES // (100 if bench.report.quick else 1)
    bodies = [json.dumps({"n": n, "only": 1, "text": "x" * STALLED_BYTES}).encode() for n in range(count)]
    requests = [post(b"\n".join(bodies[start : start + 100]), LINES) for start in range(0, count, 100)]
    async with PublisherPool.connected(port, CONNECTIONS) as pool:
        await pool.send(requests)
    await asyncio.sleep(1)
    found = bench.server.memory()
    stuck.close()
    close(consumers)
    return found
