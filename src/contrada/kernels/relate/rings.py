"""Locate one point in one region (inside, on the boundary, outside), and measure regions."""

import numpy as np

from contrada.codes import FANOUT, FANOUT_SHIFT
from contrada.jit import entry, kernel
from contrada.kernels.relate.chains import COUNTER_ROW, FOUND_FLOOR, STACK_FLOOR, query_chain, ring_of, start_query
from contrada.kernels.relate.orientation import orient

IN, ON, OUT = 1, 0, -1
ON_EDGE, CROSSED, MISSED = 2, 1, 0


@kernel
def cross_edge(x, y, ax, ay, bx, by):
    """Return how the ray from (x, y) to the right meets the edge a-b: CROSSED, MISSED, or ON_EDGE if (x, y) is on it.

    An edge owns only its lower end, so a ray through a vertex is counted correctly.
    """
    if (ay > y) != (by > y):
        if ax < x and bx < x:
            return MISSED
        if ax > x and bx > x:
            return CROSSED
        turn = orient(ax, ay, bx, by, x, y)
        if turn == 0:
            return ON_EDGE
        return CROSSED if (turn > 0) == (by > ay) else MISSED
    if ay == y and (ax == x or (by == y and (ax > x) != (bx > x))):
        return ON_EDGE
    return MISSED


@kernel
def locate_scanned(x, y, xy, rings, r0, r1):
    """Return IN, ON or OUT for the point and the region of rings r0..r1, by a scan of its edges."""
    inside = False
    for r in range(r0, r1):
        s = rings[r]
        bx = xy[s, 0]
        by = xy[s, 1]
        for k in range(s + 1, rings[r + 1]):
            ax = bx
            ay = by
            bx = xy[k, 0]
            by = xy[k, 1]
            if (ay > y) == (by > y) and ay != y:
                continue
            met = cross_edge(x, y, ax, ay, bx, by)
            if met == ON_EDGE:
                return ON
            inside ^= met == CROSSED
    return IN if inside else OUT


@kernel
def locate_indexed(x, y, xy, rings, r0, r1, boxes, base, stack, found):
    """Return IN, ON or OUT through the edge index: tests only edges that the ray to the right can meet."""
    inside = False
    first = rings[r0]
    slots = rings[r1] - first - 1
    depth = start_query(slots, stack, STACK_FLOOR)
    while depth > STACK_FLOOR:
        end, depth = query_chain(
            boxes,
            base,
            slots,
            x,
            y,
            np.inf,
            y,
            stack,
            STACK_FLOOR,
            depth,
            found,
            FOUND_FLOOR,
            COUNTER_ROW,
        )
        for c in range(FOUND_FLOOR, end):
            k = first + (found[c, 0] << FANOUT_SHIFT)
            stop = min(k + FANOUT, rings[r1] - 1)
            r = ring_of(rings, r0, r1, k)
            while k < stop:
                if k == rings[r + 1] - 1:  # the slot between two rings
                    r += 1
                else:
                    met = cross_edge(x, y, xy[k, 0], xy[k, 1], xy[k + 1, 0], xy[k + 1, 1])
                    if met == ON_EDGE:
                        return ON
                    inside ^= met == CROSSED
                k += 1
    return IN if inside else OUT


@kernel
def locate(x, y, xy, rings, r0, r1, boxes, base, stack, found):
    """Return IN, ON or OUT for the point and the region of rings r0..r1, through its edge index if it has one."""
    if base >= 0:
        return locate_indexed(x, y, xy, rings, r0, r1, boxes, base, stack, found)
    return locate_scanned(x, y, xy, rings, r0, r1)


@entry("f8[2] i8[1] i4[1]")
def measure_regions(xy, rings, regions):
    """Return area and boundary length of every region, in floating point."""
    measures = np.empty((len(regions) - 1, 2))
    for i in range(len(regions) - 1):
        measures[i, 0] = measures[i, 1] = 0.0
        for r in range(regions[i], regions[i + 1]):
            s = rings[r]
            for k in range(s, rings[r + 1] - 1):
                dx = xy[k + 1, 0] - xy[k, 0]
                dy = xy[k + 1, 1] - xy[k, 1]
                # Coordinates relative to the ring's first vertex: large offsets would swamp a small area.
                measures[i, 0] += ((xy[k, 0] - xy[s, 0]) * dy - (xy[k, 1] - xy[s, 1]) * dx) / 2
                measures[i, 1] += np.hypot(dx, dy)
    return measures
