"""Relate a simple polygon of few vertices to another simple polygon, in one pass over the other's edges.

If the boundaries merely touch, the answer is UNDECIDED and the caller uses the general method.
"""

import numpy as np

from contrada.codes import FANOUT, FANOUT_SHIFT
from contrada.jit import kernel
from contrada.kernels.relate.orientation import orient
from contrada.kernels.relate.rings import CROSSED, IN, ON_EDGE, cross_edge, locate_scanned
from contrada.kernels.relate.touch_nodes import (
    A_LEAVES,
    B_LEAVES,
    BOUNDARY_A_IN_B,
    BOUNDARY_B_IN_A,
    MEET,
    SETTLED,
    TOUCH,
)

MAX_SMALL_VERTICES = 12  # up to here this beats a grid (benchmarks/relate)
NO_CONTACT, CROSSED_OVER = np.int64(-1), np.int64(-2)
UNDECIDED = np.int64(-1)


@kernel
def first_contact(j, first, last, a, b):
    """Return CROSSED_OVER if edge j of b crosses an edge first..last of a, else an edge it touches, else NO_CONTACT."""
    px = b[j, 0]
    py = b[j, 1]
    qx = b[j + 1, 0]
    qy = b[j + 1, 1]
    touched = NO_CONTACT
    v_side = orient(px, py, qx, qy, a[first, 0], a[first, 1])
    for i in range(first, last):
        u_side = v_side
        v_side = orient(px, py, qx, qy, a[i + 1, 0], a[i + 1, 1])
        if u_side * v_side > 0:
            continue
        p_side = orient(a[i, 0], a[i, 1], a[i + 1, 0], a[i + 1, 1], px, py)
        q_side = orient(a[i, 0], a[i, 1], a[i + 1, 0], a[i + 1, 1], qx, qy)
        if p_side * q_side > 0:
            continue
        if u_side * v_side < 0 and p_side * q_side < 0:
            return CROSSED_OVER
        touched = np.int64(i)
    return touched


@kernel
def is_beside(px, py, qx, qy, boxes, k):
    """Return True only if all of box k lies strictly on one side of the line p-q, with room for rounding."""
    dx = qx - px
    dy = qy - py
    cx = 0.5 * (boxes[k, 0] + boxes[k, 2]) - px
    cy = 0.5 * (boxes[k, 1] + boxes[k, 3]) - py
    hx = 0.5 * (boxes[k, 2] - boxes[k, 0])
    hy = 0.5 * (boxes[k, 3] - boxes[k, 1])
    reach = abs(dx) * hy + abs(dy) * hx
    size = abs(dx) * (abs(boxes[k, 1]) + abs(boxes[k, 3]) + abs(py)) + abs(dy) * (
        abs(boxes[k, 0]) + abs(boxes[k, 2]) + abs(px)
    )
    return abs(dx * cy - dy * cx) > reach + 1e-14 * size


@kernel
def first_contact_blocks(j, first, last, a, b, boxes):
    """Work like `first_contact`, but skip blocks of edges of a (chains.py) that lie beside edge j of b."""
    touched = NO_CONTACT
    for block in range((last - first + FANOUT - 1) >> FANOUT_SHIFT):
        if is_beside(b[j, 0], b[j, 1], b[j + 1, 0], b[j + 1, 1], boxes, block):
            continue
        start = first + (block << FANOUT_SHIFT)
        contact = first_contact(j, start, min(start + FANOUT, last), a, b)
        if contact == CROSSED_OVER:
            return CROSSED_OVER
        touched = max(touched, contact)
    return touched


@kernel
def relate_few(a, rings, r, bounds, row, b, first, last, bits):
    """Return bits of ring r of a, few vertices in the box bounds[row], and the ring first..last of b; or UNDECIDED."""
    start = rings[r]
    stop = rings[r + 1] - 1
    x0 = bounds[row, 0]
    y0 = bounds[row, 1]
    x1 = bounds[row, 2]
    y1 = bounds[row, 3]
    x = a[start, 0]
    y = a[start, 1]
    inside = False  # whether the first vertex of a lies in b, by the edges so far
    qx = b[first, 0]
    qy = b[first, 1]
    for j in range(first, last):
        px = qx
        py = qy
        qx = b[j + 1, 0]
        qy = b[j + 1, 1]
        if (py > y) != (qy > y):
            met = cross_edge(x, y, px, py, qx, qy)
            if met == ON_EDGE:
                return UNDECIDED
            inside ^= met == CROSSED
        if (px < x0 and qx < x0) or (px > x1 and qx > x1) or (py < y0 and qy < y0) or (py > y1 and qy > y1):
            continue
        contact = first_contact(j, start, stop, a, b)
        if contact == CROSSED_OVER:
            return SETTLED | TOUCH
        if contact != NO_CONTACT:
            return UNDECIDED
    if inside:
        return bits | BOUNDARY_A_IN_B
    bits |= A_LEAVES
    if bits & (B_LEAVES | MEET):
        return bits
    side = locate_scanned(b[first, 0], b[first, 1], a, rings, r, r + 1)
    return bits | (BOUNDARY_B_IN_A if side == IN else B_LEAVES)
