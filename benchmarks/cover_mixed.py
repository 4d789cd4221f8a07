"""Section `mixed` of benchmarks/cover.py: CoveringIndex over mixed filters, and its trees against compiled scans.

All objects, filters and constraints, are made before anything is timed, and garbage collection is frozen then and once
more when the live subscriptions are there: no collection walks them while calls are timed.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import compress
from typing import Any

import numpy as np
from cover_mixed_sets import mixed_filters
from numpy.typing import NDArray
from report import Report, Row
from timing import say, take_turns

import contrada as ct
from contrada.covering.filter_index import FilterIndex
from contrada.covering.slots import Profile

SECTION = "Covering of mixed filters: one call of CoveringIndex at a time"
SEARCHES = "Covering of mixed filters: trees against a compiled scan of the same signatures (a search for one cover)"
SIZES, FURTHER = (10_000, 100_000, 1_000_000), 2_000
QUICK_SIZES, QUICK_FURTHER = (1_000, 5_000), 200
MEDIAN_BAR = 200  # microseconds, a subscribe at the largest size


def run(report: Report) -> Iterator[Row]:
    """Calls and searches at growing sizes; the bar is at the largest."""
    sizes, further = (QUICK_SIZES, QUICK_FURTHER) if report.quick else (SIZES, FURTHER)
    searches: list[Row] = []
    subscribed(mixed_filters(report, 100, 0))  # kernels are loaded before memory is looked at
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
    say(f"{work}: subscribed in {seconds:.1f} s, {share}, {nbytes / len(live):,.0f} bytes each")
    yield Row(SECTION, f"{work}: all of them, {share}", "", seconds, None, len(live) / seconds, "subscribes/s")
    if nbytes > 0:
        memory = f"{work}: memory beside the filters as they are made"
        yield Row(SECTION, memory, "", None, None, nbytes / len(live), "bytes each")
    gc.collect()
    gc.freeze()
    visited, compared = index.work
    keys = range(len(live), len(live) + len(further))
    subscribe, answers = timed(index.subscribe, list(zip(keys, further, strict=True)))
    visited, compared = index.work[0] - visited, index.work[1] - compared
    unsubscribe, _ = timed(index.unsubscribe, [(key,) for key in keys])
    covered = sum(not answer.forward for answer in answers) / len(answers)
    say(f"{work}: {covered:.1%} of {len(further):,} further ones covered")
    yield Row(SECTION, f"{work}: a subscribe's searches, nodes", "", None, None, visited / len(further), "nodes")
    yield Row(SECTION, f"{work}: a subscribe's searches, points", "", None, None, compared / len(further), "points")
    name = f"{work}: subscribe, {covered:.1%} of them covered"
    yield from quantiles(name, subscribe, (0.5, 0.9, 0.99), MEDIAN_BAR if has_bar else None)
    yield from quantiles(f"{work}: unsubscribe", unsubscribe, (0.5, 0.99), None)


def subscribed(live: Sequence[ct.Filter]) -> tuple[ct.CoveringIndex, int, float]:
    """An index of all live ones, how many of them were forwarded, and the seconds that took."""
    index, forwarded = ct.CoveringIndex(), 0
    start = time.perf_counter()
    for key, part in enumerate(live):
        forwarded += index.subscribe(key, part).forward
        if key and key % 100_000 == 0:
            say(f"{key:,} subscribed")
    return index, forwarded, time.perf_counter() - start


def timed(call: Callable[..., Any], given: Sequence[tuple[Any, ...]]) -> tuple[NDArray[np.float64], list[Any]]:
    """The seconds of each call and the answers."""
    seconds, answers = np.empty(len(given)), []
    for k, arguments in enumerate(given):
        start = time.perf_counter()
        answer = call(*arguments)
        seconds[k] = time.perf_counter() - start
        answers.append(answer)
    return seconds, answers


def quantiles(work: str, seconds: NDArray[np.float64], wanted: Sequence[float], bar: float | None) -> Iterator[Row]:
    """A row for each quantile; the bar, in microseconds, is the median's."""
    for quantile in wanted:
        value = float(np.quantile(seconds, quantile))
        name = "median" if quantile == 0.5 else f"{quantile:.0%} stay below"
        yield Row(
            SECTION, f"{work}, {name}", "", value, None, 1e6 * value, "µs", at_most=bar if quantile == 0.5 else None
        )  # fmt: skip


def against_scan(live: Sequence[ct.Filter], further: Sequence[ct.Filter]) -> Iterator[Row]:
    """The same searches in trees and in scans: whether something covers a filter."""
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
        some = list(compress(profiles, chosen))
        if some:
            found = take_turns({"tree": partial(is_covered, tree, some), "scan": partial(is_covered, scan, some)}, 3)
            ours, theirs = found["tree"], found["scan"]
            different = sum(a != b for a, b in zip(ours.answer, theirs.answer, strict=True))
            rows.append((f"that {name}", len(some), ours.seconds, theirs.seconds, different))
    totals = np.array([row[1:] for row in rows]).sum(axis=0).tolist()
    for name, count, ours_seconds, theirs_seconds, different in (*rows, ("of all", *totals)):
        yield Row(
            SEARCHES, f"{len(live):,} live: a filter {name}", "compiled scan, row by row", ours_seconds / count,
            theirs_seconds / count, theirs_seconds / ours_seconds, compared=int(count), different=int(different),
        )  # fmt: skip


def is_covered(index: FilterIndex, profiles: Sequence[Profile]) -> list[bool]:
    """Whether something covers each filter: the first answer is enough."""
    return [next(index.covering(profile), None) is not None for profile in profiles]


def resident() -> int:
    """Bytes of memory that the process holds; 0 where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        return 0
