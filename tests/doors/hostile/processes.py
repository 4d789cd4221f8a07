"""Commands in processes of their own, as people run them, watched for time and memory.

A command may take 5 s of processors and 1 GB more than it takes for two good lines: that covers the start of Python,
imports and the loading of compiled kernels, which are measured first (`allowance`).
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

from hostile.command_doors import EXITS, GOOD_FILES, bytes_of, case_of, words_of, write_files
from hostile.runner import ANSWER, CRASH, MEMORY, MOST_MEMORY, MOST_SECONDS, OTHER, REFUSED, TIME, Input, Result

DOORS = ("contrada match", "contrada check", "contrada simplify")
HANG_SECONDS = 300.0  # of a process, however little of a processor it got
ADDRESSES = 16 << 30  # bytes that a process may reserve, so that no input can take the whole machine
GOOD_CASES = tuple(
    case_of(words, files=GOOD_FILES)
    for words in ("match m.ndjson s.ndjson", "check --file s.ndjson", "simplify s.ndjson")
)


class Ended(NamedTuple):
    """How a process ended: exit code or negative signal, seconds of processors, bytes at its peak, its errors."""

    code: int
    seconds: float
    memory: int
    errors: bytes


@cache
def allowance() -> tuple[float, int]:
    """Measure the seconds and bytes of good small inputs: each once to fill caches, then the most of another run."""
    for case in GOOD_CASES:
        ended = run_process(case, 600.0)
        assert ended.code in (0, 1), ended.errors.decode(errors="replace")
    again = [run_process(case, 600.0) for case in GOOD_CASES]
    return max(ended.seconds for ended in again), max(ended.memory for ended in again)


def run_process(case: dict[str, Any], most_seconds: float) -> Ended:
    """Run a command in a directory with the files of a case; more than so many seconds of processors end it."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(most_seconds) + 1, int(most_seconds) + 2))
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))

    with tempfile.TemporaryDirectory(prefix="contrada-doors-") as folder, tempfile.TemporaryFile() as errors:
        write_files(case, Path(folder))
        given = Path(folder) / ".stdin"
        given.write_bytes(bytes_of(case.get("stdin")) or b"")
        command = [sys.executable, "-m", "contrada.cli.main", *words_of(case)]
        with given.open("rb") as stdin:
            child = subprocess.Popen(
                command, cwd=folder, stdin=stdin, stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=limit
            )
        killer = Timer(HANG_SECONDS, os.kill, (child.pid, signal.SIGKILL))
        killer.start()
        _, status, usage = os.wait4(child.pid, 0)
        killer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        return Ended(child.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, errors.read())


def run_command(one: Input) -> Result:
    """Run a command with an input and judge how it ended."""
    good_seconds, good_memory = allowance()
    ended = run_process(one.made(), good_seconds + MOST_SECONDS)
    seconds, memory = ended.seconds - good_seconds, ended.memory - good_memory
    outcome, detail = _judged(ended, seconds, memory)
    return Result(one, outcome, detail, max(0.0, seconds))


def _judged(ended: Ended, seconds: float, memory: int) -> tuple[str, str]:
    errors = ended.errors[-2000:].decode(errors="replace")
    if seconds > MOST_SECONDS or ended.code in (-signal.SIGXCPU, -signal.SIGKILL):
        return TIME, f"{seconds:.1f} s beyond the start, exit code {ended.code}"
    if memory > MOST_MEMORY:
        return MEMORY, f"{memory >> 20} MiB beyond the start"
    if ended.code < 0:
        return CRASH, f"signal {-ended.code}: {errors}"
    if ended.code not in EXITS or b"Traceback (most recent" in ended.errors:
        return OTHER, f"exit code {ended.code}: {errors}"
    return (ANSWER, "") if ended.code == 0 else (REFUSED, "")


def run_commands(inputs: Iterable[Input], progress: Callable[[int, Result], None]) -> list[Result]:
    """Run all inputs, one process after another; what takes too long is run again before it counts."""
    results: list[Result] = []
    for one in inputs:
        result = run_command(one)
        results.append(run_command(one) if result.outcome == TIME else result)
        progress(len(results), results[-1])
    return results
