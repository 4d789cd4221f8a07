"""Five rectangles and their relation graphs, as the graphs themselves tell them."""

from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from contrada.papers.cover import CompleteGraph, KdTree, Range, RelationGraph, StrictPoset, rectangle_point

# In the order of their arrival: x from, x to, y from, y to.
RECTANGLES = {1: (1, 7, 1, 6), 2: (0, 9, 0, 8), 3: (2, 5, 2, 5), 4: (2.5, 4.5, 2.5, 3.5), 5: (5.5, 8.5, 5, 7)}
PLACES = {2: (1.1, 3), 1: (0.3, 2), 3: (0.9, 1), 4: (0.1, 0), 5: (1.8, 2)}
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


def draw_graph(axes: Any, title: str, graph: RelationGraph | CompleteGraph) -> None:
    """Draw nodes and edges."""
    for parent, child in graph.edges():
        axes.annotate(
            "", PLACES[child], PLACES[parent],
            arrowprops={"arrowstyle": "-|>", "color": "black", "shrinkA": 11, "shrinkB": 11},
        )  # fmt: skip
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
