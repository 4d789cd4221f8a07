"""Draw a simulated overlay: its tree, in two dimensions its nested boxes, and the path of one message."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from contrada.amounts import counted
from contrada.overlay.protocol import PeerId
from contrada.overlay.simulation.simulator import MessageSpread, Simulator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WANTED, BOTHERED, CALM = "#1a9850", "#d73027", "#9aa5b1"
LEVEL_COLOURS = ("#4575b4", "#f28e2b", "#7b3294", "#117733", "#882255", "#332288")


class Spot(NamedTuple):
    """The position of a tree node in the picture."""

    peer: PeerId
    level: int
    x: float


def layout(simulator: Simulator) -> tuple[list[Spot], list[tuple[Spot, Spot]]]:
    """Return positions of nodes, leaves side by side and each node above the middle of its children, and the lines.

    >>> simulator = Simulator()
    >>> for k in range(3):
    ...     _ = simulator.add([(float(k), k + 1.0)])
    >>> spots, lines = layout(simulator)
    >>> [(spot.level, spot.x) for spot in spots], len(lines)
    ([(0, 0.0), (0, 1.0), (0, 2.0), (1, 1.0)], 3)
    """
    spots: list[Spot] = []
    lines: list[tuple[Spot, Spot]] = []
    leaves = iter(range(len(simulator.peers)))

    def place(peer: PeerId, level: int) -> Spot:
        if level == 0:
            spot = Spot(peer, 0, float(next(leaves)))
        else:
            below = [place(child, level - 1) for child in simulator.peers[peer].state.nodes[level]]
            spot = Spot(peer, level, sum(child.x for child in below) / len(below))
            lines.extend((spot, child) for child in below)
        spots.append(spot)
        return spot

    if simulator.peers:
        root = simulator.root
        place(root, simulator.peers[root].state.top)
    return spots, lines


def draw(simulator: Simulator, target: Path, spread: MessageSpread | None = None) -> Path:
    """Draw an overlay at rest, and who got a message, to a file; its suffix is its format: svg, png, pdf."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    simulator.check()
    dimensions = len(next(iter(simulator.peers.values())).state.own) // 2 if simulator.peers else 0
    flat = dimensions == 2
    width = min(40.0, max(8.0, 0.16 * len(simulator.peers)))
    figure, panels = plt.subplots(
        1, 1 + flat, figsize=(width + 7 * flat, 6.5), width_ratios=[width, 7] if flat else None, layout="constrained",
        squeeze=False,
    )  # fmt: skip
    _draw_tree(panels[0][0], simulator, spread)
    if flat:
        _draw_boxes(panels[0][1], simulator, spread)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target)
    plt.close(figure)
    return target


def _colour(peer: PeerId, spread: MessageSpread | None) -> str:
    if spread is None or peer not in spread.reached:
        return CALM
    return WANTED if peer in spread.wanted else BOTHERED


def _draw_tree(axes: Axes, simulator: Simulator, spread: MessageSpread | None) -> None:
    spots, lines = layout(simulator)
    for above, below in lines:
        is_itself = above.peer == below.peer
        # A message went down a line if it reached the child; a peer passes it to its own node without sending.
        passed = spread is not None and below.peer in spread.reached and above.peer in spread.reached
        colour = _colour(below.peer, spread) if passed else "#d5dae0"
        style: dict[str, Any] = {"linewidth": 2.2, "linestyle": ":"} if is_itself else {"linewidth": 1.2}
        axes.plot([above.x, below.x], [above.level, below.level], color=colour, zorder=1, **style)
    for spot in spots:
        axes.scatter([spot.x], [spot.level], s=60 + 30 * spot.level, color=_colour(spot.peer, spread), zorder=2)
        if len(simulator.peers) <= 120:
            axes.annotate(str(spot.peer), (spot.x, spot.level), ha="center", va="center", fontsize=6, zorder=3)
    axes.set(xticks=[], yticks=range(max((spot.level for spot in spots), default=0) + 1), ylabel="level")
    title = f"{counted(len(simulator.peers), 'peer')}; dotted: a peer and its own node below"
    if spread is not None:
        title += f"\ngreen: wanted the message ({len(spread.wanted)}), red: got it in vain ({spread.bothered})"
    axes.set_title(title, fontsize=9)


def _draw_boxes(axes: Axes, simulator: Simulator, spread: MessageSpread | None) -> None:
    from matplotlib.patches import Rectangle

    boxes = [entry.box for peer in simulator.peers.values() for entry in peer.state.entries]
    frame = _frame([*boxes, spread.publication.where] if spread is not None else boxes)
    for peer in simulator.peers.values():
        for level, (box, *_) in enumerate(peer.state.entries):
            xmin, ymin, xmax, ymax = (min(max(side, frame[k % 2]), frame[2 + k % 2]) for k, side in enumerate(box))
            colour = _colour(peer.id, spread) if level == 0 else LEVEL_COLOURS[(level - 1) % len(LEVEL_COLOURS)]
            patch = Rectangle((xmin, ymin), xmax - xmin, ymax - ymin, edgecolor=colour, linewidth=0.6 + 0.6 * level)
            patch.set(fill=level == 0, facecolor=colour, alpha=1.0 if level else 0.25)
            axes.add_patch(patch)
    if spread is not None:
        xmin, ymin, xmax, ymax = spread.publication.where
        axes.plot([(xmin + xmax) / 2], [(ymin + ymax) / 2], "k*", markersize=14)
        axes.add_patch(Rectangle((xmin, ymin), xmax - xmin, ymax - ymin, fill=False, edgecolor="black"))
    axes.set(xlim=(frame[0], frame[2]), ylim=(frame[1], frame[3]))
    axes.set_title("boxes of subscriptions (filled) and of nodes, by level", fontsize=9)


def _frame(boxes: list[tuple[float, ...]]) -> tuple[float, float, float, float]:
    """Return the extent of the picture: all finite sides, and a margin."""
    found = []
    for axis in range(2):
        sides = [side for box in boxes for side in (box[axis], box[axis + 2]) if math.isfinite(side)] or [0.0]
        rim = 0.04 * (max(sides) - min(sides)) or 1.0
        found.append((min(sides) - rim, max(sides) + rim))
    return found[0][0], found[1][0], found[0][1], found[1][1]
