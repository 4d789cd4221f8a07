"""Whether shapes lie within a distance of each other, exactly: squares are compared, no root and no foot is computed.

The distance asked for is d + e, the exact sum of two doubles: the reach of a constraint and the radius of a message.
Floating point with a bound of its error decides nearly always, integers (integers.py) decide the rest. Boxes only
exclude or include, with room for rounding.
"""

from typing import Any, NamedTuple

import numpy as np

from contrada.codes import BEYOND_REACH, ENCLOSED, FANOUT, FANOUT_SHIFT, NO_INDEX, OF_LINES, REACHED
from contrada.jit import allocating_kernel, entry, kernel
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
from contrada.kernels.relate.integers import (
    highest_exponent,
    integer_of,
    lowest_exponent,
    product_of,
    sign_of,
    sum_of,
)
from contrada.kernels.relate.orientation import ERROR_BOUND, orient
from contrada.kernels.relate.rings import OUT, locate

SQUARE_BOUND = 4e-15  # relative error of a comparison of squares: 32 units of rounding; at most 14 occur
# Squares between these bounds are exact up to the relative error: nothing vanishes or overflows. Coordinates are 0 or
# within 1e-120..1e120, so differences are 0 or at least 1e-136.
LEAST_SQUARE, LARGEST_SQUARE = 1e-240, 1e290
BOX_SLACK = 4e-15  # relative error of boxes grown by a distance, and of distances of boxes; ten times the bound


class Shapes(NamedTuple):
    """Regions or lines, or points if there are no `regions`; `chains` says where the edge index of each begins.

    Lines have parts in place of rings, and hold no area: their chains are OF_LINES less those places (`is_line`).
    """

    xy: Any
    rings: Any
    regions: Any
    bounds: Any
    boxes: Any
    chains: Any


@allocating_kernel
def line_sign_exact(px, py, ax, ay, bx, by, d, e):
    """Return the sign of the distance of p from the line through a and b, less d + e; 1 if p is farther."""
    least = np.int64(1 << 20)
    most = -least
    for x in (px, py, ax, ay, bx, by, d, e):
        least = lowest_exponent(x, least)
        most = highest_exponent(x, most)
    if most < least:
        return 0
    limbs = (most - least) // 30 + 4
    ux = sum_of(integer_of(bx, least, limbs), integer_of(ax, least, limbs), np.int64(-1))
    uy = sum_of(integer_of(by, least, limbs), integer_of(ay, least, limbs), np.int64(-1))
    vx = sum_of(integer_of(px, least, limbs), integer_of(ax, least, limbs), np.int64(-1))
    vy = sum_of(integer_of(py, least, limbs), integer_of(ay, least, limbs), np.int64(-1))
    reach = sum_of(integer_of(d, least, limbs), integer_of(e, least, limbs), np.int64(1))
    cross = sum_of(product_of(ux, vy), product_of(uy, vx), np.int64(-1))
    length = sum_of(product_of(ux, ux), product_of(uy, uy), np.int64(1))
    asked = product_of(product_of(reach, reach), length)
    return sign_of(sum_of(product_of(cross, cross), asked, np.int64(-1)))


@allocating_kernel
def point_sign_exact(ax, ay, bx, by, d, e):
    """Return the sign of the distance of a and b, less d + e; 1 if they are farther apart."""
    least = np.int64(1 << 20)
    most = -least
    for x in (ax, ay, bx, by, d, e):
        least = lowest_exponent(x, least)
        most = highest_exponent(x, most)
    if most < least:
        return 0
    limbs = (most - least) // 30 + 4
    ux = sum_of(integer_of(bx, least, limbs), integer_of(ax, least, limbs), np.int64(-1))
    uy = sum_of(integer_of(by, least, limbs), integer_of(ay, least, limbs), np.int64(-1))
    reach = sum_of(integer_of(d, least, limbs), integer_of(e, least, limbs), np.int64(1))
    square = sum_of(product_of(ux, ux), product_of(uy, uy), np.int64(1))
    return sign_of(sum_of(square, product_of(reach, reach), np.int64(-1)))


@allocating_kernel
def dot_sign_exact(px, py, ax, ay, bx, by):
    """Return the sign of the product of p - a and b - a: 1 if p lies on b's side of the perpendicular in a."""
    least = np.int64(1 << 20)
    most = -least
    for x in (px, py, ax, ay, bx, by):
        least = lowest_exponent(x, least)
        most = highest_exponent(x, most)
    if most < least:
        return 0
    limbs = (most - least) // 30 + 4
    ux = sum_of(integer_of(bx, least, limbs), integer_of(ax, least, limbs), np.int64(-1))
    uy = sum_of(integer_of(by, least, limbs), integer_of(ay, least, limbs), np.int64(-1))
    vx = sum_of(integer_of(px, least, limbs), integer_of(ax, least, limbs), np.int64(-1))
    vy = sum_of(integer_of(py, least, limbs), integer_of(ay, least, limbs), np.int64(-1))
    return sign_of(sum_of(product_of(ux, vx), product_of(uy, vy), np.int64(1)))


@kernel
def is_point_near(ax, ay, bx, by, d, e):
    """Return True if a and b are at most d + e apart; d + e must not be negative."""
    dx = ax - bx
    dy = ay - by
    square = dx * dx + dy * dy
    asked = (d + e) * (d + e)
    if LEAST_SQUARE < asked < LARGEST_SQUARE:
        if square < asked - SQUARE_BOUND * asked:
            return True
        if square > asked + SQUARE_BOUND * asked:
            return False
    elif d + e == 0.0:
        return dx == 0.0 and dy == 0.0
    elif asked <= LEAST_SQUARE and square > 2 * LEAST_SQUARE:
        return False
    return point_sign_exact(ax, ay, bx, by, d, e) <= 0


@kernel
def is_line_near(px, py, ax, ay, bx, by, d, e):
    """Return True if p is at most d + e from the line through a and b."""
    left = (px - ax) * (by - ay)
    right = (py - ay) * (bx - ax)
    cross = abs(left - right)
    bound = ERROR_BOUND * (abs(left) + abs(right))
    ux = bx - ax
    uy = by - ay
    asked = (d + e) * (d + e)
    if d + e == 0.0 and cross > bound:
        return False
    if LEAST_SQUARE < asked < LARGEST_SQUARE:
        asked *= ux * ux + uy * uy
        if LEAST_SQUARE < asked < LARGEST_SQUARE:
            most = cross + bound
            if most * most < asked - SQUARE_BOUND * asked:
                return True
            least = max(cross - bound, 0.0)
            if least * least > asked + SQUARE_BOUND * asked:
                return False
    return line_sign_exact(px, py, ax, ay, bx, by, d, e) <= 0


@kernel
def is_segment_near(px, py, ax, ay, bx, by, d, e):
    """Return True if p is at most d + e from the segment a-b.

    The foot of the perpendicular counts only if it lies between a and b, which the signs of two products tell.
    """
    if is_point_near(px, py, ax, ay, d, e) or is_point_near(px, py, bx, by, d, e):
        return True
    ux = bx - ax
    uy = by - ay
    x = (px - ax) * ux
    y = (py - ay) * uy
    bound = ERROR_BOUND * (abs(x) + abs(y))
    if x + y < -bound:
        return False
    is_sure = x + y > bound
    x = (bx - px) * ux
    y = (by - py) * uy
    bound = ERROR_BOUND * (abs(x) + abs(y))
    if x + y < -bound:
        return False
    is_sure = is_sure and x + y > bound
    if not is_line_near(px, py, ax, ay, bx, by, d, e):
        return False
    if is_sure:
        return True
    return dot_sign_exact(px, py, ax, ay, bx, by) > 0 and dot_sign_exact(px, py, bx, by, ax, ay) > 0


@kernel
def are_segments_near(ax, ay, bx, by, px, py, qx, qy, d, e):
    """Return True if the segments a-b and p-q cross, or are at most d + e apart."""
    if (
        is_segment_near(px, py, ax, ay, bx, by, d, e)
        or is_segment_near(qx, qy, ax, ay, bx, by, d, e)
        or is_segment_near(ax, ay, px, py, qx, qy, d, e)
        or is_segment_near(bx, by, px, py, qx, qy, d, e)
    ):
        return True
    if max(ax, bx) < min(px, qx) or max(px, qx) < min(ax, bx) or max(ay, by) < min(py, qy) or max(py, qy) < min(ay, by):
        return False
    return (
        orient(ax, ay, bx, by, px, py) * orient(ax, ay, bx, by, qx, qy) < 0
        and orient(px, py, qx, qy, ax, ay) * orient(px, py, qx, qy, bx, by) < 0
    )


@kernel
def are_boxes_beyond(a0, a1, a2, a3, b0, b1, b2, b3, reach):
    """Return True if two boxes are surely more than `reach` apart; False may mean "not known"."""
    x = max(a0 - b2, b0 - a2, 0.0)
    y = max(a1 - b3, b1 - a3, 0.0)
    return x * x + y * y > reach * reach * (1 + BOX_SLACK) and max(x, y) > 0.0


@kernel
def are_boxes_within(a0, a1, a2, a3, b0, b1, b2, b3, reach):
    """Return True if any two points of two boxes are surely at most `reach` apart; False may mean "not known"."""
    x = max(a2 - b0, b2 - a0)
    y = max(a3 - b1, b3 - a1)
    return x * x + y * y < reach * reach * (1 - BOX_SLACK)


@kernel
def is_line(s, i):
    """Return True if shape i of regions and lines is a line."""
    return s.chains[i] < NO_INDEX


@kernel
def index_of(s, i):
    """Return where the edge index of a region or line begins; NO_INDEX if it has none."""
    chain = s.chains[i]
    return OF_LINES - chain if chain < NO_INDEX else chain


@kernel
def is_near_edges(ax, ay, bx, by, s, s0, s1, base, d, e, stack, found):
    """Return True if the segment a-b, or the point a if b equals it, is at most d + e from an edge of rings s0..s1."""
    reach = d + e
    x0 = min(ax, bx)
    y0 = min(ay, by)
    x1 = max(ax, bx)
    y1 = max(ay, by)
    first = s.rings[s0]
    last = s.rings[s1] - 1
    if base < 0:
        return is_near_run(ax, ay, bx, by, x0, y0, x1, y1, s, s0, s1, first, last, reach, d, e)
    slack = BOX_SLACK * (max(abs(x0), abs(x1), abs(y0), abs(y1)) + reach)
    slots = last - first
    found[COUNTER_ROW, 0] = 0
    depth = start_query(slots, stack, STACK_FLOOR)
    while depth > STACK_FLOOR:
        end, depth = query_chain(
            s.boxes, base, slots, x0 - reach - slack, y0 - reach - slack, x1 + reach + slack, y1 + reach + slack,
            stack, STACK_FLOOR, depth, found, FOUND_FLOOR, COUNTER_ROW,
        )  # fmt: skip
        for c in range(FOUND_FLOOR, end):
            k = first + (found[c, 0] << FANOUT_SHIFT)
            stop = min(k + FANOUT, last)
            if is_near_run(ax, ay, bx, by, x0, y0, x1, y1, s, s0, s1, k, stop, reach, d, e):
                return True
    return False


@kernel
def is_near_run(ax, ay, bx, by, x0, y0, x1, y1, s, s0, s1, start, stop, reach, d, e):
    """Return True if the segment a-b with the box x0..y1 is at most d + e from one of the edges start..stop."""
    is_point = ax == bx and ay == by
    r = ring_of(s.rings, s0, s1, start)
    for k in range(start, stop):
        if k == s.rings[r + 1] - 1:  # the slot between two rings
            r += 1
            continue
        px = s.xy[k, 0]
        py = s.xy[k, 1]
        qx = s.xy[k + 1, 0]
        qy = s.xy[k + 1, 1]
        if are_boxes_beyond(x0, y0, x1, y1, min(px, qx), min(py, qy), max(px, qx), max(py, qy), reach):
            continue
        if is_point:
            if is_segment_near(ax, ay, px, py, qx, qy, d, e):
                return True
        elif are_segments_near(ax, ay, bx, by, px, py, qx, qy, d, e):
            return True
    return False


@kernel
def is_region_near_point(x, y, s, i, d, e, stack, found):
    """Return True if the point is at most d + e from region or line i."""
    s0 = np.int64(s.regions[i])
    s1 = np.int64(s.regions[i + 1])
    base = index_of(s, i)
    if not is_line(s, i) and s.bounds[i, 0] <= x <= s.bounds[i, 2] and s.bounds[i, 1] <= y <= s.bounds[i, 3]:
        if locate(x, y, s.xy, s.rings, s0, s1, s.boxes, base, stack, found) != OUT:
            return True
    return is_near_edges(x, y, x, y, s, s0, s1, base, d, e, stack, found)


@kernel
def holds_vertex(a, i, b, j, stack, found):
    """Return True if region j of b holds a vertex of a ring of shape i of a: of each ring, one is tried."""
    if is_line(b, j):
        return False
    b0 = np.int64(b.regions[j])
    b1 = np.int64(b.regions[j + 1])
    for r in range(a.regions[i], a.regions[i + 1]):
        v = a.rings[r]
        x = a.xy[v, 0]
        y = a.xy[v, 1]
        if b.bounds[j, 0] <= x <= b.bounds[j, 2] and b.bounds[j, 1] <= y <= b.bounds[j, 3]:
            if locate(x, y, b.xy, b.rings, b0, b1, b.boxes, b.chains[j], stack, found) != OUT:
                return True
    return False


@kernel
def are_edges_near(a, i, b, j, d, e, stack, found):
    """Return True if an edge of region or line i of a is at most d + e from an edge of region or line j of b."""
    b0 = np.int64(b.regions[j])
    b1 = np.int64(b.regions[j + 1])
    for r in range(a.regions[i], a.regions[i + 1]):
        for v in range(a.rings[r], a.rings[r + 1] - 1):
            px = a.xy[v, 0]
            py = a.xy[v, 1]
            qx = a.xy[v + 1, 0]
            qy = a.xy[v + 1, 1]
            if are_boxes_beyond(
                min(px, qx), min(py, qy), max(px, qx), max(py, qy),
                b.bounds[j, 0], b.bounds[j, 1], b.bounds[j, 2], b.bounds[j, 3], d + e,
            ):  # fmt: skip
                continue
            if is_near_edges(px, py, qx, qy, b, b0, b1, index_of(b, j), d, e, stack, found):
                return True
    return False


@kernel
def are_regions_near(a, i, b, j, d, e, stack, found):
    """Return True if regions or lines i of a and j of b are at most d + e apart.

    Either one holds a vertex of the other, or two edges are near.
    """
    if holds_vertex(a, i, b, j, stack, found) or holds_vertex(b, j, a, i, stack, found):
        return True
    # The edges of one are looked up in the other: the more edges that has, the more an index saves.
    a_size = a.rings[a.regions[i + 1]] - a.rings[a.regions[i]]
    b_size = b.rings[b.regions[j + 1]] - b.rings[b.regions[j]]
    if a_size > b_size:
        return are_edges_near(b, j, a, i, d, e, stack, found)
    return are_edges_near(a, i, b, j, d, e, stack, found)


@kernel
def is_enclosed(a, i, radius, x, y, d):
    """Return True if all of shape i of a, grown by its radius, is at most d from the point."""
    if d < radius:
        return False
    if len(a.regions) == 0:
        return is_point_near(a.xy[i, 0], a.xy[i, 1], x, y, d, -radius)
    for v in range(a.rings[a.regions[i]], a.rings[a.regions[i + 1]]):
        if not is_point_near(a.xy[v, 0], a.xy[v, 1], x, y, d, -radius):
            return False
    return True


@kernel
def outcome_of(a, i, radius, b, j, d, asked, stack, found):
    """Return whether shape i of a, grown by its radius, is beyond d from shape j of b, reached, or enclosed by it.

    Only a disc, the points within d of a point, encloses. The answer is exact enough to decide the outcomes `asked`.
    """
    is_point = len(a.regions) == 0
    is_disc = len(b.regions) == 0
    if is_point and is_disc:
        is_near = is_point_near(a.xy[i, 0], a.xy[i, 1], b.xy[j, 0], b.xy[j, 1], d, radius)
    elif is_point:
        is_near = is_region_near_point(a.xy[i, 0], a.xy[i, 1], b, j, d, radius, stack, found)
    elif is_disc:
        is_near = is_region_near_point(b.xy[j, 0], b.xy[j, 1], a, i, d, radius, stack, found)
    else:
        is_near = are_regions_near(a, i, b, j, d, radius, stack, found)
    if not is_near:
        return BEYOND_REACH
    asks_enclosed = (asked & 3) == 1 or (asked & 3) == 2
    if is_disc and asks_enclosed and is_enclosed(a, i, radius, b.xy[j, 0], b.xy[j, 1], d):
        return ENCLOSED
    return REACHED


@kernel
def row_of(rows, count, k):
    """Return the row of pair k: rows[k]; without rows k itself, or the only one of `count` rows."""
    if len(rows) > 0:
        return rows[k]
    return np.int64(k) if count > 1 else np.int64(0)


@kernel
def count_of(s):
    """Return the number of shapes."""
    return np.int64(len(s.regions) - 1 if len(s.regions) > 0 else len(s.xy))


@entry(
    "f8[2] i8[1] i4[1] f8[2] f8[2]! i8[1] f8[1] f8[2] i8[1] i4[1] f8[2] f8[2]! i8[1] f8[1] u1[1]"
    " i8[1] i8[1] i8 i8 u1[1]!",
    interpreted=True,
)
def near_rows(
    a_xy, a_rings, a_regions, a_bounds, a_boxes, a_chains, radii,
    b_xy, b_rings, b_regions, b_bounds, b_boxes, b_chains, distances, masks, a_rows, b_rows, start, stop, out,
):  # fmt: skip
    """Write to out[k] whether shape a_rows[k] of a is within distances[k] of shape b_rows[k] of b, start <= k < stop.

    The outcome is a code of codes.py, and is exact enough to decide masks[k]. Where a list of rows is empty, the shape
    is that of row k, or the only one. `radii` is empty, or has a radius for each shape of a.
    """
    a = Shapes(a_xy, a_rings, a_regions, a_bounds, a_boxes, a_chains)
    b = Shapes(b_xy, b_rings, b_regions, b_bounds, b_boxes, b_chains)
    needs_index = len(a_regions) > 0 or len(b_regions) > 0
    stack = np.empty((STACK_ROWS if needs_index else 0, 4), np.int64)
    found = np.empty((FOUND_ROWS if needs_index else 0, 2), np.int64)
    for k in range(start, stop):
        i = row_of(a_rows, count_of(a), k)
        j = row_of(b_rows, count_of(b), k)
        d = distances[k if len(distances) > 1 else 0]
        radius = radii[i] if len(radii) > 0 else 0.0
        asked = np.int64(masks[k if len(masks) > 1 else 0])
        out[k] = outcome_of(a, i, radius, b, j, d, asked, stack, found)
