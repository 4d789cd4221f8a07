"""Relation of two regions by a sweep line (sweep.py), in n log n for every input.

regions.py calls it where comparing pairs of edges would take longer. The LABEL of an edge says whether the area
directly above it lies in a, in b, in both or in neither; all areas together give all bits, so no ring needs to be
located. If an edge of a and an edge of b run along each other, they share one node: the second is the EXTRA of the
first.
"""

import numpy as np

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
from contrada.kernels.relate.touch_nodes import A_LEAVES, B_LEAVES, MEET, SETTLED, SHARED, TOUCH, is_decided

IN_A, IN_B = np.int64(1), np.int64(2)
FACES = np.array([0, A_LEAVES, B_LEAVES, MEET])  # bits that follow from an area with the label IN_A, IN_B or both


@kernel
def owner_of(edge, split):
    """Return IN_A for an edge of a, IN_B for an edge of b, 0 for no edge; edges from `split` on are b's."""
    return 0 if edge < 0 else (IN_A if edge < split else IN_B)


@kernel
def close_edges(x, y, first, segments, nodes, split):
    """Remove the edges through (x, y) from the status; `first` is the lowest of them.

    Returns the owners of these edges, the edge that continues beyond (x, y), and the edge that runs along it (NONE if
    there is none). If two edges continue in different directions they cross here: then SETTLED replaces the owners.
    """
    seen = np.int64(0)
    passing = NONE
    mate = NONE
    head = len(nodes) - 1
    k = first
    while k >= 0 and k != head and side_of(x, y, segments, k) == 0:
        above = nodes[k, ABOVE]
        other = nodes[k, EXTRA]
        nodes[k, EXTRA] = NONE
        remove(nodes, k)
        seen |= owner_of(k, split) | owner_of(other, split)
        goes_on = not ends_at(x, y, segments, k)
        other_goes_on = other >= 0 and not ends_at(x, y, segments, other)
        if (goes_on or other_goes_on) and passing >= 0:
            return SETTLED, passing, mate
        if goes_on:
            passing = k
            mate = other if other_goes_on else NONE
        elif other_goes_on:
            passing = other
        k = above
    return seen, passing, mate


@kernel
def open_edges(x, y, at, end, below, passing, passing_mate, items, segments, nodes, split, bits):
    """Insert the edges that start at (x, y) or continue beyond it; return the bits and the topmost of these edges."""
    edges = len(segments)
    top = below
    label = nodes[below, LABEL]
    while passing >= 0 or (at < end and items[at] < edges):
        turn = 1
        if at < end and items[at] < edges:
            turn = -1 if passing < 0 else turn_from(x, y, segments, passing, items[at])
        if turn >= 0:
            k = passing
            mate = passing_mate
            passing = NONE
        else:
            k = items[at]
            mate = NONE
            at += 1
        if mate < 0 and at < end and items[at] < edges and turn_from(x, y, segments, k, items[at]) == 0:
            mate = items[at]
            at += 1
        bits |= FACES[label]
        label ^= owner_of(k, split) | owner_of(mate, split)
        bits |= FACES[label] | (SHARED if mate >= 0 else 0)
        insert_above(nodes, k, top)
        nodes[k, LABEL] = label
        nodes[k, EXTRA] = mate
        top = k
    return bits, top


@kernel
def sweep_regions(segments, items, count, nodes, split, bits, stops):
    """Visit all items and return the bits. Edges before `split` are a's, the others b's."""
    head = len(segments)
    nodes[head, LABEL] = 0
    at = 0
    while at < count:
        x, y = place_of(segments, items[at])
        end = visit_end(segments, items, count, at)
        first, below = find_at(x, y, segments, nodes)
        seen, passing, mate = close_edges(x, y, first, segments, nodes, split)
        if seen == SETTLED:
            return bits | SETTLED | TOUCH
        for k in range(at, end):
            seen |= owner_of(items[k], split) if items[k] < head else 0
        if seen == IN_A | IN_B:
            bits |= TOUCH
        bits, top = open_edges(x, y, at, end, below, passing, mate, items, segments, nodes, split, bits)
        above = nodes[top, ABOVE]
        if are_crossing(segments, top, above, split):
            return bits | SETTLED | TOUCH
        if top != below and are_crossing(segments, below, nodes[below, ABOVE], split):
            return bits | SETTLED | TOUCH
        if is_decided(bits, stops):
            return bits
        at = end
    return bits


@kernel
def are_crossing(segments, e, f, split):
    """Return True if neighbours in the status cross; edges of the same region never do."""
    return (e < split) != (f < split) and do_cross(segments, e, f)


@allocating_kernel
def sweep_bits(a, a0, a1, b, b0, b1, bits, stops):
    """Return the bits of the regions of rings a0..a1 of a and b0..b1 of b; stop early at bits that decide."""
    split = count_edges(a.rings, a0, a1)
    edges = split + count_edges(b.rings, b0, b1)
    segments = np.empty((edges, 4))
    items = np.empty(edges + edges // 2, np.int64)  # at most every second vertex starts no edge
    nodes = np.empty((edges + 1, STATUS_COLUMNS), np.int64)
    count = fill_segments(a.xy, a.rings, a0, a1, segments, np.int64(0), items, np.int64(0))
    count = fill_segments(b.xy, b.rings, b0, b1, segments, split, items, count)
    sort_items(segments, items, np.empty(count, np.int64), count)
    clear_status(nodes, np.int64(nodes.ctypes.data) >> 4)
    return sweep_regions(segments, items, count, nodes, split, bits, stops)
