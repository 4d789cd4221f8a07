"""Edge index of large regions ("chains"): a hierarchy of boxes over runs of consecutive edges.

A region's edges are numbered by the vertex they start from ("slots"); the slot between two rings is no edge and is
skipped. Level 1 has a box for every FANOUT slots, level 2 for every FANOUT boxes of level 1, up to one root. The levels
are stored one after another in a flat array. The index takes about 4.6 bytes per vertex and is built in one pass. It
needs no sorting, because consecutive edges of a boundary are already neighbours in space.
"""

import numpy as np

from contrada.codes import FANOUT, FANOUT_SHIFT, MAX_SCANNED_VERTICES
from contrada.jit import entry, kernel

# The scratch arrays `stack` and `found` have two parts: a join of two indexes (or an outer search) uses the rows below
# the floor, a search nested in it the rows from the floor on. A stack holds at most FANOUT entries per level and side.
STACK_ROWS, STACK_FLOOR = 384, np.int64(256)
FOUND_ROWS, FOUND_FLOOR = 577, np.int64(512)
# The last row of `found` counts comparisons of boxes and edges: column 0 has the number made, column 1 the number
# allowed. Beyond that number a sweep line is quicker (sweep.py).
COUNTER_ROW = np.int64(FOUND_ROWS - 1)
BLOCK_PAIR_COST, EDGE_PAIR_COST = 16, 16  # comparisons that a pair counts as if its boxes meet
MAX_COMPARISONS_PER_VERTEX = np.int64(256)  # about as long as a sweep takes (benchmarks/relate/growth.py)


@kernel
def begin_count(found, vertices):
    """Reset the count of comparisons and set the limit for two regions that have `vertices` vertices together."""
    found[COUNTER_ROW, 0] = 0
    found[COUNTER_ROW, 1] = MAX_COMPARISONS_PER_VERTEX * vertices


@kernel
def is_spent(found):
    """Return True if more comparisons were made than allowed."""
    return found[COUNTER_ROW, 0] > found[COUNTER_ROW, 1]


@kernel
def chain_levels(slots):
    """Return the number of levels above the edges, including the root."""
    levels = 1
    count = (slots + FANOUT - 1) >> FANOUT_SHIFT
    while count > 1:
        count = (count + FANOUT - 1) >> FANOUT_SHIFT
        levels += 1
    return levels


@kernel
def chain_size(slots):
    """Return the number of boxes on all levels."""
    count = (slots + FANOUT - 1) >> FANOUT_SHIFT
    total = count
    while count > 1:
        count = (count + FANOUT - 1) >> FANOUT_SHIFT
        total += count
    return total


@kernel
def level_start(slots, level):
    """Return the position of the first box of `level` (1 = next to the edges) within the region's boxes."""
    start = 0
    count = (slots + FANOUT - 1) >> FANOUT_SHIFT
    for _ in range(1, level):
        start += count
        count = (count + FANOUT - 1) >> FANOUT_SHIFT
    return start


@kernel
def fill_chain(xy, rings, r0, r1, boxes, base):
    """Write the index boxes of one region (rings r0..r1) to boxes[base:]."""
    first = rings[r0]
    slots = rings[r1] - first - 1
    count = (slots + FANOUT - 1) >> FANOUT_SHIFT
    for k in range(base, base + chain_size(slots)):
        boxes[k, 0] = np.inf
        boxes[k, 1] = np.inf
        boxes[k, 2] = -np.inf
        boxes[k, 3] = -np.inf
    for r in range(r0, r1):
        for i in range(rings[r], rings[r + 1] - 1):
            k = base + ((i - first) >> FANOUT_SHIFT)
            boxes[k, 0] = min(boxes[k, 0], xy[i, 0], xy[i + 1, 0])
            boxes[k, 1] = min(boxes[k, 1], xy[i, 1], xy[i + 1, 1])
            boxes[k, 2] = max(boxes[k, 2], xy[i, 0], xy[i + 1, 0])
            boxes[k, 3] = max(boxes[k, 3], xy[i, 1], xy[i + 1, 1])
    below = base
    while count > 1:
        above = below + count
        for c in range(count):
            k = above + (c >> FANOUT_SHIFT)
            boxes[k, 0] = min(boxes[k, 0], boxes[below + c, 0])
            boxes[k, 1] = min(boxes[k, 1], boxes[below + c, 1])
            boxes[k, 2] = max(boxes[k, 2], boxes[below + c, 2])
            boxes[k, 3] = max(boxes[k, 3], boxes[below + c, 3])
        below = above
        count = (count + FANOUT - 1) >> FANOUT_SHIFT


@kernel
def chain_offsets(rings, regions, offsets):
    """Set offsets[i] to the first box of region i, or -1 for small regions; return the number of boxes."""
    total = 0
    for i in range(len(regions) - 1):
        vertices = rings[regions[i + 1]] - rings[regions[i]]
        offsets[i] = -1
        if vertices > MAX_SCANNED_VERTICES:
            offsets[i] = total
            total += chain_size(vertices - 1)
    return total


@entry("f8[2] i8[1] i4[1]")
def build_chains(xy, rings, regions):
    """Return boxes and offsets of the edge index of every large region of a column."""
    offsets = np.empty(len(regions) - 1, np.int64)
    boxes = np.empty((chain_offsets(rings, regions, offsets), 4))
    for i in range(len(regions) - 1):
        if offsets[i] >= 0:
            fill_chain(xy, rings, regions[i], regions[i + 1], boxes, offsets[i])
    return boxes, offsets


@kernel
def join_chains(a_boxes, a_base, a_slots, b_boxes, b_base, b_slots, stack, depth, found):
    """Find pairs of level-1 blocks whose boxes meet, at most FOUND_FLOOR; return their number and the stack depth left.

    Call with stack[0] = (levels of a, 0, levels of b, 0) and depth 1 first, then again while the depth is positive.
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
        # Descend the side with more levels left; compare its children with the other side's box.
        if la >= lb:
            o = b_base + level_start(b_slots, lb) + ib
            start = a_base + level_start(a_slots, la - 1)
            stop = min((ia + 1) << FANOUT_SHIFT, level_start(a_slots, la) - level_start(a_slots, la - 1))
            for c in range(ia << FANOUT_SHIFT, stop):
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
            stop = min((ib + 1) << FANOUT_SHIFT, level_start(b_slots, lb) - level_start(b_slots, lb - 1))
            for c in range(ib << FANOUT_SHIFT, stop):
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
    found[COUNTER_ROW, 0] += looks + count * BLOCK_PAIR_COST
    return count, depth


@kernel
def start_query(slots, stack, floor):
    """Put the root on the stack; return the depth."""
    stack[floor, 0] = chain_levels(slots)
    stack[floor, 1] = 0
    return floor + 1


@kernel
def query_chain(boxes, base, slots, x0, y0, x1, y1, stack, floor, depth, found, start, stop):
    """Write level-1 blocks whose boxes meet the box x0, y0, x1, y1 to found[start:stop, 0]; return end and depth.

    Call with the depth that `start_query` returns first, then again while the depth is above `floor`.
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
        last = min((i + 1) << FANOUT_SHIFT, level_start(slots, level) - level_start(slots, level - 1))
        for c in range(i << FANOUT_SHIFT, last):
            stack[depth, 0] = level - 1
            stack[depth, 1] = c
            depth += 1
    found[COUNTER_ROW, 0] += looks
    return start, depth


@kernel
def ring_of(rings, r0, r1, vertex):
    """Return the ring among r0..r1 that holds `vertex`."""
    low = r0
    high = r1
    while high - low > 1:
        middle = (low + high) >> 1
        if rings[middle] <= vertex:
            low = middle
        else:
            high = middle
    return low
