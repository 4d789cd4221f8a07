"""An overlay tree as arrays: compute from the boxes which peers receive a message, without sending any.

A message from the root reaches a peer exactly if the box of the peer's highest node contains it, because the boxes of
all nodes above contain that box. This is the oracle of the simulation, and it evaluates the random control.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from contrada.overlay.boxes import bounds, largest
from contrada.overlay.simulation.simulator import Simulator
from contrada.papers.overlay.workload import Boxes, holding

PAIRS_PER_CHUNK = 2_000_000  # pairs of a message and a peer


class Degree(NamedTuple):
    """Children of inner peers, summed over a peer's nodes; the peer as its own child counts per node, or once."""

    max: int
    average: float
    variance: float


def degree_of(simulator: Simulator, is_once: bool = False) -> Degree:
    """Return the values of the paper's Table 2 for one tree."""
    states = [peer.state for peer in simulator.peers.values() if peer.state.top]
    counts = [sum(map(len, state.nodes)) - (state.top - 1 if is_once else 0) for state in states]
    if not counts:
        return Degree(0, 0.0, 0.0)
    return Degree(max(counts), float(np.mean(counts)), float(np.var(counts)))


def reach_of(simulator: Simulator) -> tuple[Boxes, Boxes]:
    """Return for every peer the box of its subscription, and the box of its highest node."""
    states = [peer.state for peer in simulator.peers.values()]
    return np.array([state.own for state in states]), np.array([state.entries[-1].box for state in states])


def received(simulator: Simulator, points: Boxes) -> npt.NDArray[np.bool_]:
    """Return which peers (columns) receive which messages (rows) from the root; uses sketches if there are any."""
    got = np.empty((len(points), len(simulator.peers)), np.bool_)
    for column, peer in enumerate(simulator.peers.values()):
        state = peer.state
        is_root = state.parent is None  # messages start at the root
        top = state.entries[-1]
        got[:, column] = is_root | holding(np.array(top.parts or (top.box,)), points).any(axis=1)
    return got


def shuffled_reach(simulator: Simulator, rng: np.random.Generator) -> tuple[Boxes, Boxes]:
    """Return `reach_of` for a tree of the same shape in which every peer has a random leaf.

    The holder of a node is chosen as in the tree itself: the child whose node has the largest box.
    """
    owns, _ = reach_of(simulator)
    rows = iter(rng.permutation(len(owns)).tolist())
    reach = owns.copy()

    def fill(holder: object, level: int) -> tuple[int, tuple[float, ...]]:
        if level == 0:
            row = next(rows)
            return row, tuple(owns[row].tolist())
        state = simulator.peers[holder].state  # type: ignore[index]
        children = [fill(child, level - 1) for child in state.nodes[level]]
        box = bounds([child_box for _, child_box in children])
        row = children[largest([child_box for _, child_box in children])][0]
        reach[row] = box
        return row, box

    root = simulator.root
    fill(root, simulator.peers[root].state.top)
    return owns, reach


def false_share(owns: Boxes, reach: Boxes, points: Boxes) -> float:
    """Return the share of unwanted receipts, per message and peer."""
    step = max(1, PAIRS_PER_CHUNK // len(owns))
    false = 0
    for start in range(0, len(points), step):
        part = points[start : start + step]
        false += int((holding(reach, part) & ~holding(owns, part)).sum())
    return false / (len(owns) * len(points))
