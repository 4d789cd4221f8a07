"""The picture of benchmarks/match_paper.py: figure 4a of [SPATIAL] as measured here, with what the paper prints."""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
from command import result_of
from match_paper import EXACT, FIGURE, PACKED, PAPER, PAPER_EXACT, REAL, SAMPLED, SYNTHETIC
from match_pictures import Series
from matplotlib.axes import Axes
from matplotlib.figure import Figure

RESULT = result_of("match")
INK, GREY, PALE = "#1f2933", "#52606d", "#9aa5b1"
STYLES = {
    SAMPLED: ("Algorithm 1, one constraint after another", "#e8702a", "s", "-"),
    PAPER: ("the paper's CR-tree with Algorithm 1", "#e8702a", "o", ":"),
    EXACT: ("exact relation, one constraint after another", GREY, "s", "-"),
    PAPER_EXACT: ("the paper's CR-tree with the exact relation", "#1f77b4", "o", ":"),
    PACKED: ("packed tree", "#1f77b4", "D", "-"),
}
TIMES_ALGORITHM_1 = 6  # section 5.1: CGAL's exact polygon intersection takes about six times as long
# Table 3, natural features in Rhône-Alpes, scenario 1: milliseconds for messages of the kinds A, B and C.
TABLE_3_POLYGONS = 17_048
TABLE_3 = {SAMPLED: (951.0, 1323.0, 851.0), PAPER: (108.0, 93.0, 7.0)}
NOTE = (
    "Pale: what [SPATIAL] prints, measured on an Intel i5. Left, CGAL's exact test takes about six times as long as "
    "Algorithm 1 (drawn: 6 times ours).\nRight, the means of Table 3 for 17,048 polygons. "
    "The paper's text gives no numbers for the curves of its figure 4a."
)


def has_figure() -> bool:
    """Whether there are numbers to draw."""
    return RESULT.exists() and any(row["section"] == FIGURE for row in json.loads(RESULT.read_text())["rows"])


def draw_figure_4a() -> Figure:
    """Synthetic regions to the left, a real set to the right: N against milliseconds, logarithmic upwards."""
    result = json.loads(RESULT.read_text())
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 6.2), sharey=True, facecolor="white")
    synthetic, real = series(result["rows"], SYNTHETIC), series(result["rows"], REAL)
    draw(left, synthetic, "Synthetic regions, each at least 10 % of the universe")
    draw(right, real, "Rhône-Alpes, messages of 1 to 25 %")
    sizes, seconds = zip(*sorted(synthetic[SAMPLED].items()), strict=True)
    left.plot(sizes, [TIMES_ALGORITHM_1 * value * 1e3 for value in seconds], color=PALE, linestyle="--", linewidth=1.5)
    left.annotate("CGAL, by the paper's ratio", (sizes[-1], TIMES_ALGORITHM_1 * seconds[-1] * 1e3), (0, 7),
                  textcoords="offset points", ha="right", fontsize=9, color=GREY)  # fmt: skip
    for name, milliseconds in TABLE_3.items():
        mean = sum(milliseconds) / len(milliseconds)
        right.plot(TABLE_3_POLYGONS, mean, marker=STYLES[name][2], markersize=9, color=PALE, fillstyle="none")
        right.annotate(f"Table 3: {mean:,.0f} ms", (TABLE_3_POLYGONS, mean), (8, -18), textcoords="offset points",
                       ha="right", fontsize=9, color=GREY)  # fmt: skip
    right.set_xlim(0, 1.08 * TABLE_3_POLYGONS)
    left.set_ylim(None, 5_000)
    left.set_ylabel("milliseconds per message (logarithmic)")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper left", bbox_to_anchor=(0.055, 1.0), ncols=2, frameon=False, fontsize=9.5)
    machine = f"{result['machine']['cpu']}, one thread" + (" (quick run)" if result["quick"] else "")
    figure.text(0.068, 0.015, NOTE, fontsize=8, color=GREY)
    figure.text(0.985, 0.015, machine, ha="right", fontsize=8, color=GREY)
    figure.subplots_adjust(left=0.068, right=0.985, top=0.815, bottom=0.155, wspace=0.06)
    return figure


def series(rows: list[dict], name: str) -> Series:
    """Seconds by N for every contender on one set; empty where it was not measured."""
    found: Series = {contender: {} for contender in STYLES}
    for row in rows:
        if row["section"] == FIGURE and row["work"].startswith(f"{name}, N = "):
            size = int(row["work"].split(" = ")[1].replace(",", ""))
            found[PACKED][size] = row["ours"]
            if row["against"] in found:
                found[row["against"]][size] = row["theirs"]
    return found


def draw(axes: Axes, found: Series, title: str) -> None:
    """One line for each contender."""
    for name, (label, colour, marker, line) in STYLES.items():
        times = sorted(found[name].items())
        sizes, milliseconds = [size for size, _ in times], [seconds * 1e3 for _, seconds in times]
        axes.plot(
            sizes, milliseconds, color=colour, marker=marker, markersize=5, linestyle=line, linewidth=2, label=label
        )
    axes.set(yscale="log", xlabel="constraints (N)", xlim=(0, None))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e4e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_title(title, loc="left", fontsize=12, color=INK)
