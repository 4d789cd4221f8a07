"""The trees that the overlay paper compares with: the containment tree, and one containment tree per attribute.

The paper names both and simulates neither. In a containment tree each subscription hangs below the smallest one that
contains it, and those that lie in no other below a virtual root; equal ones hang below the first of them. A peer passes
a message on to those children that contain it. The trees per attribute are containment trees of the ranges of one
attribute; a message goes through all of them, or, because every subscription here has every attribute, through one. In
the flat trees per attribute each range hangs below the largest one that contains it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from contrada.papers.overlay.tree import Degree
from contrada.papers.overlay.workload import Boxes, holding

CONTAINMENT, PER_ATTRIBUTE, ONE_ATTRIBUTE = "containment tree", "tree per attribute", "tree of one attribute"
FLAT = "flat tree per attribute"
BASELINES = (CONTAINMENT, PER_ATTRIBUTE, FLAT, ONE_ATTRIBUTE)
VIRTUAL_ROOT = -1
ROWS_PER_CHUNK = 256
MESSAGES_PER_CHUNK = 100
Rows = npt.NDArray[np.int64]


class ContainmentTree(NamedTuple):
    """A containment tree: the parent and the level of every box, and the boxes themselves."""

    boxes: Boxes
    parents: Rows  # VIRTUAL_ROOT: it lies in no other box
    hops: Rows  # from the virtual root

    @property
    def degrees(self) -> Rows:
        """The number of children of each box; of the virtual root last."""
        return np.bincount(np.where(self.parents < 0, len(self.parents), self.parents), minlength=len(self.parents) + 1)


def containers(boxes: Boxes, is_largest: bool = False) -> Rows:
    """Return for every box the smallest or largest other box that contains it; equal ones lie in the first of them.

    >>> boxes = np.array([[0.0, 9.0], [2.0, 3.0], [1.0, 5.0], [2.0, 3.0], [8.0, 10.0]])
    >>> containers(boxes).tolist(), containers(boxes, is_largest=True).tolist()
    ([-1, 2, 0, 1, -1], [-1, 0, 0, 1, -1])
    """
    distinct, firsts, groups = np.unique(boxes, axis=0, return_index=True, return_inverse=True)
    groups = groups.reshape(-1)
    axes = boxes.shape[1] // 2
    points = np.log1p(distinct[:, axes:] - distinct[:, :axes]).sum(
        axis=1
    )  # of whole numbers: contained ones have fewer
    order = np.argsort(-points, kind="stable")
    above = np.full(len(distinct), VIRTUAL_ROOT)
    for start in range(0, len(order), ROWS_PER_CHUNK):
        rows = order[start : start + ROWS_PER_CHUNK]
        larger = order[: start + len(rows)]
        holds = np.ones((len(rows), len(larger)), np.bool_)
        for axis in range(axes):
            holds &= distinct[larger, axis] <= distinct[rows, axis, None]
            holds &= distinct[larger, axis + axes] >= distinct[rows, axis + axes, None]
        holds[np.arange(len(rows)), np.arange(start, start + len(rows))] = False  # itself
        chosen = holds.argmax(axis=1) if is_largest else len(larger) - 1 - holds[:, ::-1].argmax(axis=1)
        above[rows] = np.where(holds.any(axis=1), larger[chosen], VIRTUAL_ROOT)
    own = np.where(above[groups] < 0, VIRTUAL_ROOT, firsts[above[groups]])
    return np.where(firsts[groups] == np.arange(len(boxes)), own, firsts[groups])


def containment_tree(boxes: Boxes, is_flat: bool = False) -> ContainmentTree:
    """Return the containment tree of boxes of whole numbers; a flat one has the largest containers as parents."""
    parents = containers(boxes, is_flat)
    hops = np.ones(len(boxes), np.int64)
    at = parents.copy()
    while (inside := at >= 0).any():
        hops[inside] += 1
        at[inside] = parents[at[inside]]
    return ContainmentTree(boxes, parents, hops)


def trees_of(method: str, boxes: Boxes) -> list[ContainmentTree]:
    """Return the trees of a baseline."""
    if method == CONTAINMENT:
        return [containment_tree(boxes)]
    axes = boxes.shape[1] // 2
    used = 1 if method == ONE_ATTRIBUTE else axes
    return [containment_tree(boxes[:, [axis, axis + axes]], method == FLAT) for axis in range(used)]


def send_through(trees: list[ContainmentTree], boxes: Boxes, points: Boxes) -> dict[str, Any]:
    """Send messages from the virtual roots; count as `run.send` does. A peer takes each message once."""
    whole = len(trees) == 1 and trees[0].boxes.shape == boxes.shape
    far = np.iinfo(np.int64).max
    hits = bothered = receipts = copies = walked = furthest = missed = 0
    for start in range(0, len(points), MESSAGES_PER_CHUNK):
        part = points[start : start + MESSAGES_PER_CHUNK]
        wanted = holding(boxes, part)
        first = np.full(wanted.shape, far)
        for axis, tree in enumerate(trees):
            reached = passed_on(tree, part if whole else part[:, [axis]])
            copies += int(reached.sum())
            np.minimum(first, np.where(reached, tree.hops, far), out=first)
        got = first < far
        hits += int(wanted.sum())
        receipts += int(got.sum())
        bothered += int((got & ~wanted).sum())
        missed += int((wanted & ~got).sum())
        walked += int(first[got].sum())
        furthest = max(furthest, int(first[got].max(initial=0)))
    return {
        "false_positive_ratio": bothered / (len(boxes) * len(points)),
        "false_receipt_ratio": bothered / receipts if receipts else 0.0,
        "false_negatives": missed,
        "hits": hits / len(points),
        "receipts": receipts,
        "receipts_per_message": receipts / len(points),
        "notes_per_message": copies / len(points),
        "hops": {"average": walked / receipts if receipts else 0.0, "max": furthest},
    }


def passed_on(tree: ContainmentTree, points: Boxes) -> npt.NDArray[np.bool_]:
    """Return which peers (columns) receive which messages (rows): those whose containers all contain the message."""
    held = holding(tree.boxes, points)
    got = held.copy()
    for level in range(2, int(tree.hops.max(initial=1)) + 1):  # a peer hears from its parent, which is one hop nearer
        rows = np.flatnonzero(tree.hops == level)
        got[:, rows] &= got[:, tree.parents[rows]]
    return got


def degree_of_trees(trees: list[ContainmentTree]) -> Degree:
    """Return the children of peers that have any, a peer's of all trees together; virtual roots are peers too."""
    counts = np.sum([tree.degrees[:-1] for tree in trees], axis=0)
    inner = np.concatenate([counts[counts > 0], [tree.degrees[-1] for tree in trees]])
    return Degree(int(inner.max()), float(inner.mean()), float(inner.var()))


def measure_baseline(method: str, boxes: Boxes, points: Boxes) -> dict[str, Any]:
    """Return what `run.measure` counts, for a baseline; None where that says nothing."""
    trees = trees_of(method, boxes)
    degree = degree_of_trees(trees)._asdict()
    return {
        **send_through(trees, boxes, points),
        "by_hits": [],
        "control_ratio": None,
        "height": max(int(tree.hops.max()) for tree in trees),
        "degree": degree,
        "degree_once": degree,
        "root_degree": max(int(tree.degrees[-1]) for tree in trees),
        "uncontained": None,
        "notes_per_join": None,
        "seconds": None,
        "seconds_joining": None,
    }
