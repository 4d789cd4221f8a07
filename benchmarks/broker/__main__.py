"""The broker under load: publishing, latency, fan-out, memory, restart, a slow disk, and peers beside it.

    python -m benchmarks.broker [--quick] [--only publish,latency,fanout,memory,restart,disk,tile38] [--write]

`contrada serve` runs as a process of its own with keys on and fsync before each answer; publishers and consumers run in
this process, on raw sockets. Every delivery is compared with what Shapely's STRtree expects. Writes
build/bench/broker.json. TILE38_SERVER names the program of Tile38, which is measured by turns where it is given.
"""

import os
import signal
import socket
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import uvloop

from benchmarks.broker.clients import CONSUMERS
from benchmarks.broker.process import SERVE, SLOW_DISK, ServerProcess
from benchmarks.broker.runs import Bench, Load, fan_out, load, load_at, stall
from benchmarks.broker.tile38 import Tile38
from benchmarks.command import run_sections
from benchmarks.report import Report, Row
from benchmarks.timing import say

PUBLISH = "Publishing over 64 connections to 1,000 connected consumers"
LATENCY = "From publishing to receiving, at half the rate of single messages"
FAN_OUT = "Fan-out of one message to 1,000 consumers"
MEMORY, RESTART, DISK = "Memory", "Restart until the first message is answered", "A disk whose fsync takes 8 ms more"
TILE38 = "Tile38 by turns with ours"
BATCH = 100
AGAINST_TILE38 = {"polygons": {1: 0.6, BATCH: 1.5}, "points": {1: 0.4, BATCH: 0.8}}
LEAST = {1: 3_000, BATCH: 8_000}  # messages per second
LEAST_FAN_OUT = {"SSE": 100_000, "WebSocket": 40_000}
MOST_MEDIAN, MOST_LATE = 5.0, 25.0  # ms
MOST_RESTART, MOST_GROWTH, MOST_SLOWER = 4.0, 16.0, 3.0


@contextmanager
def opened(report: Report) -> Iterator[Bench]:
    """Yield what the sections share: the workload, and a server that has loaded it."""
    with tempfile.TemporaryDirectory(prefix="contrada-broker-") as folder:
        bench = Bench(report, Path(folder))
        report.peer_versions["median fdatasync"] = f"{1e3 * fdatasync(Path(folder)):.2f} ms"
        try:
            yield bench
        finally:
            bench.server.stop(signal.SIGKILL)


def fdatasync(folder: Path, repeats: int = 200) -> float:
    """Return the median seconds of writing a page and fdatasync."""
    times = []
    with open(folder / "probe", "wb", buffering=0) as file:
        for _ in range(repeats):
            file.write(bytes(4096))
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def publish(bench: Bench) -> Iterator[Row]:
    """Measure messages per second, as single requests and as batches, by turns."""
    makers = {"polygons": bench.workload.polygons, "points": bench.workload.points}
    turns = [(name, size) for name in makers for size in (1, BATCH)]
    found: dict[tuple[str, int], list[Load]] = {turn: [] for turn in turns}
    for repeat in range(1 if bench.report.quick else 3):
        for name, size in turns[repeat:] + turns[:repeat]:
            messages = makers[name](bench.messages * (1 if size == 1 else 3))
            found[name, size].append(uvloop.run(load(bench, messages, size)))
            say(f"{name}, {size} together: {found[name, size][-1]}")
    for (name, size), loads in found.items():
        how = f"{name}, {'single' if size == 1 else f'newline JSON x {size}'}, {loads[0].mean:.2f} matches"
        counts = {"compared": sum(one.compared for one in loads), "different": sum(one.different for one in loads)}
        rate = statistics.median(one.rate for one in loads)
        yield Row(PUBLISH, how, "", None, None, rate, "messages/s", at_least=LEAST[size], **counts)
        yield Row.alone(PUBLISH, f"{how}: deliveries", statistics.median(one.delivered for one in loads), "/s")
        yield Row.alone(PUBLISH, f"{how}: CPU of the server", statistics.median(one.cpu for one in loads), "µs/message")
        if size == 1 and name == "polygons":
            bench.single_rate = rate


def latency(bench: Bench) -> Iterator[Row]:
    """Measure the time from a request that is due to its events, at half the rate of single polygons."""
    if bench.single_rate is None:
        bench.single_rate = uvloop.run(load(bench, bench.workload.polygons(bench.messages), 1)).rate
    rate = bench.single_rate / 2
    late, wrong = uvloop.run(load_at(bench, bench.workload.polygons(bench.messages), rate))
    work = f"polygons, {rate:,.0f} messages/s"
    counts = {"compared": len(late), "different": wrong}
    for name, share, most in (("p50", 50, MOST_MEDIAN), ("p99", 99, MOST_LATE)):
        value = 1e3 * float(np.percentile(late, share))
        yield Row(LATENCY, f"{work}: {name}", "", value / 1e3, None, value, "ms", at_most=most, **counts)


def fanout(bench: Bench) -> Iterator[Row]:
    """Measure a message that all consumers get: one at a time, and one after the other."""
    bench.subscribe_all()
    repeats = 10 if bench.report.quick else 100
    for kind, consumer in CONSUMERS.items():
        for name, together in (("one at a time", False), ("back to back", True)):
            rate, compared, wrong = uvloop.run(fan_out(bench, consumer, repeats, together))
            bar = None if together else LEAST_FAN_OUT[kind]
            yield Row(
                FAN_OUT, f"{kind}, {name}", "", None, None, rate, "deliveries/s", at_least=bar,
                compared=compared, different=wrong,
            )  # fmt: skip


def memory(bench: Bench) -> Iterator[Row]:
    """Measure the memory after the load, and with a consumer that never reads."""
    yield Row.alone(MEMORY, f"{bench.workload.count:,} subscriptions loaded", bench.loaded_memory, "MB")
    yield Row.alone(MEMORY, "loading", bench.load_seconds, "s", bench.load_seconds)
    bench.subscribe_all()
    uvloop.run(stall(bench, with_consumer=False))
    before = bench.server.memory()
    yield Row.alone(MEMORY, "after the sections before, with all consumers", before, "MB")
    grown = uvloop.run(stall(bench, with_consumer=True)) - before
    yield Row.alone(MEMORY, "a consumer that never reads: more", grown, "MB", at_most=MOST_GROWTH)


def restart(bench: Bench) -> Iterator[Row]:
    """Measure a start with all subscriptions, after a graceful stop and after SIGKILL."""
    repeats = 1 if bench.report.quick else 3
    for name, number in (("SIGTERM", signal.SIGTERM), ("SIGKILL", signal.SIGKILL)):
        times, stops = [], []
        for _ in range(repeats):
            stops.append(bench.server.stop(number))
            bench.server = ServerProcess(bench.state)
            bench.server.ask("POST", "/messages", bench.workload.polygons(1).bodies[0])
            times.append(time.perf_counter() - bench.server.started)
        seconds = statistics.median(times)
        yield Row.lasting(RESTART, f"{bench.workload.count:,} subscriptions, after {name}", seconds, MOST_RESTART)
        if number is signal.SIGTERM:
            yield Row.lasting(RESTART, "graceful stop (tables that changed are saved)", statistics.median(stops))


def disk(bench: Bench) -> Iterator[Row]:
    """Measure batches with 8 ms added to every fsync, by turns with a disk as it is."""
    bench.server.stop()
    rates: dict[str, list[float]] = {"as it is": [], "slow": []}
    for _ in range(1 if bench.report.quick else 3):
        for name, command in (("as it is", SERVE), ("slow", SLOW_DISK)):
            bench.server = ServerProcess(bench.state, command)
            uvloop.run(load(bench, bench.workload.polygons(bench.messages), BATCH))
            found = uvloop.run(load(bench, bench.workload.polygons(3 * bench.messages), BATCH))
            rates[name].append(found.rate)
            bench.server.stop()
    bench.server = ServerProcess(bench.state)
    usual, slow = (statistics.median(rates[name]) for name in ("as it is", "slow"))
    yield Row.alone(DISK, f"polygons, newline JSON x {BATCH}, disk as it is", usual, "messages/s")
    yield Row.alone(DISK, "the same, 8 ms added", slow, "messages/s")
    yield Row.alone(DISK, "slower", usual / slow, "times", at_most=MOST_SLOWER)


def tile38(bench: Bench) -> Iterator[Row]:
    """Measure Tile38 by turns with ours; it synchronises its log once a second, ours before each answer."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    peer = Tile38(bench.state.parent / "tile38", port, bench.workload)
    try:
        say(f"Tile38: loaded in {uvloop.run(peer.load()):.1f} s")
        yield Row.alone(TILE38, "memory of Tile38 after the load", peer.memory(), "MB")
        makers = {"polygons": bench.workload.polygons, "points": bench.workload.points}
        found: dict[str, list[Load]] = {}
        for _ in range(1 if bench.report.quick else 3):
            for name, make in makers.items():
                found.setdefault(name, []).append(uvloop.run(peer.publish(make(2 * bench.messages))))
                for size in (1, BATCH):
                    messages = make(bench.messages * (1 if size == 1 else 3))
                    found.setdefault(f"{name} {size}", []).append(uvloop.run(load(bench, messages, size)))
        yield from _compared(makers, found)
    finally:
        peer.stop()


def _compared(names: Iterable[str], found: Mapping[str, list[Load]]) -> Iterator[Row]:
    for name in names:
        theirs = statistics.median(one.rate for one in found[name])
        counts = {
            "compared": sum(one.compared for one in found[name]),
            "different": sum(one.different for one in found[name]),
        }
        yield Row(TILE38, f"{name}, Tile38, commands pipelined", "", None, None, theirs, "messages/s", **counts)
        for size, least in AGAINST_TILE38[name].items():
            ours = statistics.median(one.rate for one in found[f"{name} {size}"])
            how = f"{name}, {'single' if size == 1 else f'newline JSON x {size}'}, {ours:,.0f}/s"
            yield Row(TILE38, how, "Tile38", 1 / ours, 1 / theirs, ours / theirs, "times its rate", at_least=least)


SECTIONS = {
    "publish": publish, "latency": latency, "fanout": fanout, "memory": memory, "restart": restart, "disk": disk,
    "tile38": tile38,
}  # fmt: skip

if __name__ == "__main__":
    run_sections("broker", __doc__, SECTIONS, opened=opened)
