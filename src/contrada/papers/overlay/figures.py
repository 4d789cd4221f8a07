"""Figures 7 to 12 and Table 2 of the overlay paper: the settings of each, and a file of rows that grows with runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from contrada.papers import row_file
from contrada.papers.overlay.run import Setting, measure
from contrada.papers.overlay.workload import DISTRIBUTIONS
from contrada.papers.row_file import Row

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
    """Return the complete rows of a file; raise FormatError if it is one of something else."""
    return row_file.read_rows(path, setting_of)


def setting_of(row: Row) -> Setting:
    """Return the setting of a row."""
    return Setting(**{field.name: row.get(field.name, field.default) for field in fields(Setting)})


def run(
    settings: list[Setting], path: Path, processes: int, tell: Callable[[int, int, Row], None] = lambda *_: None
) -> int:
    """Measure the settings that the file does not have, and write each row at once; return the number of new rows."""
    # Large trees first, so that no process is left with one at the end.
    ordered = sorted(settings, key=lambda each: -each.subscriptions)
    return row_file.add_rows(path, ordered, setting_of, measure, processes, tell)
