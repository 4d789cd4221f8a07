"""A soak of `contrada serve`: half the floor rate for half an hour, while subscriptions and consumers come and go.

    python -m benchmarks.broker.soak [--minutes 30] [--subscriptions 100000] [--write]

Publishes 4,000 polygons/s as newline JSON x 100 and 500/s as single requests to 1,000 connected consumers. Each second
10 subscriptions are added or removed; consumers leave and resume after their last event; some stay away for longer than
retention and get a reset. Every delivery is checked. Writes build/bench/soak.json and soak.png; with --write also
benchmarks/results/soak.md and docs/images/soak.png.
"""

import argparse
import asyncio
import json
import random
import re
import tempfile
import time
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import shapely
import uvloop

from benchmarks.broker.clients import post
from benchmarks.broker.process import KEY, SERVE, ServerProcess
from benchmarks.broker.runs import CONNECTIONS, GEOJSON, LINES
from benchmarks.broker.soak_clients import Account, Connections, Subscriber
from benchmarks.broker.soak_report import Sample, soak_report, write_results
from benchmarks.broker.work import Workload, owner_name
from benchmarks.command import command
from benchmarks.report import ROOT, Report
from benchmarks.timing import say

PAGE = ROOT / "benchmarks" / "results" / "soak.md"
BATCH, BATCHES, SINGLES = 100, 40, 500  # messages of a batch; batches and single messages per second
HELD = 0.98  # of that rate: a run with less says nothing
POOL = 20_000  # messages that are sent again and again, each time with a number of its own
RETENTION_BYTES = 64 << 20  # of bodies: about half a minute
CHANGES = 10  # of subscriptions per second: as many come as go
PASSING, PASSING_OWNERS = (
    100,
    20,
)  # subscriptions that come and go: how many there are at a time, and of how many owners
LEAVES = 5  # consumers that leave per second
AWAY_SECONDS, LONG_AWAY_SECONDS, LONG_AWAY_EACH = (0.5, 8.0), 60.0, 10.0  # one in ten seconds stays away long
PACE_SECONDS, STALLED_SECONDS, SETTLE_SECONDS = 0.002, 60.0, 5.0


class Passing(NamedTuple):
    """A subscription that comes and goes: its key, the one whose geometry it has, and where it begins and ends."""

    key: str
    like: str
    owner: int
    first: int
    last: int = -1


class Soak:
    """One run against a server that has loaded the workload."""

    def __init__(self, server: ServerProcess, state: Path, workload: Workload, seed: int, seconds: float) -> None:
        self._server, self._state, self._seconds = server, state, seconds
        self._rng = random.Random(seed)
        messages = workload.polygons(POOL)
        matches: list[list[str]] = [[] for _ in range(POOL)]
        for number, row in messages.expected:
            matches[number - messages.first].append(f"s{row}")
        self._bodies = [body.split(b'"n":%d' % number) for number, body in enumerate(messages.bodies, messages.first)]
        self.account, self._owners, self._shapes = Account(matches), workload.owners, workload.shapes
        self._consumers = [Subscriber(owner, self.account) for owner in range(workload.owners + PASSING_OWNERS)]
        self._by_key = {key: self._consumers[int(key[1:]) % workload.owners] for key in self.account.matched}
        self._alive: list[Passing] = []
        self._gone: list[Passing] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._changes = self._leaves = 0
        self._over = asyncio.Event()  # publishing has ended
        self.samples: list[Sample] = []

    # --- publishing ---

    def _body(self, at: float) -> bytes:
        number = self.account.send(at, self._by_key)
        head, tail = self._bodies[number % self.account.pool]
        return head + b'"n":%d' % number + tail

    async def _publish(self, pool: Connections, size: int, kind: str) -> None:
        first = len(self.account.sent_at)
        body = b"\n".join([self._body(time.perf_counter()) for _ in range(size)])
        answer = await pool.ask(post(body, kind))
        if size > 1 and (answer["count"] != size or answer["rejected"] or answer["duplicates"] or answer["lost"]):
            raise RuntimeError(f"a batch was not taken as it is: {answer}")
        self.account.answered(answer["first" if size > 1 else "sequence"], range(first, first + size))

    async def _publish_all(self, pool: Connections) -> None:
        """Publish at the rates for the time of the run."""
        start, sent = time.perf_counter(), {1: 0, BATCH: 0}
        while (now := time.perf_counter() - start) < self._seconds:
            for size, rate, kind in ((1, SINGLES, GEOJSON), (BATCH, BATCHES, LINES)):
                for _ in range(int(rate * now) - sent[size]):
                    self._do(self._publish(pool, size, kind))
                    sent[size] += 1
            await asyncio.sleep(PACE_SECONDS)
            self._raise_failures()
        self._over.set()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.add(asyncio.create_task(work))

    def _raise_failures(self) -> None:
        done = {task for task in self._tasks if task.done()}
        self._tasks -= done
        for task in done:
            task.result()

    # --- churn ---

    async def _change_subscriptions(self, pool: Connections) -> None:
        """Add and remove subscriptions by turns."""
        while not self._over.is_set():
            await asyncio.sleep(1 / CHANGES)
            self._changes += 1
            if len(self._alive) < PASSING or self._changes % 2:
                await self._add(pool)
            else:
                await self._remove(pool, self._alive.pop(self._rng.randrange(len(self._alive))))
            self._settle()

    async def _add(self, pool: Connections) -> None:
        like, key = self._rng.choice(self.account.matched), f"p{self._changes}"
        owner = self._owners + self._changes % PASSING_OWNERS
        shape = shapely.geometry.mapping(self._shapes[int(like[1:])])
        where = {"op": "s_intersects", "args": [{"property": "geometry"}, shape]}
        self.account.begin(key)
        body = json.dumps({"subscriber": owner_name(owner), "filter": where}).encode()
        answer = await pool.ask(request("PUT", f"/subscriptions/{key}", body))
        self._alive.append(Passing(key, like, owner, answer["applies_from"]))

    async def _remove(self, pool: Connections, passing: Passing) -> None:
        answer = await pool.ask(request("DELETE", f"/subscriptions/{passing.key}"))
        self._gone.append(passing._replace(last=answer["applies_until"]))

    def _settle(self) -> None:
        self._gone = [
            one for one in self._gone
            if not self.account.settle(one.key, one.like, one.first, one.last, self._consumers[one.owner])
        ]  # fmt: skip

    async def _change_consumers(self) -> None:
        """Let consumers leave, and come back after a while."""
        away_long = time.perf_counter() + LONG_AWAY_EACH
        while not self._over.is_set():
            await asyncio.sleep(1 / LEAVES)
            is_long = time.perf_counter() > away_long
            away_long += LONG_AWAY_EACH if is_long else 0
            # Events of subscriptions that come and go are settled without regard to resets.
            consumer = self._rng.choice(self._consumers[: self._owners] if is_long else self._consumers)
            if consumer.is_connected:
                self._leaves += 1
                consumer.leave(is_long)
                self._do(self._come_back(consumer, LONG_AWAY_SECONDS if is_long else self._rng.uniform(*AWAY_SECONDS)))

    async def _come_back(self, consumer: Subscriber, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), seconds)
        await consumer.connect(self._server.port)

    # --- samples ---

    async def _sample_all(self, each: float) -> None:
        start, events = time.perf_counter(), 0
        while not self._over.is_set():
            await asyncio.sleep(each)
            late, self.account.late = self.account.late, []
            text = (await asyncio.to_thread(self._server.ask, "GET", "/metrics")).decode()
            self.samples.append(self._sample(time.perf_counter() - start, late, text))
            say(f"{self.samples[-1].line()}; {self.account.events - events:,} events, {self.account.wrong} wrong")
            events = self.account.events

    def _sample(self, seconds: float, late: list[float], text: str) -> Sample:
        p50, p99 = (1e3 * np.percentile(late, (50, 99))).tolist() if late else (0.0, 0.0)
        kept = gauge(text, "newest_sequence") - gauge(text, "oldest_sequence") + 1
        disk = sum(file.stat().st_size for file in self._state.rglob("*") if file.is_file()) / 1e6
        waiting = gauge(text, "engine_waiting") + gauge(text, "publishing")
        return Sample(seconds, self._server.memory(), p50, p99, waiting, kept, disk)

    # --- the run ---

    async def run(self, sample_seconds: float) -> None:
        """Publish for the time of the run with everything else beside it, then wait for what is still due."""
        port = self._server.port
        for start in range(0, len(self._consumers), 50):
            await asyncio.gather(*(one.connect(port) for one in self._consumers[start : start + 50]))
        pool, control = await Connections.open(port, CONNECTIONS), await Connections.open(port, 1)
        await asyncio.gather(
            self._publish_all(pool),
            self._change_subscriptions(control),
            self._change_consumers(),
            self._sample_all(sample_seconds),
        )
        await self._finish()

    async def _finish(self) -> None:
        """Let everybody come back, remove what came and went, and wait for the last events."""
        say("waiting for the last events")
        end = time.monotonic() + STALLED_SECONDS
        while self._tasks and time.monotonic() < end:
            await asyncio.sleep(0.1)
            self._raise_failures()
        control = await Connections.open(self._server.port, 1)  # the server has closed the one that was idle
        for passing in self._alive:
            await self._remove(control, passing)
        end = time.monotonic() + STALLED_SECONDS
        while (self._gone or self.missing) and time.monotonic() < end:
            await asyncio.sleep(0.1)
            self._settle()
        for consumer in self._consumers:
            consumer.leave()

    @property
    def missing(self) -> int:
        """The number of events that are due."""
        return sum(len(consumer.due) for consumer in self._consumers) + len(self._gone)

    def counts(self) -> dict[str, int]:
        """Return what was sent, changed and received."""
        return {
            "messages": len(self.account.sent_at),
            "events": self.account.events,
            "subscriptions that came or went": self._changes,
            "consumers that left and resumed": self._leaves,
            "resets": sum(consumer.resets for consumer in self._consumers),
            "events before a reset": self.account.excused,
            "missing": self.missing,
            "wrong or twice": self.account.wrong,
            "out of order": self.account.unordered,
        }


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """Return a request with a JSON body."""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def gauge(text: str, name: str) -> float:
    """Return the value of a metric without labels."""
    found = re.search(rf"^contrada_{name} (\S+)$", text, re.MULTILINE)
    if found is None:
        raise SystemExit(f"the server has no metric contrada_{name}")
    return float(found[1])


def main() -> None:
    """Run, print, and write results."""
    parser = argparse.ArgumentParser(prog=command(), description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--sample", type=float, default=5.0, help="seconds between two samples")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="write the page and the figure of the docs")
    options = parser.parse_args()
    report = Report(options.seed, quick=options.minutes < 30)
    workload = Workload(Report(options.seed, quick=False), options.subscriptions)
    with tempfile.TemporaryDirectory(prefix="contrada-soak-") as folder:
        state = Path(folder) / "state"
        with ServerProcess(state, SERVE, "--retention-bytes", str(RETENTION_BYTES)) as server:
            say(f"{workload.count:,} subscriptions: loaded in {server.load(workload):.1f} s")
            soak = Soak(server, state, workload, options.seed, 60 * options.minutes)
            time.sleep(SETTLE_SECONDS)
            uvloop.run(soak.run(options.sample))
    work = f"{options.minutes:g} minutes, {workload.count:,} subscriptions"
    counts, seconds = soak.counts(), 60 * options.minutes
    rate, least = counts["messages"] / seconds, HELD * (BATCH * BATCHES + SINGLES)
    report.add(soak_report(soak.samples, counts, work, rate, least))
    write_results(report, soak.samples, PAGE if options.write else None)


if __name__ == "__main__":
    main()
