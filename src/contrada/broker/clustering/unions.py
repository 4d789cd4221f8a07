"""Areas of regions and of unions of boxes, many at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import shapely

from contrada.broker.clustering.box_grid import Floats, Integers
from contrada.geometry import Region

GRID_CELLS = 1 << 20  # of the grids that measure unions at once
MAX_GRID_BOXES = 256  # whose union is measured by a grid; Shapely measures larger ones
RECTANGLE = 4 + 5 * 2  # numbers of a box and a ring of four vertices


def areas_of(regions: Sequence[Region]) -> Floats:
    """Return the areas of regions.

    Arrays of a region, which `Region.area` caches, take 900 bytes: regions of four vertices are measured without.

    >>> areas_of([Region.box(0, 0, 2, 1), Region([(0, 0), (1, 0), (0, 1)])]).tolist()
    [2.0, 0.5]
    """
    heads = [region._leading_box for region in regions]
    is_four = np.array([len(head) == RECTANGLE for head in heads], np.bool_)
    areas = np.array([0.0 if is_short else one.area for one, is_short in zip(regions, is_four, strict=True)], float)
    if is_four.any():
        rings = np.array([head for head in heads if len(head) == RECTANGLE])[:, 4:].reshape(-1, 5, 2)
        xy = rings - rings[:, :1]
        areas[is_four] = (xy[:, :-1, 0] * xy[:, 1:, 1] - xy[:, 1:, 0] * xy[:, :-1, 1]).sum(axis=1) / 2
    return areas


def box_unions(boxes: Floats, sizes: Integers) -> Floats:
    """Return the area of the union of the first boxes, as many as the first size says, then of the next, and so on.

    >>> box_unions(np.array([[0.0, 0, 2, 2], [1, 1, 3, 3], [0, 0, 1, 1]]), np.array([2, 1])).tolist()
    [7.0, 1.0]
    """
    areas = np.empty(len(sizes))
    starts = np.cumsum(sizes) - sizes
    for row in np.flatnonzero(sizes > MAX_GRID_BOXES).tolist():
        some = boxes[starts[row] : starts[row] + sizes[row]]
        areas[row] = shapely.union_all(shapely.box(*some.T)).area
    width = 1
    todo = sizes <= MAX_GRID_BOXES
    while todo.any():
        rows = np.flatnonzero(todo & (sizes <= width))
        chunk = max(1, GRID_CELLS // (2 * width) ** 2)
        for first in range(0, len(rows), chunk):
            few = rows[first : first + chunk]
            # A group with fewer boxes repeats its last one.
            places = starts[few, None] + np.minimum(np.arange(width), sizes[few, None] - 1)
            areas[few] = _grid_unions(boxes[places])
        todo[rows] = False
        width *= 2
    return areas


def _grid_unions(boxes: Floats) -> Floats:
    """Return the areas of unions of boxes (n, k, 4), k at a time, on grids of lines through their sides.

    Each corner adds 1 or -1 to a cell, so that a sum from the lower left counts the boxes that a cell lies in.
    """
    n, k, _ = boxes.shape
    size = 2 * k
    sides, ranks = [], []
    for axis in (0, 1):
        values = np.concatenate([boxes[:, :, axis], boxes[:, :, axis + 2]], axis=1)
        order = np.argsort(values, axis=1)
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(size)[None, :], axis=1)
        sides.append(np.diff(np.take_along_axis(values, order, axis=1), axis=1))
        ranks.append((rank[:, :k], rank[:, k:]))
    cells = n * size * size
    base = np.arange(n)[:, None] * (size * size)
    corners = [(base + ranks[0][i] * size + ranks[1][j]).ravel() for i, j in ((0, 0), (1, 1), (0, 1), (1, 0))]
    plus = np.bincount(np.concatenate(corners[:2]), minlength=cells)
    minus = np.bincount(np.concatenate(corners[2:]), minlength=cells)
    count = (plus - minus).astype(np.int16).reshape(n, size, size)
    np.cumsum(count, axis=1, out=count)
    np.cumsum(count, axis=2, out=count)
    is_covered = (count[:, :-1, :-1] > 0).astype(np.float64)
    rows = np.matmul(is_covered, sides[1][:, :, None])[:, :, 0]
    return np.asarray((rows * sides[0]).sum(axis=1))
