"""BoxGrid: boxes by size and place, in arrays that take updates of many boxes at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CELL_BITS = 20  # of the number of a cell on each axis; cells farther away share numbers
LAST_CELL = (1 << CELL_BITS) - 1
PREFIXES = 1 << 22  # numbers for pairs of a group and a level; pairs may share one


def box_areas(boxes: Floats) -> Floats:
    """Return the areas of boxes; 0 for a box that is empty.

    >>> box_areas(np.array([[0.0, 0, 2, 1], [3, 0, 1, 1]])).tolist()
    [2.0, 0.0]
    """
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2], 0.0)
    return np.asarray(sides[:, 0] * sides[:, 1])


def joint_boxes(first: Floats, second: Floats) -> Floats:
    """Return the smallest boxes around both.

    >>> joint_boxes(np.array([[0.0, 0, 2, 1]]), np.array([[1.0, 0, 5, 3]])).tolist()
    [[0.0, 0.0, 5.0, 3.0]]
    """
    joint = np.minimum(first, second)
    np.maximum(first[:, 2:], second[:, 2:], out=joint[:, 2:])
    return joint


def common_boxes(first: Floats, second: Floats) -> Floats:
    """Return the intersections of boxes; an empty one has a negative width or height.

    >>> common_boxes(np.array([[0.0, 0, 2, 1]]), np.array([[1.0, 0, 5, 3]])).tolist()
    [[1.0, 0.0, 2.0, 1.0]]
    """
    common = np.maximum(first, second)
    np.minimum(first[:, 2:], second[:, 2:], out=common[:, 2:])
    return common


def lie_within(inner: Floats, outer: Floats) -> NDArray[np.bool_]:
    """Return whether each box lies in the one in the same row.

    >>> lie_within(np.array([[0.0, 0, 2, 1], [0, 0, 4, 1]]), np.array([[0.0, 0, 2, 2], [0, 0, 2, 2]])).tolist()
    [True, False]
    """
    lower, upper = inner[:, :2] >= outer[:, :2], inner[:, 2:] <= outer[:, 2:]
    return np.asarray(lower[:, 0] & lower[:, 1] & upper[:, 0] & upper[:, 1])


class BoxGrid:
    """Boxes by size and place: finds all boxes of a group that meet a given box, and others too.

    A level has the boxes whose longer side is below 2**level and at least half of that, in cells twice as wide, by
    their lower left corners, in Z-order: the boxes of a level that meet a box of the same or a lower level lie in four
    cells, and those that meet a box of a higher level lie in four runs of cells.

    >>> grid = BoxGrid()
    >>> grid.add(np.array([7, 8]), np.array([[0.0, 0, 1, 1], [50, 50, 51, 51]]), np.zeros(2, np.int64))
    >>> queries, rows = grid.near(np.array([[0.5, 0.5, 9, 9]]), np.zeros(1, np.int64))
    >>> rows.tolist()
    [7]
    """

    def __init__(self) -> None:
        self._keys, self._rows = np.empty(0, np.int64), np.empty(0, np.int64)
        self._levels = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, rows: Integers, boxes: Floats, groups: Integers) -> None:
        """Add boxes under the numbers `rows`."""
        levels = _levels(boxes)
        keys = _keys(groups, levels, _cells(boxes[:, 0], levels), _cells(boxes[:, 1], levels))
        order = np.argsort(keys, kind="stable")
        places = np.searchsorted(self._keys, keys[order])
        self._keys = np.insert(self._keys, places, keys[order])
        self._rows = np.insert(self._rows, places, rows[order])
        self._levels = np.union1d(self._levels, levels)

    def near(self, boxes: Floats, groups: Integers, most: int | None = None) -> tuple[Integers, Integers]:
        """Return pairs of a query and a row, in no order and with repetitions: all whose boxes meet, and more.

        With `most`, as many at most for each of four cells and each level: those nearest in Z-order.
        """
        level = self._levels[:, None]
        coarse = np.maximum(_levels(boxes), level)
        shift = np.minimum(coarse - level, CELL_BITS)
        x, y = boxes[:, 0], boxes[:, 1]
        sizes = np.ldexp(1.0, level)
        ends = [
            [_cells(end, coarse) << shift & LAST_CELL for end in (low - sizes, high + np.zeros_like(sizes))]
            for low, high in ((x, boxes[:, 2]), (y, boxes[:, 3]))
        ]
        xs = np.stack([ends[0][0], ends[0][0], ends[0][1], ends[0][1]])
        ys = np.stack([ends[1][0], ends[1][1], ends[1][0], ends[1][1]])
        keys = _keys(groups, level, xs, ys)
        start = np.searchsorted(self._keys, keys)
        stop = np.searchsorted(self._keys, keys + (np.int64(1) << 2 * shift))
        is_narrow = ends[0][0] == ends[0][1], ends[1][0] == ends[1][1]
        stop[2:][:, is_narrow[0]] = start[2:][:, is_narrow[0]]
        stop[1::2][:, is_narrow[1]] = start[1::2][:, is_narrow[1]]
        if most is not None:
            fine = level + np.zeros_like(coarse)
            middle = np.searchsorted(self._keys, _keys(groups, level, _cells(x, fine), _cells(y, fine)))
            start = np.clip(middle - most // 2, start, np.maximum(stop - most, start))
            stop = np.minimum(stop, start + most)
        counts = (stop - start).ravel()
        some = np.flatnonzero(counts)
        counts = counts[some]
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(some % len(boxes), counts), self._rows[np.repeat(start.ravel()[some], counts) + offsets]


def _levels(boxes: Floats) -> Integers:
    sides = boxes[:, 2:] - boxes[:, :2]
    return np.frexp(np.maximum(sides[:, 0], sides[:, 1]))[1].astype(np.int64)


def _cells(values: Floats, levels: Integers) -> Integers:
    """Return the numbers of the cells, twice as wide as the boxes of a level, that coordinates are in."""
    return np.mod(np.floor(np.ldexp(values, -1 - levels)), LAST_CELL + 1.0).astype(np.int64)


def _keys(groups: Integers, levels: Integers, x: Integers, y: Integers) -> Integers:
    prefix = (groups * 1024 + levels) * 0x9E3779B1 % PREFIXES
    return np.asarray(prefix << 2 * CELL_BITS | _spread(x) << 1 | _spread(y))


def _spread(cells: Integers) -> Integers:
    """Return numbers of 20 bits with a zero bit after each bit."""
    for shift, mask in ((16, 0x0000FFFF0000FFFF), (8, 0x00FF00FF00FF00FF), (4, 0x0F0F0F0F0F0F0F0F),
                        (2, 0x3333333333333333), (1, 0x5555555555555555)):  # fmt: skip
        cells = (cells | cells << shift) & mask
    return cells
