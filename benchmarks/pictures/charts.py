"""What charts share: colours, lines of milliseconds against a number, and a caption that names the machine."""

import json
from collections.abc import Hashable, Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.command import result_of

INK, GREY, PALE, LINE = "#1f2933", "#52606d", "#9aa5b1", "#e4e7eb"
FIRST, SECOND = "#1f77b4", "#e8702a"
Series = dict[Hashable, dict[int, float]]  # seconds by number, for each line


def read_result(name: str, section: str) -> dict[str, Any] | None:
    """Return what a benchmark saved, if it has rows of a section that begins so."""
    path = result_of(name)
    result: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"rows": []}
    return result if any(row["section"].startswith(section) for row in result["rows"]) else None


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


def finished(figure: Figure, result: dict[str, Any], machine: str, note: str = "", **margins: float) -> Figure:
    """Say below the picture where its numbers come from, and return it with these margins."""
    text = f"{result['machine']['cpu']}{machine}" + (" (quick run)" if result["quick"] else "")
    figure.text(0.985, 0.015, text, ha="right", fontsize=8, color=GREY)
    figure.text(0.068, 0.015, note, fontsize=8, color=GREY)
    figure.subplots_adjust(**{"right": 0.985, **margins})
    return figure
