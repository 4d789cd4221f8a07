"""What a page costs while it runs: tasks of its main thread, frames, memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from playwright.sync_api import CDPSession, Page

# Chromium's own record of every task that a thread ran; nothing else, so that a minute of it stays small.
CATEGORIES = ["disabled-by-default-devtools.timeline", "__metadata"]
TASK, MAIN_THREAD = "RunTask", "CrRendererMain"
FRAMES = """() => {
    window.frameTimes = [];
    let last = performance.now();
    const next = now => {
        window.frameTimes.push(now - last);
        last = now;
        window.frameTask = requestAnimationFrame(next);
    };
    window.frameTask = requestAnimationFrame(next);
}"""
TAKE_FRAMES = "() => { cancelAnimationFrame(window.frameTask); return window.frameTimes.slice(1) }"


class Tasks(NamedTuple):
    """Milliseconds of the tasks that the main thread of a page ran, and of the whole time."""

    durations: Any
    elapsed: float

    @property
    def work(self) -> Any:
        """Those of at least a millisecond: thousands of timers that do nothing would hide them in any percentile."""
        return self.durations[self.durations >= 1]

    def percentile(self, share: float) -> float:
        """Return what this share of the tasks of at least a millisecond stays below; 0 without any."""
        return float(np.percentile(self.work, share)) if len(self.work) else 0.0

    @property
    def busy(self) -> float:
        """Share of the time in percent that the main thread was busy."""
        return float(100 * self.durations.sum() / self.elapsed)


def tasks_of(events: list[dict[str, Any]], process: int) -> Any:
    """Return the milliseconds of the tasks of a renderer's main thread, as a trace of Chromium has them."""
    (thread,) = {
        event["tid"]
        for event in events
        if event["pid"] == process and event["name"] == "thread_name" and event["args"]["name"] == MAIN_THREAD
    }
    spans = [
        event["dur"] / 1000
        for event in events
        if event["name"] == TASK and event["ph"] == "X" and (event["pid"], event["tid"]) == (process, thread)
    ]
    return np.array(spans)


def process_of(events: list[dict[str, Any]], page: Page) -> int:
    """Return the id of the process that runs a page: a trace begins with the frames of all."""
    with session_of(page) as session:
        frame = session.send("Page.getFrameTree")["frameTree"]["frame"]["id"]
    (found,) = {
        one["processId"]
        for event in events
        if event["name"] == "TracingStartedInBrowser"
        for one in event["args"]["data"]["frames"]
        if one["frame"] == frame
    }
    return int(found)


def traced(page: Page, seconds: float) -> list[dict[str, Any]]:
    """Return the events of a trace of the next seconds."""
    browser = page.context.browser
    assert browser is not None
    browser.start_tracing(page=page, categories=CATEGORIES)
    try:
        page.wait_for_timeout(1000 * seconds)
    finally:
        trace = browser.stop_tracing()
    found: list[dict[str, Any]] = json.loads(trace)["traceEvents"]
    return found


def watch_tasks(page: Page, seconds: float) -> Tasks:
    """Return the tasks of the next seconds."""
    events = traced(page, seconds)
    return Tasks(tasks_of(events, process_of(events, page)), 1000 * seconds)


def watch_frames(page: Page, seconds: float) -> Any:
    """Return the milliseconds between the frames of the next seconds."""
    page.evaluate(FRAMES)
    page.wait_for_timeout(1000 * seconds)
    return np.array(page.evaluate(TAKE_FRAMES))


class Memory(NamedTuple):
    """Bytes: objects of JavaScript after garbage was collected, and resident memory of the page's process."""

    heap: int
    resident: int


@contextmanager
def session_of(page: Page) -> Iterator[CDPSession]:
    """Open a session with the tools of the browser until the block ends."""
    session = page.context.new_cdp_session(page)
    try:
        yield session
    finally:
        session.detach()


def memory_of(page: Page, process: int) -> Memory:
    """Return what a page holds now, and its process."""
    with session_of(page) as session:
        session.send("HeapProfiler.enable")
        session.send("HeapProfiler.collectGarbage")
        heap = int(session.send("Runtime.getHeapUsage")["usedSize"])
        session.send("HeapProfiler.disable")
    pages = Path(f"/proc/{process}/statm")
    resident = int(pages.read_text().split()[1]) * 4096 if pages.exists() else 0
    return Memory(heap, resident)


def rise(values: Sequence[float]) -> float:
    """Return by how many percent of its mean a line through the values rises from the first to the last.

    >>> rise([100, 100, 100])
    0.0
    >>> round(rise([90, 100, 110]))
    20
    """
    slope = float(np.polyfit(range(len(values)), values, 1)[0])
    return round(100 * slope * (len(values) - 1) / float(np.mean(values)), 6)
