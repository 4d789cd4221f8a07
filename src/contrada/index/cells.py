"""Cut space into cells with about equal numbers of boxes, and cover many boxes by few."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.codes import MAX_MAGNITUDE

Boxes = NDArray[np.float64]
MIN_GROWTH_RATIO, MIN_GROWTH = 2.0**-40, 1e-100  # growth of a box without width: relative, and at least


class Cells(NamedTuple):
    """K-d tree over the centres of boxes whose leaves are cells, numbered from left to right.

    A node has an axis, a cut and two children. A leaf has the axis -1, its first cell and the number of cells that
    share it: if all centres are one point, only `turns` can distribute the boxes over the cells.
    """

    axes: NDArray[np.int8]
    cuts: NDArray[np.float64]
    first: NDArray[np.int32]
    second: NDArray[np.int32]

    def find(self, boxes: Boxes, turns: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the cell of each box; turns[k] chooses the cell of box k among cells that share a leaf.

        >>> boxes = np.array([[0.0, 0, 1, 1], [9.0, 0, 9, 1]])
        >>> cut_cells(boxes, 2).find(boxes, np.arange(2)).tolist()
        [0, 1]
        """
        middles = middles_of(boxes)
        nodes = np.zeros(len(boxes), np.int32)
        while True:
            inner = np.flatnonzero(self.axes[nodes] >= 0)
            if not len(inner):
                return (self.first[nodes] + turns % self.second[nodes]).astype(np.int32)
            at = nodes[inner]
            is_low = middles[inner, self.axes[at]] < self.cuts[at]
            nodes[inner] = np.where(is_low, self.first[at], self.second[at])


def middles_of(boxes: Boxes) -> NDArray[np.float64]:
    """Return the centres of boxes."""
    return 0.5 * boxes[:, :2] + 0.5 * boxes[:, 2:]


def cut_cells(boxes: Boxes, count: int, weights: NDArray[np.float64] | None = None) -> Cells:
    """Return `count` cells of about equal weight; every box weighs 1 unless `weights` are given."""
    middles = middles_of(boxes)
    given = np.ones(len(boxes)) if weights is None else weights
    nodes: list[tuple[int, float, int, int]] = []

    def grow(rows: NDArray[np.int64], first: int, cells: int) -> int:
        place = len(nodes)
        nodes.append((-1, 0.0, first, cells))
        cut = _cut(middles[rows], given[rows], (cells // 2) / cells) if cells > 1 else None
        if cut is not None:
            axis, value = cut
            is_low = middles[rows, axis] < value
            share = given[rows[is_low]].sum() / given[rows].sum()  # far from a half if many centres are one point
            low = min(max(round(cells * float(share)), 1), cells - 1)
            left = grow(rows[is_low], first, low)
            nodes[place] = (axis, value, left, grow(rows[~is_low], first + low, cells - low))
        return place

    grow(np.arange(len(boxes)), 0, max(1, count))
    axes, cuts, first, second = zip(*nodes, strict=True)
    return Cells(
        np.array(axes, np.int8), np.array(cuts, np.float64), np.array(first, np.int32), np.array(second, np.int32)
    )


def _cut(middles: NDArray[np.float64], weights: NDArray[np.float64], share: float) -> tuple[int, float] | None:
    """Return the axis of the largest spread, and a value with `share` of the weight below it; None for one point."""
    if not len(middles):
        return None
    spread = middles.max(axis=0) - middles.min(axis=0)
    axis = int(np.argmax(spread))
    if not spread[axis] > 0:
        return None
    order = np.argsort(middles[:, axis], kind="stable")
    values, sums = middles[order, axis], np.cumsum(weights[order])
    at = int(np.searchsorted(sums, share * sums[-1]))
    value = values[min(at + 1, len(values) - 1)]
    if value == values[0]:  # a cut must leave points on both sides
        value = values[np.searchsorted(values, values[0], side="right")]
    return axis, float(value)


def covering_boxes(boxes: Boxes, count: int) -> Boxes:
    """Return at most `count` boxes that cover all and are small in sum; repeatedly halves the box that wastes most.

    Boxes are divided by their centres or by their sizes, so that a few large ones do not spoil the cover of the others.

    >>> covering_boxes(np.array([[0.0, 0, 1, 1], [9.0, 0, 9, 1], [8.0, 0, 9, 1]]), 2).tolist()
    [[0.0, 0.0, 1.0, 1.0], [8.0, 0.0, 9.0, 1.0]]
    """
    parts = [boxes] if len(boxes) else []
    gains = [_halved(part) for part in parts]
    while parts and len(parts) < count:
        best = int(np.argmax([gain for gain, _ in gains]))
        gain, halves = gains[best]
        if not gain > 0:
            break
        parts[best : best + 1] = halves
        gains[best : best + 1] = [_halved(half) for half in halves]
    return np.array([_hull(part) for part in parts]).reshape(-1, 4)


def _hull(boxes: Boxes) -> Boxes:
    return np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])


def _size(box: Boxes) -> float:
    """Return how likely a message meets a box, in no unit: its area, and a little for its length."""
    width, height = box[2:] - box[:2]
    return float(width * height + 1e-6 * (width + height) ** 2)


def _halved(boxes: Boxes) -> tuple[float, list[Boxes]]:
    """Return the gain of dividing boxes at the best of several quantiles, and the two parts."""
    whole = _size(_hull(boxes))
    best: tuple[float, list[Boxes]] = (0.0, [])
    sizes = boxes[:, 2:] - boxes[:, :2]
    for values in (*middles_of(boxes).T, *sizes.T):
        for share in (0.5, 0.9):
            cut = np.quantile(values, share, method="higher")
            is_low = values < cut
            if not is_low.any():
                continue
            halves = [boxes[is_low], boxes[~is_low]]
            gain = whole - sum(_size(_hull(half)) for half in halves)
            if gain > best[0]:
                best = gain, halves
    return best


def widened(boxes: Boxes) -> Boxes:
    """Return the boxes with a positive area each: boxes of points and lines grow by a tiny amount.

    >>> made = widened(np.array([[0.0, 0, 0, 1]]))
    >>> bool(made[0, 0] < 0 < made[0, 2]), made[0, 1::2].tolist()
    (True, [0.0, 1.0])
    """
    made = boxes.copy()
    for axis in (0, 1):
        flat = np.flatnonzero(made[:, axis] == made[:, axis + 2])
        grown = np.maximum(np.abs(made[flat, axis]) * MIN_GROWTH_RATIO, MIN_GROWTH)
        made[flat, axis] = np.maximum(made[flat, axis] - grown, -MAX_MAGNITUDE)
        made[flat, axis + 2] = np.minimum(made[flat, axis + 2] + grown, MAX_MAGNITUDE)
    return made
