"""Find filters that may cover a filter, or be covered by it; each filter is a point with a mask and a box.

A k-d tree over the points stores the largest and smallest coordinates below every node, so that whole subtrees are
skipped in either direction. The first dimensions stand for values that must be equal: they are split before all others,
since a query descends on only one side of them. Points that no dimension distinguishes form a chain of leaves. The
result is a superset: the caller checks the exact relations.
"""

import numpy as np

from contrada.jit import entry, kernel
from contrada.kernels.cover.arrays import CandidateArrays
from contrada.kernels.relate.boxes import box_relation

NODES, LEAVES, FREE, EQUAL_DIMENSIONS, LIVE = 0, 1, 2, 3, 4  # places in state
LEAF = -1  # dimension of a node that has a leaf
NONE = -1
VISITED, COMPARED = 0, 1  # places in counters


@kernel
def new_leaf(t, after):
    """Return an empty leaf in front of leaf `after`, or alone if that is NONE."""
    leaf = t.state[FREE]
    if leaf == NONE:
        leaf = t.state[LEAVES]
        t.state[LEAVES] = leaf + 1
    else:
        t.state[FREE] = t.nexts[leaf]
    t.counts[leaf] = 0
    t.nexts[leaf] = after
    return leaf


@kernel
def new_node(t, depth):
    """Return a node with an empty leaf."""
    node = t.state[NODES]
    t.state[NODES] = node + 1
    t.dimensions[node] = LEAF
    t.depths[node] = depth
    t.children[node, 0] = new_leaf(t, NONE)
    for i in range(t.tops.shape[1]):
        t.tops[node, i] = -np.inf
        t.bottoms[node, i] = np.inf
    return node


@kernel
def widen(t, node, leaf, slot):
    """Extend the bounds of a node to include a row."""
    for i in range(t.tops.shape[1]):
        value = t.points[leaf, slot, i]
        t.tops[node, i] = max(t.tops[node, i], value)
        t.bottoms[node, i] = min(t.bottoms[node, i], value)


@kernel
def copy_row(t, leaf, slot, new, place):
    """Copy row `slot` of `leaf` to `place` of leaf `new`."""
    for i in range(t.points.shape[2]):
        t.points[new, place, i] = t.points[leaf, slot, i]
    for i in range(t.boxes.shape[2]):
        t.boxes[new, place, i] = t.boxes[leaf, slot, i]
    t.ids[new, place] = t.ids[leaf, slot]
    t.masks[new, place] = t.masks[leaf, slot]


@kernel
def append_row(t, node, leaf, slot):
    """Copy a row to the leaf of a node, which becomes a chain if it is full."""
    new = np.int64(t.children[node, 0])
    if t.counts[new] == t.ids.shape[1]:
        new = new_leaf(t, new)
        t.children[node, 0] = new
    copy_row(t, leaf, slot, new, t.counts[new])
    widen(t, node, new, t.counts[new])
    t.counts[new] += 1


@kernel
def median(t, leaf, dimension, scratch):
    """Return (True, median of a leaf in a dimension, or the next smaller value if it is the largest), or (False, 0)."""
    count = t.counts[leaf]
    for slot in range(count):
        value = t.points[leaf, slot, dimension]
        at = slot
        while at > 0 and scratch[at - 1] > value:
            scratch[at] = scratch[at - 1]
            at -= 1
        scratch[at] = value
    if scratch[0] == scratch[count - 1]:
        return False, 0.0
    at = (count - 1) // 2
    while scratch[at] == scratch[count - 1]:
        at -= 1
    return True, scratch[at]


@kernel
def discriminator(t, node, scratch):
    """Return the dimension and value to split a node's first leaf at: equality dimensions first, then in turn."""
    leaf = np.int64(t.children[node, 0])
    d, equal = t.tops.shape[1], t.state[EQUAL_DIMENSIONS]
    for i in range(0, equal, 2):
        found, value = median(t, leaf, i, scratch)
        if found:
            return i, value
    for step in range(d - equal):
        i = equal + (t.depths[node] + step) % (d - equal)
        found, value = median(t, leaf, i, scratch)
        if found:
            return i, value
    return LEAF, 0.0


@kernel
def split_node(t, node, dimension, value):
    """Split a node into two children that share its rows."""
    leaf = np.int64(t.children[node, 0])
    left, right = new_node(t, t.depths[node] + 1), new_node(t, t.depths[node] + 1)
    t.dimensions[node] = dimension
    t.splits[node] = value
    t.children[node, 0] = left
    t.children[node, 1] = right
    while leaf != NONE:
        for slot in range(t.counts[leaf]):
            append_row(t, left if t.points[leaf, slot, dimension] <= value else right, leaf, slot)
        after = np.int64(t.nexts[leaf])
        t.nexts[leaf] = t.state[FREE]
        t.state[FREE] = leaf
        leaf = after


@kernel
def leaf_node(t, point):
    """Return the node with the leaf that a point belongs to."""
    node = np.int64(0)
    while t.dimensions[node] != LEAF:
        node = np.int64(t.children[node, 0 if point[t.dimensions[node]] <= t.splits[node] else 1])
    return node


@entry(CandidateArrays, "f8[1]! i8 u1 f8[1]! f8[1]!", checked=False)
def add_candidate(t, point, number, mask, box, scratch):
    """Add a row; return False, with nothing changed, if there may not be enough room."""
    if t.state[NODES] == 0:
        new_node(t, 0)
    node = leaf_node(t, point)
    leaf = np.int64(t.children[node, 0])
    if t.counts[leaf] == t.ids.shape[1]:
        chained, after = 0, leaf
        while after != NONE:
            after = np.int64(t.nexts[after])
            chained += 1
        if t.state[NODES] + 2 > len(t.dimensions) or t.state[LEAVES] + chained + 3 > len(t.counts):
            return False
        dimension, value = discriminator(t, node, scratch)
        if dimension != LEAF:
            split_node(t, node, dimension, value)
            node = leaf_node(t, point)
    leaf = np.int64(t.children[node, 0])
    if t.counts[leaf] == t.ids.shape[1]:
        leaf = new_leaf(t, leaf)
        t.children[node, 0] = leaf
    slot = t.counts[leaf]
    for i in range(len(point)):
        t.points[leaf, slot, i] = point[i]
    for i in range(t.boxes.shape[2]):
        t.boxes[leaf, slot, i] = box[i]
    t.ids[leaf, slot] = number
    t.masks[leaf, slot] = mask
    t.counts[leaf] = slot + 1
    t.state[LIVE] += 1
    node = np.int64(0)
    widen(t, node, leaf, slot)
    while t.dimensions[node] != LEAF:
        node = np.int64(t.children[node, 0 if point[t.dimensions[node]] <= t.splits[node] else 1])
        widen(t, node, leaf, slot)
    return True


@entry(CandidateArrays, "f8[1]! i8", checked=False)
def drop_candidate(t, point, number):
    """Remove row `number` with this point; return False if there is none. Bounds are not narrowed."""
    if t.state[NODES] == 0:
        return False
    leaf = np.int64(t.children[leaf_node(t, point), 0])
    while leaf != NONE:
        for slot in range(t.counts[leaf]):
            if t.ids[leaf, slot] == number:
                last = t.counts[leaf] - 1
                copy_row(t, leaf, last, leaf, slot)
                t.counts[leaf] = last
                t.state[LIVE] -= 1
                return True
        leaf = np.int64(t.nexts[leaf])
    return False


@kernel
def may_reach(t, node, query):
    """Return True if a point below `node` may lie within the bounds of the query."""
    d = t.tops.shape[1]
    for i in range(d):
        # An infinite bound is not compared: the bounds of the node need not be loaded.
        if query[i] > -np.inf and t.tops[node, i] < query[i]:
            return False
        if query[d + i] < np.inf and t.bottoms[node, i] > query[d + i]:
            return False
    return True


@kernel
def row_fits(t, leaf, slot, query):
    """Return True if the point of a row lies within the bounds of the query."""
    d = t.points.shape[2]
    for i in range(d):
        value = t.points[leaf, slot, i]
        if value < query[i] or value > query[d + i]:
            return False
    return True


@kernel
def box_of(t, leaf, slot):
    """Return the box of a row's region: the last coordinates of its point, unless the tree keeps boxes."""
    if t.boxes.shape[2] > 0:
        b = t.boxes[leaf, slot]
        return b[0], b[1], b[2], b[3]
    d = t.points.shape[2]
    p = t.points[leaf, slot]
    return -p[d - 4], -p[d - 3], p[d - 2], p[d - 1]


@kernel
def boxes_fit(t, leaf, slot, admitted, query, reverse, box_relations):
    """Return True if the boxes of a row's region and of the query's region allow one of the relations in `admitted`."""
    b0, b1, b2, b3 = box_of(t, leaf, slot)
    d = t.points.shape[2]
    q0, q1, q2, q3 = query[2 * d], query[2 * d + 1], query[2 * d + 2], query[2 * d + 3]
    if q2 < b0 or q0 > b2 or q3 < b1 or q1 > b3:
        return admitted & 1 != 0
    if b0 == b2 or q0 == q2:
        return True  # a point: no box relation
    if reverse:
        code = box_relation(b0, b1, b2, b3, q0, q1, q2, q3)
    else:
        code = box_relation(q0, q1, q2, q3, b0, b1, b2, b3)
    return box_relations[admitted] >> code & 1 != 0


@kernel
def search_leaf(t, leaf, query, reverse, has_region, admitted_of, box_relations, out, count, counters):
    """Append the rows of a chain of leaves that fit to out[count:]; stop when `out` is full."""
    while leaf != NONE:
        counters[COMPARED] += t.counts[leaf]
        for slot in range(t.counts[leaf]):
            admitted = admitted_of[t.masks[leaf, slot]]
            if has_region and admitted == 0:
                continue
            if not row_fits(t, leaf, slot, query):
                continue
            if has_region and not boxes_fit(t, leaf, slot, admitted, query, reverse, box_relations):
                continue
            out[count] = t.ids[leaf, slot]
            count += 1
            if count == len(out):
                return count
        leaf = np.int64(t.nexts[leaf])
    return count


@entry(CandidateArrays, "f8[1]! b1 b1 u1[1]! u1[1]! i4[1]! i8[1]! i8[1]!", checked=False)
def find_candidates(t, query, reverse, has_region, admitted_of, box_relations, stack, out, counters):
    """Write rows whose points lie within bounds and whose regions may have an admitted relation to the query's.

    The query has the lower bounds of all coordinates, the upper ones, and the box of its region. admitted_of[mask
    of a row] gives the admitted relations of the covered region to the covering one, which is the query's if `reverse`;
    box_relations gives for these the relations that boxes may have. Returns the number of rows, at most as many as fit
    into `out`.
    """
    d, count, height = t.tops.shape[1], 0, 0
    if t.state[NODES] > 0:
        stack[0] = 0
        height = 1
    while height > 0 and count < len(out):
        height -= 1
        node = np.int64(stack[height])
        counters[VISITED] += 1
        if not may_reach(t, node, query):
            continue
        if t.dimensions[node] == LEAF:
            leaf = np.int64(t.children[node, 0])
            count = search_leaf(t, leaf, query, reverse, has_region, admitted_of, box_relations, out, count, counters)
        else:  # larger values first, where covering points are more likely
            dimension, value = t.dimensions[node], t.splits[node]
            if query[dimension] <= value:
                stack[height] = t.children[node, 0]
                height += 1
            if query[d + dimension] > value:
                stack[height] = t.children[node, 1]
                height += 1
    return count
