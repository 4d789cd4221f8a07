"""Chains: a hierarchy of boxes over runs of consecutive edges, the edge index of large regions.

A region's edges are numbered by the vertex they start from ("slots"); the slot between two rings is no edge and is
skipped. Level 1 has a box for every FANOUT slots, level 2 for every FANOUT boxes of level 1, up to one root. The
levels stand one after another in a flat array, so the whole index costs about 4.6 bytes per vertex, is built in one
pass and needs no sorting: consecutive edges of a boundary are neighbours in space already.
"""

import numpy as np

from contrada.jit import entry, kernel

SHIFT = 3
FANOUT = 1 << SHIFT
LARGE = np.int64(64)  # regions with more vertices get a kept index; smaller ones are scanned
NO_INDEX = np.int64(-1)
# Rows of the scratch arrays: the join of two indexes (or an outer search) uses the lower part of both, a search
# within it the upper part, from the floor on. A stack holds at most FANOUT entries per level of either side.
STACK, STACK_FLOOR = 384, np.int64(256)
FOUND, FOUND_FLOOR = 577, np.int64(512)
# The last row of `found` counts comparisons of boxes and edges: column 0 those made, column 1 those allowed. Beyond
# that number a sweep line is quicker (sweep.py).
SPENT = np.int64(FOUND - 1)
BLOCKS, EDGES = 16, 16  # comparisons that two blocks with common points cost, and two edges with meeting boxes
ALLOWED = np.int64(256)  # comparisons per vertex: about the time of a sweep (benchmarks/growth.py)


@kernel
def begin_count(found, vertices):
    """Start counting comparisons for regions that have `vertices` vertices together."""
    found[SPENT, 0] = 0
    found[SPENT, 1] = ALLOWED * vertices


@kernel
def is_spent(found):
    """True if more comparisons were made than allowed."""
    return found[SPENT, 0] > found[SPENT, 1]


@kernel
def chain_levels(slots):
    """Number of levels above the edges, the root included."""
    levels = 1
    count = (slots + FANOUT - 1) >> SHIFT
    while count > 1:
        count = (count + FANOUT - 1) >> SHIFT
        levels += 1
    return levels


@kernel
def chain_size(slots):
    """Number of boxes on all levels."""
    count = (slots + FANOUT - 1) >> SHIFT
    total = count
    while count > 1:
        count = (count + FANOUT - 1) >> SHIFT
        total += count
    return total


@kernel
def level_start(slots, level):
    """Position of the first box of a level (1 = next to the edges) within the region's boxes."""
    start = 0
    count = (slots + FANOUT - 1) >> SHIFT
    for _ in range(1, level):
        start += count
        count = (count + FANOUT - 1) >> SHIFT
    return start


@kernel
def fill_chain(xy, rings, r0, r1, boxes, base):
    """Write the boxes of one region (rings r0..r1) to boxes[base:]."""
    first = rings[r0]
    slots = rings[r1] - first - 1
    count = (slots + FANOUT - 1) >> SHIFT
    for k in range(base, base + chain_size(slots)):
        boxes[k, 0] = np.inf
        boxes[k, 1] = np.inf
        boxes[k, 2] = -np.inf
        boxes[k, 3] = -np.inf
    for r in range(r0, r1):
        for i in range(rings[r], rings[r + 1] - 1):
            k = base + ((i - first) >> SHIFT)
            boxes[k, 0] = min(boxes[k, 0], xy[i, 0], xy[i + 1, 0])
            boxes[k, 1] = min(boxes[k, 1], xy[i, 1], xy[i + 1, 1])
            boxes[k, 2] = max(boxes[k, 2], xy[i, 0], xy[i + 1, 0])
            boxes[k, 3] = max(boxes[k, 3], xy[i, 1], xy[i + 1, 1])
    below = base
    while count > 1:
        above = below + count
        for c in range(count):
            k = above + (c >> SHIFT)
            boxes[k, 0] = min(boxes[k, 0], boxes[below + c, 0])
            boxes[k, 1] = min(boxes[k, 1], boxes[below + c, 1])
            boxes[k, 2] = max(boxes[k, 2], boxes[below + c, 2])
            boxes[k, 3] = max(boxes[k, 3], boxes[below + c, 3])
        below = above
        count = (count + FANOUT - 1) >> SHIFT


@kernel
def chain_offsets(rings, regions, offsets):
    """offsets[i] = first box of region i, -1 for small regions; returns the number of boxes."""
    total = 0
    for i in range(len(regions) - 1):
        vertices = rings[regions[i + 1]] - rings[regions[i]]
        offsets[i] = -1
        if vertices > LARGE:
            offsets[i] = total
            total += chain_size(vertices - 1)
    return total


@entry("f8[2] i8[1] i4[1]")
def build_chains(xy, rings, regions):
    """Boxes and offsets of the edge index of every large region of a column."""
    offsets = np.empty(len(regions) - 1, np.int64)
    boxes = np.empty((chain_offsets(rings, regions, offsets), 4))
    for i in range(len(regions) - 1):
        if offsets[i] >= 0:
            fill_chain(xy, rings, regions[i], regions[i + 1], boxes, offsets[i])
    return boxes, offsets


@kernel
def join_chains(a_boxes, a_base, a_slots, b_boxes, b_base, b_slots, stack, depth, found):
    """Level-1 block pairs whose boxes meet, up to FOUND_FLOOR; returns their number and the stack depth left.

    Call first with stack[0] = (levels of a, 0, levels of b, 0) and depth 1, again while the depth is positive.
    """
    count = 0
    looks = 0
    while depth > 0 and count < FOUND_FLOOR:
        depth -= 1
        looks += FANOUT
        la = stack[depth, 0]
        ia = stack[depth, 1]
        lb = stack[depth, 2]
        ib = stack[depth, 3]
        if la == 1 and lb == 1:
            found[count, 0] = ia
            found[count, 1] = ib
            count += 1
            continue
        # Descend the side that stands higher; compare its children with the other side's box.
        if la >= lb:
            o = b_base + level_start(b_slots, lb) + ib
            start = a_base + level_start(a_slots, la - 1)
            stop = min((ia + 1) << SHIFT, level_start(a_slots, la) - level_start(a_slots, la - 1))
            for c in range(ia << SHIFT, stop):
                k = start + c
                if (
                    a_boxes[k, 0] <= b_boxes[o, 2]
                    and a_boxes[k, 2] >= b_boxes[o, 0]
                    and a_boxes[k, 1] <= b_boxes[o, 3]
                    and a_boxes[k, 3] >= b_boxes[o, 1]
                ):
                    stack[depth, 0] = la - 1
                    stack[depth, 1] = c
                    stack[depth, 2] = lb
                    stack[depth, 3] = ib
                    depth += 1
        else:
            o = a_base + level_start(a_slots, la) + ia
            start = b_base + level_start(b_slots, lb - 1)
            stop = min((ib + 1) << SHIFT, level_start(b_slots, lb) - level_start(b_slots, lb - 1))
            for c in range(ib << SHIFT, stop):
                k = start + c
                if (
                    b_boxes[k, 0] <= a_boxes[o, 2]
                    and b_boxes[k, 2] >= a_boxes[o, 0]
                    and b_boxes[k, 1] <= a_boxes[o, 3]
                    and b_boxes[k, 3] >= a_boxes[o, 1]
                ):
                    stack[depth, 0] = la
                    stack[depth, 1] = ia
                    stack[depth, 2] = lb - 1
                    stack[depth, 3] = c
                    depth += 1
    found[SPENT, 0] += looks + count * BLOCKS
    return count, depth


@kernel
def start_query(slots, stack, floor):
    """Put the root on the stack; returns the depth."""
    stack[floor, 0] = chain_levels(slots)
    stack[floor, 1] = 0
    return floor + 1


@kernel
def query_chain(boxes, base, slots, x0, y0, x1, y1, stack, floor, depth, found, start, stop):
    """Level-1 blocks whose boxes meet the given box, to found[start:stop, 0]; returns the end and the depth left.

    Call first with the depth that `start_query` gives, again while the depth is above the floor.
    """
    looks = 0
    while depth > floor and start < stop:
        depth -= 1
        looks += 1
        level = stack[depth, 0]
        i = stack[depth, 1]
        k = base + level_start(slots, level) + i
        if boxes[k, 0] > x1 or boxes[k, 2] < x0 or boxes[k, 1] > y1 or boxes[k, 3] < y0:
            continue
        if level == 1:
            found[start, 0] = i
            start += 1
            looks += FANOUT
            continue
        last = min((i + 1) << SHIFT, level_start(slots, level) - level_start(slots, level - 1))
        for c in range(i << SHIFT, last):
            stack[depth, 0] = level - 1
            stack[depth, 1] = c
            depth += 1
    found[SPENT, 0] += looks
    return start, depth


@kernel
def ring_of(rings, r0, r1, vertex):
    """The ring among r0..r1 that holds a vertex."""
    low = r0
    high = r1
    while high - low > 1:
        middle = (low + high) >> 1
        if rings[middle] <= vertex:
            low = middle
        else:
            high = middle
    return low
