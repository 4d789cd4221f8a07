"""Files of rows that grow with the runs of an experiment: one line of JSON for each run.

An interrupted experiment continues where it stopped, and drawing never computes anything again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from contrada.errors import FormatError
from contrada.papers.exhibit import Row, Setting

Run = tuple[Setting, int]  # a setting and a seed
Key = tuple[Any, ...]
Measured = Iterator[tuple[Run, Row, Row]]  # a run, its values, and where they were measured


def key_of(run: Run, digest: str | None = None) -> Key:
    """Return what distinguishes a run in a file; `digest` is that of the regions that it reads, if any."""
    setting, seed = run
    return (seed, digest, *sorted(setting.items()))


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
            digest = found.get("data")
            rows[key_of(run, digest)] = {**run[0], "seed": run[1], "data": digest, **found["values"], **found["about"]}
        except (AttributeError, KeyError, TypeError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else "it has another form"
            raise FormatError(f"{path}, line {number} is not a row of an experiment: {reason}") from None
    return rows


def add_rows(
    path: Path,
    runs: Mapping[Key, Run],
    measured: Callable[[list[Run]], Measured],
    tell: Callable[[int, int, Run], None] = lambda *_: None,
    is_kept: Callable[[Row], bool] = lambda _: True,
) -> int:
    """Measure the runs that the file does not have, and write each row at once; return the number of new rows.

    Rows of the file that `is_kept` refuses are measured again; the later line counts.
    """
    known = {key for key, row in read_rows(path).items() if is_kept(row)}
    waiting = {key_of(run): (run, key[1]) for key, run in runs.items() if key not in known}
    if not waiting:
        return 0
    todo = [run for run, _ in waiting.values()]
    path.parent.mkdir(parents=True, exist_ok=True)
    tell(0, len(todo), todo[0])
    with path.open("a") as target:
        if target.tell() and not path.read_bytes().endswith(b"\n"):
            target.write("\n")
        for done, (run, values, about) in enumerate(measured(todo), 1):
            digest = waiting[key_of(run)][1]
            row = {"setting": run[0], "seed": run[1], "data": digest, "values": values, "about": about}
            target.write(json.dumps(row) + "\n")
            target.flush()
            tell(done, len(todo), run)
    return len(todo)
