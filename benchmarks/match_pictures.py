"""The picture of benchmarks/match.py: the number of subscriptions against milliseconds per message, ours and peers."""

from __future__ import annotations

import json
import re
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from command import result_of
from match_scale import GROWTH
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

RESULT = result_of("match")
STYLES = {
    "Contrada": ("#1f77b4", "o"),
    "Shapely": ("#52606d", "s"),
    "DuckDB spatial": ("#e8702a", "D"),
    "PostGIS": ("#9aa5b1", "^"),
}
REAL = ("London", "Rhône-Alpes", "SoCal", "LA")
Series = dict[str, dict[int, float]]


def draw_match() -> Figure:
    """Random operators on the real sets to the left, 100 answers of N to the right; logarithmic axes."""
    result = json.loads(RESULT.read_text())
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.4), facecolor="white")
    draw(left, random_operators(result["rows"]), "Random operators, messages of 1 to 25 %")
    draw(right, growth(result["rows"]), "S_INTERSECTS, 100 matches of N")
    left.set_ylabel("milliseconds per message")
    machine = f"{result['machine']['cpu']}, ours on one thread" + (" (quick run)" if result["quick"] else "")
    figure.text(0.985, 0.012, machine, ha="right", fontsize=8, color="#52606d")
    figure.subplots_adjust(left=0.07, right=0.985, top=0.92, bottom=0.13, wspace=0.2)
    return figure


def random_operators(rows: list[dict[str, Any]]) -> Series:
    """Mean seconds over the kinds of messages; for Shapely those of the plan that the bar speaks of."""
    found: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        if not row["section"].startswith("Random operators") or not row["work"].startswith(REAL):
            continue
        if row["at_least"] is None:
            continue
        size = int(re.findall(r"([\d,]+) polygons", row["work"])[0].replace(",", ""))
        found.setdefault(row["against"].split(":")[0], {}).setdefault(size, []).append(row["theirs"])
        if row["against"].startswith("Shapely"):
            found.setdefault("Contrada", {}).setdefault(size, []).append(row["ours"])
    return {name: {n: sum(t) / len(t) for n, t in times.items()} for name, times in found.items()}


def growth(rows: list[dict[str, Any]]) -> Series:
    """Seconds by N, ours and Shapely's."""
    found: Series = {"Contrada": {}, "Shapely": {}}
    for row in rows:
        if row["section"] == GROWTH and row["work"].startswith("N = "):
            size = int(row["work"][4:].replace(",", ""))
            found["Contrada"][size], found["Shapely"][size] = row["ours"], row["theirs"]
    return found


def draw(axes: Axes, series: Series, title: str) -> None:
    """One line for each contender."""
    for name, (colour, marker) in STYLES.items():
        times = sorted(series.get(name, {}).items())
        if times:
            sizes, seconds = zip(*times, strict=True)
            milliseconds = [value * 1e3 for value in seconds]
            axes.plot(sizes, milliseconds, color=colour, marker=marker, linewidth=2, label=name)
    axes.set(xscale="log", yscale="log", xlabel="subscriptions (N)")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())
    low, high = axes.get_ylim()
    axes.set_ylim(10 ** np.floor(np.log10(low)), 10 ** np.ceil(np.log10(high)))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e4e7eb", linewidth=0.8)
    axes.set_title(title, loc="left", fontsize=12, color="#1f2933")
    axes.legend(frameon=False)
