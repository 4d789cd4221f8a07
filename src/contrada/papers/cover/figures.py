"""Measure and draw figures 8 to 12 of [COVER]: run time by reporting mode, unsubscribe queries, run time by dimension.

Run times are CPU seconds of whole sequences of commands, compiled, on one core: the best of a few runs, because other
work on the machine can only add to them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from contrada.papers.cover import KdTree, Replayed, Scan, ZCurve
from contrada.papers.cover.commands import rectangle_commands
from contrada.papers.cover.point_index import PointIndex
from contrada.papers.cover.replay import replay
from contrada.papers.cover.tables import ATTRIBUTES, COMMANDS, LOADS, MODES

NAME = "cover-figures"
GROWTH_FIGURES = {"10": 3, "11": 6, "12": 8}  # attributes of each figure; points have twice as many dimensions
GROWTH_P = 0.15
SIZE_STEPS = 10  # sizes from a tenth of all commands to all
MAX_COMMANDS = 100_000
REPEATS = 3
INDEXES: dict[str, Callable[[int], PointIndex]] = {"scan": Scan, "Z-curve": ZCurve, "k-d tree": KdTree}
COLOURS = {"scan": "#888888", "Z-curve": "#c8553d", "k-d tree": "#1f6f8b"}
Tell = Callable[[str, int, int], None]


def measure(
    largest: int = MAX_COMMANDS, seed: int = 7, repeats: int = REPEATS, tell: Tell = lambda text, done, total: None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of all figures; figures 8 and 9 take 60,000 commands, scaled by `largest` / 100,000."""
    modes = list(_mode_plan(max(1, largest * COMMANDS // MAX_COMMANDS), seed))
    growth = list(_growth_plan(largest, seed))
    for name in INDEXES:  # compile or load before timing
        replay(INDEXES[name](2), [[1.0, 1.0]], [0, -1])
    for done, (row, points, steps) in enumerate([*modes, *growth]):
        tell(f"figure {row['figure']}: {row['index']}, {len(steps):,} commands", done, len(modes) + len(growth))
        seconds, replayed = _best(row["index"], points, steps, row["k"], repeats)
        yield row | {"seconds": seconds, "queries_u": replayed.unsubscribe_work.queries}


def _mode_plan(commands: int, seed: int) -> Iterator[tuple[dict[str, Any], Any, Any]]:
    """Yield the runs of figures 8 and 9."""
    for p in LOADS:
        steps, points = rectangle_commands(commands, ATTRIBUTES, p, seed)
        for name in ("Z-curve", "k-d tree"):
            for k in MODES:
                row = {"figure": "8", "index": name, "attributes": ATTRIBUTES, "p": p, "k": k, "commands": commands}
                yield row, points, steps


def _growth_plan(largest: int, seed: int) -> Iterator[tuple[dict[str, Any], Any, Any]]:
    """Yield the runs of figures 10 to 12."""
    for figure, attributes in GROWTH_FIGURES.items():
        steps, points = rectangle_commands(largest, attributes, GROWTH_P, seed)
        for step in range(1, SIZE_STEPS + 1):
            commands = largest * step // SIZE_STEPS
            for name in INDEXES:
                row = {"figure": figure, "index": name, "attributes": attributes, "p": GROWTH_P, "k": 1}
                yield row | {"commands": commands}, points, steps[:commands]


def _best(name: str, points: Any, steps: Any, k: int, repeats: int) -> tuple[float, Replayed]:
    """Return the least seconds of `repeats` runs, and the result of the last."""
    best = float("inf")
    for _ in range(repeats):
        index = INDEXES[name](points.shape[1])
        start = time.process_time()
        replayed = replay(index, points, steps, k)
        best = min(best, time.process_time() - start)
    return best, replayed


def draw(rows: Iterable[dict[str, Any]], directory: Path) -> list[Path]:
    """Draw the figures into a directory; return the files."""
    found = list(rows)
    directory.mkdir(parents=True, exist_ok=True)
    return [_draw_modes(found, directory), _draw_growth(found, directory)]


def _draw_modes(rows: list[dict[str, Any]], directory: Path) -> Path:
    """Draw figures 8 and 9."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    times, queries = figure.subplots(1, 2)
    other = queries.twinx()
    for p, style, axes in zip(LOADS, ("-", "--"), (queries, other), strict=True):
        for name in ("Z-curve", "k-d tree"):
            line = [row for row in rows if row["figure"] == "8" and row["p"] == p and row["index"] == name]
            ks = [row["k"] for row in line]
            label = f"{name}, p = {p:.0%}"
            times.plot(ks, [row["seconds"] for row in line], style, marker="o", color=COLOURS[name], label=label)
        axes.plot(ks, [row["queries_u"] for row in line], style, marker="o", color="black", label=f"p = {p:.0%}")
        axes.set(ylim=(0, None), ylabel=f"queries, p = {p:.0%}")
    times.set(title="Figure 8: run time by reporting mode", xlabel="k", ylabel="seconds", ylim=(0, None))
    queries.set(title="Figure 9: queries due to unsubscribing", xlabel="k")
    times.legend(fontsize=8)
    queries.legend(handles=[axes.get_lines()[0] for axes in (queries, other)], fontsize=8)
    path = directory / "cover_modes.png"
    figure.savefig(path, dpi=110)
    return path


def _draw_growth(rows: list[dict[str, Any]], directory: Path) -> Path:
    """Draw figures 10 to 12."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    for axes, (number, attributes) in zip(figure.subplots(1, 3), GROWTH_FIGURES.items(), strict=True):
        last = {}
        for name, colour in COLOURS.items():
            line = [row for row in rows if row["figure"] == number and row["index"] == name]
            thousands, seconds = [row["commands"] / 1000 for row in line], [row["seconds"] for row in line]
            axes.plot(thousands, seconds, marker=".", color=colour, label=name)
            last[name] = seconds[-1]
        gain = last["scan"] / last["k-d tree"]
        title = f"Figure {number}: dimension {2 * attributes}\nk-d tree {gain:.1f} times as fast as the scan"
        axes.set(title=title, xlabel="thousand commands", ylabel="seconds", ylim=(0, None))
        axes.legend(fontsize=8)
    path = directory / "cover_dimensions.png"
    figure.savefig(path, dpi=110)
    return path
