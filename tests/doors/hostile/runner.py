"""A pool of worker processes that are watched: what crashes, hangs or grows is noted, and the rest goes on."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import re
import time
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from hostile.worker import CRASH, GOOD, MADE, MOST_SECONDS, TIME, Input, Result, serve

# What workers have from their start; ingest reads through pyogrio where it is installed.
PRELOADED = (
    "lark", "msgspec", "pandas", "pyarrow.csv", "pyarrow.fs", "pyarrow.ipc", "pyarrow.parquet", "pyproj", "pyogrio",
    "shapely", "contrada.cli.main", "contrada.overlay.peer", "contrada.pipeline.artifact_cache",
    "contrada.pipeline.stream.changes", "hostile.preload", "hostile.doors",
)  # fmt: skip
HERE = Path(__file__).parent.parent
ROOT = HERE.parent.parent
FAILURES = ROOT / "build" / "doors"
HANG_SECONDS = 60.0  # of an input that uses no processor: it waits for something that never comes
START_SECONDS = 900.0  # kernels may have to be compiled first
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def _context() -> Any:
    """Workers are forked from a process that has everything imported and nothing running."""
    path = os.environ.get("PYTHONPATH", "")
    if str(HERE) not in path.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HERE), path)))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    return context


class Worker:
    """A worker process and the input that it has not answered yet."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._start()

    def _start(self) -> None:
        self.input: Input | None = None
        self.connection, child = multiprocessing.Pipe()
        log = str(FAILURES / f"worker-{self.number}.log")
        self.process = _context().Process(target=serve, args=(child, log), daemon=True)
        self.process.start()
        child.close()
        if not self.connection.poll(START_SECONDS):
            raise TimeoutError(f"worker {self.number} did not start in {START_SECONDS:.0f} s; see {log}")
        self.connection.recv()  # it is ready: from now on time counts
        self._mark()

    def _mark(self) -> None:
        self.since, self.cpu = time.monotonic(), self._cpu()

    def _cpu(self) -> float:
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / TICKS
        except (OSError, IndexError):
            return time.monotonic()

    def send(self, one: Input) -> None:
        """Give it an input; it must have none."""
        self.input = one
        self.connection.send(one)
        self._mark()

    def results(self) -> Iterator[Result]:
        """The result if it is there; if the process died or takes too long, that, and another process is started."""
        try:
            while self.connection.poll():
                result = self.connection.recv()
                self._mark()
                if result != MADE:
                    self.input = None
                    yield result
        except (EOFError, OSError):
            self.process.join()
            yield from self._renewed(CRASH, f"the process ended with {self.process.exitcode}", 0.0)
        wall, cpu = time.monotonic() - self.since, self._cpu() - self.cpu
        is_slow = wall > MOST_SECONDS + 1 and cpu > MOST_SECONDS + 1
        is_idle = wall > HANG_SECONDS and cpu < 1 + wall / 100  # on a busy machine others may have the processor
        if self.input is not None and (is_slow or is_idle):
            self.process.kill()
            self.process.join()
            yield from self._renewed(TIME, f"killed after {wall:.1f} s, {cpu:.1f} s of them on processors", cpu)

    def _renewed(self, outcome: str, detail: str, seconds: float) -> Iterator[Result]:
        if self.input is not None:
            yield Result(self.input, outcome, detail, seconds, 0.0)
        self.connection.close()
        self._start()

    def stop(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):
            self.connection.send(None)
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class Pool:
    """Workers that share inputs."""

    def __init__(self, jobs: int) -> None:
        self._workers = [Worker(number) for number in range(jobs)]

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.stop()

    def run(
        self, inputs: Iterable[Input], progress: Callable[[int, Result], None] = lambda done, result: None
    ) -> list[Result]:
        """Drive all inputs; what takes too long is driven again alone before it counts."""
        results = []
        for result in self._all(inputs, self._workers):
            results.append(result)
            progress(len(results), result)
        for k in [k for k, result in enumerate(results) if result.outcome == TIME]:
            (results[k],) = self._all([results[k].input], self._workers[:1])
        return results

    def one(self, input: Input) -> Result:
        """Drive one input."""
        return self.run([input])[0]

    @staticmethod
    def _all(inputs: Iterable[Input], workers: list[Worker]) -> Iterator[Result]:
        source = iter(inputs)
        while True:
            for worker in workers:
                if worker.input is None and (one := next(source, None)) is not None:
                    worker.send(one)
            busy = [worker for worker in workers if worker.input is not None]
            if not busy:
                return
            wait([worker.connection for worker in busy], timeout=0.2)
            for worker in busy:
                yield from worker.results()


def kept(result: Result) -> Path:
    """Write a failing input to build/doors; `python -m hostile --replay FILE` drives it again."""
    FAILURES.mkdir(parents=True, exist_ok=True)
    data = pickle.dumps((result.input.door, result.input.made()))
    name = re.sub(r"[^\w.]+", "-", f"{result.input.door}-{result.input.label}")[:80]
    path = FAILURES / f"{name}-{sha256(data).hexdigest()[:8]}.pickle"
    path.write_bytes(data)
    return path


def told(result: Result) -> str:
    """A failure for people, with the command that replays it."""
    path = os.path.relpath(kept(result), ROOT)
    return (
        f"{result.input.door}, {result.input.label}: {result.outcome}: {result.detail.rstrip()}\n"
        f"  replay: PYTHONPATH=tests/doors .venv/bin/python -m hostile --replay {path}"
    )


def failed(results: Iterable[Result]) -> list[Result]:
    """The results that are neither an answer nor a ContradaError."""
    return [result for result in results if result.outcome not in GOOD]
