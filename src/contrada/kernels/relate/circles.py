"""The exact relation of circles to regions and points. A circle is the set of points at most its radius from a centre.

The distance of the centre from an edge or a vertex is compared with the radius three ways: less, equal, greater. That
decides all eight relations, because a circle touches a boundary where the distance is equal. Floating point with a
bound of its error decides nearly always, integers decide the rest, as in distance.py. A circle of radius 0 is a point.
"""

import numpy as np

from contrada.codes import (
    CONTAINS,
    COVERED_BY,
    COVERS,
    DISJOINT,
    EQUALS,
    FANOUT,
    FANOUT_SHIFT,
    INSIDE,
    MEETS,
    OVERLAPS,
)
from contrada.jit import entry, kernel
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
from contrada.kernels.relate.distance import (
    BOX_SLACK,
    LARGEST_SQUARE,
    LEAST_SQUARE,
    SQUARE_BOUND,
    Shapes,
    are_boxes_beyond,
    count_of,
    dot_sign_exact,
    line_sign_exact,
    point_sign_exact,
    row_of,
)
from contrada.kernels.relate.orientation import ERROR_BOUND
from contrada.kernels.relate.rings import IN, OUT, locate


@kernel
def point_side(ax, ay, bx, by, r):
    """Return the sign of the distance of a and b, less r."""
    dx = ax - bx
    dy = ay - by
    square = dx * dx + dy * dy
    asked = r * r
    if LEAST_SQUARE < asked < LARGEST_SQUARE:
        if square < asked - SQUARE_BOUND * asked:
            return -1
        if square > asked + SQUARE_BOUND * asked:
            return 1
    elif r == 0.0:
        return 0 if dx == 0.0 and dy == 0.0 else 1
    elif asked <= LEAST_SQUARE and square > 2 * LEAST_SQUARE:
        return 1
    return point_sign_exact(ax, ay, bx, by, r, 0.0)


@kernel
def line_side(px, py, ax, ay, bx, by, r):
    """Return the sign of the distance of p from the line through a and b, less r."""
    left = (px - ax) * (by - ay)
    right = (py - ay) * (bx - ax)
    cross = abs(left - right)
    bound = ERROR_BOUND * (abs(left) + abs(right))
    ux = bx - ax
    uy = by - ay
    asked = r * r
    if r == 0.0 and cross > bound:
        return 1
    if LEAST_SQUARE < asked < LARGEST_SQUARE:
        asked *= ux * ux + uy * uy
        if LEAST_SQUARE < asked < LARGEST_SQUARE:
            most = cross + bound
            if most * most < asked - SQUARE_BOUND * asked:
                return -1
            least = max(cross - bound, 0.0)
            if least * least > asked + SQUARE_BOUND * asked:
                return 1
    return line_sign_exact(px, py, ax, ay, bx, by, r, 0.0)


@kernel
def segment_side(px, py, ax, ay, bx, by, r):
    """Return the sign of the distance of p from the segment a-b, less r."""
    ends = min(point_side(px, py, ax, ay, r), point_side(px, py, bx, by, r))
    if ends < 0:
        return ends
    ux = bx - ax
    uy = by - ay
    x = (px - ax) * ux
    y = (py - ay) * uy
    bound = ERROR_BOUND * (abs(x) + abs(y))
    if x + y < -bound:
        return ends
    is_sure = x + y > bound
    x = (bx - px) * ux
    y = (by - py) * uy
    bound = ERROR_BOUND * (abs(x) + abs(y))
    if x + y < -bound:
        return ends
    is_sure = is_sure and x + y > bound
    side = line_side(px, py, ax, ay, bx, by, r)
    if side >= ends:
        return ends
    if is_sure or (dot_sign_exact(px, py, ax, ay, bx, by) > 0 and dot_sign_exact(px, py, bx, by, ax, ay) > 0):
        return side
    return ends


@kernel
def run_side(x, y, r, s, s0, s1, start, stop, least):
    """Return the least of `least` and the sides of the edges start..stop of rings s0..s1."""
    ring = ring_of(s.rings, s0, s1, start)
    for k in range(start, stop):
        if k == s.rings[ring + 1] - 1:  # the slot between two rings
            ring += 1
            continue
        px = s.xy[k, 0]
        py = s.xy[k, 1]
        qx = s.xy[k + 1, 0]
        qy = s.xy[k + 1, 1]
        if are_boxes_beyond(x, y, x, y, min(px, qx), min(py, qy), max(px, qx), max(py, qy), r):
            continue
        least = min(least, segment_side(x, y, px, py, qx, qy, r))
        if least < 0:
            return least
    return least


@kernel
def boundary_side(x, y, r, s, i, stack, found):
    """Return the sign of the distance of the point from the boundary of region i, less r."""
    s0 = np.int64(s.regions[i])
    s1 = np.int64(s.regions[i + 1])
    base = s.chains[i]
    first = s.rings[s0]
    last = s.rings[s1] - 1
    if base < 0:
        return run_side(x, y, r, s, s0, s1, first, last, np.int64(1))
    least = np.int64(1)
    slack = BOX_SLACK * (max(abs(x), abs(y)) + r)
    slots = last - first
    found[COUNTER_ROW, 0] = 0
    depth = start_query(slots, stack, STACK_FLOOR)
    while depth > STACK_FLOOR:
        end, depth = query_chain(
            s.boxes, base, slots, x - r - slack, y - r - slack, x + r + slack, y + r + slack,
            stack, STACK_FLOOR, depth, found, FOUND_FLOOR, COUNTER_ROW,
        )  # fmt: skip
        for c in range(FOUND_FLOOR, end):
            k = first + (found[c, 0] << FANOUT_SHIFT)
            least = run_side(x, y, r, s, s0, s1, k, min(k + FANOUT, last), least)
            if least < 0:
                return least
    return least


@kernel
def vertices_side(x, y, r, s, i):
    """Return the sign of the distance of the point from the farthest vertex of region i, less r."""
    most = -1
    for v in range(s.rings[s.regions[i]], s.rings[s.regions[i + 1]]):
        most = max(most, point_side(x, y, s.xy[v, 0], s.xy[v, 1], r))
        if most > 0:
            return most
    return most


@kernel
def relation_to_region(x, y, r, s, i, stack, found):
    """Return the relation of a circle to region i."""
    if are_boxes_beyond(x, y, x, y, s.bounds[i, 0], s.bounds[i, 1], s.bounds[i, 2], s.bounds[i, 3], r):
        return DISJOINT
    place = OUT
    if s.bounds[i, 0] <= x <= s.bounds[i, 2] and s.bounds[i, 1] <= y <= s.bounds[i, 3]:
        s0 = np.int64(s.regions[i])
        s1 = np.int64(s.regions[i + 1])
        place = locate(x, y, s.xy, s.rings, s0, s1, s.boxes, s.chains[i], stack, found)
    if r == 0.0:
        return INSIDE if place == IN else (DISJOINT if place == OUT else MEETS)
    side = boundary_side(x, y, r, s, i, stack, found)
    if side > 0:
        return INSIDE if place == IN else DISJOINT
    if side == 0:
        return COVERED_BY if place == IN else MEETS
    side = vertices_side(x, y, r, s, i)
    return OVERLAPS if side > 0 else (COVERS if side == 0 else CONTAINS)


@kernel
def relation_to_point(x, y, r, px, py):
    """Return the relation of a circle to the point p."""
    side = point_side(x, y, px, py, r)
    if side > 0:
        return DISJOINT
    if r == 0.0:
        return EQUALS
    return MEETS if side == 0 else CONTAINS


@entry("f8[2] f8[1] f8[2] i8[1] i4[1] f8[2] f8[2]! i8[1] i8[1] i8[1] i8 i8 u1[1]!", interpreted=True)
def relate_circles(
    centers, radii, xy, rings, regions, bounds, boxes, chains, circle_rows, shape_rows, start, stop, out
):  # fmt: skip
    """Write the relation of circle circle_rows[k] to region or point shape_rows[k] to out[k], start <= k < stop.

    Without `regions`, the shapes are points. Where a list of rows is empty, circle or shape is that of row k, or the
    only one.
    """
    s = Shapes(xy, rings, regions, bounds, boxes, chains)
    are_regions = len(regions) > 0
    stack = np.empty((STACK_ROWS if are_regions else 0, 4), np.int64)
    found = np.empty((FOUND_ROWS if are_regions else 0, 2), np.int64)
    for k in range(start, stop):
        i = row_of(circle_rows, np.int64(len(centers)), k)
        j = row_of(shape_rows, count_of(s), k)
        x = centers[i, 0]
        y = centers[i, 1]
        if are_regions:
            out[k] = relation_to_region(x, y, radii[i], s, j, stack, found)
        else:
            out[k] = relation_to_point(x, y, radii[i], xy[j, 0], xy[j, 1])
