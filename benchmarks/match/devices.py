"""What each tuning device brings: the same work with the device and without it, in two processes that take turns.

    python -m benchmarks.match.devices [--quick] [--only prefetch,gate] [--seed 7] [--write]

A process without the device patches our modules before any kernel is loaded. Kernels that are compiled otherwise go
into a cache of their own in build/bench/kernels, so the first run takes minutes longer. Answers of both are compared.
Writes build/bench/devices.json; with --write the tables replace those of benchmarks/results.
"""

import os
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from multiprocessing import get_context
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import contrada as ct
from benchmarks import live
from benchmarks.answers import INTERSECTS, ask_points, table_of
from benchmarks.command import run_sections
from benchmarks.match.small import pentagons
from benchmarks.mixed import matching, sets
from benchmarks.polygons import synthetic_set
from benchmarks.report import ROOT, Report, Row, SkippedError
from benchmarks.simplify.work import ask, constraints_of, predicates_of, synthetic_messages
from benchmarks.simplify.work import table_of as table_of_predicates
from benchmarks.timing import measured, say
from contrada import jit
from contrada.index import hugepages
from contrada.matching import shortcut
from contrada.matching.store import levels
from contrada.papers.spatial import drawn_regions as synthetic

SECTION = "Tuning devices, with and without"
KERNELS = ROOT / "build" / "bench" / "kernels"
NEVER = 1 << 62
Numbers = dict[str, float]  # seconds of each kind of work
Found = tuple[Numbers, int | None]  # and a number that differs when an answer does, if there are answers
Measure = Callable[[], Found]


class Device(NamedTuple):
    """What is switched off and how, and the work that shows it."""

    title: str
    switch_off: Callable[[], None]
    work: Callable[[Report], Measure]
    is_compiled: bool = False  # kernels differ with it


def keep_no_prefetches() -> None:
    """Replace every prefetch in kernels by nothing."""
    from contrada.kernels.runtime import prefetch

    prefetch.prefetch = jit.kernel(prefetch._interpreted)


def use_small_pages() -> None:
    """Leave all arrays where NumPy puts them."""
    hugepages.MIN_HUGE_BYTES = NEVER


def match_all_filters() -> None:
    """Match every message as if no filters were learnt that decide most messages."""
    shortcut.Shortcut.subscribers = lambda _, state, message: state.subscribers(message)  # type: ignore[method-assign]


def open_gate() -> None:
    """Let writers take the lock at once, and hold the interpreter as long as Python lets them."""

    @contextmanager
    def updating(self: levels.Store, waits: bool = True) -> Iterator[None]:
        with self.lock:
            yield

    levels.Store.updating = updating  # type: ignore[method-assign]


def compile_helpers(**options: bool) -> None:
    """Compile the helpers of kernels with other options."""
    compiled = jit._compile_helper
    jit._compile_helper = lambda function, **given: compiled(function, **{**given, **options})


def check_arguments() -> None:
    """Check the types of arguments in every call of a kernel."""
    entry = jit.entry
    jit.entry = lambda *signature, checked=True: entry(*signature, checked=True)


def optimise_as_numba() -> None:
    """Let Numba optimise each helper on its own, and again in all that call it."""
    jit._optimised_once = lambda name: nullcontext()  # type: ignore[assignment]


def answered(name: str, count: int, call: Callable[[], list[Any]]) -> Measure:
    """Measure a call that answers `count` messages: the median of five."""

    def measure() -> Found:
        seconds, answers = measured(call, 5, count)
        return {name: seconds}, zlib.crc32(np.concatenate(answers).astype(np.int64).tobytes())

    return measure


def mixed_filters(report: Report) -> Measure:
    """Measure messages against a table of mixed filters that no cache holds."""
    work = matching.prepared(report.seed, report.quick)
    asked = sets.as_dicts(work.messages)
    name = f"{len(work.filters):,} mixed filters, match_keys (time per message)"
    return answered(name, len(asked), partial(sets.ask, work.table, asked))


def few_subscribers(report: Report) -> Measure:
    """Measure messages against five subscribers of a thousand filters each; the table sees others before."""
    polygons = synthetic_set(report.seed)
    table = table_of_predicates(predicates_of(constraints_of(polygons, report.seed), 5))
    regions, earlier = (synthetic_messages(polygons, 30, report.seed + k)["20 points"] for k in (0, 1))
    for _ in range(5):
        ask(table, earlier)
    name = "5 subscribers, 5,000 filters of two constraints, match (time per message)"
    return answered(name, len(regions), partial(ask, table, regions))


def live_table(report: Report) -> Measure:
    """Measure a reader and a writer of one table, without a pause."""
    polygons, table = live.regions_table(report)
    name = f"{len(polygons.shapes):,} subscriptions, "

    def measure() -> Found:
        busy, rate = table.beside(table.change_one, 2_000 if report.quick else 20_000)
        times = {f"{name}99.9th percentile of match_keys beside a writer": busy}
        return times | {f"{name}time per update beside a reader": 1 / rate}, None

    return measure


def one_scan(report: Report) -> Measure:
    """Measure the relation of a message to regions, one after the other."""
    rng = np.random.default_rng(report.seed)
    column = synthetic.paper_regions(rng, 1_000 if report.quick else 10_000)
    messages = list(synthetic.paper_regions(rng, 8))
    name = f"one message against {len(column):,} regions, relate (time per message)"
    return answered(name, len(messages), lambda: [ct.relate(one, column, threads=1) for one in messages])


def single_points(report: Report) -> Measure:
    """Measure points one by one: calls so short that the way into a kernel counts."""
    rng = np.random.default_rng(report.seed)
    table = table_of(pentagons(rng), INTERSECTS)
    points = [ct.Point(x, y).to_wkb() for x, y in rng.uniform((-170, -80), (170, 80), (1_000, 2)).tolist()]
    name = "10,000 polygons of five vertices, a point, match_keys (time per message)"
    return answered(name, len(points), partial(ask_points, table, points))


COLD_SWITCHES: list[Callable[[], None]] = []  # what a new process switches off
new_process = partial(ProcessPoolExecutor, 1, get_context("spawn"))


def scan_cold(seed: int, folder: str, switches: list[Callable[[], None]]) -> tuple[float, Found]:
    """Compile the kernels of a relation into an empty cache, and use them: the seconds of all, and of their use."""
    os.environ["CONTRADA_CACHE_DIR"] = folder
    for switch_off in switches:
        switch_off()
    start = time.perf_counter()
    found = one_scan(Report(seed, True))()
    return time.perf_counter() - start, found


def cold_compilation(report: Report) -> Measure:
    """Measure a new process that compiles."""

    def measure() -> Found:
        with tempfile.TemporaryDirectory() as folder, new_process() as process:
            compiling, (numbers, answer) = process.submit(scan_cold, report.seed, folder, COLD_SWITCHES).result()
        (scanning,) = numbers.values()
        times = {"reading and relating, compiled from nothing": compiling}
        return times | {"one message against 1,000 regions, so compiled": scanning}, answer

    return measure


DEVICES = {
    "prefetch": Device("prefetching (kernels/runtime/prefetch.py)", keep_no_prefetches, mixed_filters, True),
    "pages": Device("huge pages (index/hugepages.py)", use_small_pages, mixed_filters),
    "shortcut": Device("the shortcut (matching/shortcut.py)", match_all_filters, few_subscribers),
    "gate": Device("the gate before the GIL (kernels/runtime/gil_gate.py)", open_gate, live_table),
    "counting": Device(
        "no reference counting in kernels (jit.py)", partial(compile_helpers, allocates=True), one_scan, True
    ),
    "checks": Device("no checks of arguments (jit.py)", check_arguments, single_points, True),
    "passes": Device(
        "optimising once, a patch of Numba (jit.py)", partial(COLD_SWITCHES.append, optimise_as_numba), cold_compilation
    ),
}


PREPARED: list[Measure] = []  # in a process with or without a device: its work


def prepare(name: str, is_on: bool, report: Report) -> None:
    """Make the work of a device ready in this process, without the device unless `is_on`."""
    device = DEVICES[name]
    if not is_on:
        if device.is_compiled:
            os.environ["CONTRADA_CACHE_DIR"] = str(KERNELS / name)
        device.switch_off()
    try:
        PREPARED.append(device.work(report))
    except SkippedError as reason:
        raise SkippedError(f"{name}: {reason}") from None
    if device.work is not cold_compilation:
        measure_prepared()  # to warm up


def measure_prepared() -> Found:
    """Measure the work that is ready in this process."""
    return PREPARED[0]()


def run(name: str, report: Report) -> Iterator[Row]:
    """Yield the medians of the seconds with a device and without it, in two processes that take turns."""
    with new_process() as on, new_process() as off:
        for is_on, side in ((True, on), (False, off)):
            side.submit(prepare, name, is_on, Report(report.seed, report.quick)).result()
            say(f"{name}: {'on' if is_on else 'off'}")
        sides = [(on, off) if k % 2 else (off, on) for k in range(1 if report.quick else 5)]
        turns = [[side.submit(measure_prepared).result() for side in order] for order in sides]
    turns = [turn if k % 2 else turn[::-1] for k, turn in enumerate(turns)]
    counts = {"compared": len(turns), "different": sum(on[1] != off[1] for on, off in turns)}
    for work in turns[0][0][0]:
        seconds = [median(turn[k][0][work] for turn in turns) for k in (0, 1)]
        title = f"{DEVICES[name].title}: {work}"
        yield Row.versus(SECTION, title, "without it", *seconds, **counts if turns[0][0][1] is not None else {})


if __name__ == "__main__":
    run_sections("devices", __doc__, {name: partial(run, name) for name in DEVICES})
