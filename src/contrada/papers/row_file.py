"""Files of rows that grow with the runs of an experiment: one line of JSON for each run.

An interrupted experiment continues where it stopped, and drawing never computes anything again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from contrada.errors import FormatError
from contrada.papers.exhibit import Row, Setting
from contrada.papers.provenance import provenance

Run = tuple[Setting, int]  # a setting and a seed
Key = tuple[Any, ...]
Measured = Iterator[tuple[Run, Row]]


def key_of(run: Run) -> Key:
    """Return what distinguishes a run in a file."""
    setting, seed = run
    return (seed, *sorted(setting.items()))


def read_rows(path: Path) -> dict[Key, Row]:
    """Return the complete rows of a file by their runs; an interrupted run may have left half a line.

    Raise FormatError if another line is no row, before rows are added to a file of something else.
    """
    rows = {}
    for number, line in enumerate(path.read_bytes().splitlines() if path.exists() else (), 1):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            if line.startswith(b'{"setting"'):
                continue
            raise FormatError(f"{path}, line {number} is not a row of an experiment: {error}") from None
        try:
            run = found["setting"], found["seed"]
            rows[key_of(run)] = {**run[0], "seed": run[1], **found["values"], **found["about"]}
        except (AttributeError, KeyError, TypeError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else "it has another form"
            raise FormatError(f"{path}, line {number} is not a row of an experiment: {reason}") from None
    return rows


def add_rows(
    path: Path,
    runs: Iterable[Run],
    measured: Callable[[list[Run]], Measured],
    tell: Callable[[int, int, Run], None] = lambda *_: None,
) -> int:
    """Measure the runs that the file does not have, and write each row at once; return the number of new rows."""
    known = read_rows(path)
    waiting = list({key_of(run): run for run in runs if key_of(run) not in known}.values())
    if not waiting:
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    tell(0, len(waiting), waiting[0])
    with path.open("a") as target:
        if target.tell() and not path.read_bytes().endswith(b"\n"):
            target.write("\n")
        for done, (run, values) in enumerate(measured(waiting), 1):
            row = {"setting": run[0], "seed": run[1], "values": values, "about": provenance()}
            target.write(json.dumps(row) + "\n")
            target.flush()
            tell(done, len(waiting), run)
    return len(waiting)
