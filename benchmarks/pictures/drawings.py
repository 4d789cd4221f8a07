"""Drawings that need no measurements: the eight relations as pairs of regions, and five rectangles in relation graphs.

Relations and graphs are computed, not assumed.
"""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import shapely
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch, Rectangle
from matplotlib.path import Path as Outline

import contrada as ct
from benchmarks.pictures.speed import FIRST, GREY, INK, SECOND
from contrada.papers.cover import CompleteGraph, KdTree, Range, RelationGraph, StrictPoset, rectangle_point

FloatArray = npt.NDArray[np.float64]
RCC8 = dict(zip(ct.Relation, ("DC", "EC", "PO", "EQ", "NTPP", "NTPPi", "TPPi", "TPP"), strict=True))


def blob(x: float, y: float, radius: float, phase: float = 0.0, steps: int = 240) -> FloatArray:
    """Return a smooth, slightly irregular ring."""
    angle = 2 * np.pi * np.arange(steps) / steps
    distance = radius * (1 + 0.10 * np.sin(3 * angle + phase) + 0.05 * np.cos(5 * angle - phase))
    return np.stack([x + distance * np.cos(angle), y + distance * np.sin(angle)], axis=1)


def bite(ring: FloatArray, start: int, stop: int, depth: float) -> FloatArray:
    """Return the part of a ring next to its vertices start..stop, reaching `depth` of the way to its centre.

    With a negative depth it is a region outside the ring that shares these vertices.
    """
    rim = np.take(ring, np.arange(start, stop), axis=0, mode="wrap")
    centre = ring.mean(axis=0)
    bow = np.sin(np.linspace(0, np.pi, len(rim)))[:, None] ** 0.5
    return np.concatenate([rim, (rim + (centre - rim) * depth * bow)[-2:0:-1]])


def pairs() -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield eight pairs of rings, one for each relation of the first to the second."""
    large = blob(0, 0, 1.0)
    yield blob(-0.8, 0.35, 0.55, 1.0), blob(0.75, -0.25, 0.6, 2.0)
    yield bite(blob(0.5, 0, 0.75, 2.0), 80, 160, -1.1), blob(0.5, 0, 0.75, 2.0)
    yield blob(-0.4, 0.15, 0.75, 1.0), blob(0.45, -0.15, 0.75, 2.0)
    yield large, np.roll(large, 11, axis=0)[::-1]
    yield blob(0.05, 0.05, 0.5, 2.0), large
    yield bite(large, 50, 130, 0.7), large
    yield large, blob(0.05, 0.05, 0.5, 2.0)
    yield large, bite(large, 170, 250, 0.7)


def draw_region(axes: Axes, region: ct.Region, colour: str) -> None:
    """Draw a translucent region with a crisp boundary."""
    shape = region.to_shapely()
    outline = Outline(np.asarray(shape.exterior.coords), closed=True)
    axes.add_patch(PathPatch(outline, facecolor=colour, alpha=0.38, edgecolor="none"))
    axes.add_patch(PathPatch(outline, facecolor="none", edgecolor=colour, linewidth=2.0, joinstyle="round"))


def draw_common_boundary(axes: Axes, a: ct.Region, b: ct.Region) -> None:
    """Draw dashes of the second colour where the boundaries run together, so that both are seen."""
    common = shapely.line_merge(shapely.intersection(a.to_shapely().boundary, b.to_shapely().boundary))
    for line in shapely.get_parts(common):
        if line.geom_type == "LineString":
            axes.plot(*np.asarray(line.coords).T, color=SECOND, linewidth=2.0, dashes=(3, 3))


def draw_relations() -> Figure:
    """Draw eight panels, each labelled with the relation that `relate` finds."""
    figure, panels = plt.subplots(2, 4, figsize=(11, 6.1), facecolor="white")
    found = []
    for axes, (first, second) in zip(panels.flat, pairs(), strict=True):
        a, b = ct.Region(first), ct.Region(second)
        relation = ct.Relation(ct.relate(a, b))
        found.append(relation)
        draw_region(axes, b, SECOND)
        draw_region(axes, a, FIRST)
        draw_common_boundary(axes, a, b)
        axes.set(xlim=(-1.55, 1.55), ylim=(-1.35, 1.3), aspect="equal")
        axes.axis("off")
        name = relation.name.lower().replace("_", "-")
        axes.set_title(name, fontsize=16, color=INK, fontweight="bold", pad=4)
        axes.text(0, -1.32, f"RCC-8: {RCC8[relation]}", ha="center", va="center", fontsize=12, color=GREY)
    if sorted(found) != sorted(ct.Relation):
        raise SystemExit(f"the picture shows {[relation.name for relation in found]}, not each relation once")
    keys = [Patch(facecolor=FIRST, alpha=0.6, label="A"), Patch(facecolor=SECOND, alpha=0.6, label="B")]
    figure.legend(handles=keys, loc="lower center", ncols=2, frameon=False, fontsize=13)
    figure.subplots_adjust(left=0.01, right=0.99, top=0.93, bottom=0.12, wspace=0.02, hspace=0.22)
    return figure


# In the order of their arrival: x from, x to, y from, y to.
RECTANGLES = {1: (1, 7, 1, 6), 2: (0, 9, 0, 8), 3: (2, 5, 2, 5), 4: (2.5, 4.5, 2.5, 3.5), 5: (5.5, 8.5, 5, 7)}
PLACES = {2: (1.1, 3), 1: (0.3, 2), 3: (0.9, 1), 4: (0.1, 0), 5: (1.8, 2)}
ARROW = {"arrowstyle": "-|>", "color": "black", "shrinkA": 11, "shrinkB": 11}
FORWARDED, COVERED = "#1f6f8b", "#b9b9b9"


def graphs() -> dict[str, RelationGraph | CompleteGraph]:
    """Return the graphs with all five subscribed."""
    found = {
        "$G_*$: all relationships": CompleteGraph(KdTree(4), KdTree(4)),
        "strict poset: none that follows": StrictPoset(KdTree(4), KdTree(4)),
        "$G_1$: one cover each": RelationGraph(KdTree(4), 1),
        "$G_2$: two covers each": RelationGraph(KdTree(4), 2),
    }
    for graph in found.values():
        for key, (x0, x1, y0, y1) in RECTANGLES.items():
            graph.subscribe(key, rectangle_point({"x": Range(x0, x1), "y": Range(y0, y1)}, ["x", "y"]))
    return found


def draw_graph(axes: Axes, title: str, graph: RelationGraph | CompleteGraph) -> None:
    """Draw nodes and edges."""
    for parent, child in graph.edges():
        axes.annotate("", PLACES[child], PLACES[parent], arrowprops=ARROW)
    for key, (x, y) in PLACES.items():
        colour = FORWARDED if key in graph.forwarded else COVERED
        axes.plot(x, y, "o", markersize=20, color=colour)
        axes.text(x, y, str(key), ha="center", va="center", color="white", fontweight="bold")
    axes.set_title(title, fontsize=10)
    axes.set(xlim=(-0.4, 2.2), ylim=(-0.5, 3.5))
    axes.axis("off")


def draw_graphs() -> Figure:
    """Draw the rectangles to the left, a graph of each kind to the right."""
    found = graphs()
    figure = Figure(figsize=(12, 3.4), layout="constrained")
    first, *others = figure.subplots(1, 5)
    forwarded = next(iter(found.values())).forwarded
    for key, (x0, x1, y0, y1) in RECTANGLES.items():
        colour = FORWARDED if key in forwarded else "#777777"
        first.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=colour, linewidth=1.8))
        first.text(x0 + 0.2, y1 - 0.2, str(key), va="top", color=colour, fontweight="bold")
    first.set(xlim=(-0.3, 9.3), ylim=(-0.3, 8.3), aspect="equal", xticks=[], yticks=[])
    first.set_title("five rectangles, as they arrived", fontsize=10)
    for axes, (title, graph) in zip(others, found.items(), strict=True):
        draw_graph(axes, title, graph)
    return figure
