"""The live map: how soon it is alive, and under load tasks of the page's main thread, frames, memory.

    python -m benchmarks.web [--quick] [--seed 7] [--write]

First `contrada serve --demo` is started as a newcomer does, and the time until a browser shows a match is taken; the
kernels have been compiled before. Then `contrada serve` is a process of its own with 10,000 subscriptions; 100 messages
a second are published for two minutes while Chromium without a window shows all of it. In the first minute the browser
records every task of the page's main thread; in the second one memory is read every ten seconds, after garbage was
collected in the page and its workers. Frames are drawn by the processor (software rendering), so frame times say little
about a machine with a graphics card. Chromium is taken from PATH or fetched. Writes build/bench/web.json.
"""

import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from playwright.sync_api import Browser, expect

from benchmarks.command import run_sections
from benchmarks.report import Report, Row, Shown, SkippedError
from benchmarks.timing import say
from benchmarks.web.load import BOUNDS, Publisher, publishing, subscribe_all
from benchmarks.web.watching import (
    Memory,
    memory_of,
    percentile,
    process_of,
    rise,
    traced,
    watch_frames,
    watch_tasks,
)
from browser import browsing, context, watch
from live_map import LiveMap
from server_process import ServerProcess, serving

ALIVE = 15.0  # seconds
LONGEST = 50.0  # ms: a task beyond it is felt
FLATNESS = 5.0  # percent
START = "The demonstration"
TASKS, FRAMES = "Tasks of the main thread of at least 1 ms", "Frames, drawn by the processor (software rendering)"
MEMORY = "Memory after garbage was collected"


class Scale(NamedTuple):
    """How much, and for how long."""

    subscriptions: int
    rate: int  # messages per second
    warm: float  # seconds
    seconds: float  # of each part
    step: float  # seconds between readings of memory

    def __str__(self) -> str:
        return f"{self.subscriptions:,} subscriptions, {self.rate} messages/s"


WHOLE = Scale(10_000, 100, warm=20, seconds=60, step=10)
QUICK = Scale(500, 50, warm=2, seconds=4, step=1)


class LoadedMap(NamedTuple):
    """A map that shows a server under load."""

    server: ServerProcess
    map: LiveMap
    publisher: Publisher


@dataclass
class Bench:
    """A browser, and the map under load once a section asks for it."""

    report: Report
    scale: Scale
    browser: Browser
    stack: ExitStack

    @cached_property
    def load(self) -> LoadedMap:
        """Start server and publisher, and wait until the page has all subscriptions."""
        return self.stack.enter_context(loaded(self.browser, self.scale, self.report.seed))


@contextmanager
def opened(report: Report) -> Iterator[Bench]:
    """Start the browser."""
    with browsing() as browser, ExitStack() as stack:
        report.peer_versions["Chromium"] = browser.version
        yield Bench(report, QUICK if report.quick else WHOLE, browser, stack)


@contextmanager
def loaded(browser: Browser, scale: Scale, seed: int) -> Iterator[LoadedMap]:
    """Show a server with subscriptions, to which messages are published, until the block ends."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="contrada-web-") as folder, serving(Path(folder)) as server:
        subscribe_all(server.port, server.key, scale.subscriptions, rng)
        with context(browser) as window:
            shown = LiveMap(window.new_page(), server.url)
            seen = watch(shown.page, server.url)
            shown.open(bounds=BOUNDS)
            shown.log_in(server.key)
            shown.wait_for_subscriptions(scale.subscriptions)
            with publishing(server.port, server.key, scale.rate, rng) as publisher:
                say(f"warming up for {scale.warm:g} s")
                shown.page.wait_for_timeout(1000 * scale.warm)
                yield LoadedMap(server, shown, publisher)
            seen.check()


def start(bench: Bench) -> Iterator[Row]:
    """Start the demonstration and wait for the first match that the page shows; a first start compiles kernels."""
    with demonstration():
        pass
    before = time.monotonic()
    with demonstration() as server, context(bench.browser) as window:
        ready = time.monotonic() - before
        shown = LiveMap(window.new_page(), server.url)
        shown.open()
        shown.wait_until_live()
        expect(shown.page.get_by_test_id("messages").get_by_text(re.compile("match(es)?$")).first).to_be_visible()
        alive = time.monotonic() - before
    yield Row.alone(START, "from `contrada serve --demo` until the server takes requests", ready, "s")
    yield Row.alone(START, "until a browser shows a match", alive, "s", at_most=ALIVE)


@contextmanager
def demonstration() -> Iterator[ServerProcess]:
    """Run `contrada serve --demo` until the block ends."""
    with tempfile.TemporaryDirectory(prefix="contrada-web-") as folder, serving(Path(folder), "--demo") as server:
        yield server


def tasks(bench: Bench) -> Iterator[Row]:
    """Record the tasks of the main thread."""
    scale, load = bench.scale, bench.load
    before, start = load.publisher.count, time.monotonic()
    found = watch_tasks(load.map.page, scale.seconds)
    published = (load.publisher.count - before) / (time.monotonic() - start)
    yield Row.alone(TASKS, f"{scale}: published", published, "messages/s", at_least=0.95 * scale.rate)
    yield Row.alone(TASKS, f"{scale}: p95", percentile(found.work, 95), "ms", at_most=LONGEST)
    for name, share in (("median", 50), ("p99", 99), ("longest", 100)):
        yield Row.alone(TASKS, name, percentile(found.work, share), "ms")
    yield Row.alone(TASKS, "tasks", len(found.work), "")
    yield Row.alone(TASKS, f"tasks of more than {LONGEST:g} ms", int((found.work > LONGEST).sum()), "")
    yield Row.alone(TASKS, "p99, time of the processor", percentile(found.computing, 99), "ms", at_most=LONGEST)
    yield Row.alone(TASKS, "longest, time of the processor", percentile(found.computing, 100), "ms")
    yield Row.alone(TASKS, "main thread busy", found.share(found.durations), "% of the time")
    yield Row.alone(TASKS, "... waiting for the process that draws", found.share(found.waits), "% of the time")


def frames(bench: Bench) -> Iterator[Row]:
    """Record the times between frames."""
    seconds = bench.scale.seconds / 2
    found = watch_frames(bench.load.map.page, seconds)
    if not len(found):
        raise SkippedError(f"no two frames within {seconds:g} s")
    yield Row.alone(FRAMES, "median", float(np.median(found)), "ms")
    yield Row.alone(FRAMES, "p95 of frames", float(np.percentile(found, 95)), "ms")


def memory(bench: Bench) -> Iterator[Row | Shown]:
    """Read memory again and again, and see at the end that the page has every message."""
    scale, load = bench.scale, bench.load
    page = load.map.page
    process = process_of(traced(page, 0.1), page)
    found: list[Memory] = [memory_of(page, process)]
    for _ in range(round(scale.seconds / scale.step)):
        page.wait_for_timeout(1000 * scale.step)
        found.append(memory_of(page, process))
    columns = [[getattr(one, part) / 1e6 for one in found] for part in Memory._fields]
    names = ("objects of JavaScript", "objects of JavaScript of the map's worker", "process of the page")
    for name, values in zip(names, columns, strict=True):
        yield Row.alone(MEMORY, f"{name}, at the end", values[-1], "MB")
        yield Row.alone(MEMORY, f"{name}, rise", rise(values), "%", at_most=FLATNESS)
    load.publisher.stop()
    load.map.wait_for_message(load.publisher.last)
    yield Row.alone(MEMORY, "messages published that the page has not taken in", 0, "", at_most=0)
    lines = [
        [f"{k * scale.step:g}", *(f"{value:.1f}" for value in values)]
        for k, values in enumerate(zip(*columns, strict=True))
    ]
    yield Shown("Memory over time", ("second", *(f"{name}, MB" for name in names)), lines)


SECTIONS = {"start": start, "tasks": tasks, "frames": frames, "memory": memory}

if __name__ == "__main__":
    run_sections("web", __doc__, SECTIONS, opened=opened)
