"""Figures 7 to 12 and Table 2 of the overlay paper: the settings of each, and a file of rows that grows with runs.

The file has one line of JSON per run, so an interrupted experiment continues where it stopped, and drawing never
computes anything again.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import fields, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from contrada import __version__
from contrada.errors import FormatError, OverlayError
from contrada.papers.overlay.run import Setting, measure
from contrada.papers.overlay.workload import DISTRIBUTIONS
from contrada.papers.result_file import commit

METHODS: dict[str, dict[str, Any]] = {
    "quadratic": {"choose": "r", "split": "quadratic"},
    "linear": {"choose": "r", "split": "linear"},
    "rstar": {"choose": "rstar", "split": "rstar"},
    "ours": {"choose": "rstar", "split": "rstar", "sketch": 10},
}
DEGREES = ((2, 5), (5, 10), (10, 20), (15, 30), (20, 40))
# What the figures vary, by the name of the axis: fields of a setting, and how the axis shows them.
AXES: dict[str, list[tuple[dict[str, Any], str]]] = {
    "subscriptions": [({"subscriptions": size}, f"{size:,}") for size in (1_000, 2_500, 5_000, 10_000, 25_000, 50_000)],
    "distribution": [({"distribution": name}, name) for name in DISTRIBUTIONS],
    "dimensions": [({"dimensions": count}, str(count)) for count in (2, 4, 6, 8, 10, 12)],
    "m, M": [({"least": least, "most": most}, f"{least}, {most}") for least, most in DEGREES],
}
Row = dict[str, Any]


def settings_of(seeds: Iterable[int], scale: float = 1.0) -> list[Setting]:
    """Return all settings of all figures, each once; `scale` < 1 makes trees smaller for a trial.

    >>> len(settings_of([1])), len(settings_of([1, 2]))
    (80, 160)
    """
    found: dict[Setting, None] = {}
    for seed in seeds:
        for method in METHODS:
            base = replace(Setting(seed=seed), **METHODS[method])
            found |= dict.fromkeys(replace(base, **varied) for ticks in AXES.values() for varied, _ in ticks)
    return [scaled(each, scale) for each in found]


def scaled(setting: Setting, scale: float) -> Setting:
    """Return the setting with fewer subscriptions and messages.

    >>> scaled(Setting(), 0.1).subscriptions
    1000
    """
    subscriptions, messages = (max(1, round(count * scale)) for count in (setting.subscriptions, setting.messages))
    return replace(setting, subscriptions=subscriptions, messages=messages)


def read_rows(path: Path) -> list[Row]:
    """Return the complete rows of a file; an interrupted run may have left half a line at the end.

    Raise FormatError if another line is invalid, before rows are added to a file of something else.
    """
    rows = []
    for number, line in enumerate(path.read_bytes().splitlines() if path.exists() else (), 1):
        try:
            row = json.loads(line)
            setting_of(row)
        except (AttributeError, RecursionError, TypeError, ValueError) as error:
            if isinstance(error, ValueError) and not isinstance(error, OverlayError) and line.startswith(b'{"'):
                continue
            reason = "nested too deeply" if isinstance(error, RecursionError) else error
            raise FormatError(f"{path}, line {number} is not a row of an evaluation: {reason}") from None
        rows.append(row)
    return rows


def setting_of(row: Row) -> Setting:
    """Return the setting of a row."""
    return Setting(**{field.name: row.get(field.name, field.default) for field in fields(Setting)})


def run(
    settings: list[Setting], path: Path, processes: int, tell: Callable[[int, int, Row], None] = lambda *_: None
) -> int:
    """Measure the settings that the file does not have, and write each row at once; return the number of new rows."""
    known = {setting_of(row) for row in read_rows(path)}
    # Large trees first, so that no process is left with one at the end.
    waiting = sorted((each for each in settings if each not in known), key=lambda each: -each.subscriptions)
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {"version": __version__, "commit": commit(), "python": platform.python_version(), "cores": os.cpu_count()}
    with path.open("a") as target:
        if target.tell() and not path.read_bytes().endswith(b"\n"):
            target.write("\n")
        for done, row in enumerate(_measured(waiting, processes), 1):
            target.write(json.dumps(row | about) + "\n")
            target.flush()
            tell(done, len(waiting), row)
    return len(waiting)


def _measured(settings: list[Setting], processes: int) -> Iterator[Row]:
    if processes == 1:
        yield from map(measure, settings)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(measure, each) for each in settings]):
            yield future.result()
