"""One worker process: drives doors with inputs, one after another, and tells what came of each."""

from __future__ import annotations

import faulthandler
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
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
    megabytes: float


def serve(connection: Connection, log: str) -> None:
    """Drive the inputs that come, until there is None."""
    _separate(log)
    folder = tempfile.mkdtemp(prefix="contrada-doors-")
    os.chdir(folder)
    connection.send("ready")
    try:
        while (one := connection.recv()) is not None:
            connection.send(run(one, lambda: connection.send(MADE)))
    except (EOFError, BrokenPipeError):
        pass
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)


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
        with open("/proc/self/status", "rb") as file:
            return int(file.read().partition(name.encode())[2].split(None, 1)[0]) << 10
    except (OSError, ValueError, IndexError):
        return 0


def _restrict() -> None:
    """Let the process have 1 GB more than it has: a larger input is an error here, and harms no other process."""
    if size := _status("VmSize:"):
        resource.setrlimit(resource.RLIMIT_AS, (size + MOST_MEMORY + SLACK, resource.RLIM_INFINITY))


def _reset_peak() -> None:
    try:
        with open("/proc/self/clear_refs", "wb") as file:
            file.write(b"5")
    except OSError:
        pass


def run(one: Input, made: Callable[[], object] = lambda: None) -> Result:
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
    return Result(one, outcome, detail, seconds, used / (1 << 20))


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
