"""Contacts of an edge of a line with an edge of a region or another line."""

import numpy as np

from contrada.jit import kernel
from contrada.kernels.relate.line_edges import is_between, is_on_both, list_edges
from contrada.kernels.relate.orientation import orient
from contrada.kernels.relate.rings import IN, ON, OUT

# How two edges meet: not; at a point inside both; along a piece; in a vertex of one of them.
APART, CROSS, ALONG, AT_VERTEX = 0, 1, 2, 3


@kernel
def edge_meeting(a, i, b, j):
    """Return how edge i of a and edge j of b meet: APART, CROSS, ALONG or AT_VERTEX."""
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
        return APART
    p_side = orient(ux, uy, vx, vy, px, py)
    q_side = orient(ux, uy, vx, vy, qx, qy)
    if p_side * q_side > 0:
        return APART
    if u_side != 0 and v_side != 0 and p_side != 0 and q_side != 0:
        return CROSS
    if u_side == 0 and v_side == 0:
        low_x = max(min(ux, vx), min(px, qx))
        high_x = min(max(ux, vx), max(px, qx))
        low_y = max(min(uy, vy), min(py, qy))
        high_y = min(max(uy, vy), max(py, qy))
        if low_x > high_x or low_y > high_y:
            return APART
        return AT_VERTEX if low_x == high_x and low_y == high_y else ALONG
    if u_side == 0 and is_between(ux, uy, px, py, qx, qy):
        return AT_VERTEX
    if v_side == 0 and is_between(vx, vy, px, py, qx, qy):
        return AT_VERTEX
    if p_side == 0 and is_between(px, py, ux, uy, vx, vy):
        return AT_VERTEX
    if q_side == 0 and is_between(qx, qy, ux, uy, vx, vy):
        return AT_VERTEX
    return APART


@kernel
def vertex_on_both(a, i, b, j, k):
    """Return x, y and whether vertex k of four (both ends of edge i, then of edge j) lies on both edges."""
    if k < 2:
        x = a[i + k, 0]
        y = a[i + k, 1]
        is_on = (
            is_between(x, y, b[j, 0], b[j, 1], b[j + 1, 0], b[j + 1, 1])
            and orient(b[j, 0], b[j, 1], b[j + 1, 0], b[j + 1, 1], x, y) == 0
        )
    else:
        x = b[j + k - 2, 0]
        y = b[j + k - 2, 1]
        is_on = (
            is_between(x, y, a[i, 0], a[i, 1], a[i + 1, 0], a[i + 1, 1])
            and orient(a[i, 0], a[i, 1], a[i + 1, 0], a[i + 1, 1], x, y) == 0
        )
    return x, y, is_on


@kernel
def turn_class(wx, wy, tx, ty, rx, ry):
    """Return where the ray w-r is seen from the ray w-t, counter-clockwise: 0 the same, 1 left, 2 opposite, 3 right."""
    side = orient(wx, wy, tx, ty, rx, ry)
    if side > 0:
        return 1
    if side < 0:
        return 3
    is_same = (rx > wx) == (tx > wx) and (rx < wx) == (tx < wx) and (ry > wy) == (ty > wy) and (ry < wy) == (ty < wy)
    return 0 if is_same else 2


@kernel
def is_vertex_of(x, y, xy, k):
    """Return True if the point is the first vertex of edge k or the second."""
    return (xy[k, 0] == x and xy[k, 1] == y) or (xy[k + 1, 0] == x and xy[k + 1, 1] == y)


@kernel
def side_towards(wx, wy, tx, ty, b, b0, b1, base, work):
    """Return IN, ON or OUT for points just beside w on the way to t; w is on the boundary of the region of b0..b1.

    The first ray of the boundary counter-clockwise from w-t decides: a ring has the interior on its left, so a ring
    that leaves w by this ray has the exterior on its right, where t is, and a ring that arrives by it the interior.
    """
    count = list_edges(b, b0, b1, base, wx, wy, wx, wy, work.around, work)
    xy = b.xy
    best = 4
    best_x = best_y = 0.0
    answer = OUT
    for c in range(count):
        k = work.around[c]
        if not is_vertex_of(wx, wy, xy, k) and (orient(xy[k, 0], xy[k, 1], xy[k + 1, 0], xy[k + 1, 1], wx, wy) != 0):
            continue
        for way in range(2):  # the ray to the edge's start, by which the ring arrives, and the one to its end
            rx = xy[k + way, 0]
            ry = xy[k + way, 1]
            if rx == wx and ry == wy:
                continue
            turn = turn_class(wx, wy, tx, ty, rx, ry)
            if turn == 0:
                return ON
            if turn < best or (turn == best and turn != 2 and orient(wx, wy, rx, ry, best_x, best_y) > 0):
                best = turn
                best_x = rx
                best_y = ry
                answer = IN if way == 0 else OUT
    return answer


@kernel
def has_vertex_at_crossing(a_xy, i, b, b0, b1, b_base, j, work):
    """Return True if a vertex of the region of b0..b1 is where edge i of a crosses edge j of b inside both."""
    x0 = max(min(a_xy[i, 0], a_xy[i + 1, 0]), min(b.xy[j, 0], b.xy[j + 1, 0]))
    y0 = max(min(a_xy[i, 1], a_xy[i + 1, 1]), min(b.xy[j, 1], b.xy[j + 1, 1]))
    x1 = min(max(a_xy[i, 0], a_xy[i + 1, 0]), max(b.xy[j, 0], b.xy[j + 1, 0]))
    y1 = min(max(a_xy[i, 1], a_xy[i + 1, 1]), max(b.xy[j, 1], b.xy[j + 1, 1]))
    count = list_edges(b, b0, b1, b_base, x0, y0, x1, y1, work.around, work)
    for c in range(count):
        k = work.around[c]
        if k != j and is_on_both(b.xy[k, 0], b.xy[k, 1], a_xy, i, b.xy, j):
            return True
    return False


@kernel
def bump(code, place, dimension):
    """Return the code of a matrix with an entry of at least so many dimensions at a place."""
    shift = np.int64(2 * place)
    old = (code >> shift) & 3
    new = max(old, np.int64(dimension + 1))
    return (code & ~(np.int64(3) << shift)) | (new << shift)
