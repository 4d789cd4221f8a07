"""Contacts between two edges: whether they cross or touch, and the relation bits that follow for the two regions."""

from typing import Any, NamedTuple

import numpy as np

from contrada.codes import MAX_SCANNED_VERTICES
from contrada.jit import allocating_kernel, kernel
from contrada.kernels.relate.chains import COUNTER_ROW, FOUND_ROWS, STACK_ROWS, chain_size, is_spent, ring_of
from contrada.kernels.relate.orientation import orient
from contrada.kernels.relate.touch_nodes import SETTLED, TOUCH, gather_rays, node_bits

RAY_PAIR_COST = 4  # comparisons per pair of rays at a node
CROSSING, AT_STARTS, A_ON_B, B_ON_A = 8, 1, 2, 4


class RegionColumn(NamedTuple):
    """Arrays of a column of regions, as kernels use them; `boxes` is the edge index (chains.py)."""

    xy: Any
    rings: Any
    flags: Any
    boxes: Any


class RelateScratch(NamedTuple):
    """Scratch space of one thread."""

    rays: Any  # rays at a node: a's in the first half, b's in the second
    marks: Any  # rings with a contact: a's in the first half, b's in the second
    boxes: Any  # edge indexes of small regions: a's in the first half, b's in the second
    stack: Any
    found: Any


@allocating_kernel
def make_work(a_rings, b_rings):
    """Allocate scratch space for regions of at most `a_rings` and `b_rings` rings."""
    rings = max(a_rings, b_rings)
    return RelateScratch(
        np.empty((4 * rings, 2)),
        np.empty(2 * rings, np.uint8),
        np.empty((2 * chain_size(np.int64(MAX_SCANNED_VERTICES)), 4)),
        np.empty((STACK_ROWS, 4), np.int64),
        np.empty((FOUND_ROWS, 2), np.int64),
    )


@kernel
def half(array):
    """Return the position where b's half of a scratch array begins."""
    return len(array) >> 1


@kernel
def clear_marks(a_rings, b_rings, marks):
    """Clear the contact marks of all rings of a and b."""
    for r in range(a_rings):
        marks[r] = 0
    for r in range(half(marks), half(marks) + b_rings):
        marks[r] = 0


@kernel
def is_inside_edge(x, y, px, py, qx, qy):
    """Return True if a point on the line p-q lies strictly between p and q."""
    if (x < px and x < qx) or (x > px and x > qx) or (y < py and y < qy) or (y > py and y > qy):
        return False
    return not ((x == px and y == py) or (x == qx and y == qy))


@kernel
def edge_contact(a, i, b, j):
    """Return how edge i of a (u-v) and edge j of b (p-q) meet: 0, CROSSING, or flags for a start on the other edge.

    Edges own their start but not their end, so each contact of two boundaries is reported once.
    """
    ux = a[i, 0]
    uy = a[i, 1]
    vx = a[i + 1, 0]
    vy = a[i + 1, 1]
    px = b[j, 0]
    py = b[j, 1]
    qx = b[j + 1, 0]
    qy = b[j + 1, 1]
    u_side = orient(px, py, qx, qy, ux, uy)
    v_side = orient(px, py, qx, qy, vx, vy)
    if u_side * v_side > 0:
        return 0
    p_side = orient(ux, uy, vx, vy, px, py)
    q_side = orient(ux, uy, vx, vy, qx, qy)
    if p_side * q_side > 0:
        return 0
    if u_side != 0 and v_side != 0 and p_side != 0 and q_side != 0:
        return CROSSING
    if ux == px and uy == py:
        return AT_STARTS
    contact = 0
    if u_side == 0 and is_inside_edge(ux, uy, px, py, qx, qy):
        contact |= A_ON_B
    if p_side == 0 and is_inside_edge(px, py, ux, uy, vx, vy):
        contact |= B_ON_A
    return contact


@kernel
def contact_bits(contact, i, j, a, a0, a1, a_base, b, b0, b1, b_base, work):
    """Return the bits from the one or two nodes where edges i and j touch; mark their rings as touched.

    Compares every ray of a at a node with every ray of b, once per pair of edges there. If many rings touch in one
    point, the comparisons exceed the limit (is_spent) and the returned bits are incomplete.
    """
    ra = ring_of(a.rings, a0, a1, i)
    rb = ring_of(b.rings, b0, b1, j)
    work.marks[ra - a0] = 1
    work.marks[half(work.marks) + rb - b0] = 1
    b_start = half(work.rays)
    bits = zero = np.int64(0)
    for way in (AT_STARTS | A_ON_B, B_ON_A):
        if contact & way == 0:
            continue
        x = a.xy[i, 0] if way != B_ON_A else b.xy[j, 0]
        y = a.xy[i, 1] if way != B_ON_A else b.xy[j, 1]
        n = gather_rays(
            x,
            y,
            a.xy,
            a.rings,
            a.flags,
            a0,
            a1,
            ra,
            i,
            a.boxes,
            a_base,
            work.stack,
            work.found,
            work.rays,
            zero,
        )
        m = gather_rays(
            x,
            y,
            b.xy,
            b.rings,
            b.flags,
            b0,
            b1,
            rb,
            j,
            b.boxes,
            b_base,
            work.stack,
            work.found,
            work.rays,
            b_start,
        )
        m -= b_start
        work.found[COUNTER_ROW, 0] += RAY_PAIR_COST * n * m
        if is_spent(work.found):
            return bits
        bits |= node_bits(x, y, work.rays, n, b_start, m)
    return bits


@kernel
def pair_bits(i, j, a, a0, a1, a_base, b, b0, b1, b_base, work):
    """Return the bits that follow from edge i of a and edge j of b."""
    contact = edge_contact(a.xy, i, b.xy, j)
    if contact == 0:
        return 0
    if contact == CROSSING:
        return SETTLED | TOUCH
    return contact_bits(contact, i, j, a, a0, a1, a_base, b, b0, b1, b_base, work)
