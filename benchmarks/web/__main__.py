"""The live map under load: tasks of the page's main thread, frames, memory.

    python -m benchmarks.web [--quick] [--seed 7] [--write]

`contrada serve` is a process of its own with 10,000 subscriptions; 100 messages a second are published for two minutes
while Chromium without a window shows all of it. In the first minute every task of the page's main thread is recorded by
the browser; in the second one memory is read every ten seconds, after garbage was collected. Frames are drawn by the
processor (software rendering), so frame times say little about a machine with a graphics card. Chromium is taken from
PATH or fetched. Writes build/bench/web.json.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.command import run_sections
from benchmarks.report import Report, Row, Shown, SkippedError
from benchmarks.timing import say
from benchmarks.web.load import BOUNDS, Publisher, publishing, subscribe_all
from benchmarks.web.watching import Memory, memory_of, process_of, rise, traced, watch_frames, watch_tasks
from browser import browsing, context, watch
from live_map import LiveMap
from server_process import ServerProcess, serving

LONGEST = 50.0  # ms: a task beyond it is felt
FLATNESS = 5.0  # percent
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

    report: Report
    scale: Scale
    server: ServerProcess
    map: LiveMap
    publisher: Publisher


@contextmanager
def opened(report: Report) -> Iterator[LoadedMap]:
    """Start server, browser and publisher, and wait until all subscriptions are there."""
    scale, rng = QUICK if report.quick else WHOLE, np.random.default_rng(report.seed)
    with tempfile.TemporaryDirectory(prefix="contrada-web-") as folder, serving(Path(folder)) as server:
        subscribe_all(server.port, server.key, scale.subscriptions, rng)
        with browsing() as browser, context(browser) as window:
            report.peer_versions["Chromium"] = browser.version
            shown = LiveMap(window.new_page(), server.url)
            seen = watch(shown.page, server.url)
            shown.open(bounds=BOUNDS)
            shown.log_in(server.key)
            shown.wait_for_subscriptions(scale.subscriptions)
            with publishing(server.port, server.key, scale.rate, rng) as publisher:
                say(f"warming up for {scale.warm:g} s")
                shown.page.wait_for_timeout(1000 * scale.warm)
                yield LoadedMap(report, scale, server, shown, publisher)
            seen.check()


def tasks(load: LoadedMap) -> Iterator[Row]:
    """Record the tasks of the main thread."""
    before, start = load.publisher.count, time.monotonic()
    found = watch_tasks(load.map.page, load.scale.seconds)
    published = (load.publisher.count - before) / (time.monotonic() - start)
    yield Row.alone(TASKS, f"{load.scale}: published", published, "messages/s", at_least=0.95 * load.scale.rate)
    yield Row.alone(TASKS, f"{load.scale}: p95", found.percentile(95), "ms", at_most=LONGEST)
    for name, share in (("median", 50), ("p99", 99), ("longest", 100)):
        yield Row.alone(TASKS, name, found.percentile(share), "ms")
    yield Row.alone(TASKS, "tasks", len(found.work), "")
    yield Row.alone(TASKS, f"tasks of more than {LONGEST:g} ms", int((found.work > LONGEST).sum()), "")
    yield Row.alone(TASKS, "main thread busy", found.busy, "% of the time")


def frames(load: LoadedMap) -> Iterator[Row]:
    """Record the times between frames."""
    found = watch_frames(load.map.page, load.scale.seconds / 2)
    if not len(found):
        raise SkippedError(f"no two frames within {load.scale.seconds / 2:g} s")
    yield Row.alone(FRAMES, "median", float(np.median(found)), "ms")
    yield Row.alone(FRAMES, "p95 of frames", float(np.percentile(found, 95)), "ms")


def memory(load: LoadedMap) -> Iterator[Row | Shown]:
    """Read memory again and again, and see at the end that the page has every message."""
    page = load.map.page
    process = process_of(traced(page, 0.1), page)
    found: list[Memory] = [memory_of(page, process)]
    for _ in range(round(load.scale.seconds / load.scale.step)):
        page.wait_for_timeout(1000 * load.scale.step)
        found.append(memory_of(page, process))
    heaps = [one.heap / 1e6 for one in found]
    yield Row.alone(MEMORY, "objects of JavaScript, at the end", heaps[-1], "MB")
    yield Row.alone(MEMORY, "objects of JavaScript, rise", rise(heaps), "%", at_most=FLATNESS)
    yield Row.alone(MEMORY, "process of the page, at the end", found[-1].resident / 1e6, "MB")
    load.publisher.stop()
    load.map.wait_for_message(load.publisher.last)
    yield Row.alone(MEMORY, "messages published that the page has not taken in", 0, "", at_most=0)
    lines = [
        [f"{k * load.scale.step:g}", f"{one.heap / 1e6:.1f}", f"{one.resident / 1e6:.0f}"]
        for k, one in enumerate(found)
    ]
    yield Shown("Memory over time", ("second", "objects of JavaScript, MB", "process of the page, MB"), lines)


SECTIONS = {"tasks": tasks, "frames": frames, "memory": memory}

if __name__ == "__main__":
    run_sections("web", __doc__, SECTIONS, opened=opened)
