"""Summaries of commands for schedulers: `--summary json` writes one JSON object as the last line of standard error.

Standard output carries results, so it never has a summary. `--summary FILE.json` writes the object to a file instead,
which gets its name when it is complete. Every end of a command has a summary: an error, an interrupt and SIGTERM too.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contrada import __version__

JSON, SUFFIX = "json", ".json"


@dataclass
class RunSummary:
    """What a command reports of its run; `counts` depend on the command."""

    command: str = ""
    target: str | None = None  # "json", a file, or None for no summary
    counts: dict[str, int] = field(default_factory=dict)
    rejected: int = 0
    outputs: list[str] = field(default_factory=list)
    error: str | None = None
    began: float = field(default_factory=time.monotonic)

    def note(self, *, outputs: Iterable[object] = (), rejected: int | None = None, **counts: int) -> None:
        """Set counts and the number of rejected items, and add outputs: paths, URIs or topics."""
        self.counts |= counts
        self.outputs += [str(place) for place in outputs if str(place) not in self.outputs]
        self.rejected = self.rejected if rejected is None else rejected

    def to_dict(self, code: int) -> dict[str, Any]:
        """Return the object that is written."""
        return {
            "command": self.command, "version": __version__, "exit_code": code, "error": self.error,
            "seconds": round(time.monotonic() - self.began, 3), "counts": self.counts, "rejected": self.rejected,
            "outputs": self.outputs,
        }  # fmt: skip

    def finish(self, code: int) -> None:
        """Write the summary, once."""
        target, self.target = self.target, None
        if target is None:
            return
        line = json.dumps(self.to_dict(code)) + "\n"
        if target == JSON:
            with suppress(OSError, ValueError):  # standard error is closed
                sys.stderr.write(line)
                sys.stderr.flush()
            return
        path = Path(target)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        fresh.write_text(line, encoding="utf-8")
        fresh.replace(path)


_running = RunSummary()


def summary_of_run() -> RunSummary:
    """Return the summary of the running command, also to threads of it."""
    return _running


def begin_summary(command: str, target: str | None) -> RunSummary:
    """Begin the summary of a command."""
    global _running
    _running = RunSummary(command, target)
    return _running
