"""Whether regions and points on the ellipsoid are within some metres of each other."""

import numpy as np

from contrada.codes import BEYOND_REACH, ELSEWHERE, FANOUT, FANOUT_SHIFT, REACHED
from contrada.jit import entry, kernel
from contrada.kernels.globe.bounds import (
    EVERYWHERE,
    MOST_METRES,
    ROUNDING,
    do_meet,
    first_turn,
    grown_by_metres,
    is_place,
    last_turn,
    metres_between,
)
from contrada.kernels.globe.edges import CELL_ROWS, are_edges_near
from contrada.kernels.globe.inverse import inverse
from contrada.kernels.relate.chains import (
    COUNTER_ROW,
    FOUND_FLOOR,
    FOUND_ROWS,
    STACK_FLOOR,
    STACK_ROWS,
    query_chain,
    ring_of,
    start_query,
)
from contrada.kernels.relate.distance import Shapes, count_of, row_of
from contrada.kernels.relate.rings import OUT, locate


@kernel
def are_points_near(ax, ay, bx, by, d):
    """Return True if two points are at most d metres apart."""
    if metres_between(ax, ay, ax, ay, bx, by, bx, by) > d:
        return False
    f, _, _, _, _ = inverse(ax, ay, bx, by)
    return f <= d or f < ROUNDING


@kernel
def is_in_region(x, y, s, i, stack, found):
    """Return True if region i holds the point after whole turns."""
    if y < s.bounds[i, 1] or y > s.bounds[i, 3]:
        return False
    first = first_turn(s.bounds[i, 0], x)
    last = last_turn(s.bounds[i, 2], x)
    s0 = np.int64(s.regions[i])
    s1 = np.int64(s.regions[i + 1])
    for k in range(first, last + 1):
        if locate(x + 360.0 * k, y, s.xy, s.rings, s0, s1, s.boxes, s.chains[i], stack, found) != OUT:
            return True
    return False


@kernel
def is_near_run(ax, ay, bx, by, s, s0, s1, start, stop, d, cells):
    """Return True if the edge a-b is at most d metres from one of the edges start..stop of rings s0..s1."""
    r = ring_of(s.rings, s0, s1, start)
    for k in range(start, stop):
        if k == s.rings[r + 1] - 1:  # the slot between two rings
            r += 1
        elif are_edges_near(ax, ay, bx, by, s.xy[k, 0], s.xy[k, 1], s.xy[k + 1, 0], s.xy[k + 1, 1], d, cells):
            return True
    return False


@kernel
def is_near_edges(ax, ay, bx, by, s, i, d, cells, stack, found):
    """Return True if the edge a-b, or the point a if b equals it, is at most d metres from an edge of region i."""
    s0 = np.int64(s.regions[i])
    s1 = np.int64(s.regions[i + 1])
    first = s.rings[s0]
    last = s.rings[s1] - 1
    base = s.chains[i]
    if base < 0:
        return is_near_run(ax, ay, bx, by, s, s0, s1, first, last, d, cells)
    x0, y0, x1, y1 = grown_by_metres(min(ax, bx), min(ay, by), max(ax, bx), max(ay, by), d)
    slots = last - first
    turn = first_turn(x0, s.bounds[i, 2])
    last_one = last_turn(x1, s.bounds[i, 0])
    if x1 == EVERYWHERE:
        turn = last_one = np.int64(0)
    while turn <= last_one:
        found[COUNTER_ROW, 0] = 0
        depth = start_query(slots, stack, STACK_FLOOR)
        while depth > STACK_FLOOR:
            end, depth = query_chain(
                s.boxes, base, slots, x0 - 360.0 * turn, y0, x1 - 360.0 * turn, y1,
                stack, STACK_FLOOR, depth, found, FOUND_FLOOR, COUNTER_ROW,
            )  # fmt: skip
            for c in range(FOUND_FLOOR, end):
                k = first + (found[c, 0] << FANOUT_SHIFT)
                if is_near_run(ax, ay, bx, by, s, s0, s1, k, min(k + FANOUT, last), d, cells):
                    return True
        turn += 1
    return False


@kernel
def is_region_near_point(x, y, s, i, d, cells, stack, found):
    """Return True if the point is at most d metres from region i."""
    if metres_between(x, y, x, y, s.bounds[i, 0], s.bounds[i, 1], s.bounds[i, 2], s.bounds[i, 3]) > d:
        return False
    if is_in_region(x, y, s, i, stack, found):
        return True
    return is_near_edges(x, y, x, y, s, i, d, cells, stack, found)


@kernel
def holds_vertex(a, i, b, j, stack, found):
    """Return True if region j of b holds a vertex of a ring of region i of a: of each ring, one is tried."""
    for r in range(a.regions[i], a.regions[i + 1]):
        v = a.rings[r]
        if is_in_region(a.xy[v, 0], a.xy[v, 1], b, j, stack, found):
            return True
    return False


@kernel
def have_near_edges(a, i, b, j, d, cells, stack, found):
    """Return True if an edge of region i of a is at most d metres from an edge of region j of b."""
    for r in range(a.regions[i], a.regions[i + 1]):
        for v in range(a.rings[r], a.rings[r + 1] - 1):
            px = a.xy[v, 0]
            py = a.xy[v, 1]
            qx = a.xy[v + 1, 0]
            qy = a.xy[v + 1, 1]
            apart = metres_between(
                min(px, qx), min(py, qy), max(px, qx), max(py, qy),
                b.bounds[j, 0], b.bounds[j, 1], b.bounds[j, 2], b.bounds[j, 3],
            )  # fmt: skip
            if apart <= d and is_near_edges(px, py, qx, qy, b, j, d, cells, stack, found):
                return True
    return False


@kernel
def are_regions_near(a, i, b, j, d, cells, stack, found):
    """Return True if region i of a and region j of b are at most d metres apart: they meet, or two edges are near."""
    apart = metres_between(
        a.bounds[i, 0], a.bounds[i, 1], a.bounds[i, 2], a.bounds[i, 3],
        b.bounds[j, 0], b.bounds[j, 1], b.bounds[j, 2], b.bounds[j, 3],
    )  # fmt: skip
    if apart > d:
        return False
    if do_meet(
        a.bounds[i, 0], a.bounds[i, 1], a.bounds[i, 2], a.bounds[i, 3],
        b.bounds[j, 0], b.bounds[j, 1], b.bounds[j, 2], b.bounds[j, 3],
    ) and (holds_vertex(a, i, b, j, stack, found) or holds_vertex(b, j, a, i, stack, found)):  # fmt: skip
        return True
    # The edges of one are looked up in the other: the more edges that has, the more an index saves.
    a_size = a.rings[a.regions[i + 1]] - a.rings[a.regions[i]]
    b_size = b.rings[b.regions[j + 1]] - b.rings[b.regions[j]]
    if a_size > b_size:
        return have_near_edges(b, j, a, i, d, cells, stack, found)
    return have_near_edges(a, i, b, j, d, cells, stack, found)


@kernel
def is_somewhere(s, i):
    """Return True if shape i is within the longitudes and latitudes that shapes may have."""
    if len(s.regions) == 0:
        return is_place(s.xy[i, 0], s.xy[i, 1], s.xy[i, 0], s.xy[i, 1])
    return is_place(s.bounds[i, 0], s.bounds[i, 1], s.bounds[i, 2], s.bounds[i, 3])


@kernel
def metres_outcome(a, i, b, j, d, cells, stack, found):
    """Return whether shape i of a is at most d metres from shape j of b, or beyond; ELSEWHERE if one is no place."""
    if not is_somewhere(a, i) or not is_somewhere(b, j):
        return ELSEWHERE
    is_point = len(a.regions) == 0
    is_other_point = len(b.regions) == 0
    if d >= MOST_METRES:
        is_near = True
    elif is_point and is_other_point:
        is_near = are_points_near(a.xy[i, 0], a.xy[i, 1], b.xy[j, 0], b.xy[j, 1], d)
    elif is_point:
        is_near = is_region_near_point(a.xy[i, 0], a.xy[i, 1], b, j, d, cells, stack, found)
    elif is_other_point:
        is_near = is_region_near_point(b.xy[j, 0], b.xy[j, 1], a, i, d, cells, stack, found)
    else:
        is_near = are_regions_near(a, i, b, j, d, cells, stack, found)
    return REACHED if is_near else BEYOND_REACH


@entry(
    "f8[2] i8[1] i4[1] f8[2] f8[2]! i8[1] f8[2] i8[1] i4[1] f8[2] f8[2]! i8[1] f8[1] i8[1] i8[1] i8 i8 u1[1]!",
    interpreted=True,
)
def metres_rows(
    a_xy, a_rings, a_regions, a_bounds, a_boxes, a_chains, b_xy, b_rings, b_regions, b_bounds, b_boxes, b_chains,
    distances, a_rows, b_rows, start, stop, out,
):  # fmt: skip
    """Write to out[k] whether shape a_rows[k] of a is within distances[k] metres of shape b_rows[k] of b.

    start <= k < stop. The outcome is REACHED, BEYOND_REACH or ELSEWHERE. Where a list of rows is empty, the shape is
    that of row k, or the only one.
    """
    a = Shapes(a_xy, a_rings, a_regions, a_bounds, a_boxes, a_chains)
    b = Shapes(b_xy, b_rings, b_regions, b_bounds, b_boxes, b_chains)
    needs_index = len(a_regions) > 0 or len(b_regions) > 0
    stack = np.empty((STACK_ROWS if needs_index else 0, 4), np.int64)
    found = np.empty((FOUND_ROWS if needs_index else 0, 2), np.int64)
    cells = np.empty((CELL_ROWS if needs_index else 0, 4))
    for k in range(start, stop):
        i = row_of(a_rows, count_of(a), k)
        j = row_of(b_rows, count_of(b), k)
        d = distances[k if len(distances) > 1 else 0]
        out[k] = metres_outcome(a, i, b, j, d, cells, stack, found)
