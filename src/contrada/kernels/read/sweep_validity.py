"""Validate a ring or a region of many rings by a sweep line (kernels/relate/sweep.py), in n log n for every input.

The LABEL of an edge is the innermost ring around the area directly above it; its EXTRA is its own ring. From bottom to
top, an edge of ring r leads out of r into the ring around r, or from that ring into r. In a valid region the ring
around r is the same at every edge of r: for a hole its shell, for a shell a hole of another part, or none.
"""

from typing import Any, NamedTuple

import numpy as np

from contrada.codes import TOUCHING
from contrada.jit import allocating_kernel, kernel
from contrada.kernels.relate.sweep import (
    ABOVE,
    EXTRA,
    LABEL,
    NONE,
    STATUS_COLUMNS,
    clear_status,
    count_edges,
    do_cross,
    ends_at,
    fill_segments,
    find_at,
    insert_above,
    place_of,
    remove,
    side_of,
    sort_items,
    turn_from,
    visit_end,
)

# Results: no fault; two edges cross, or edges of one ring touch; two edges run along each other; a ring is misplaced
# inside or outside another; rings touch in a cycle, so that the interior is not connected.
FINE, CROSS, ALONG, MISPLACED, CYCLE = (np.int64(k) for k in range(5))
UNKNOWN, OUTSIDE = np.int64(-2), np.int64(-1)  # instead of the ring around a ring


class Rings(NamedTuple):
    """State of the rings during a sweep, by ring number."""

    shells: Any  # shell of the ring's part
    around: Any  # ring around the ring
    visited: Any  # place where the ring was met last, as the number of its first item
    ends: Any  # number of edges of the ring that begin or end there
    groups: Any  # rings that touch, as a union-find structure
    joined: Any  # by shell: place where a ring of the part was met last, and that ring's number
    here: Any  # rings met at one place


@allocating_kernel
def make_rings(part_rings):
    """Return the state of the rings of parts part_rings[p]..part_rings[p + 1]; the first of a part is its shell."""
    first = part_rings[0]
    count = part_rings[-1] - first
    rings = Rings(
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty((count, 2), np.int64),
        np.empty(count, np.int64),
    )
    for p in range(len(part_rings) - 1):
        for r in range(part_rings[p] - first, part_rings[p + 1] - first):
            rings.shells[r] = part_rings[p] - first
            rings.around[r] = UNKNOWN
            rings.visited[r] = rings.joined[r, 0] = NONE
            rings.groups[r] = r
    return rings


@kernel
def root(groups, k):
    """Return the representative of k."""
    while groups[k] != k:
        groups[k] = groups[groups[k]]
        k = groups[k]
    return k


@kernel
def meet_ring(rings, r, place, ends, met):
    """Record `ends` edge ends of ring r at a place; return the number of rings there, or -1 if r touches itself."""
    if rings.visited[r] != place:
        rings.visited[r] = place
        rings.ends[r] = 0
        rings.here[met] = r
        met += 1
    rings.ends[r] += ends
    return met if rings.ends[r] <= 2 else NONE


@kernel
def join_rings(rings, first, met, place, flags):
    """Flag the rings that touch at a place; return a ring that is connected with another of them elsewhere, or NONE."""
    if met < 2:
        return NONE
    for k in range(met):
        r = rings.here[k]
        flags[first + r] |= TOUCHING
        shell = rings.shells[r]
        if rings.joined[shell, 0] == place:
            one = root(rings.groups, rings.joined[shell, 1])
            other = root(rings.groups, r)
            if one == other:
                return r
            rings.groups[other] = one
        rings.joined[shell, 0] = place
        rings.joined[shell, 1] = r
    return NONE


@kernel
def pass_edge(rings, r, label):
    """Return the innermost ring above an edge of ring r, given the one below; UNKNOWN if the region is invalid."""
    if label == r:
        return rings.around[r]
    if rings.around[r] == UNKNOWN:
        is_hole = rings.shells[r] != r
        if is_hole and label != rings.shells[r]:
            return UNKNOWN
        if not is_hole and label != OUTSIDE and (rings.shells[label] == label or rings.shells[label] == r):
            return UNKNOWN
        rings.around[r] = label
    return r if rings.around[r] == label else UNKNOWN


@kernel
def close_edges(x, y, first, place, segments, nodes, rings):
    """Remove the edges through (x, y) from the status; `first` is the lowest of them.

    Returns (the edge that continues beyond (x, y) or NONE, the number of rings here, the last edge removed). If two
    edges continue or a ring touches itself, the number is -1 and the two edges are the edges at fault.
    """
    passing = NONE
    met = np.int64(0)
    last = NONE
    head = len(nodes) - 1
    k = first
    while k >= 0 and k != head and side_of(x, y, segments, k) == 0:
        above = nodes[k, ABOVE]
        remove(nodes, k)
        is_end = ends_at(x, y, segments, k)
        if not is_end and passing >= 0:
            return passing, NONE, k
        met = meet_ring(rings, nodes[k, EXTRA], place, 1 if is_end else 2, met)
        if met < 0:
            return last, NONE, k
        if not is_end:
            passing = k
        last = k
        k = above
    return passing, met, last


@kernel
def sweep_rings(segments, items, count, nodes, rings, first_ring, flags):
    """Visit all items; return (result, edge or ring, edge or ring, x, y)."""
    head = len(segments)
    nodes[head, LABEL] = OUTSIDE
    at = np.int64(0)
    while at < count:
        x, y = place_of(segments, items[at])
        end = visit_end(segments, items, count, at)
        first, below = find_at(x, y, segments, nodes)
        passing, met, last = close_edges(x, y, first, at, segments, nodes, rings)
        if met < 0:
            return CROSS, passing, last, x, y
        top = below
        i = at
        while passing >= 0 or (i < end and items[i] < head):
            turn = 1
            if i < end and items[i] < head:
                turn = -1 if passing < 0 else turn_from(x, y, segments, passing, items[i])
            if turn == 0:
                return ALONG, passing, items[i], x, y
            if turn > 0:
                k = passing
                passing = NONE
            else:
                k = items[i]
                i += 1
                if i < end and items[i] < head and turn_from(x, y, segments, k, items[i]) == 0:
                    return ALONG, k, items[i], x, y
                met = meet_ring(rings, nodes[k, EXTRA], at, 1, met)
                if met < 0:
                    return CROSS, k, last if last >= 0 else items[at], x, y
            r = nodes[k, EXTRA]
            label = pass_edge(rings, r, nodes[top, LABEL])
            if label == UNKNOWN:
                other = nodes[top, LABEL] if nodes[top, LABEL] >= 0 else rings.around[r]
                return MISPLACED, r, other, x, y
            insert_above(nodes, k, top)
            nodes[k, LABEL] = label
            top = k
        r = join_rings(rings, first_ring, met, at, flags)
        if r >= 0:
            return CYCLE, r, NONE, x, y
        above = nodes[top, ABOVE]
        if do_cross(segments, top, above):
            return CROSS, top, above, x, y
        if top != below and do_cross(segments, below, nodes[below, ABOVE]):
            return CROSS, below, nodes[below, ABOVE], x, y
        at = end
    return FINE, NONE, NONE, 0.0, 0.0


@allocating_kernel
def sweep_parts(xy, offsets, part_rings, flags):
    """Sweep a region whose part p has the rings part_rings[p]..part_rings[p + 1], the shell first.

    Returns (result, ring, ring, slot, slot, x, y): the two rings at fault or -1, and for CROSS and ALONG the slots of
    the two edges. Flags rings that touch.
    """
    r0 = part_rings[0]
    r1 = part_rings[-1]
    edges = count_edges(offsets, r0, r1)
    segments = np.empty((edges, 4))
    items = np.empty(edges + edges // 2, np.int64)
    nodes = np.empty((edges + 1, STATUS_COLUMNS), np.int64)
    count = fill_segments(xy, offsets, r0, r1, segments, np.int64(0), items, np.int64(0))
    sort_items(segments, items, np.empty(count, np.int64), count)
    clear_status(nodes, np.int64(nodes.ctypes.data) >> 4)
    k = 0
    for r in range(r0, r1):
        for _ in range(offsets[r], offsets[r + 1] - 1):
            nodes[k, EXTRA] = r - r0
            k += 1
    kind, one, other, x, y = sweep_rings(segments, items, count, nodes, make_rings(part_rings), r0, flags)
    if kind != CROSS and kind != ALONG:
        return kind, r0 + one, r0 + other if other >= 0 else NONE, NONE, NONE, x, y
    r = nodes[one, EXTRA]
    s = nodes[other, EXTRA]
    return kind, r0 + r, r0 + s, offsets[r0] + one + r, offsets[r0] + other + s, x, y
