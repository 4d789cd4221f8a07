"""Draw the charts of an exhibit from its rows alone: one style, readable in greyscale, as PNG and SVG."""

from __future__ import annotations

import statistics
from itertools import cycle
from pathlib import Path
from typing import Any

from contrada.papers.exhibit import Chart, Exhibit, Row
from contrada.papers.showing import is_printed, shown, values_of, varied_beside

# Colour, line and marker of the lines of a chart; each pair differs in line and marker, so that greyscale is enough.
LOOKS: tuple[dict[str, Any], ...] = (
    {"color": "#1f6f8b", "linestyle": "-", "marker": "o"},
    {"color": "#c8553d", "linestyle": "--", "marker": "s"},
    {"color": "#555555", "linestyle": ":", "marker": "^"},
    {"color": "#000000", "linestyle": "-.", "marker": "D"},
    {"color": "#1f6f8b", "linestyle": "--", "marker": "v", "markerfacecolor": "white"},
    {"color": "#c8553d", "linestyle": "-", "marker": "P", "markerfacecolor": "white"},
    {"color": "#555555", "linestyle": "-", "marker": "X", "markerfacecolor": "white"},
    {"color": "#000000", "linestyle": ":", "marker": "<", "markerfacecolor": "white"},
    {"color": "#1f6f8b", "linestyle": "-.", "marker": "*"},
)
PRINTED_LOOK: dict[str, Any] = {"linestyle": "none", "markersize": 13, "markeredgewidth": 2.2}
# Markers of the paper's values, by those of our lines; others are bars.
PRINTED_MARKERS = {"s": "x", "^": "+", "D": "1", "v": "2"}
PANEL_INCHES = 4.6, 3.8
DPI = 110
ALONE = "ours"  # label of the only line of a chart
MAX_COLUMNS = 3  # of panels side by side
MAX_TICKS = 8
LEGEND_POINTS = 8  # size of the font
LONG_LABEL = 6  # characters
NEAR_ZERO = 0.3  # below the least value of an axis that begins at 0
LOG_MARGIN = 1.2  # factor by which a logarithmic axis goes beyond the values


def draw(exhibit: Exhibit, rows: list[Row], directory: Path) -> list[Path]:
    """Draw an exhibit into a directory; return the files."""
    directory.mkdir(parents=True, exist_ok=True)
    files = exhibit.draw(rows, directory) if exhibit.draw is not None else []
    if exhibit.charts:
        files += save(chart_figure(exhibit, rows), directory / exhibit.name)
    return files


def save(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as PNG and as SVG; return the files."""
    png, svg = stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg")
    figure.savefig(png, dpi=DPI)
    figure.savefig(svg, metadata={"Date": None})  # without a date equal rows give equal files
    return [png, svg]


def chart_figure(exhibit: Exhibit, rows: list[Row]) -> Any:
    """Return a figure with all charts of an exhibit, and one legend for each set of lines."""
    from matplotlib.figure import Figure

    panels: list[tuple[Chart, Any]] = []
    for chart in exhibit.charts:
        groups = [None] if chart.panels is None else values_of(rows, chart.panels)
        panels += [(chart, group) for group in groups]
    columns = len(panels) if len(panels) <= MAX_COLUMNS else -(-len(panels) // 2)
    lines = -(-len(panels) // columns)
    width, height = PANEL_INCHES
    figure = Figure(figsize=(width * columns, height * lines), layout="constrained")
    places = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes in places[len(panels) :]:
        axes.set_axis_off()
    for axes, (chart, group) in zip(places, panels, strict=False):
        fill_axes(axes, exhibit, chart, [row for row in rows if group is None or row[chart.panels or ""] == group])
        title = exhibit.labels if group is None else f"{exhibit.labels}: {chart.panels} = {shown(group)}"
        axes.set_title(title, fontsize=10)
    handles = {label: line for axes in places for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    add_legend(figure, handles, 2 * columns)
    return figure


def add_legend(figure: Any, handles: dict[str, Any], columns: int) -> None:
    """Add a legend below the panels, with as many columns as the width of the figure has room for."""
    for count in range(columns, 0, -1):
        legend = figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=count, fontsize=LEGEND_POINTS
        )
        if count == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def fill_axes(axes: Any, exhibit: Exhibit, chart: Chart, rows: list[Row]) -> None:
    """Draw the lines of a chart, with deviations over seeds and the paper's values."""
    drawn = [point for row in rows for point in chart.points(row)]
    varied = [name for name in chart.lines if len(values_of(drawn, name)) > 1]
    varied += varied_beside(exhibit, drawn, (*chart.lines, chart.x, chart.panels))
    lines: dict[tuple[Any, ...], list[Row]] = {}
    for row in drawn:
        lines.setdefault(tuple(row[name] for name in varied), []).append(row)
    places = {value: value if is_number(value) else at for at, value in enumerate(values_of(drawn, chart.x))}
    for (values, of_line), look in zip(lines.items(), cycle(LOOKS), strict=False):
        names = zip(varied, values, strict=True)
        label = ", ".join(f"{name} = {shown(value)}" if is_unclear(value) else str(value) for name, value in names)
        fill_line(axes, exhibit, chart, of_line, places, {**look, "label": label or ALONE})
    if chart.limit is not None and is_printed(exhibit, rows):
        axes.axhline(chart.limit[0], color="black", linewidth=1, linestyle=(0, (1, 3)), label=chart.limit[1])
    axes.set(xlabel=chart.x_label, ylabel=chart.y_label)
    axes.grid(alpha=0.3)
    scale_axes(axes, chart, places)


def scale_axes(axes: Any, chart: Chart, places: dict[Any, Any]) -> None:
    """Set scales and ticks: of few values each has its tick."""
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

    if chart.is_log_x:
        axes.set_xscale("symlog", linthresh=1)
        least, most = min(places.values()), max(places.values())
        # Without limits, a bound that was drawn before makes the axis begin far below the values.
        axes.set_xlim(least / LOG_MARGIN if least > 0 else least - NEAR_ZERO, most * LOG_MARGIN)
    if len(places) <= MAX_TICKS:
        is_long = any(len(shown(value)) > LONG_LABEL for value in places)
        turned = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"} if is_long else {}
        axes.set_xticks(list(places.values()), list(map(shown, places)), **turned)
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_formatter("{x:,g}")
    if chart.is_log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:,g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(0, None)
        axes.yaxis.set_major_formatter("{x:,g}")


def fill_line(
    axes: Any, exhibit: Exhibit, chart: Chart, rows: list[Row], places: dict[Any, Any], look: dict[str, Any]
) -> None:
    """Draw one line: means over seeds with their deviations, and what the paper prints as marks of the same colour."""
    xs = [value for value in places if any(row[chart.x] == value for row in rows)]
    groups = [[chart.factor * float(row[chart.y]) for row in rows if row[chart.x] == x] for x in xs]
    means = [statistics.fmean(group) for group in groups]
    spreads = [statistics.stdev(group) if len(group) > 1 else 0.0 for group in groups]
    at = [places[x] for x in xs]
    axes.errorbar(at, means, yerr=spreads if any(spreads) else None, capsize=3, markersize=5, **look)
    printed = [(places[row[chart.x]], exhibit.beside(row)[chart.y]) for row in rows if chart.y in exhibit.beside(row)]
    if printed:
        points = dict(printed)
        heights = [chart.factor * value for value in points.values()]
        is_alone = look["label"] == ALONE
        label, color = ("the paper's", "black") if is_alone else (f"{look['label']}: the paper's", look["color"])
        marker = PRINTED_MARKERS.get(look["marker"], "_")
        axes.plot(list(points), heights, color=color, label=label, marker=marker, **PRINTED_LOOK)


def is_unclear(value: object) -> bool:
    """Return True for a value that needs the name of its parameter beside it: a number, yes or no."""
    return is_number(value) or value in ("yes", "no")


def is_number(value: object) -> bool:
    """Return True for whole and real numbers."""
    return isinstance(value, (int, float))
