"""Run C++ file readers in separate processes, which a damaged file may crash, with limits on time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from contrada.limits import DEFAULTS, limit, variable

# Error texts of NumPy, Arrow, the loader and the system for lack of address space.
SHORT_OF_MEMORY = ("alloc", "MemoryError", "worker thread", "failed to map segment")


class Ran(NamedTuple):
    """The output of a process up to its end, and how it failed; `failure` is None on success."""

    output: bytes
    failure: str | None


def run_apart(module: str, arguments: Sequence[str] = (), data: bytes = b"") -> Ran:
    """Run a module in another process, with `data` on its standard input, and return its output.

    After `reader_seconds` the process is killed. The module must call `limit_memory` before it reads anything.
    """
    command = [sys.executable, "-m", module, *arguments]
    path = os.pathsep.join(filter(None, sys.path))
    try:
        run = subprocess.run(
            command, input=data, capture_output=True, check=False, start_new_session=True,
            env={**os.environ, "PYTHONPATH": path}, timeout=limit("reader_seconds"),
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        return Ran(error.stdout or b"", f"the reading process was stopped: {_most('reader_seconds')}")
    if not run.returncode:
        return Ran(run.stdout, None)
    last = run.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    how = f"signal {-run.returncode}" if run.returncode < 0 else last or f"exit code {run.returncode}"
    return Ran(run.stdout, with_memory_limit(f"the reading process failed ({how})"))


def limit_memory() -> None:
    """Limit the address space of this process to `reader_memory` bytes; does nothing on Windows."""
    with suppress(ImportError):
        import resource

        most = limit("reader_memory")
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def with_memory_limit(reason: str) -> str:
    """Append the limit `reader_memory` to the reason of a failure that was caused by lack of memory.

    >>> with_memory_limit("realloc of size 64 failed")[:60]
    'realloc of size 64 failed; the limit is 4,294,967,296 bytes '
    """
    return f"{reason}; {_most('reader_memory')}" if any(sign in reason for sign in SHORT_OF_MEMORY) else reason


def _most(name: str) -> str:
    return f"the limit is {limit(name):,} {DEFAULTS[name][1]} ({variable(name)})"
