"""Tracked positions: objects that enter and leave fences, on our server and on Tile38, against a model.

Objects stay where they are and jump now and then, so that some of their positions cause events. A model with Shapely's
STRtree says which; every event of every consumer is compared with it. An object sends its positions over one
connection, in order.
"""

import asyncio
import json
import os
import re
import socket
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import shapely
import uvloop

from benchmarks.broker.clients import Consumer, PublisherPool, Tally, close, connect, post
from benchmarks.broker.process import ServerProcess
from benchmarks.broker.runs import LINES, Bench
from benchmarks.broker.tile38 import PIPELINE, QUIET_SECONDS, ChannelConsumer, Tile38, command, pipelined
from benchmarks.broker.work import Workload
from benchmarks.report import Row
from benchmarks.timing import say
from contrada.collecting import collections_paused

TRACKED = "Tracked positions: enter and exit of fences"
FENCES, OBJECTS, POSITIONS = 10_000, (1_000, 1_000_000), 200_000
LANES, BATCH = 8, 500  # connections, and positions in a request
JUMPS = 0.1  # share of positions at another place than the one before
JITTER = 2e-5  # degrees between the others
PEERS = {"Tile38, one by one": 1, "Tile38, pipelined": PIPELINE}  # commands that a connection sends before it waits
AGAINST_TILE38 = 0.7  # times its rate with one command at a time on each connection, at least

TrackEvent = tuple[int, int, str]  # the number of a position, the place of a fence, "enter" or "exit"


class Positions(NamedTuple):
    """Positions of objects in order, each with its number and object, and the events that they cause."""

    objects: Any
    xy: Any
    expected: set[TrackEvent]
    first: int

    def lanes(self, count: int) -> list[Any]:
        """Return the rows of each connection: an object has one."""
        return [np.flatnonzero(self.objects % count == lane) for lane in range(count)]


class Fleet:
    """Objects with their last places, and what they are inside of."""

    def __init__(self, workload: Workload, objects: int, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._tree = shapely.STRtree(workload.shapes)
        self._places = shapely.get_coordinates(shapely.point_on_surface(workload.shapes))
        self._xy = self._places[self._rng.integers(0, len(self._places), objects)]
        self._inside: dict[int, frozenset[int]] = {}
        self._next = 0

    def move(self, count: int) -> Positions:
        """Return the next positions; those of all objects come by turns."""
        size = len(self._xy)
        objects = np.arange(self._next, self._next + count) % size
        xy = np.empty((count, 2))
        for start in range(0, count, size):  # an object has one position in each part
            own = objects[start : start + size]
            jumps = self._rng.random(len(own)) < JUMPS
            self._xy[own[jumps]] = self._far(int(jumps.sum()))
            xy[start : start + size] = self._xy[own] + self._rng.uniform(-JITTER, JITTER, (len(own), 2))
        xy = np.round(xy, 9)  # as they are sent
        found = Positions(objects, xy, set(self._events(objects, xy)), self._next)
        self._next += count
        return found

    def _far(self, count: int) -> Any:
        """Return places of which half are within a fence."""
        chosen = self._places[self._rng.integers(0, len(self._places), count)]
        return chosen + self._rng.uniform(-0.01, 0.01, (count, 2)) * (self._rng.random((count, 1)) < 0.5)

    def _events(self, objects: Any, xy: Any) -> Iterator[TrackEvent]:
        rows, fences = self._tree.query(shapely.points(xy), predicate="intersects")
        order = np.argsort(rows, kind="stable")
        cuts = np.searchsorted(rows[order], np.arange(len(xy) + 1)).tolist()
        fences = fences[order].tolist()
        for row, object in enumerate(objects.tolist()):
            now = frozenset(fences[cuts[row] : cuts[row + 1]])
            was = self._inside.get(object, frozenset())
            self._inside[object] = now
            for fence in now - was:
                yield self._next + row, fence, "enter"
            for fence in was - now:
                yield self._next + row, fence, "exit"


class TrackConsumer(Consumer):
    """Receives events of tracked objects."""

    def events(self) -> Iterator[TrackEvent]:
        """Yield the events that came."""
        for line in b"".join([data for _, data in self._parts]).split(b"\n"):
            if line.startswith(b"data: "):
                found = json.loads(line[6:])
                yield found["message"]["properties"]["n"], int(found["key"][1:]), found["track"]["kind"]


class TrackChannelConsumer(ChannelConsumer):
    """Receives notifications of Tile38."""

    _told = re.compile(rb'"detect":"(\w+)","hook":"[^"]*:s(\d+)".*?"fields":\{[^}]*"n":(\d+)')

    def events(self) -> Iterator[TrackEvent]:
        """Yield the events that came."""
        for kind, fence, number in self._told.findall(b"".join([data for _, data in self._parts])):
            yield int(number), int(fence), kind.decode()


class Followed(NamedTuple):
    """What a run found: positions per second, µs of the server per position, events compared."""

    rate: float
    cpu: float
    compared: int
    different: int


def difference(expected: set[TrackEvent], found: Sequence[TrackEvent]) -> int:
    """Return how many events are missing, wrong or twice."""
    once = set(found)
    return len(expected - once) + len(found) - len(expected & once)


async def follow(server: ServerProcess, owners: int, positions: Positions) -> Followed:
    """Publish positions in batches as quickly as they are answered, while all owners listen."""
    tally = Tally()
    consumers = await connect(server.port, TrackConsumer, owners, tally)
    bodies = [
        b'{"type":"Feature","properties":{"bus":"o%d","n":%d},"geometry":{"type":"Point","coordinates":[%.9f,%.9f]}}'
        % (object, number, x, y)
        for number, (object, (x, y)) in enumerate(
            zip(positions.objects.tolist(), positions.xy.tolist(), strict=True), positions.first
        )
    ]  # fmt: skip
    lanes = []
    for rows in positions.lanes(LANES):
        own = [bodies[row] for row in rows.tolist()]
        lanes.append([post(b"\n".join(own[at : at + BATCH]), LINES) for at in range(0, len(own), BATCH)])

    async def send(requests: list[bytes]) -> None:
        async with PublisherPool.connected(server.port, 1, b'"duplicates":[],"rejected":[]') as pool:
            await pool.send(requests)

    with collections_paused():
        cpu, start = server.cpu(), time.perf_counter()
        await asyncio.gather(*(send(requests) for requests in lanes if requests))
        seconds = time.perf_counter() - start
        await tally.reached(len(positions.expected))
        cpu = server.cpu() - cpu
    close(consumers)
    found = [event for one in consumers if isinstance(one, TrackConsumer) for event in one.events()]
    count = len(bodies)
    return Followed(count / seconds, 1e6 * cpu / count, len(found), difference(positions.expected, found))


async def follow_tile38(peer: Tile38, owners: int, positions: Positions, ahead: int) -> Followed:
    """Set positions over as many connections while all owners listen; a connection sends `ahead` before it waits."""
    tally = Tally(QUIET_SECONDS)
    consumers = await connect(peer.port, TrackChannelConsumer, owners, tally)
    commands = [
        command("SET", "m", f"o{object}", "FIELD", "n", str(number), "POINT", f"{y:.9f}", f"{x:.9f}")
        for number, (object, (x, y)) in enumerate(
            zip(positions.objects.tolist(), positions.xy.tolist(), strict=True), positions.first
        )
    ]

    async def send(rows: Any) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", peer.port)
        own = [commands[row] for row in rows.tolist()]
        for at in range(0, len(own), ahead):
            await pipelined(reader, writer, own[at : at + ahead])
        writer.close()

    with collections_paused():
        start = time.perf_counter()
        await asyncio.gather(*(send(rows) for rows in positions.lanes(LANES)))
        seconds = time.perf_counter() - start
        await tally.reached(len(positions.expected))
    close(consumers)
    found = [event for one in consumers if isinstance(one, TrackChannelConsumer) for event in one.events()]
    return Followed(len(commands) / seconds, 0.0, len(found), difference(positions.expected, found))


def tracked(bench: Bench) -> Iterator[Row]:
    """Measure tracked positions with few and many objects, by turns with Tile38 if its program is there."""
    quick = bench.report.quick
    workload = Workload(bench.report, FENCES)
    for objects in (1_000, 5_000) if quick else OBJECTS:
        count = 5_000 if quick else POSITIONS
        found = _by_turns(bench, workload, objects, count, 1 if quick else 3)
        ours = _median(found["ours"])
        what = f"{workload.count:,} fences, {objects:,} objects"
        work = f"{what}, newline JSON x {BATCH}, {found['ours'][1].compared / count:.2f} events each"
        yield Row(TRACKED, work, "", None, None, ours, "positions/s", **_counts(found["ours"]))
        cpu = statistics.median(one.cpu for one in found["ours"][1:])
        yield Row.alone(TRACKED, f"{what}: CPU of the server", cpu, "µs/position")
        for name, ahead in PEERS.items() if len(found) > 1 else ():
            theirs = _median(found[name])
            yield Row(TRACKED, f"{what}, {name}", "", None, None, theirs, "positions/s", **_counts(found[name]))
            least = AGAINST_TILE38 if ahead == 1 and not quick else None
            yield Row(TRACKED, what, name, 1 / ours, 1 / theirs, ours / theirs, "times its rate", at_least=least)


def _by_turns(bench: Bench, workload: Workload, objects: int, count: int, repeats: int) -> dict[str, list[Followed]]:
    found: dict[str, list[Followed]] = {"ours": []}
    folder = bench.state.parent
    ours = Fleet(workload, objects, bench.report.seed)
    theirs = Fleet(workload, objects, bench.report.seed)
    peer = None
    if os.environ.get("TILE38_SERVER"):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        peer = Tile38(folder / f"tile38-{objects}", port, workload, "enter,exit")
        found |= {name: [] for name in PEERS}
    with ServerProcess(folder / f"tracked-{objects}") as server:
        try:
            server.load(workload, query="&track=bus&on=enter,exit")
            if peer is not None:
                uvloop.run(peer.load())
            for _ in range(repeats + 1):
                for name in found:
                    is_first = not found[name] and name != "Tile38, pipelined"  # then all objects come
                    size = objects if is_first else count
                    if name == "ours":
                        one = uvloop.run(follow(server, workload.owners, ours.move(size)))
                    else:
                        assert peer is not None
                        one = uvloop.run(follow_tile38(peer, workload.owners, theirs.move(size), PEERS[name]))
                    say(f"{objects:,} objects, {name}{', first positions' if is_first else ''}: {one}")
                    found[name].append(one)
        finally:
            if peer is not None:
                peer.stop()
    return found


def _median(runs: list[Followed]) -> float:
    """Return the median rate of all runs but the first, in which objects come and all is new."""
    return statistics.median(one.rate for one in runs[1:])


def _counts(runs: list[Followed]) -> dict[str, int]:
    return {"compared": sum(one.compared for one in runs), "different": sum(one.different for one in runs)}
