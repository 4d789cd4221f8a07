"""Processes of their own for C++ readers, which a damaged file may end; each has a limit of time and one of memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from contrada.limits import DEFAULTS, limit, variable

# How NumPy, Arrow, the loader and the system say that a process gets no more addresses.
SHORT_OF_MEMORY = ("alloc", "MemoryError", "worker thread", "failed to map segment")


class Ran(NamedTuple):
    """The output of a process up to its end, and how it failed; None if it did not."""

    output: bytes
    failure: str | None


def run_apart(module: str, arguments: Sequence[str] = (), data: bytes = b"") -> Ran:
    """Run a module in another process, with `data` on its standard input, and return its output.

    After the limit `reader_seconds` the process is killed. The module calls `limit_memory` before it reads anything.
    """
    command = [sys.executable, "-m", module, *arguments]
    path = os.pathsep.join(filter(None, sys.path))
    try:
        run = subprocess.run(
            command, input=data, capture_output=True, check=False, start_new_session=True,
            env={**os.environ, "PYTHONPATH": path}, timeout=limit("reader_seconds"),
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        return Ran(error.stdout or b"", f"the process that read it was stopped: {_most('reader_seconds')}")
    if not run.returncode:
        return Ran(run.stdout, None)
    last = run.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    how = f"signal {-run.returncode}" if run.returncode < 0 else last or f"exit code {run.returncode}"
    return Ran(run.stdout, with_memory_limit(f"the process that read it ended ({how})"))


def limit_memory() -> None:
    """Let this process have no more addresses than the limit `reader_memory` says; Windows has no such limit."""
    with suppress(ImportError):
        import resource

        most = limit("reader_memory")
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def with_memory_limit(reason: str) -> str:
    """Return the reason of a failure, with the limit `reader_memory` behind it where memory was short.

    >>> with_memory_limit("realloc of size 64 failed")[:60]
    'realloc of size 64 failed; the limit is 4,294,967,296 bytes '
    """
    return f"{reason}; {_most('reader_memory')}" if any(sign in reason for sign in SHORT_OF_MEMORY) else reason


def _most(name: str) -> str:
    return f"the limit is {limit(name):,} {DEFAULTS[name][1]} ({variable(name)})"
