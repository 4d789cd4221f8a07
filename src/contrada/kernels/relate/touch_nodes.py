"""Relation bits from nodes, the points where two boundaries touch, by the angular order of the edges around a node.

At a node P each region has rays: even rows of a ray array point along edges that leave P (the interior lies
counter-clockwise of them), odd rows back along edges that arrive (the interior lies clockwise). A direction from P lies
in the region iff the first ray clockwise of it is a leaving one.

Four bits hold the facts about a pair of regions. Each observation sets the bits that follow from it, and no bit is ever
cleared:

    MEET     the interiors meet
    A_LEAVES A has interior points outside B
    B_LEAVES B has interior points outside A
    TOUCH    the boundaries touch
"""

import numpy as np

from contrada.codes import FANOUT, FANOUT_SHIFT, TOUCHING
from contrada.jit import kernel
from contrada.kernels.relate.chains import COUNTER_ROW, FOUND_FLOOR, STACK_FLOOR, query_chain, ring_of, start_query
from contrada.kernels.relate.orientation import orient

# NumPy integers, not Python's: Numba recompiles a function for every Python literal that is passed to it.
MEET, A_LEAVES, B_LEAVES, TOUCH, SHARED = (np.int64(1 << k) for k in range(5))
SETTLED = MEET | A_LEAVES | B_LEAVES  # final: the regions overlap
UNTIL_SETTLED = np.int64(1 << SETTLED | 1 << (SETTLED | TOUCH))  # see is_decided

BOUNDARY_A_IN_B = MEET | B_LEAVES  # near a boundary point of A in B the interiors meet, and B has interior outside A
BOUNDARY_B_IN_A = MEET | A_LEAVES
SAME_SIDE = MEET | TOUCH | SHARED  # a shared piece of boundary with both interiors on one side
OPPOSITE_SIDES = A_LEAVES | B_LEAVES | TOUCH | SHARED


def _stops():
    """Return, for each mask of relations, the states of the four bits that decide whether the relation is in it."""
    whole = [0b0110, 0b1110, 0b1111, 0b1001, 0b0101, 0b0011, 0b1011, 0b1101]  # all bits of each relation
    stops = np.zeros(256, np.int64)
    for state in range(16):
        possible = sum(1 << relation for relation in range(8) if whole[relation] & state == state)
        for asked in range(256):
            if possible & asked == 0 or possible & ~asked == 0:
                stops[asked] |= 1 << state
    return stops


STOPS = _stops()


@kernel
def is_decided(bits, stops):
    """Return True if `bits` decide the caller's question: `stops` has a bit for each of the 16 states."""
    return (stops >> (bits & 15)) & 1 != 0


@kernel
def same_direction(px, py, dx, dy, ex, ey):
    """Return True if d and e lie on one ray from p."""
    if dx == ex and dy == ey:
        return True
    if (dx > px) != (ex > px) or (dx < px) != (ex < px) or (dy > py) != (ey > py) or (dy < py) != (ey < py):
        return False
    return orient(px, py, dx, dy, ex, ey) == 0


@kernel
def is_between(px, py, fx, fy, rx, ry, dx, dy):
    """Return True if a counter-clockwise turn around p from f to d meets r strictly in between (f and d differ)."""
    turn = orient(px, py, fx, fy, dx, dy)
    if turn > 0:
        return orient(px, py, fx, fy, rx, ry) > 0 and orient(px, py, rx, ry, dx, dy) > 0
    if turn < 0:
        return not (orient(px, py, dx, dy, rx, ry) >= 0 and orient(px, py, rx, ry, fx, fy) >= 0)
    return orient(px, py, fx, fy, rx, ry) > 0


@kernel
def locate_direction(px, py, dx, dy, rays, start, count):
    """Locate the direction p-d among a region's rays at p: -1 outside, -2 inside, or the row of a ray along it."""
    for k in range(start, start + count):
        if same_direction(px, py, dx, dy, rays[k, 0], rays[k, 1]):
            return k
    last = start
    for k in range(start + 1, start + count):
        if is_between(px, py, rays[last, 0], rays[last, 1], rays[k, 0], rays[k, 1], dx, dy):
            last = k
    return -2 if last & 1 == 0 else -1


@kernel
def node_bits(px, py, rays, a_count, b_start, b_count):
    """Return the bits that follow from the rays of A (from row 0) and of B (from row b_start, even) at a node."""
    bits = TOUCH
    for k in range(a_count):
        side = locate_direction(px, py, rays[k, 0], rays[k, 1], rays, b_start, b_count)
        if side >= 0:
            bits |= SAME_SIDE if (side ^ k) & 1 == 0 else OPPOSITE_SIDES
        else:
            bits |= BOUNDARY_A_IN_B if side == -2 else A_LEAVES
    for k in range(b_start, b_start + b_count):
        side = locate_direction(px, py, rays[k, 0], rays[k, 1], rays, np.int64(0), a_count)
        if side < 0:
            bits |= BOUNDARY_B_IN_A if side == -2 else B_LEAVES
    return bits


@kernel
def lies_on(px, py, ux, uy, vx, vy):
    """Return True if p lies on the edge u-v strictly between its ends."""
    if (px < ux and px < vx) or (px > ux and px > vx) or (py < uy and py < vy) or (py > uy and py > vy):
        return False
    if (px == ux and py == uy) or (px == vx and py == vy):
        return False
    return orient(ux, uy, vx, vy, px, py) == 0


@kernel
def before(rings, r, i):
    """Return the vertex before vertex i on its ring r."""
    return i - 1 if i > rings[r] else rings[r + 1] - 2


@kernel
def add_rays(px, py, xy, rings, r, i, rays, count):
    """Add the two rays of ring r at p if edge i starts at p or passes through it; return the new number of rays."""
    if xy[i, 0] == px and xy[i, 1] == py:
        j = before(rings, r, i)
    elif lies_on(px, py, xy[i, 0], xy[i, 1], xy[i + 1, 0], xy[i + 1, 1]):
        j = i
    else:
        return count
    rays[count, 0] = xy[i + 1, 0]
    rays[count, 1] = xy[i + 1, 1]
    rays[count + 1, 0] = xy[j, 0]
    rays[count + 1, 1] = xy[j, 1]
    return count + 2


@kernel
def gather_rays(px, py, xy, rings, flags, r0, r1, r, i, boxes, base, stack, found, rays, start):
    """Write the rays of a region at p, on edge i of ring r, to `rays` from row `start` on; return the end."""
    if flags[r] & TOUCHING == 0:
        return add_rays(px, py, xy, rings, r, i, rays, start)
    count = start
    first = rings[r0]
    slots = rings[r1] - first - 1
    if base < 0:
        for t in range(r0, r1):
            if flags[t] & TOUCHING:
                for k in range(rings[t], rings[t + 1] - 1):
                    count = add_rays(px, py, xy, rings, t, k, rays, count)
        return count
    depth = start_query(slots, stack, STACK_FLOOR)
    while depth > STACK_FLOOR:
        end, depth = query_chain(
            boxes, base, slots, px, py, px, py, stack, STACK_FLOOR, depth, found, FOUND_FLOOR, COUNTER_ROW
        )
        for c in range(FOUND_FLOOR, end):
            k = first + (found[c, 0] << FANOUT_SHIFT)
            stop = min(k + FANOUT, rings[r1] - 1)
            t = ring_of(rings, r0, r1, k)
            while k < stop:
                if k == rings[t + 1] - 1:  # the slot between two rings
                    t += 1
                else:
                    count = add_rays(px, py, xy, rings, t, k, rays, count)
                k += 1
    return count
