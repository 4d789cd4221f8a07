"""Worker processes that drive doors with inputs, and a pool that watches them.

What crashes, hangs or grows is noted, and the rest goes on.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import pickle
import re
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

MOST_SECONDS = 5.0
MOST_MEMORY = 1 << 30  # bytes above what the process has before the input
SLACK = 1 << 29  # of addresses, which are reserved before they are used
ANSWER, REFUSED, OTHER, CRASH, TIME, MEMORY = OUTCOMES = (
    "answer", "refused", "other error", "crash", "time", "memory",
)  # fmt: skip
GOOD = (ANSWER, REFUSED)
MADE = "made"  # what a worker says when it begins to drive an input: making it takes no time of the door
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


class Input(NamedTuple):
    """An input by its name: of a corpus, a mutation by seed and number, or a case as it is."""

    door: str
    name: str = ""
    seed: int = 0
    number: int = -1
    case: Any = None

    @property
    def label(self) -> str:
        """The input for people."""
        return self.name or (f"mutation {self.seed}/{self.number}" if self.number >= 0 else "case")

    def made(self) -> Any:
        """The input itself."""
        from hostile.doors import DOORS

        door = DOORS[self.door]
        if self.name:
            return door.named(self.name)
        return door.mutation(self.seed, self.number) if self.number >= 0 else self.case


class Result(NamedTuple):
    """What came of an input."""

    input: Input
    outcome: str
    detail: str
    seconds: float


def serve(connection: Connection, log: str) -> None:
    """Drive the inputs that come, until there is None."""
    _separate(log)
    folder = tempfile.TemporaryDirectory(prefix="contrada-doors-", ignore_cleanup_errors=True)
    with folder as home, contextlib.chdir(home), contextlib.suppress(EOFError, BrokenPipeError):
        connection.send("ready")
        while (one := connection.recv()) is not None:
            connection.send(run(one, lambda: connection.send(MADE)))


def _separate(log: str) -> None:
    """Leave the streams of the parent alone, and keep a traceback of Python if the process crashes."""
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    nothing, errors = os.open(os.devnull, os.O_RDWR), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream, target in ((0, nothing), (1, nothing), (2, errors)):
        os.dup2(target, stream)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(k, "w" if k else "r", closefd=False) for k in range(3))
    faulthandler.enable(file=2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    _restrict()


def _status(name: str) -> int:
    """A number of bytes from /proc/self/status; 0 where there is none."""
    try:
        return int(Path("/proc/self/status").read_text().partition(name)[2].split(None, 1)[0]) << 10
    except (OSError, ValueError, IndexError):
        return 0


def _restrict() -> None:
    """Let the process have 1 GB more than it has: a larger input is an error here, and harms no other process."""
    if size := _status("VmSize:"):
        resource.setrlimit(resource.RLIMIT_AS, (size + MOST_MEMORY + SLACK, resource.RLIM_INFINITY))


def _reset_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def run(one: Input, made: Callable[[], object]) -> Result:
    """Drive a door with an input and judge what comes; `made` is called when the input is there."""
    from hostile.doors import DOORS

    door, case = DOORS[one.door], one.made()
    made()
    _reset_peak()
    before, wall, cpu = _status("VmRSS:"), time.perf_counter(), time.process_time()
    try:
        outcome, detail = judged(one.door, lambda: door.drive(case), door.refusals)
    except MemoryError:
        outcome, detail = MEMORY, "MemoryError"
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    used = _status("VmHWM:") - before
    seconds = min(cpu, wall)
    if outcome in GOOD and used > MOST_MEMORY:
        outcome, detail = MEMORY, f"{used >> 20} MiB"
    if outcome in GOOD and seconds > MOST_SECONDS:
        outcome, detail = TIME, f"{seconds:.1f} s"
    return Result(one, outcome, detail, seconds)


def judged(door: str, drive: Any, refusals: tuple[type[BaseException], ...]) -> tuple[str, str]:
    """The outcome of a call and, if it is none of the good ones, its traceback."""
    from contrada.errors import ArgumentError, ContradaError

    try:
        drive()
    except ArgumentError as error:
        # Wrong arguments are to be called so; of data that is read the reason is to be told.
        is_wrong = door.endswith("()")
        return (REFUSED, "") if is_wrong else (OTHER, f"ArgumentError: {str(error)[:200]!a}\n{traceback.format_exc()}")
    except ContradaError as error:
        try:
            str(error).encode("utf-8", "surrogatepass")
        except Exception:
            return OTHER, f"an error that cannot be printed\n{traceback.format_exc()}"
        return REFUSED, ""
    except refusals:
        return REFUSED, ""
    except MemoryError:
        return MEMORY, traceback.format_exc(limit=-8)
    except BaseException as error:
        return OTHER, f"{type(error).__name__}: {str(error)[:200]!a}\n{traceback.format_exc(limit=-8)[:4000]}"
    return ANSWER, ""


class Worker:
    """A worker process and the input that it has not answered yet."""

    def __init__(self, number: int, most_seconds: float) -> None:
        self.number, self.most_seconds = number, most_seconds
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
            self.process.join(HANG_SECONDS)
            yield from self._renewed(CRASH, f"the process ended with {self.process.exitcode}", 0.0)
        wall, cpu = time.monotonic() - self.since, self._cpu() - self.cpu
        is_slow = min(wall, cpu) > self.most_seconds + 1
        is_idle = wall > HANG_SECONDS and cpu < 1 + wall / 100  # on a busy machine others may have the processor
        if self.input is not None and (is_slow or is_idle):
            self.process.kill()
            self.process.join()
            yield from self._renewed(TIME, f"killed after {wall:.1f} s, {cpu:.1f} s of them on processors", cpu)

    def _renewed(self, outcome: str, detail: str, seconds: float) -> Iterator[Result]:
        if self.input is not None:
            yield Result(self.input, outcome, detail, seconds)
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
    """Workers that share inputs; one that takes a second more than `most_seconds` for an input is killed."""

    def __init__(self, jobs: int, most_seconds: float = MOST_SECONDS) -> None:
        self._workers = [Worker(number, most_seconds) for number in range(jobs)]

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
