"""Draw the network experiment from its rows: modes by workload, growth, and a network with what its links forward."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from contrada.papers.drawing import LOOKS, save
from contrada.papers.exhibit import Row
from contrada.papers.network.run import MODES
from contrada.papers.network.sweeps import AXIS_MODES, AXIS_WORKLOAD, SHAPES, value_of
from contrada.papers.network.tables import Results

# The common looks, one for each mode; those of growth have a line, too.
LOOKS_OF_MODES: dict[str, dict[str, Any]] = dict(zip(MODES, LOOKS, strict=False))
SHAPE_LINES = {"tree": "-", "chain": "--", "star": ":"}
DRAWN_MODE = "withdrawal"
WIDTHS = 1.0, 5.0  # of a link that forwards nothing, and of the one that forwards most


def draw(results: list[Results], directory: Path) -> list[Path]:
    """Draw all pictures into a directory, with means and deviations over the seeds; return the files."""
    directory.mkdir(parents=True, exist_ok=True)
    stem = directory / results[0].sweep.stem
    return [
        *_draw_modes(results, Path(f"{stem}_modes")),
        *_draw_growth(results, Path(f"{stem}_growth")),
        *_draw_links(results[0], Path(f"{stem}_links")),
    ]


def _draw_modes(results: list[Results], path: Path) -> list[Path]:
    """Draw control messages and entries in percent of flooding's, by workload and mode."""
    from matplotlib.figure import Figure

    names = results[0].workloads()[::-1]
    figure = Figure(figsize=(10, 1.6 + 0.3 * len(names)), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (title, count) in zip(
        panels, (("control messages", "control"), ("table entries", "entries")), strict=True
    ):
        for mode in MODES:
            found = [[100 * one.share(name, mode, count) for one in results] for name in names]
            look = {**LOOKS_OF_MODES[mode], "linestyle": "none", "label": mode, "markersize": 6, "capsize": 3}
            means, spreads = zip(*map(mean_and_spread, found), strict=True)
            axes.errorbar(means, range(len(names)), xerr=spreads if any(spreads) else None, **look)
        axes.set(title=title, xlabel="% of flooding's", xlim=(0, None))
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(-0.6, len(names) - 0.4)
        axes.grid(alpha=0.3)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(MODES))
    return save(figure, path)


def _draw_growth(results: list[Results], path: Path) -> list[Path]:
    """Draw control messages and seconds until settled by brokers, control messages and entries by subscriptions."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

    figure = Figure(figsize=(10, 7), layout="constrained")
    (by_brokers, settling), (by_subscriptions, entries) = figure.subplots(2, 2)
    sweep = results[0].sweep
    sizes = sweep.sizes
    counts = [count for count in sweep.brokers_axis if count > 1]
    for mode in AXIS_MODES:
        look = {**LOOKS_OF_MODES[mode], "label": mode}
        _line(by_brokers, results, counts, _by_shape(mode, "tree"), "control", look)
        for axes, value in ((by_subscriptions, "control"), (entries, "entries")):
            _line(axes, results, sizes, _by_size(mode, sweep.axis_brokers), value, look)
    for shape in ("tree", *SHAPES):
        for mode in ("flooding", "covering"):
            look = {**LOOKS_OF_MODES[mode], "linestyle": SHAPE_LINES[shape], "label": f"{shape}, {mode}"}
            _line(settling, results, counts, _by_shape(mode, shape), "settling.mean", look)
    size = f"{sweep.subscriptions:,} subscriptions"
    by_brokers.set(title=f"balanced tree, {size}", xlabel="brokers", ylabel="control messages")
    settling.set(title=f"a further subscription, {size}", xlabel="brokers", ylabel="settled after, mean seconds")
    tree = f"balanced tree of {sweep.axis_brokers} brokers"
    by_subscriptions.set(title=tree, xlabel="subscriptions", ylabel="control messages")
    entries.set(title=tree, xlabel="subscriptions", ylabel="table entries")
    for axes in (by_brokers, settling, by_subscriptions, entries):
        axes.set(xscale="log", yscale="log" if any(len(line.get_xdata()) for line in axes.lines) else "linear")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    for axes, ticks in ((by_brokers, counts), (settling, counts), (by_subscriptions, sizes), (entries, sizes)):
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.set_xticks([], minor=True)
        if axes.get_yscale() == "log":
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:,g}" if axes is settling else "{x:,.0f}")
            axes.yaxis.set_minor_formatter(NullFormatter())
    return save(figure, path)


RowOf = Callable[[Results, int], Row | None]  # the row of a count, of one seed


def _by_shape(mode: str, shape: str) -> RowOf:
    return lambda results, count: results.axis(mode, brokers=count, topology=shape)


def _by_size(mode: str, brokers: int) -> RowOf:
    return lambda results, count: results.axis(mode, brokers=brokers, subscriptions=count)


def _line(
    axes: Any, results: list[Results], counts: Iterable[int], row_of: RowOf, name: str, look: dict[str, Any]
) -> None:
    """Draw one line through the counts that were measured, with deviations over the seeds."""
    found = {count: mean_and_spread([value_of(row_of(one, count), name) for one in results]) for count in counts}
    points = [(count, mean, spread) for count, (mean, spread) in found.items() if not math.isnan(mean)]
    if points:
        xs, means, spreads = zip(*points, strict=True)
        axes.errorbar(xs, means, yerr=spreads if any(spreads) else None, capsize=3, markersize=5, **look)


def mean_and_spread(values: list[float]) -> tuple[float, float]:
    """Return the mean of the values that were measured and their deviation; NaN and 0 without any.

    >>> mean_and_spread([1.0, 3.0, float("nan")])
    (2.0, 1.4142135623730951)
    """
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return math.nan, 0.0
    return statistics.fmean(known), statistics.stdev(known) if len(known) > 1 else 0.0


def _draw_links(results: Results, path: Path) -> list[Path]:
    """Draw the largest balanced tree whose links are known; nothing if there is none."""
    from matplotlib.figure import Figure

    rows = [results.axis(DRAWN_MODE, brokers=count) for count in results.sweep.brokers_axis]
    drawn = [row for row in rows if row is not None and row.get("links")]
    if not drawn:
        return []
    row = drawn[-1]
    links = {(link["from"], link["to"]): link for link in row["links"]}
    places = _places(row["brokers"])
    most = max(link["told"] for link in links.values())
    figure = Figure(figsize=(11, 6), layout="constrained")
    axes = figure.subplots()
    for (a, b), link in links.items():
        if int(a[1:]) > int(b[1:]):  # towards the root; drawn with the other direction
            _draw_link(axes, places[a], places[b], link, links[b, a], most)
    for id, (x, y) in places.items():
        axes.plot(x, y, "o", markersize=26, markerfacecolor="white", markeredgecolor="black", zorder=3)
        axes.text(x, y, id, ha="center", va="center", fontsize=9, zorder=4)
    axes.set_axis_off()
    axes.margins(0.04, 0.08)
    axes.set_title(
        f"What each link forwards + suppresses: {row['subscriptions']:,} subscriptions ({AXIS_WORKLOAD}, {DRAWN_MODE}),"
        f" {row['brokers']} brokers\n▲ towards the root, ▼ away from it; the more a link forwards, the wider its line",
        fontsize=10,
    )
    return save(figure, path)


def _places(brokers: int) -> dict[str, tuple[float, float]]:
    """Return where each broker of a balanced binary tree is drawn."""
    levels = math.ceil(math.log2(brokers + 1))
    found = {}
    for number in range(brokers):
        level = int(math.log2(number + 1))
        place = number + 1 - (1 << level)
        found[f"b{number}"] = ((place + 0.5) / (1 << level), float(levels - level))
    return found


def _draw_link(axes: Any, low: tuple[float, float], high: tuple[float, float], up: Row, down: Row, most: int) -> None:
    """Draw one link with its counts in both directions."""
    thin, wide = WIDTHS
    width = thin + (wide - thin) * (up["told"] + down["told"]) / (2 * most)
    axes.plot([low[0], high[0]], [low[1], high[1]], color="#9db8c4", linewidth=width, solid_capstyle="round", zorder=1)
    where = 0.42  # of the way up, so that labels of neighbours do not meet
    x, y = (low[k] + where * (high[k] - low[k]) for k in range(2))
    text = f"▲ {up['told']:,} + {up['suppressed']:,}\n▼ {down['told']:,} + {down['suppressed']:,}"
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85}
    axes.text(x, y, text, ha="center", va="center", fontsize=7.5, bbox=box, zorder=2)
