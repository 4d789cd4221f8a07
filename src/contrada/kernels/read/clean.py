"""Clean one input ring: check that it is finite, close it, drop repeated vertices, orient it counter-clockwise."""

import numpy as np

from contrada.codes import (
    FANOUT,
    FANOUT_SHIFT,
    FEW_VERTICES,
    GOOD,
    MAGNITUDE,
    MAX_MAGNITUDE,
    MIN_MAGNITUDE,
    NOT_FINITE,
    SELF_INTERSECTION,
    ZERO_AREA,
)
from contrada.jit import kernel
from contrada.kernels.relate.chains import COUNTER_ROW, EDGE_PAIR_COST, begin_count, chain_levels, is_spent, join_chains
from contrada.kernels.relate.orientation import orient
from contrada.kernels.relate.touch_nodes import same_direction

EDGE_PAIRS_PER_BLOCK_PAIR = 4  # edge pairs with meeting boxes that a pair of blocks of one ring counts as


@kernel
def copy_ring(raw, start, stop, xy, at):
    """Copy a ring without repeated vertices to xy[at:], closed; return (fault, raw vertex or end)."""
    end = at
    for k in range(start, stop):
        for axis in range(2):
            v = raw[k, axis]
            if not (MIN_MAGNITUDE <= abs(v) <= MAX_MAGNITUDE) and v != 0.0:
                return (MAGNITUDE if np.isfinite(v) else NOT_FINITE), k - start
        x = raw[k, 0] + 0.0  # -0.0 becomes 0.0
        y = raw[k, 1] + 0.0
        if end > at and xy[end - 1, 0] == x and xy[end - 1, 1] == y:
            continue
        xy[end, 0] = x
        xy[end, 1] = y
        end += 1
    if end - at > 1 and (xy[end - 1, 0] != xy[at, 0] or xy[end - 1, 1] != xy[at, 1]):
        xy[end, 0] = xy[at, 0]
        xy[end, 1] = xy[at, 1]
        end += 1
    if end - at < 4:
        return FEW_VERTICES, np.int64(0)
    return GOOD, end


@kernel
def has_area(xy, start, end):
    """Return True if the vertices do not all lie on one line."""
    for k in range(start + 2, end - 1):
        if orient(xy[start, 0], xy[start, 1], xy[start + 1, 0], xy[start + 1, 1], xy[k, 0], xy[k, 1]) != 0:
            return True
    return False


@kernel
def ring_turn(xy, start, end):
    """Return the turn at the lowest of the leftmost vertices (1 counter-clockwise, -1 clockwise), and that vertex.

    0 means that the boundary folds back on itself there.
    """
    m = start
    for k in range(start + 1, end - 1):
        if xy[k, 0] < xy[m, 0] or (xy[k, 0] == xy[m, 0] and xy[k, 1] < xy[m, 1]):
            m = k
    p = m - 1 if m > start else end - 2
    return orient(xy[p, 0], xy[p, 1], xy[m, 0], xy[m, 1], xy[m + 1, 0], xy[m + 1, 1]), m


@kernel
def reverse_ring(xy, start, end):
    """Reverse a ring in place; its first vertex stays first."""
    low = start
    high = end - 1
    while low < high:
        for axis in range(2):
            v = xy[low, axis]
            xy[low, axis] = xy[high, axis]
            xy[high, axis] = v
        low += 1
        high -= 1


@kernel
def edges_meet(xy, i, j):
    """Return True if the closed edges i and j, whose boxes meet, have a common point."""
    ax, ay, bx, by = xy[i, 0], xy[i, 1], xy[i + 1, 0], xy[i + 1, 1]
    cx, cy, dx, dy = xy[j, 0], xy[j, 1], xy[j + 1, 0], xy[j + 1, 1]
    if orient(ax, ay, bx, by, cx, cy) * orient(ax, ay, bx, by, dx, dy) > 0:
        return False
    return orient(cx, cy, dx, dy, ax, ay) * orient(cx, cy, dx, dy, bx, by) <= 0


@kernel
def folds_back(xy, start, k, end):
    """Return True if the two edges at vertex k of a ring lie on one ray from it."""
    p = k - 1 if k > start else end - 2
    return same_direction(xy[k, 0], xy[k, 1], xy[p, 0], xy[p, 1], xy[k + 1, 0], xy[k + 1, 1])


@kernel
def scan_ring(xy, start, end, i0, i1, j0, j1):
    """Return the first pair of edges i < j in the given ranges that makes the ring not simple, or (-1, -1)."""
    for i in range(i0, i1):
        lx = min(xy[i, 0], xy[i + 1, 0])
        hx = max(xy[i, 0], xy[i + 1, 0])
        ly = min(xy[i, 1], xy[i + 1, 1])
        hy = max(xy[i, 1], xy[i + 1, 1])
        first = max(i + 1, j0)
        if first >= j1:
            continue
        qx = xy[first, 0]
        qy = xy[first, 1]
        for j in range(first, j1):
            px = qx
            py = qy
            qx = xy[j + 1, 0]
            qy = xy[j + 1, 1]
            # No short-circuit: one branch that is mostly taken costs less than eight that are hard to predict.
            if ((px > hx) & (qx > hx)) | ((px < lx) & (qx < lx)) | ((py > hy) & (qy > hy)) | ((py < ly) & (qy < ly)):
                continue
            if j == i + 1:
                fault = folds_back(xy, start, j, end)
            elif i == start and j == end - 2:
                fault = folds_back(xy, start, i, end)
            else:
                fault = edges_meet(xy, i, j)
            if fault:
                return i, j
    return np.int64(-1), np.int64(-1)


@kernel
def is_star(xy, start, end):
    """Return True if a counter-clockwise ring runs once around the mean of its vertices, steadily: then it is simple.

    Seen from there every edge turns left, so the angles grow; one edge crosses the ray to the right, so they grow by
    one turn. False decides nothing.
    """
    share = 1.0 / (end - start - 1)
    cx = 0.0
    cy = 0.0
    for k in range(start, end - 1):
        cx += xy[k, 0] * share
        cy += xy[k, 1] * share
    cx = cx if abs(cx) >= MIN_MAGNITUDE else 0.0
    cy = cy if abs(cy) >= MIN_MAGNITUDE else 0.0
    turns = 0
    for k in range(start, end - 1):
        if orient(xy[k, 0], xy[k, 1], xy[k + 1, 0], xy[k + 1, 1], cx, cy) <= 0:
            return False
        turns += (xy[k, 1] <= cy) & (xy[k + 1, 1] > cy)
    return turns == 1


@kernel
def near_later(sides, i, count):
    """Return how many of the edges from i + 2 on have boxes that meet that of edge i; the loop is vectorised."""
    lx = sides[0, i]
    ly = sides[1, i]
    hx = sides[2, i]
    hy = sides[3, i]
    near = 0
    for j in range(np.uint64(i + 2), np.uint64(count)):
        near += (sides[0, j] <= hx) & (sides[2, j] >= lx) & (sides[1, j] <= hy) & (sides[3, j] >= ly)
    return near


@kernel
def small_ring_fault(xy, start, end, sides):
    """Return the first pair of edges that makes a ring of < MAX_SCANNED_VERTICES edges not simple, or (-1, -1).

    `sides` is scratch space for the lower and upper sides of the edges' boxes, four rows of MAX_SCANNED_VERTICES.
    """
    count = end - start - 1
    for k in range(count):
        i = start + k
        sides[0, k] = min(xy[i, 0], xy[i + 1, 0])
        sides[1, k] = min(xy[i, 1], xy[i + 1, 1])
        sides[2, k] = max(xy[i, 0], xy[i + 1, 0])
        sides[3, k] = max(xy[i, 1], xy[i + 1, 1])
    for k in range(count):
        i = start + k
        # The last edge always meets the first one, at the vertex between them.
        if near_later(sides, k, count - 1 if k == 0 else count) > 0:
            p, q = scan_ring(xy, start, end, i, i + 1, i + 1, end - 1)
            if p >= 0:
                return p, q
        elif i + 1 < end - 1 and folds_back(xy, start, i + 1, end):
            return i, i + 1
        elif k == 0 and folds_back(xy, start, start, end):
            return start, end - 2
    return np.int64(-1), np.int64(-1)


@kernel
def large_ring_fault(xy, start, end, boxes, base, stack, found):
    """Return the first pair of edges found by an edge index that makes the ring not simple, or (-1, -1).

    Returns (-2, -2) if that takes too many comparisons (is_spent).
    """
    slots = end - start - 1
    stack[0, 0] = stack[0, 2] = chain_levels(slots)
    stack[0, 1] = stack[0, 3] = 0
    depth = np.int64(1)
    begin_count(found, slots)
    while depth > 0:
        if is_spent(found):
            return np.int64(-2), np.int64(-2)
        count, depth = join_chains(boxes, base, slots, boxes, base, slots, stack, depth, found)
        for k in range(count):
            if found[k, 0] > found[k, 1]:
                continue
            found[COUNTER_ROW, 0] += EDGE_PAIRS_PER_BLOCK_PAIR * EDGE_PAIR_COST
            i0 = start + (found[k, 0] << FANOUT_SHIFT)
            j0 = start + (found[k, 1] << FANOUT_SHIFT)
            i, j = scan_ring(xy, start, end, i0, min(i0 + FANOUT, end - 1), j0, min(j0 + FANOUT, end - 1))
            if i >= 0:
                return i, j
    return np.int64(-1), np.int64(-1)


@kernel
def is_on_edge(x, y, xy, i):
    """Return True if the point lies on the closed edge i."""
    ax, ay, bx, by = xy[i, 0], xy[i, 1], xy[i + 1, 0], xy[i + 1, 1]
    if not (min(ax, bx) <= x <= max(ax, bx) and min(ay, by) <= y <= max(ay, by)):
        return False
    return orient(ax, ay, bx, by, x, y) == 0


@kernel
def meeting_point(a, i, b, j):
    """Return a point near which edges i of a and j of b meet, rounded."""
    for k in (j, j + 1):  # an end on the other edge is the exact place
        if is_on_edge(b[k, 0], b[k, 1], a, i):
            return b[k, 0], b[k, 1]
    for k in (i, i + 1):
        if is_on_edge(a[k, 0], a[k, 1], b, j):
            return a[k, 0], a[k, 1]
    dx = a[i + 1, 0] - a[i, 0]
    dy = a[i + 1, 1] - a[i, 1]
    ex = b[j + 1, 0] - b[j, 0]
    ey = b[j + 1, 1] - b[j, 1]
    t = ((b[j, 0] - a[i, 0]) * ey - (b[j, 1] - a[i, 1]) * ex) / (dx * ey - dy * ex)
    return a[i, 0] + t * dx, a[i, 1] + t * dy


@kernel
def clean_ring(raw, start, stop, xy, at):
    """Copy, close and orient one ring; return (fault, end, x, y) with the place of the fault."""
    fault, end = copy_ring(raw, start, stop, xy, at)
    if fault != GOOD:
        k = start + end if fault != FEW_VERTICES else start
        return fault, end, raw[k, 0], raw[k, 1]
    if not has_area(xy, at, end):
        return ZERO_AREA, end, xy[at, 0], xy[at, 1]
    turn, m = ring_turn(xy, at, end)
    if turn == 0:
        return SELF_INTERSECTION, end, xy[m, 0], xy[m, 1]
    if turn < 0:
        reverse_ring(xy, at, end)
    return GOOD, end, xy[at, 0], xy[at, 1]
