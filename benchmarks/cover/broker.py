"""Section `broker` of benchmarks.cover: CoveringIndex(withdraw=True) as a broker keeps one for each neighbour.

Each subscription is `S_INTERSECTS(area, <region>) AND severity >= n AND kind = 'text'`, a predicate that is made just
before it is subscribed and dropped after. Buildings are apart from each other; of the polygons and boxes three quarters
lie inside another one, with its kind and at least its severity. Each set is measured in a process of its own: its
memory is the growth of resident memory, less 16 bytes per vertex. Time is CPU time of the calls alone.
"""

import gc
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

import contrada as ct
from benchmarks.cover.mixed import buildings, resident
from benchmarks.report import Report, Row
from benchmarks.timing import say

SECTION = "Covering at a broker: mixed filters with regions, withdraw=True, objects of callers dropped"
LIVE, CALLS, ORPHANS = 100_000, 2_000, 1_000
QUICK_LIVE, QUICK_CALLS = 2_000, 200
MEMORY_BAR, SUBSCRIBE_BAR, ORPHANS_BAR = 1_000, 50, 40  # bytes, microseconds, milliseconds
KINDS, SEVERITIES = 100, 9
INSIDE = 0.75
SETS = ("buildings", "polygons", "boxes")
INTERSECTS = ct.RelationSet.S_INTERSECTS


class Measured(NamedTuple):
    """Results of one set; times in seconds."""

    forwarded: float  # share
    nbytes: float  # per subscription, beyond coordinates
    subscribe_all: float
    subscribe: float
    unsubscribe: float
    exposed: float  # to unsubscribe the only cover of ORPHANS
    taken_over: float  # to unsubscribe one of two covers of ORPHANS


def run(report: Report) -> Iterator[Row]:
    """Measure each set in a fresh process; the bars are those of the full run."""
    live, calls = (QUICK_LIVE, QUICK_CALLS) if report.quick else (LIVE, CALLS)
    buildings(report, 1)  # notes in the report whether the real ones are there
    for name in SETS:
        say(f"{live:,} {name}")
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            found = pool.submit(measure, name, report, live, calls).result()
        yield from rows(f"{live:,} {name}, {found.forwarded:.1%} forwarded", found, has_bars=not report.quick)


def rows(work: str, found: Measured, has_bars: bool) -> Iterator[Row]:
    """Yield the rows of one set."""
    memory, subscribe, orphans = (MEMORY_BAR, SUBSCRIBE_BAR, ORPHANS_BAR) if has_bars else (None, None, None)
    yield Row.alone(SECTION, f"{work}: memory beyond coordinates", found.nbytes, "bytes each", at_most=memory)
    each = {
        "subscribe, mean of all": (found.subscribe_all, None),
        "subscribe, mean of further ones": (found.subscribe, subscribe),
        "unsubscribe, mean": (found.unsubscribe, None),
    }
    for name, (seconds, bar) in each.items():
        yield Row.alone(SECTION, f"{work}: {name}", 1e6 * seconds, "µs", seconds, at_most=bar)
    for name, seconds in (("all forwarded", found.exposed), ("all covered by another", found.taken_over)):
        what = f"{work}: unsubscribe a cover of {ORPHANS:,}, {name}"
        yield Row.alone(SECTION, what, 1e3 * seconds, "ms", seconds, at_most=orphans)


def measure(name: str, report: Report, live: int, calls: int) -> Measured:
    """Measure one set in this process."""
    make = predicates(name, report, live + calls)
    warm = ct.CoveringIndex(withdraw=True)
    for key in range(1_000):
        warm.subscribe(key, make(key))
    orphaned(warm)
    gc.collect()
    index, before = ct.CoveringIndex(withdraw=True), resident()  # `warm` lives on: its memory is not used again
    subscribed = timed(index, make, range(live))
    gc.collect()
    nbytes = (resident() - before - 16 * sum(vertices(index, key) for key in range(live))) / live
    share = len(index.forwarded) / live
    further = timed(index, make, range(live, live + calls))
    keys = np.random.default_rng(report.seed).permutation(live + calls)[:calls].tolist()
    begun = time.thread_time()
    for key in keys:
        index.unsubscribe(key)
    unsubscribed = (time.thread_time() - begun) / calls
    assert len(warm) == 1_000
    return Measured(share, nbytes, subscribed, further, unsubscribed, *orphaned(index))


def timed(index: ct.CoveringIndex, make: Callable[[int], ct.Predicate], keys: range) -> float:
    """Subscribe predicates, one after the other; return the mean seconds of a call."""
    seconds = 0.0
    for key in keys:
        predicate = make(key)
        begun = time.thread_time()
        index.subscribe(key, predicate)
        seconds += time.thread_time() - begun
    return seconds / len(keys)


def vertices(index: ct.CoveringIndex, key: int) -> int:
    """Return how many vertices a subscription has."""
    return sum(len(ring) for shell, holes in region_of(index.predicate(key)).parts for ring in (shell, *holes))


def region_of(predicate: ct.Predicate) -> ct.Region:
    """Return the region of a predicate that `asking` made."""
    region: ct.Region = predicate.filters[0].constraints[0].value
    return region


def orphaned(index: ct.CoveringIndex) -> tuple[float, float]:
    """Return the seconds to unsubscribe a cover of ORPHANS others, without and with another cover for them."""
    origin = 10_000.0  # far from all other regions
    whole = asking(ct.Region.box(origin, origin, origin + 1_000, origin + 1_000), 5, "a7")
    index.subscribe("first", whole)
    for number in range(ORPHANS):
        x, y = origin + 1 + 3 * (number % 32), origin + 1 + 3 * (number // 32)
        assert not index.subscribe(f"part {number}", asking(ct.Region.box(x, y, x + 2, y + 2), 5, "a7")).forward
    assert index.subscribe("second", whole).covered_by == ("first",)
    found = []
    for key, forwarded in (("first", 1), ("second", ORPHANS)):
        begun = time.thread_time()
        answer = index.unsubscribe(key)
        found.append(time.thread_time() - begun)
        assert len(answer.forward) == forwarded
    for number in range(ORPHANS):
        index.unsubscribe(f"part {number}")
    return found[1], found[0]


def asking(region: ct.Region, severity: int, kind: str) -> ct.Predicate:
    """Return a predicate of one filter."""
    scalars = ct.Constraint("severity", ">=", severity), ct.Constraint("kind", "=", kind)
    return ct.Predicate([ct.Filter([ct.Constraint("area", INTERSECTS, region), *scalars])])


def predicates(name: str, report: Report, count: int) -> Callable[[int], ct.Predicate]:
    """Return a maker of `count` predicates of a set."""
    rng = np.random.default_rng((report.seed, count))
    severities, kinds = rng.integers(1, SEVERITIES + 1, count), rng.integers(0, KINDS, count)
    if name == "buildings":
        read, order = buildings(report, count), rng.permutation(count).tolist()
        return lambda k: asking(read(order[k]), int(severities[k]), f"a{kinds[k]}")
    is_inside = rng.random(count) < INSIDE
    outer = rng.choice(np.flatnonzero(~is_inside), count)
    centres, radii = rng.uniform(0, 1_000, (count, 2)), rng.uniform(0.5, 3, count)
    shifts = radii[outer, None] * rng.uniform(-0.2, 0.2, (count, 2))
    centres = np.where(is_inside[:, None], centres[outer] + shifts, centres)
    radii = np.where(is_inside, radii[outer] * rng.uniform(0.1, 0.5, count), radii)
    kinds = np.where(is_inside, kinds[outer], kinds)
    severities = np.where(is_inside, np.maximum(severities, severities[outer]), severities)
    shape: Any = box_at if name == "boxes" else polygon_at
    sizes = rng.integers(10, 51, count).tolist()
    return lambda k: asking(shape(centres[k], radii[k], sizes[k]), int(severities[k]), f"a{kinds[k]}")


def box_at(centre: Any, radius: float, _: int) -> ct.Region:
    """Return a square."""
    return ct.Region.box(*(centre - radius).tolist(), *(centre + radius).tolist())


def polygon_at(centre: Any, radius: float, size: int) -> ct.Region:
    """Return a wavy polygon of so many vertices."""
    angles = np.arange(size) * 2 * np.pi / size
    distances = radius * (0.9 + 0.1 * np.cos(5 * angles + radius))
    return ct.Region(centre + distances[:, None] * np.column_stack([np.cos(angles), np.sin(angles)]))
