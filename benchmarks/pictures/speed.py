"""Charts of what was measured: scans of one message, matching by the number of subscriptions."""

import re
from collections.abc import Hashable, Mapping
from statistics import fmean
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from benchmarks.match.scale import GROWTH
from benchmarks.polygons import FILES
from benchmarks.report import duration

INK, GREY, PALE, LINE = "#1f2933", "#52606d", "#9aa5b1", "#e4e7eb"
FIRST, SECOND = "#1f77b4", "#e8702a"
Rows = list[dict[str, Any]]
Series = dict[Hashable, dict[int, float]]  # seconds by number, for each line
MESSAGES = {
    "message of 20 points": "message of\n20 points",
    "message of kind A": "A: round,\n6 to 10 points",
    "message of kind B": "B: irregular,\n30 to 50 points",
    "message of kind C": "C: narrow,\n3 to 5 points",
}
SCANS = {
    "ours": ("Contrada, exact", FIRST),
    "shapely.intersects, message prepared": ("GEOS, prepared: only intersects or not", GREY),
    "shapely.relate": ("GEOS relate", PALE),
    "relate_sampled (Algorithm 1, no halo)": ("Algorithm 1 (2011), compiled: approximate", SECOND),
}
ENGINES = {"Contrada": (FIRST, "o"), "Shapely": (GREY, "s"), "DuckDB spatial": (SECOND, "D"), "PostGIS": (PALE, "^")}


def draw_scans(result: dict[str, Any]) -> Figure:
    """Draw milliseconds per scan on a logarithmic axis."""
    rows = [row for row in result["rows"] if row["section"].startswith("One message") and row["against"] in SCANS]
    times: dict[str, dict[str, float]] = {}
    for row in rows:
        times.setdefault(row["work"], {"ours": row["ours"]})[row["against"]] = row["theirs"]
    figure, axes = plt.subplots(figsize=(11, 6.4), facecolor="white")
    for group, seconds in enumerate(times.values()):
        for place, (contender, (label, colour)) in enumerate(SCANS.items()):
            y, value = group + 0.2 * (place - 1.5), seconds[contender] * 1e3
            axes.barh(y, value, height=0.18, color=colour, label=label if group == 0 else None)
            factor = "" if contender == "ours" else f"  ({seconds[contender] / seconds['ours']:.0f} times)"
            axes.text(value, y, f" {duration(seconds[contender])}{factor}", va="center", fontsize=9.5, color=INK)
    every = [value * 1e3 for seconds in times.values() for value in seconds.values()]
    axes.set(xscale="log", xlim=(min(every) / 2, max(every) * 5), xlabel="milliseconds per message (logarithmic)")
    axes.set_yticks(range(len(times)), [MESSAGES[work] for work in times], fontsize=11)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    clean(axes, f"{rows[0]['section'].split(' (')[0]}, one thread", fontsize=15, pad=34)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False, axis="y")
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=4, frameon=False, fontsize=9.5)
    libraries = "".join(f", {name} {result['versions'][name]}" for name in ("GEOS", "shapely", "numba"))
    return finished(figure, result, libraries, left=0.125, top=0.86, bottom=0.115)


def draw_match(result: dict[str, Any]) -> Figure:
    """Draw random operators on the real sets to the left, 100 answers of N to the right; logarithmic axes."""
    figure, both = plt.subplots(1, 2, figsize=(11, 5.4), facecolor="white")
    styles = {name: {"color": colour, "marker": marker, "label": name} for name, (colour, marker) in ENGINES.items()}
    drawn = {
        "Random operators, messages of 1 to 25 %": random_operators(result["rows"]),
        "S_INTERSECTS, 100 matches of N": growth(result["rows"]),
    }
    for axes, (title, series) in zip(both, drawn.items(), strict=True):
        draw_lines(axes, series, styles, title, xscale="log", yscale="log", xlabel="subscriptions (N)")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_minor_formatter(NullFormatter())
        low, high = np.log10(axes.get_ylim())
        axes.set_ylim(10 ** np.floor(low), 10 ** np.ceil(high))
        axes.legend(frameon=False)
    both[0].set_ylabel("milliseconds per message")
    return finished(figure, result, ", ours on one thread", left=0.07, top=0.92, bottom=0.13, wspace=0.2)


def random_operators(rows: Rows) -> Series:
    """Return mean seconds over the kinds of messages; for Shapely those of the plan that the bar speaks of."""
    found: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        is_real = row["section"].startswith("Random operators") and row["work"].startswith(tuple(FILES))
        if is_real and row["at_least"] is not None:
            size = number(re.findall(r"([\d,]+) polygons", row["work"])[0])
            found.setdefault(row["against"].split(":")[0], {}).setdefault(size, []).append(row["theirs"])
            if row["against"].startswith("Shapely"):
                found.setdefault("Contrada", {}).setdefault(size, []).append(row["ours"])
    return {name: {size: fmean(each) for size, each in times.items()} for name, times in found.items()}


def growth(rows: Rows) -> Series:
    """Return seconds by N, ours and Shapely's."""
    found = [row for row in rows if row["section"] == GROWTH and row["work"].startswith("N = ")]
    sides = {"Contrada": "ours", "Shapely": "theirs"}
    return {name: {number(row["work"][4:]): row[side] for row in found} for name, side in sides.items()}


def number(text: str) -> int:
    """Return a number that is written with commas."""
    return int(text.replace(",", ""))


def draw_lines(axes: Axes, series: Series, styles: Mapping[Any, dict[str, Any]], title: str, **scales: Any) -> None:
    """Draw a line of milliseconds for each style that has times."""
    for name, style in styles.items():
        if times := sorted(series.get(name, {}).items()):
            sizes, seconds = zip(*times, strict=True)
            axes.plot(sizes, [value * 1e3 for value in seconds], linewidth=2, **{"markersize": 5, **style})
    axes.set(**scales)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    clean(axes, title)


def clean(axes: Axes, title: str, **style: Any) -> None:
    """Give the axes a title and a pale grid, and no frame."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_title(title, **{"loc": "left", "fontsize": 12, "color": INK, **style})


def finished(figure: Figure, result: dict[str, Any], machine: str, **margins: float) -> Figure:
    """Say below the picture where its numbers come from, and return it with these margins."""
    text = f"{result['machine']['cpu']}{machine}" + (" (quick run)" if result["quick"] else "")
    figure.text(0.985, 0.015, text, ha="right", fontsize=8, color=GREY)
    figure.subplots_adjust(**{"right": 0.985, **margins})
    return figure
