"""Files of rows that grow with the runs of an experiment: one line of JSON for each run.

An interrupted experiment continues where it stopped, and drawing never computes anything again.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from contrada import __version__
from contrada.errors import ContradaError, FormatError
from contrada.papers.result_file import commit

Row = dict[str, Any]
S = TypeVar("S")  # the setting of a run


def read_rows(path: Path, setting_of: Callable[[Row], Any]) -> list[Row]:
    """Return the complete rows of a file; an interrupted run may have left half a line at the end.

    Raise FormatError if another line is invalid, before rows are added to a file of something else.
    """
    rows = []
    for number, line in enumerate(path.read_bytes().splitlines() if path.exists() else (), 1):
        try:
            row = json.loads(line)
            setting_of(row)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            if isinstance(error, ValueError) and not isinstance(error, ContradaError) and line.startswith(b'{"'):
                continue
            reason = "nested too deeply" if isinstance(error, RecursionError) else error
            raise FormatError(f"{path}, line {number} is not a row of this experiment: {reason}") from None
        rows.append(row)
    return rows


def add_rows(
    path: Path,
    settings: Iterable[S],
    setting_of: Callable[[Row], S],
    measure: Callable[[S], Row],
    processes: int,
    tell: Callable[[int, int, Row], None] = lambda *_: None,
) -> int:
    """Measure the settings that the file does not have, in their order, and write each row at once.

    Return the number of new rows.
    """
    known = {setting_of(row) for row in read_rows(path, setting_of)}
    waiting = [each for each in settings if each not in known]
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {"version": __version__, "commit": commit(), "python": platform.python_version(), "cores": os.cpu_count()}
    with path.open("a") as target:
        if target.tell() and not path.read_bytes().endswith(b"\n"):
            target.write("\n")
        for done, row in enumerate(_measured(waiting, measure, processes), 1):
            target.write(json.dumps(row | about) + "\n")
            target.flush()
            tell(done, len(waiting), row)
    return len(waiting)


def _measured(settings: list[S], measure: Callable[[S], Row], processes: int) -> Iterator[Row]:
    if processes == 1:
        yield from map(measure, settings)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(measure, each) for each in settings]):
            yield future.result()
