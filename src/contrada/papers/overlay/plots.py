"""Draw figures 7 to 12 of the overlay paper from a file of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from contrada.papers.overlay.figures import AXES, METHODS, scaled, setting_of
from contrada.papers.overlay.run import Setting
from contrada.papers.row_file import Row

METHOD_NAMES = {"quadratic": "quadratic", "linear": "linear", "rstar": "R*", "ours": "R* with sketches"}
Value = Callable[[Row], float]
PERCENT = "false positives, % of peers"


def chosen(rows: list[Row], method: str, scale: float, **varied: Any) -> list[Row]:
    """Return the rows of a method, for all seeds, with the paper's defaults except for `varied`."""
    wanted = scaled(replace(Setting(), **METHODS[method], **varied), scale)
    return [row for row in rows if replace(setting_of(row), seed=wanted.seed) == wanted]


def mean(rows: list[Row], value: Value) -> tuple[float, float]:
    """Return mean and standard deviation over seeds; NaN without rows."""
    if not rows:
        return float("nan"), float("nan")
    values = [value(row) for row in rows]
    return float(np.mean(values)), float(np.std(values))


def means(rows: list[Row], method: str, scale: float, axis: str, value: Value) -> Any:
    """Return means and standard deviations over seeds along an axis, as two rows."""
    return np.array([mean(chosen(rows, method, scale, **varied), value) for varied, _ in AXES[axis]]).T


def ratio(row: Row) -> float:
    """Return false positives in percent of all peers."""
    return 100 * float(row["false_positive_ratio"])


def hits(row: Row) -> float:
    """Return the mean number of peers that want a message."""
    return float(row["hits"])


def control(row: Row) -> float:
    """Return false positives in percent of all peers if peers are placed at random."""
    return 100 * float(row["control_ratio"])


def plot(rows: list[Row], directory: Path, suffix: str = "png", scale: float = 1.0) -> list[Path]:
    """Draw those of figures 7 to 12 for which there are rows; return the files."""
    import matplotlib as mpl

    mpl.use("Agg")
    directory.mkdir(parents=True, exist_ok=True)

    def lines(name: str, label: str, value: Value = ratio) -> Path:
        return _lines(rows, directory / f"{name}.{suffix}", scale, label, value)

    return [
        lines("figure_07_size", "subscriptions"),
        lines("figure_08_distribution", "distribution"),
        lines("figure_09_dimensions", "dimensions"),
        lines("figure_10_hits", "dimensions", hits),
        _against_hits(rows, directory / f"figure_11_equal_hits.{suffix}", scale),
        lines("figure_12_degree", "m, M"),
    ]


def _lines(rows: list[Row], target: Path, scale: float, label: str, value: Value) -> Path:
    """Draw one figure: a line per method, with the spread over seeds."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    ticks = AXES[label]

    shown = METHOD_NAMES if value is ratio else {"quadratic": "all methods"}  # hits do not depend on the tree
    for method, name in shown.items():
        averages, spreads = means(rows, method, scale, label, value)
        axes.errorbar(range(len(ticks)), averages, yerr=spreads, marker="o", capsize=3, label=name)
    if value is ratio:
        axes.plot(range(len(ticks)), means(rows, "quadratic", scale, label, control)[0], "k:", label="random placement")
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(range(len(ticks)), [text for _, text in ticks], rotation=20 if label == "distribution" else 0)
    axes.set(xlabel=label, ylabel=PERCENT if value is ratio else "hits per message")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside upper center", ncols=3)
    figure.savefig(target)
    plt.close(figure)
    return target


def _against_hits(rows: list[Row], target: Path, scale: float) -> Path:
    """Draw figure 11: false positives by the number of hits of a message, for three numbers of dimensions."""
    import matplotlib.pyplot as plt

    count = len(METHOD_NAMES)
    figure, panels = plt.subplots(1, count, figsize=(4 * count, 4), sharey=True, layout="constrained")
    for axes, (method, name) in zip(panels, METHOD_NAMES.items(), strict=True):
        for dimensions in (2, 4, 8):
            merged = hits_curve(rows, method, scale, dimensions)
            axes.plot(list(merged), [100 * share for share in merged.values()], "o-", label=f"{dimensions} dimensions")
        axes.set(title=name, xscale="symlog", xlabel="hits of a message, at least")
        axes.grid(alpha=0.3)
        axes.legend(loc="upper left")
    panels[0].set_ylabel(PERCENT)
    figure.savefig(target)
    plt.close(figure)
    return target


def hits_curve(rows: list[Row], method: str, scale: float, dimensions: int) -> dict[float, float]:
    """Return the mean ratio of false positives by the least number of hits, for a method and some dimensions."""
    found = chosen(rows, method, scale, dimensions=dimensions)
    return merge_by_hits([row["by_hits"] for row in found if row.get("by_hits")])


def merge_by_hits(curves: list[list[list[float]]]) -> dict[float, float]:
    """Merge the curves of several seeds, rows of (least hits, messages, mean ratio), weighted by messages.

    >>> merge_by_hits([[[0, 1, 0.1]], [[0, 3, 0.3], [1, 1, 0.5]]])
    {0: 0.25, 1: 0.5}
    """
    sums: dict[float, tuple[float, float]] = {}
    for curve in curves:
        for low, count, share in curve:
            weight, total = sums.get(low, (0.0, 0.0))
            sums[low] = weight + count, total + count * share
    return {low: round(total / weight, 12) for low, (weight, total) in sorted(sums.items())}
