"""The picture of benchmarks/simplify.py: figure 4b of [SPATIAL] as measured here, solid before simplification."""

from __future__ import annotations

import json
import re
from typing import Any

import matplotlib.pyplot as plt
from command import result_of
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from simplify_report import COUNTING, FIGURE, TABLE

RESULT = result_of("simplify")
INK, GREY = "#1f2933", "#52606d"
COLOURS = {5: ("#1f77b4", "o"), 15: ("#e8702a", "s"), 25: ("#2a9d5c", "^")}
MESSAGES = "20 points"  # regions from the generator of the constraints, as in section 5.1
WORK = re.compile(rf"(\d+) predicates, N = ([\d,]+), {MESSAGES},")
NOTE = "The paper's text gives no numbers for the curves of its figure 4b."
Curves = dict[int, dict[int, tuple[float, float]]]  # by predicates and N: seconds before and after


def has_figure() -> bool:
    """Whether there are numbers to draw."""
    return RESULT.exists() and any(row["section"] == FIGURE for row in json.loads(RESULT.read_text())["rows"])


def draw_figure_4b() -> Figure:
    """The table to the left, the counting matcher to the right: N against milliseconds, on one scale."""
    result = json.loads(RESULT.read_text())
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.4), sharey=True, facecolor="white")
    draw(left, curves(result["rows"], TABLE), "ForwardingTable")
    draw(right, curves(result["rows"], COUNTING), "Counting matcher")
    left.set_ylabel("milliseconds per message")
    left.set_ylim(0, None)
    keys = [
        Line2D([], [], color=colour, marker=marker, linewidth=2, label=f"{predicates} predicates")
        for predicates, (colour, marker) in COLOURS.items()
    ]
    keys += [Line2D([], [], color=GREY, linewidth=2, label="as they are")]
    keys += [Line2D([], [], color=GREY, linewidth=2, linestyle="--", label="simplified")]
    figure.legend(handles=keys, loc="upper left", bbox_to_anchor=(0.055, 1.0), ncols=5, frameon=False, fontsize=9.5)
    machine = f"{result['machine']['cpu']}, one thread" + (" (quick run)" if result["quick"] else "")
    figure.text(0.068, 0.015, NOTE, fontsize=8, color=GREY)
    figure.text(0.985, 0.015, machine, ha="right", fontsize=8, color=GREY)
    figure.subplots_adjust(left=0.068, right=0.985, top=0.86, bottom=0.135, wspace=0.06)
    return figure


def curves(rows: list[dict[str, Any]], matcher: str) -> Curves:
    """What was measured of one matcher."""
    found: Curves = {predicates: {} for predicates in COLOURS}
    for row in rows:
        work = WORK.match(row["work"])
        if row["section"] == FIGURE and row["against"] == matcher and work:
            found[int(work[1])][int(work[2].replace(",", ""))] = row["theirs"], row["ours"]
    return found


def draw(axes: Axes, found: Curves, title: str) -> None:
    """Two lines for each number of predicates: solid before, dashed after."""
    for predicates, (colour, marker) in COLOURS.items():
        sizes = sorted(found[predicates])
        for k, line in enumerate(("-", "--")):
            milliseconds = [found[predicates][size][k] * 1e3 for size in sizes]
            axes.plot(sizes, milliseconds, color=colour, marker=marker, markersize=5, linestyle=line, linewidth=2)
    axes.set(xlabel="constraints (N), two in a filter", xlim=(0, None))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e4e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_title(title, loc="left", fontsize=12, color=INK)
