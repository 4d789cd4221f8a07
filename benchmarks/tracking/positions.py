"""Moving points against fences: ours, and a tree with a dictionary of sets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import shapely

import contrada as ct
from benchmarks.report import Report, Row
from benchmarks.timing import say
from contrada.tracking import Tracks

FIELD = 1000.0
RADIUS = 1.8  # a point is in one of 100,000 fences on average
STEP = 0.5
BATCH = 16_384
POSITIONS_PER_SECOND, BYTES_PER_PAIR = 150_000, 60
SECTION, STATE = "Tracked objects: positions per second, enter and exit", "Tracked objects: state"


class Moves(NamedTuple):
    """Fences, and batches of positions; `first` puts every object somewhere, `rest` moves them."""

    fences: Any  # Shapely polygons of 20 vertices
    first: list[pa.Table]
    rest: list[pa.Table]


def moves(rng: np.random.Generator, fences: int, objects: int, positions: int) -> Moves:
    """Return fences, and `positions` moves of objects, each object by turns."""
    centres = rng.uniform(0, FIELD, (fences, 2))
    radius = RADIUS * np.sqrt(100_000 / fences)
    places = rng.uniform(0, FIELD, (objects, 2))
    ids = np.array([f"vehicle {number:07}" for number in range(objects)], object)
    first = [_table(ids[rows], places[rows]) for rows in _batches(np.arange(objects))]
    rest = []
    for rows in _batches(np.arange(positions) % objects):
        taken = []
        for part in np.split(rows, np.flatnonzero(np.diff(rows) < 0) + 1):
            places[part] += rng.normal(0, STEP, (len(part), 2))
            taken.append(places[part].copy())
        rest.append(_table(ids[rows], np.concatenate(taken)))
    return Moves(shapely.buffer(shapely.points(centres), radius, quad_segs=5), first, rest)


def _batches(rows: Any) -> list[Any]:
    return np.split(rows, range(BATCH, len(rows), BATCH))


def _table(ids: Any, places: Any) -> pa.Table:
    return pa.table({"vehicle": pa.array(ids.tolist()), "at": ct.PointArray(places).to_wkb()})


class Ours:
    """A Tracker."""

    def __init__(self, fences: Any) -> None:
        self.tracker = ct.Tracker(track="vehicle")
        rows = pa.table({"key": np.arange(len(fences)), "fence": pa.array(shapely.to_wkb(fences), pa.binary())})
        self.tracker.subscribe_many(rows, "S_INTERSECTS(at, $fence)", "enter, exit")
        self.tracker.table.pack()

    def publish(self, batch: pa.Table) -> Any:
        return self.tracker.publish(batch).transitions

    @staticmethod
    def events(told: Any) -> set[tuple[Any, ...]]:
        return {(event.row, event.kind, event.number) for event in told}


class Peer:
    """A tree of the fences, and by object the set of fences that it is in."""

    def __init__(self, fences: Any) -> None:
        shapely.prepare(fences)
        self.tree = shapely.STRtree(fences)
        self.inside: dict[str, frozenset[int]] = {}

    def publish(self, batch: pa.Table) -> list[tuple[Any, ...]]:
        points = shapely.from_wkb(batch["at"].to_numpy())
        rows, fences = self.tree.query(points, predicate="intersects")
        order = np.argsort(rows, kind="stable")
        ends = np.cumsum(np.bincount(rows, minlength=len(points))).tolist()
        numbers, begin, told = fences[order].tolist(), 0, []
        nothing: frozenset[int] = frozenset()
        for row, (name, end) in enumerate(zip(batch["vehicle"].to_pylist(), ends, strict=True)):
            now = frozenset(numbers[begin:end]) if end > begin else nothing
            begin = end
            before = self.inside.get(name, nothing)
            if now != before:
                told += [(row, "enter", fence) for fence in now - before]
                told += [(row, "exit", fence) for fence in before - now]
                self.inside[name] = now
        return told

    @staticmethod
    def events(told: list[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
        return set(told)


def timed(contender: Any, batches: list[pa.Table]) -> tuple[float, list[Any]]:
    """Return the seconds for all batches, and what each told."""
    begun = time.perf_counter()
    told = [contender.publish(batch) for batch in batches]
    return time.perf_counter() - begun, told


def by_objects(report: Report) -> Iterator[Row]:
    """Ours and the peer by turns of all batches, each in the order in which it does best."""
    rng = np.random.default_rng(report.seed)
    fences, positions = (2_000, 40_000) if report.quick else (100_000, 1_000_000)
    for objects in (100, 10_000) if report.quick else (1_000, 1_000_000):
        data = moves(rng, fences, objects, positions)
        ours, peer = Ours(data.fences), Peer(data.fences)
        say(f"{objects:,} objects: first positions")
        for contender in (ours, peer):
            for batch in data.first:
                contender.publish(batch)
        middle = len(data.rest) // 2
        mine, other, told, theirs = 0.0, 0.0, [], []
        for part in (data.rest[:middle], data.rest[middle:]):
            seconds, answers = timed(ours, part)
            mine, told = mine + seconds, told + answers
            seconds, answers = timed(peer, part)
            other, theirs = other + seconds, theirs + answers
        different = sum(len(ours.events(a) ^ peer.events(b)) for a, b in zip(told, theirs, strict=True))
        compared = sum(map(len, theirs))
        work = f"{positions:,} positions of {objects:,} objects, {fences:,} fences, batches of {BATCH:,}"
        counts = {"compared": compared, "different": different}
        yield Row.versus(SECTION, work, "STRtree, then a dict of sets", mine / positions, other / positions, **counts)
        yield Row.alone(SECTION, work, positions / mine, "positions/s", mine, at_least=_bar(report))
    yield from bytes_of_state(ours.tracker.tracks)


def _bar(report: Report) -> float | None:
    return None if report.quick else POSITIONS_PER_SECOND


def bytes_of_state(tracks: Tracks) -> Iterator[Row]:
    """Bytes of the arrays of pairs for each pair, and of all arrays."""
    work = f"{tracks.objects:,} objects, {tracks.pairs:,} pairs"
    each = tracks.pair_nbytes / tracks.pairs
    yield Row.alone(STATE, f"{work}: arrays of pairs", each, "bytes per pair", at_most=BYTES_PER_PAIR)
    yield Row.alone(STATE, f"{work}: all arrays", tracks.nbytes / tracks.objects, "bytes per object")
    yield Row.alone(STATE, f"{work}: a snapshot, with the fences", len(tracks.snapshot()) / 2**20, "MiB")
