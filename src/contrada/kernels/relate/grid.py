"""Grid over one region that is related to many others: most points are located by a look-up.

The region's box is cut into cells, with a frame of padding cells around it. A cell that no edge comes near is labelled
inside or outside; the label holds the bits that follow from a boundary point of the other region in that cell
(touch_nodes.py). Cells near an edge have the label 0 and list their edges. Summed counts of such cells show at once
whether a box of cells has none.

The labels are exact although cell coordinates are rounded: rounding errors are below 1e-12 of a cell, and edges mark
every cell within MARGIN_CELLS of them.
"""

from typing import Any, NamedTuple

import numpy as np

from contrada.jit import allocating_kernel, kernel
from contrada.kernels.relate.touch_nodes import B_LEAVES, BOUNDARY_B_IN_A

MARGIN_CELLS = 1e-6
# Edges that cross the whole region are listed in many cells each. The grid then gets fewer cells, so that the lists
# take at most 200 MB, or as much as they would for short edges.
MAX_LINKS, MAX_LINKS_PER_VERTEX, MIN_GRID_SIZE = 1 << 24, 40, 8
NEAR, TOGGLE = 128, 64  # marks while building: an edge is near; an edge crosses the middle of the row


class Grid(NamedTuple):
    """Cells in rows over the box x0, y0, x1, y1, with sx by sy cells per unit."""

    size: Any
    x0: Any
    y0: Any
    x1: Any
    y1: Any
    sx: Any
    sy: Any
    labels: Any
    sums: Any
    heads: Any
    links: Any
    edges: Any


@kernel
def grid_size(pairs):
    """Return the number of cells per side that pays off for `pairs` regions, 0 for no grid."""
    if pairs < 48:
        return 0
    return 64 if pairs < 20000 else 128


@kernel
def cell_of(v, origin, scale, size):
    """Return the row or column of a coordinate; monotone, and clamped to the padding."""
    return np.int64(min(max((v - origin) * scale + 1.0, 0.0), size - 1.0))


@kernel
def count_links(xy, rings, r0, r1, x0, y0, sx, sy):
    """Return an upper bound of the number of (edge, cell) incidences.

    An edge lower than a row can touch three rows over its whole width. A higher edge covers its width once, apart from
    the margins, plus up to three cells in every row.
    """
    total = 0
    for r in range(r0, r1):
        for i in range(rings[r], rings[r + 1] - 1):
            columns = np.int64(abs(xy[i + 1, 0] - xy[i, 0]) * sx) + 1
            rows = np.int64(abs(xy[i + 1, 1] - xy[i, 1]) * sy) + 1
            total += 3 * columns + 4 * rows + 16
    return total


@kernel
def trace_edge(ax, ay, bx, by, edge, size, labels, heads, links, edges, used):
    """Mark and link every cell near the edge a-b (in cell coordinates); return the number of links used."""
    if ay > by:
        ax, bx = bx, ax
        ay, by = by, ay
    low = min(ax, bx)
    high = max(ax, bx)
    flat = by - ay < 1e-3
    slope = 0.0 if flat else (bx - ax) / (by - ay)
    for row in range(np.int64(ay - MARGIN_CELLS), np.int64(by + MARGIN_CELLS) + 1):
        left = low
        right = high
        if not flat:
            left = ax + (row - MARGIN_CELLS - ay) * slope
            right = ax + (row + 1 + MARGIN_CELLS - ay) * slope
            if left > right:
                left, right = right, left
            left = min(max(left, low), high)
            right = min(max(right, low), high)
        for cell in range(row * size + np.int64(left - MARGIN_CELLS), row * size + np.int64(right + MARGIN_CELLS) + 1):
            if labels[cell] & NEAR == 0:
                labels[cell] |= NEAR
                heads[cell] = -1
            links[used] = heads[cell]
            edges[used] = edge
            heads[cell] = used
            used += 1
        middle = row + 0.5
        if ay <= middle < by:
            crossing = min(max(ax + (middle - ay) * slope, low), high)
            labels[row * size + np.int64(crossing)] ^= TOGGLE
    return used


@kernel
def fill_labels(size, labels, sums):
    """Turn marks into labels, row by row, and sum up the cells near edges."""
    width = size + 1
    for column in range(width):
        sums[column] = 0
    for row in range(size):
        inside = False
        near = 0
        above = row * width
        here = above + width
        sums[here] = 0
        for column in range(size):
            mark = labels[row * size + column]
            if mark & TOGGLE:
                inside = not inside
            if mark & NEAR:
                near += 1
                labels[row * size + column] = 0
            else:
                labels[row * size + column] = BOUNDARY_B_IN_A if inside else B_LEAVES
            sums[here + column + 1] = sums[above + column + 1] + near


@allocating_kernel
def build_grid(xy, rings, r0, r1, bounds, row, size):
    """Build the grid over the region of rings r0..r1 with the box bounds[row]."""
    x0 = bounds[row, 0]
    y0 = bounds[row, 1]
    width = bounds[row, 2] - x0
    height = bounds[row, 3] - y0
    most = max(MAX_LINKS, MAX_LINKS_PER_VERTEX * (rings[r1] - rings[r0]))
    while True:
        sx = (size - 2) / width if width > 0 else 0.0  # 0 for a point
        sy = (size - 2) / height if height > 0 else 0.0
        room = count_links(xy, rings, r0, r1, x0, y0, sx, sy)
        if room <= most or size <= MIN_GRID_SIZE:
            break
        size //= 2
    labels = np.empty(size * size, np.uint8)
    for cell in range(size * size):
        labels[cell] = 0
    heads = np.empty(size * size, np.int32)
    links = np.empty(room, np.int32)
    edges = np.empty(room, np.int64)
    used = np.int64(0)
    for r in range(r0, r1):
        for i in range(rings[r], rings[r + 1] - 1):
            used = trace_edge(
                (xy[i, 0] - x0) * sx + 1.0, (xy[i, 1] - y0) * sy + 1.0,
                (xy[i + 1, 0] - x0) * sx + 1.0, (xy[i + 1, 1] - y0) * sy + 1.0,
                i, size, labels, heads, links, edges, used,
            )  # fmt: skip
    sums = np.empty((size + 1) * (size + 1), np.int32)
    fill_labels(size, labels, sums)
    return Grid(size, x0, y0, bounds[row, 2], bounds[row, 3], sx, sy, labels, sums, heads, links, edges)
