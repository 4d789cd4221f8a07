"""Edges of one line or region near a box, and what they show exactly: points on them, and edges that they cover.

A shape is given by its vertices, the runs that its edges follow (the rings of a region, the parts of a line) and the
edge index of a large shape (chains.py). Every point that is tested is an input vertex.
"""

from typing import Any, NamedTuple

import numpy as np

from contrada.codes import FANOUT, FANOUT_SHIFT
from contrada.jit import allocating_kernel, kernel
from contrada.kernels.relate.chains import (
    COUNTER_ROW,
    FOUND_FLOOR,
    FOUND_ROWS,
    STACK_FLOOR,
    STACK_ROWS,
    is_spent,
    query_chain,
    ring_of,
    start_query,
)
from contrada.kernels.relate.orientation import orient

PAIR_COST = np.int64(2)  # comparisons that an edge near another one counts as


class EdgeColumn(NamedTuple):
    """Arrays of a column of lines or regions: vertices, runs of edges, and the boxes of edge indexes."""

    xy: Any
    runs: Any
    boxes: Any


class LineScratch(NamedTuple):
    """Scratch space of one thread."""

    first: Any  # edges of the first shape near the second
    near: Any  # edges of the second shape near one edge
    around: Any  # edges near one vertex, or that may cover an edge
    marks: Any  # parts of the first shape with a contact
    stack: Any
    found: Any


@allocating_kernel
def make_line_scratch(a_vertices, b_vertices):
    """Allocate scratch space for pairs of shapes of at most so many vertices."""
    return LineScratch(
        np.empty(a_vertices, np.int64),
        np.empty(b_vertices, np.int64),
        np.empty(max(a_vertices, b_vertices), np.int64),
        np.empty(a_vertices, np.uint8),
        np.empty((STACK_ROWS, 4), np.int64),
        np.empty((FOUND_ROWS, 2), np.int64),
    )


@kernel
def begin_pair(found, most):
    """Reset the count of comparisons before a pair of shapes, and set how many it may take (is_spent)."""
    found[COUNTER_ROW, 0] = 0
    found[COUNTER_ROW, 1] = most


@kernel
def meets_box(xy, k, x0, y0, x1, y1):
    """Return True if the box of the edge from vertex k to the next one meets the box x0..y1."""
    px = xy[k, 0]
    py = xy[k, 1]
    qx = xy[k + 1, 0]
    qy = xy[k + 1, 1]
    # Without branches: most edges fail one test or another, and none is likelier than the rest.
    in_x = ((px >= x0) | (qx >= x0)) & ((px <= x1) | (qx <= x1))
    return in_x & ((py >= y0) | (qy >= y0)) & ((py <= y1) | (qy <= y1))


@kernel
def list_edges(column, r0, r1, base, x0, y0, x1, y1, out, work):
    """Write the edges of runs r0..r1 whose boxes meet the box x0..y1 to `out`, in any order; return their number.

    An edge is named by its first vertex.
    """
    count = 0
    xy = column.xy
    work.found[COUNTER_ROW, 0] += column.runs[r1] - column.runs[r0] if base < 0 else np.int64(0)
    if base < 0:
        for r in range(r0, r1):
            for k in range(column.runs[r], column.runs[r + 1] - 1):
                out[count] = k  # overwritten if it does not count
                count += np.int64(meets_box(xy, k, x0, y0, x1, y1))
        work.found[COUNTER_ROW, 0] += PAIR_COST * count
        return count
    first = column.runs[r0]
    slots = column.runs[r1] - first - 1
    depth = start_query(slots, work.stack, STACK_FLOOR)
    while depth > STACK_FLOOR:
        end, depth = query_chain(
            column.boxes, base, slots, x0, y0, x1, y1, work.stack, STACK_FLOOR, depth, work.found, FOUND_FLOOR,
            COUNTER_ROW,
        )  # fmt: skip
        for c in range(FOUND_FLOOR, end):
            k = first + (work.found[c, 0] << FANOUT_SHIFT)
            stop = min(k + FANOUT, column.runs[r1] - 1)
            r = ring_of(column.runs, r0, r1, k)
            while k < stop:
                if k == column.runs[r + 1] - 1:  # the slot between two runs
                    r += 1
                elif meets_box(xy, k, x0, y0, x1, y1):
                    out[count] = k
                    count += 1
                k += 1
    work.found[COUNTER_ROW, 0] += PAIR_COST * count
    return count


@kernel
def box_of_edges(xy, edges, count):
    """Return the box x0, y0, x1, y1 of edges[:count], at least one."""
    k = edges[0]
    x0 = x1 = xy[k, 0]
    y0 = y1 = xy[k, 1]
    for n in range(count):
        for k in range(edges[n], edges[n] + 2):
            x0 = xy[k, 0] if xy[k, 0] < x0 else x0
            y0 = xy[k, 1] if xy[k, 1] < y0 else y0
            x1 = xy[k, 0] if xy[k, 0] > x1 else x1
            y1 = xy[k, 1] if xy[k, 1] > y1 else y1
    return x0, y0, x1, y1


@kernel
def list_edges_at(column, r0, r1, base, k_xy, k, out, work):
    """Write the edges of runs r0..r1 whose boxes meet that of edge k of `k_xy` to `out`; return their number."""
    return list_edges(
        column, r0, r1, base,
        min(k_xy[k, 0], k_xy[k + 1, 0]), min(k_xy[k, 1], k_xy[k + 1, 1]),
        max(k_xy[k, 0], k_xy[k + 1, 0]), max(k_xy[k, 1], k_xy[k + 1, 1]), out, work,
    )  # fmt: skip


@kernel
def is_between(x, y, px, py, qx, qy):
    """Return True if a point on the line through p and q is p, q or between them."""
    return (px <= x <= qx or qx <= x <= px) and (py <= y <= qy or qy <= y <= py)


@kernel
def is_on_edges(x, y, column, r0, r1, base, work):
    """Return True if the point is on an edge of runs r0..r1."""
    count = list_edges(column, r0, r1, base, x, y, x, y, work.around, work)
    xy = column.xy
    for c in range(count):
        k = work.around[c]
        if orient(xy[k, 0], xy[k, 1], xy[k + 1, 0], xy[k + 1, 1], x, y) == 0:
            return True
    return False


@kernel
def covers_edge(column, r0, r1, base, k_xy, k, work):
    """Return True if the edges of runs r0..r1 that lie on the line of edge k of `k_xy` cover it together.

    Walks from one end of the edge to the other, each time to the furthest end of an edge that begins where the walk
    has come to. All places are input vertices on one line, so their coordinates order them.
    """
    px = k_xy[k, 0]
    py = k_xy[k, 1]
    qx = k_xy[k + 1, 0]
    qy = k_xy[k + 1, 1]
    count = list_edges_at(column, r0, r1, base, k_xy, k, work.around, work)
    xy = column.xy
    on_line = 0
    for c in range(count):
        e = work.around[c]
        if orient(px, py, qx, qy, xy[e, 0], xy[e, 1]) == 0 and orient(px, py, qx, qy, xy[e + 1, 0], xy[e + 1, 1]) == 0:
            work.around[on_line] = e
            on_line += 1
    by = 0 if px != qx else 1
    sign = 1.0 if (qx > px if by == 0 else qy > py) else -1.0
    reached = sign * (px if by == 0 else py)
    end = sign * (qx if by == 0 else qy)
    while reached < end:
        work.found[COUNTER_ROW, 0] += on_line
        furthest = reached
        left = 0
        for c in range(on_line):
            e = work.around[c]
            low = min(sign * xy[e, by], sign * xy[e + 1, by])
            high = max(sign * xy[e, by], sign * xy[e + 1, by])
            if low <= reached:
                furthest = max(furthest, high)
            else:
                work.around[left] = e
                left += 1
        if furthest == reached:
            return False
        on_line = left
        reached = furthest
    return True


@kernel
def covers_edges(b, b0, b1, b_base, a, a0, a1, work):
    """Return True if runs b0..b1 of b cover every edge of runs a0..a1 of a."""
    for r in range(a0, a1):
        for k in range(a.runs[r], a.runs[r + 1] - 1):
            if is_spent(work.found) or not covers_edge(b, b0, b1, b_base, a.xy, k, work):
                return False
    return True


@kernel
def is_end(x, y, ends, e0, e1):
    """Return True if the point is among ends[e0:e1], which are in ascending order of x, then y."""
    low = e0
    high = e1
    while low < high:
        middle = (low + high) >> 1
        if ends[middle, 0] < x or (ends[middle, 0] == x and ends[middle, 1] < y):
            low = middle + 1
        else:
            high = middle
    return low < e1 and ends[low, 0] == x and ends[low, 1] == y


@kernel
def crosses_at_end(a_xy, i, b_xy, j, ends, e0, e1, work):
    """Return True if edges i and j, which cross inside both, cross at one of ends[e0:e1]."""
    x0 = max(min(a_xy[i, 0], a_xy[i + 1, 0]), min(b_xy[j, 0], b_xy[j + 1, 0]))
    x1 = min(max(a_xy[i, 0], a_xy[i + 1, 0]), max(b_xy[j, 0], b_xy[j + 1, 0]))
    low = e0
    high = e1
    while low < high:  # the first end from x0 on
        middle = (low + high) >> 1
        if ends[middle, 0] < x0:
            low = middle + 1
        else:
            high = middle
    for e in range(low, e1):
        if ends[e, 0] > x1:
            return False
        work.found[COUNTER_ROW, 0] += PAIR_COST
        if is_on_both(ends[e, 0], ends[e, 1], a_xy, i, b_xy, j):
            return True
    return False


@kernel
def is_on_both(x, y, a_xy, i, b_xy, j):
    """Return True if the point lies on the lines through edges i and j."""
    return (
        orient(a_xy[i, 0], a_xy[i, 1], a_xy[i + 1, 0], a_xy[i + 1, 1], x, y) == 0
        and orient(b_xy[j, 0], b_xy[j, 1], b_xy[j + 1, 0], b_xy[j + 1, 1], x, y) == 0
    )
