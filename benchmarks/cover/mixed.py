"""Section `mixed` of benchmarks.cover: CoveringIndex over mixed filters, and its trees against compiled scans.

All objects, filters and constraints, are made before anything is timed, and garbage collection is frozen then and once
more when the live subscriptions are there: no collection walks them while calls are timed.
"""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import compress

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import contrada as ct
from benchmarks.mixed.sets import zipf
from benchmarks.polygons import FILES, read_column
from benchmarks.report import Report, Row, SkippedError
from benchmarks.timing import race, say, time_each
from contrada.covering.filter_index import FilterIndex
from contrada.covering.slots import Profile

SECTION = "Covering of mixed filters: one call of CoveringIndex at a time"
SEARCHES = "Covering of mixed filters: trees against a compiled scan of the same signatures (a search for one cover)"
SIZES, FURTHER = (10_000, 100_000, 1_000_000), 2_000
QUICK_SIZES, QUICK_FURTHER = (1_000, 5_000), 200
MEDIAN_BAR = 200  # microseconds, a subscribe at the largest size


INSIDE, WITH_REGION = 0.1, 0.5
UNIVERSE = -118.7, 33.7, -117.6, 34.4  # of made-up buildings, in degrees


def mixed_filters(report: Report, live: int, further: int) -> list[ct.Filter]:
    """Return filters, all objects made; those that lie inside another one do so in one of the first `live`."""
    rng = np.random.default_rng((report.seed, live))
    count = live + further
    values, ends = zipf(rng, (count,)), np.sort(rng.random((count, 2, 2)), axis=2)
    has_region, masks = rng.random(count) < WITH_REGION, rng.integers(1, 256, count)
    building = rng.permutation(count)
    is_inside = rng.random(count) < INSIDE
    outer = rng.choice(np.flatnonzero(~is_inside[:live]), is_inside.sum())
    values[is_inside] = values[outer]
    low, high = ends[outer, :, :1], ends[outer, :, 1:]
    ends[is_inside] = low + (high - low) * ends[is_inside]
    has_region[is_inside] |= has_region[outer]
    is_same = np.flatnonzero(is_inside)[has_region[outer]]
    outer = outer[has_region[outer]]
    building[is_same] = building[outer]
    masks[is_same] = [mask & int(rng.integers(1, 256)) or mask for mask in masks[outer].tolist()]  # some, at least one
    read = buildings(report, count)
    columns = (column.tolist() for column in (values, ends, has_region, masks, building))
    filters = []
    for value, (height, age), with_region, mask, place in zip(*columns, strict=True):
        parts = [ct.Constraint("kind", "=", f"v{value}")]
        parts += [ct.Constraint("height", "between", height), ct.Constraint("age", "between", age)]
        if with_region:
            parts.append(ct.Constraint("area", ct.RelationSet.from_mask(mask), read(place)))
        filters.append(ct.Filter(parts))
    return filters


def buildings(report: Report, count: int) -> Callable[[int], ct.Region]:
    """Return a reader of one of `count` different buildings, or of a made-up box where there are none."""
    try:
        column: pa.Array = read_column("buildings", FILES["LA"])
        return lambda k: ct.Region.from_wkb(column[k % len(column)].as_py())
    except SkippedError as reason:
        told = f"{reason}, boxes of their size in their place"
    if told not in report.skipped:
        report.skipped.append(told)
    rng = np.random.default_rng((report.seed, count))
    low = rng.uniform(UNIVERSE[:2], UNIVERSE[2:], (count, 2))
    corners = np.hstack([low, low + rng.uniform(5e-5, 3e-4, (count, 2))])  # boxes of some 5 to 30 metres
    return lambda k: ct.Region.box(*corners[k].tolist())


def run(report: Report) -> Iterator[Row]:
    """Measure calls and searches at growing sizes; the bar is at the largest."""
    sizes, further = (QUICK_SIZES, QUICK_FURTHER) if report.quick else (SIZES, FURTHER)
    searches: list[Row] = []
    warm, _, _ = subscribed(mixed_filters(report, 1_000, 0))  # kernels are loaded before memory is looked at
    for key in range(100):
        warm.unsubscribe(key)
    del warm
    for live in sizes:
        say(f"{live:,} mixed filters")
        gc.disable()  # making them makes no garbage, and each collection would walk all of them
        filters = mixed_filters(report, live, further)
        gc.freeze()
        gc.enable()
        yield from calls(filters[:live], filters[live:], has_bar=live == SIZES[-1])
        searches += against_scan(filters[:live], filters[live:])
        gc.unfreeze()
    yield from searches


def calls(live: Sequence[ct.Filter], further: Sequence[ct.Filter], has_bar: bool) -> Iterator[Row]:
    """Subscribe the live ones, then time subscribing and unsubscribing further ones."""
    work = f"{len(live):,} live"
    before = resident()
    index, forwarded, seconds = subscribed(live)
    nbytes = resident() - before
    share = f"{forwarded / len(live):.1%} forwarded"
    yield Row.alone(SECTION, f"{work}: all of them, {share}", len(live) / seconds, "subscribes/s", seconds)
    if nbytes > 0:
        memory = f"{work}: memory beside the filters as they are made"
        yield Row.alone(SECTION, memory, nbytes / len(live), "bytes each")
    gc.collect()
    gc.freeze()
    visited, compared = index.work
    keys = range(len(live), len(live) + len(further))
    subscribe, answers = time_each(index.subscribe, zip(keys, further, strict=True))
    visited, compared = index.work[0] - visited, index.work[1] - compared
    unsubscribe, _ = time_each(index.unsubscribe, zip(keys))
    covered = sum(not answer.forward for answer in answers) / len(answers)
    for name, count in (("nodes", visited), ("points", compared)):
        yield Row.alone(SECTION, f"{work}: a subscribe's searches, {name}", count / len(further), name)
    name = f"{work}: subscribe, {covered:.1%} of them covered"
    yield from quantiles(name, subscribe, (0.5, 0.9, 0.99), MEDIAN_BAR if has_bar else None)
    yield from quantiles(f"{work}: unsubscribe", unsubscribe, (0.5, 0.99), None)


def subscribed(live: Sequence[ct.Filter]) -> tuple[ct.CoveringIndex, int, float]:
    """Return an index of all live ones, how many of them were forwarded, and the seconds that took."""
    index, forwarded = ct.CoveringIndex(), 0
    start = time.perf_counter()
    for key, part in enumerate(live):
        forwarded += index.subscribe(key, part).forward
        if key and key % 100_000 == 0:
            say(f"{key:,} subscribed")
    return index, forwarded, time.perf_counter() - start


def quantiles(work: str, seconds: NDArray[np.float64], wanted: Sequence[float], bar: float | None) -> Iterator[Row]:
    """Yield a row for each quantile; the bar, in microseconds, is the median's."""
    for quantile in wanted:
        value = float(np.quantile(seconds, quantile))
        name = "median" if quantile == 0.5 else f"{quantile:.0%} stay below"
        at_most = bar if quantile == 0.5 else None
        yield Row.alone(SECTION, f"{work}, {name}", 1e6 * value, "µs", value, at_most=at_most)


def against_scan(live: Sequence[ct.Filter], further: Sequence[ct.Filter]) -> Iterator[Row]:
    """Measure the same searches in trees and in scans: whether something covers a filter."""
    tree, scan = FilterIndex(), FilterIndex(leaf_rows=len(live))
    for number, part in enumerate(live):
        profile = Profile(part)
        tree.add(number, profile)
        scan.add(number, profile)
    say(f"{len(live):,} live: trees and scans")
    profiles = [Profile(part) for part in further]
    is_found = np.array(is_covered(tree, profiles))
    rows = []
    for name, chosen in {"something covers": is_found, "nothing covers": ~is_found}.items():
        if some := list(compress(profiles, chosen)):
            ours, theirs = race(partial(is_covered, tree, some), partial(is_covered, scan, some), 3)
            different = sum(a != b for a, b in zip(ours.answer, theirs.answer, strict=True))
            rows.append((f"that {name}", len(some), different, ours.seconds, theirs.seconds))
    totals = np.array([row[1:] for row in rows]).sum(axis=0).tolist()
    for name, count, different, *seconds in (*rows, ("of all", *totals)):
        work, counts = f"{len(live):,} live: a filter {name}", {"compared": int(count), "different": int(different)}
        each = [one / count for one in seconds]
        yield Row.versus(SEARCHES, work, "compiled scan, row by row", *each, **counts)


def is_covered(index: FilterIndex, profiles: Sequence[Profile]) -> list[bool]:
    """Return whether something covers each filter: the first answer is enough."""
    return [next(index.covering(profile), None) is not None for profile in profiles]


def resident() -> int:
    """Return bytes of memory that the process holds; 0 where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        return 0
