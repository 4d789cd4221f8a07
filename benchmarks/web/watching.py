"""What a page costs while it runs: tasks of its main thread, frames, memory."""

from __future__ import annotations

import json
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from playwright.sync_api import CDPSession, Page

# Chromium's own record of every task that a thread ran, and of its waits for what draws; nothing else, so that a minute
# of it stays small.
CATEGORIES = ["disabled-by-default-devtools.timeline", "gpu", "__metadata"]
TASK, MAIN_THREAD = "RunTask", "CrRendererMain"
WAIT = "CommandBufferProxyImpl::WaitFor"  # ...Token and ...GetOffset: until the process that draws has taken commands
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
    """Milliseconds of the tasks that the main thread of a page ran, and of the whole time.

    Of each task: how long it took, how long the processor worked on it, and how long it waited for the process that
    draws. A task takes longer than both together if other processes have the processors.
    """

    durations: Any
    processor: Any
    waits: Any
    elapsed: float

    @property
    def work(self) -> Any:
        """Those of at least a millisecond: thousands of timers that do nothing would hide them in any percentile."""
        return self.durations[self.durations >= 1]

    @property
    def computing(self) -> Any:
        """Times of the processor of the same tasks."""
        return self.processor[self.durations >= 1]

    def share(self, times: Any) -> float:
        """Return which share of the whole time in percent these times are."""
        return float(100 * times.sum() / self.elapsed)


def percentile(durations: Any, share: float) -> float:
    """Return what this share of the durations stays below; 0 without any."""
    return float(np.percentile(durations, share)) if len(durations) else 0.0


def tasks_of(events: list[dict[str, Any]], process: int, elapsed: float) -> Tasks:
    """Return the tasks of a renderer's main thread, as a trace of Chromium has them."""
    (thread,) = {
        event["tid"]
        for event in events
        if event["pid"] == process and event["name"] == "thread_name" and event["args"]["name"] == MAIN_THREAD
    }
    spans = [event for event in events if event["ph"] == "X" and (event["pid"], event["tid"]) == (process, thread)]
    tasks = sorted((event["ts"], event["dur"], event.get("tdur", 0)) for event in spans if event["name"] == TASK)
    waits = np.zeros(len(tasks))
    starts = [start for start, _, _ in tasks]
    for event in spans:
        if event["name"].startswith(WAIT):
            task = bisect_right(starts, event["ts"]) - 1
            if task >= 0 and event["ts"] < sum(tasks[task][:2]):  # else the trace began within its task
                waits[task] += event["dur"] / 1000
    durations, processor = np.array([task[1:] for task in tasks], float).reshape(-1, 2).T / 1000
    return Tasks(durations, processor, waits, elapsed)


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
    return tasks_of(events, process_of(events, page), 1000 * seconds)


def watch_frames(page: Page, seconds: float) -> Any:
    """Return the milliseconds between the frames of the next seconds."""
    page.evaluate(FRAMES)
    page.wait_for_timeout(1000 * seconds)
    return np.array(page.evaluate(TAKE_FRAMES))


class Memory(NamedTuple):
    """Bytes after garbage was collected: objects of JavaScript of page and workers, resident memory of the process."""

    page: int
    workers: int
    resident: int


@contextmanager
def session_of(page: Page) -> Iterator[CDPSession]:
    """Open a session with the tools of the browser until the block ends."""
    session = page.context.new_cdp_session(page)
    try:
        yield session
    finally:
        session.detach()


COLLECT = "HeapProfiler.collectGarbage"
# Twice: garbage that came while the first one ran is left by it, at times half of a worker's memory.
COLLECTING = ("HeapProfiler.enable", COLLECT, COLLECT, "Runtime.getHeapUsage", "HeapProfiler.disable")
ANSWERING = 30.0  # seconds


def memory_of(page: Page, process: int) -> Memory:
    """Collect garbage in a page and its workers, and return what they and their process hold then."""
    with session_of(page) as session:
        workers = workers_heap(session, page)
        found = dict(zip(COLLECTING, [session.send(method) for method in COLLECTING], strict=True))
    pages = Path(f"/proc/{process}/statm")
    resident = int(pages.read_text().split()[1]) * 4096 if pages.exists() else 0
    return Memory(int(found["Runtime.getHeapUsage"]["usedSize"]), workers, resident)


def workers_heap(session: CDPSession, page: Page) -> int:
    """Collect garbage in the workers of a page, and return the bytes of their objects of JavaScript."""
    workers: list[str] = []
    answers: dict[str, int] = {}

    def take(told: dict[str, Any]) -> None:
        answer = json.loads(told["message"])
        if answer.get("id") == COLLECTING.index("Runtime.getHeapUsage"):
            answers[told["sessionId"]] = int(answer["result"]["usedSize"])

    session.on("Target.attachedToTarget", lambda told: workers.append(told["sessionId"]))
    session.on("Target.receivedMessageFromTarget", take)
    # Without flat sessions Playwright leaves the messages of workers to us.
    attaching = {"waitForDebuggerOnStart": False, "flatten": False}
    session.send("Target.setAutoAttach", {"autoAttach": True, **attaching})
    for worker in workers:
        for number, method in enumerate(COLLECTING):
            message = json.dumps({"id": number, "method": method})
            session.send("Target.sendMessageToTarget", {"sessionId": worker, "message": message})
    end = time.monotonic() + ANSWERING
    while len(answers) < len(workers):
        if time.monotonic() > end:
            raise TimeoutError(f"{len(workers) - len(answers)} workers do not collect garbage")
        page.wait_for_timeout(50)
    session.send("Target.setAutoAttach", {"autoAttach": False, **attaching})
    return sum(answers.values())


def rise(values: Sequence[float]) -> float:
    """Return by how many percent of its mean a line through the values rises from the first to the last.

    >>> rise([100, 100, 100])
    0.0
    >>> round(rise([90, 100, 110]))
    20
    """
    slope = float(np.polyfit(range(len(values)), values, 1)[0])
    return round(100 * slope * (len(values) - 1) / float(np.mean(values)), 6)
