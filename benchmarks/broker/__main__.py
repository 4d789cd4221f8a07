"""The broker under load: publishing, latency, fan-out, webhooks, memory, restart, disks, tracks, links, logs, peers.

    python -m benchmarks.broker [--quick] [--only publish,latency,fanout,webhooks,memory,...] [--write]

`contrada serve` runs as a process of its own with keys on and fsync before each answer; publishers and consumers run in
this process, on raw sockets. Every delivery is compared with what Shapely's STRtree expects. Writes
build/bench/broker.json. Peers are measured by turns with ours where their programs are given: TILE38_SERVER names the
program of Tile38, POSTGIS_BIN the folder of PostgreSQL's programs.
"""

import os
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import numpy as np
import uvloop

from benchmarks.broker.clients import CONSUMERS
from benchmarks.broker.engines import jetstream, kafka
from benchmarks.broker.links import Latencies, measured
from benchmarks.broker.peers import BATCH, counts, postgis, rate, tile38
from benchmarks.broker.process import SERVE, SLOW_DISK, ServerProcess
from benchmarks.broker.runs import Bench, Load, fan_out, load_at, stall
from benchmarks.broker.tracked import tracked
from benchmarks.broker.webhooks import send_all
from benchmarks.command import run_sections
from benchmarks.report import Report, Row
from benchmarks.timing import say

PUBLISH = "Publishing over 64 connections to 1,000 connected consumers"
LATENCY = "From publishing to receiving, at half the rate of single messages"
FAN_OUT = "Fan-out of one message to 1,000 consumers"
MEMORY, RESTART, DISK = "Memory", "Restart until the first message is answered", "A disk whose fsync takes 8 ms more"
WEBHOOKS = "Signed webhooks"
LINKS = "A publish across three links"
MOST_LINKS = 4.0  # times one server, of p99
LEAST = {1: 3_000, BATCH: 8_000}  # messages per second
LEAST_FAN_OUT = {"SSE": 100_000, "WebSocket": 40_000}
LEAST_WEBHOOKS = 3_000  # events per second
MOST_MEDIAN, MOST_LATE = 5.0, 25.0  # ms
MOST_RESTART, MOST_GROWTH, MOST_SLOWER = 4.0, 16.0, 3.0
DISK_SECONDS = 7.0  # of a run, at the rate of a short one


@contextmanager
def opened(report: Report) -> Iterator[Bench]:
    """Yield what the sections share: the workload, and a server that has loaded it."""
    with tempfile.TemporaryDirectory(prefix="contrada-broker-") as folder:
        bench = Bench(report, Path(folder))
        report.peer_versions["median fdatasync"] = f"{1e3 * fdatasync(Path(folder)):.2f} ms"
        try:
            yield bench
        finally:
            bench.stop(signal.SIGKILL)


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
            found[name, size].append(bench.load(messages, size))
            say(f"{name}, {size} together: {found[name, size][-1]}")
    for (name, size), loads in found.items():
        how = f"{name}, {'single' if size == 1 else f'newline JSON x {size}'}, {loads[0].mean:.2f} matches"
        value = rate(loads)
        yield Row(PUBLISH, how, "", None, None, value, "messages/s", at_least=LEAST[size], **counts(loads))
        yield Row.alone(PUBLISH, f"{how}: deliveries", statistics.median(one.delivered for one in loads), "/s")
        yield Row.alone(PUBLISH, f"{how}: CPU of the server", statistics.median(one.cpu for one in loads), "µs/message")
        if size == 1 and name == "polygons":
            bench.single_rate = value


def latency(bench: Bench) -> Iterator[Row]:
    """Measure the time from a request that is due to its events, at half the rate of single polygons."""
    if bench.single_rate is None:
        bench.single_rate = bench.load(bench.workload.polygons(bench.messages), 1).rate
    half = bench.single_rate / 2
    late, wrong = uvloop.run(load_at(bench, bench.workload.polygons(bench.messages), half))
    work = f"polygons, {half:,.0f} messages/s"
    compared = {"compared": len(late), "different": wrong}
    for name, share, most in (("p50", 50, MOST_MEDIAN), ("p99", 99, MOST_LATE)):
        value = 1e3 * float(np.percentile(late, share))
        yield Row(LATENCY, f"{work}: {name}", "", value / 1e3, None, value, "ms", at_most=most, **compared)


def fanout(bench: Bench) -> Iterator[Row]:
    """Measure a message that all consumers get: one at a time, and one after the other; each by turns."""
    bench.subscribe_all()
    repeats, turns = (10, 1) if bench.report.quick else (100, 5)
    found: dict[tuple[str, bool], list[tuple[float, int, int]]] = {}
    for (kind, consumer), together in list(product(CONSUMERS.items(), (False, True))) * turns:
        found.setdefault((kind, together), []).append(uvloop.run(fan_out(bench, consumer, repeats, together)))
    for (kind, together), runs in found.items():
        rates, compared, wrong = zip(*runs, strict=True)
        how = "back to back" if together else "one at a time"
        work = f"{kind}, {how}, {min(rates):,.0f} to {max(rates):,.0f}"
        yield Row(
            FAN_OUT, work, "", None, None, statistics.median(rates), "deliveries/s",
            at_least=None if together else LEAST_FAN_OUT[kind], compared=sum(compared), different=sum(wrong),
        )  # fmt: skip


def memory(bench: Bench) -> Iterator[Row]:
    """Measure the memory after the load, and with a consumer that never reads."""
    seconds, loaded = bench.after_load()
    yield Row.alone(MEMORY, f"{bench.workload.count:,} subscriptions loaded", loaded, "MB")
    yield Row.alone(MEMORY, "loading", seconds, "s", seconds)
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
    """Measure batches with 8 ms added to every fsync, by turns with a disk as it is, for DISK_SECONDS each."""
    bench.server.stop()
    found: dict[str, list[Load]] = {"disk as it is": [], "8 ms added": []}
    warm_up = bench.workload.polygons(bench.messages)
    for name, command in (("disk as it is", SERVE), ("8 ms added", SLOW_DISK)) * (1 if bench.report.quick else 2):
        bench.server = ServerProcess(bench.state, command)
        first = bench.load(warm_up, BATCH)  # which also says how many messages last long enough
        seconds = 0.2 if bench.report.quick else DISK_SECONDS
        messages = bench.workload.polygons(max(bench.messages, int(seconds * first.rate)))
        found[name].append(bench.load(messages, BATCH))
        say(f"{name}: {found[name][-1]}")
        bench.server.stop()
    bench.server = ServerProcess(bench.state)
    for name, loads in found.items():
        work = f"polygons, newline JSON x {BATCH}, {name}"
        yield Row(DISK, work, "", None, None, rate(loads), "messages/s", **counts(loads))
    usual, slow = map(rate, found.values())
    yield Row.alone(DISK, "slower", usual / slow, "times", at_most=MOST_SLOWER)


def webhooks(bench: Bench) -> Iterator[Row]:
    """Measure signed webhooks to 100 endpoints, with one event in a request and with many."""
    endpoints = 10 if bench.report.quick else 100
    for batch, messages, least in ((0, 600, LEAST_WEBHOOKS), (100, 3_000, None)):
        count = messages // (10 if bench.report.quick else 1)
        sent = send_all(bench.state.parent / f"webhooks-{batch}", endpoints, count, batch)
        how = f"up to {batch} events" if batch else "one event"
        work = f"{endpoints} endpoints, {how} in a request, {sent.compared:,} events in {sent.seconds:.1f} s"
        yield Row(
            WEBHOOKS, work, "", None, None, sent.rate, "events/s", at_least=least,
            compared=sent.compared, different=sent.different,
        )  # fmt: skip


def links(bench: Bench) -> Iterator[Row]:
    """Measure a publish across three links against one server, by turns, while both are up."""
    bench.stop()
    turns, count = (1, 100) if bench.report.quick else (5, 400)
    found: dict[int, list[Latencies]] = {}
    for length, latencies in measured(bench.state.parent, (1, 4), turns, count):
        found.setdefault(length, []).append(latencies)
        say(f"{length} servers: p50 {1e3 * np.percentile(latencies.seconds, 50):.1f} ms")
    times = {length: np.concatenate([one.seconds for one in runs]) for length, runs in found.items()}
    for name, share, most in (("p50", 50, None), ("p99", 99, MOST_LINKS)):
        alone, far = (float(np.percentile(times[length], share)) for length in (1, 4))
        work = f"{name}: {1e3 * far:.1f} ms, one server {1e3 * alone:.1f} ms"
        compared, different = (sum(getattr(one, what) for one in found[4]) for what in ("compared", "different"))
        yield Row(
            LINKS, work, "one server", far, alone, far / alone, "times the time", at_most=most,
            compared=compared, different=different,
        )  # fmt: skip


SECTIONS = {
    "publish": publish, "latency": latency, "fanout": fanout, "webhooks": webhooks, "memory": memory,
    "restart": restart, "disk": disk, "tracked": tracked, "links": links, "jetstream": jetstream,
    "kafka": kafka, "tile38": tile38, "postgis": postgis,
}  # fmt: skip

if __name__ == "__main__":
    run_sections("broker", __doc__, SECTIONS, opened=opened)
