"""Adaptive k-d tree of [COVER], section IV.C: all points in buckets at the leaves, split at the median.

A bucket is a block of points, column by column; points that no dimension distinguishes spill into further blocks.
Points at most as large as the discriminator go left, larger points right.

Blocks hold ranks of one byte (kernels/cover/point_ranks.py) instead of coordinates: a word compares eight points at
once, a vector instruction more. Only points that ranks do not rule out are compared in full. Nodes, buckets and their
counts are as in the paper.
"""

import numpy as np

from contrada.codes import (
    KD_ADDED,
    KD_BLOCKS_FREE,
    KD_BLOCKS_USED,
    KD_LIVE,
    KD_NODES_FREE,
    KD_NODES_USED,
    KD_OVERFLOW,
    KD_ROOM,
    KD_ROOT,
    KD_UNDERFLOW,
    MIN_RANKED_POINTS,
)
from contrada.jit import kernel
from contrada.kernels.cover.dominance import NONE
from contrada.kernels.cover.point_ranks import choose_thresholds, rank_point, write_rank

MAX_SHALLOW_DEPTH = 16  # up to this depth a tree is not rebuilt
LEAF = -1  # dimension of a node that has a bucket
FIRST, LAST = 0, 1  # children of an inner node; a leaf has its first block at FIRST


@kernel
def new_leaf(t, parent, depth):
    """Return a leaf with an empty bucket."""
    node = t.state[KD_NODES_FREE]
    if node == NONE:
        node = t.state[KD_NODES_USED]
        t.state[KD_NODES_USED] = node + 1
    else:
        t.state[KD_NODES_FREE] = t.parents[node]
    t.dimensions[node] = LEAF
    t.parents[node] = parent
    t.depths[node] = depth
    t.sizes[node] = 0
    t.children[node, FIRST] = NONE
    return node


@kernel
def free_node(t, node):
    """Free a node; free nodes are linked by their parents."""
    t.parents[node] = t.state[KD_NODES_FREE]
    t.state[KD_NODES_FREE] = node


@kernel
def free_block(t, block):
    """Free a block; free blocks are linked by `nexts`."""
    t.nexts[block] = t.state[KD_BLOCKS_FREE]
    t.state[KD_BLOCKS_FREE] = block


@kernel
def open_block(t, leaf):
    """Return the block for a leaf's next point: its first block, or a new one in front if that is full."""
    first = np.int64(t.children[leaf, FIRST])
    if first != NONE and t.counts[first] < t.state[KD_OVERFLOW]:
        return first
    block = t.state[KD_BLOCKS_FREE]
    if block == NONE:
        block = t.state[KD_BLOCKS_USED]
        t.state[KD_BLOCKS_USED] = block + 1
    else:
        t.state[KD_BLOCKS_FREE] = t.nexts[block]
    t.counts[block] = 0
    t.nexts[block] = first
    t.leaves[block] = leaf
    t.children[leaf, FIRST] = block
    return block


@kernel
def put(t, leaf, row):
    """Append a row to a leaf's bucket."""
    block = open_block(t, leaf)
    place = t.counts[block]
    t.counts[block] = place + 1
    t.sizes[leaf] += 1
    t.rows[block, place] = row
    t.blocks[row] = block
    t.places[row] = place
    for i in range(t.points.shape[1]):
        write_rank(t.signatures, block, i, place, t.ranks[row, i])


@kernel
def take(t, row):
    """Remove a row from its bucket; the last point of the first block replaces it. Return the leaf."""
    block, place = np.int64(t.blocks[row]), np.int64(t.places[row])
    leaf = np.int64(t.leaves[block])
    first = np.int64(t.children[leaf, FIRST])
    last = t.counts[first] - 1
    moved = t.rows[first, last]
    t.rows[block, place] = moved
    t.blocks[moved] = block
    t.places[moved] = place
    for i in range(t.points.shape[1]):
        write_rank(t.signatures, block, i, place, t.ranks[moved, i])
    t.counts[first] = last
    t.blocks[row] = NONE
    t.sizes[leaf] -= 1
    if last == 0:
        t.children[leaf, FIRST] = t.nexts[first]
        free_block(t, first)
    return leaf


@kernel
def gather_rows(t, leaf, count):
    """Append the rows of a leaf's bucket to moving[count:]; return the new count."""
    block = np.int64(t.children[leaf, FIRST])
    while block != NONE:
        for place in range(t.counts[block]):
            t.moving[count] = t.rows[block, place]
            count += 1
        block = np.int64(t.nexts[block])
    return count


@kernel
def empty_bucket(t, leaf):
    """Free the blocks of a leaf after its rows were gathered."""
    block = np.int64(t.children[leaf, FIRST])
    while block != NONE:
        after = np.int64(t.nexts[block])
        free_block(t, block)
        block = after
    t.children[leaf, FIRST] = NONE
    t.sizes[leaf] = 0


@kernel
def select(values, count, k):
    """Return the k-th smallest of `count` values, which are reordered [Hoare 1961]."""
    low, high = 0, count - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return values[k]


@kernel
def discriminator(t, leaf):
    """Return the first dimension from the leaf's level on that distinguishes its points, and their median there.

    If the median is the largest value, the next smaller value is used, so that both sides get points. Returns NONE if
    no dimension distinguishes the points.
    """
    d = t.points.shape[1]
    count = gather_rows(t, leaf, 0)
    for step in range(d):
        dimension = (t.depths[leaf] + step) % d
        low, high = np.inf, -np.inf
        for at in range(count):
            value = t.points[t.moving[at], dimension]
            t.values[at] = value
            low = min(low, value)
            high = max(high, value)
        if low < high:
            middle = select(t.values, count, (count - 1) // 2)
            if middle < high:
                return dimension, middle
            below = low
            for at in range(count):
                if t.values[at] < high:
                    below = max(below, t.values[at])
            return dimension, below
    return NONE, 0.0


@kernel
def split_leaf(t, leaf):
    """Turn a leaf into an inner node with two leaves, if a dimension distinguishes its points."""
    dimension, value = discriminator(t, leaf)
    if dimension == NONE:
        return
    count = gather_rows(t, leaf, 0)
    empty_bucket(t, leaf)
    t.dimensions[leaf] = dimension
    t.splits[leaf] = value
    depth = t.depths[leaf] + 1
    left, right = new_leaf(t, leaf, depth), new_leaf(t, leaf, depth)
    t.children[leaf, FIRST] = left
    t.children[leaf, LAST] = right
    for at in range(count):
        put(t, left if t.points[t.moving[at], dimension] <= value else right, t.moving[at])


@kernel
def equals_first(t, leaf, row):
    """Return True if a row equals the first point of a leaf."""
    other = t.rows[t.children[leaf, FIRST], 0]
    for i in range(t.points.shape[1]):
        if t.points[other, i] != t.points[row, i]:
            return False
    return True


@kernel
def kd_has_room(t):
    """Return True if there is room to add a row: for two more nodes, and a block for each of them."""
    return t.state[KD_NODES_USED] + 3 <= len(t.dimensions) and t.state[KD_BLOCKS_USED] + 3 <= len(t.counts)


@kernel
def rank_anew(t):
    """Recompute thresholds from the current points; they are used until as many points were added."""
    count = 0
    for row in range(len(t.blocks)):
        if t.blocks[row] != NONE:
            t.moving[count] = row
            count += 1
    choose_thresholds(t.points, t.moving, count, t.thresholds)
    for at in range(count):
        row = t.moving[at]
        rank_point(t.thresholds, t.points, row, t.ranks, row)
        for i in range(t.points.shape[1]):
            write_rank(t.signatures, t.blocks[row], i, t.places[row], t.ranks[row, i])
    t.state[KD_ROOM] = max(MIN_RANKED_POINTS, count)


@kernel
def is_deep(t, depth):
    """Return True if a leaf is much deeper than in a balanced tree, and enough points were added to rebuild."""
    limit = MAX_SHALLOW_DEPTH
    size = t.state[KD_LIVE] // t.state[KD_OVERFLOW]
    while size > 0:
        limit += 2
        size >>= 1
    return depth > limit and 4 * t.state[KD_ADDED] > t.state[KD_LIVE]


@kernel
def build_anew(t):
    """Rebuild the tree: split one bucket of all points until none overflows, or nodes run out."""
    count = 0
    for row in range(len(t.blocks)):
        if t.blocks[row] != NONE:
            t.moving[count] = row
            count += 1
    t.state[KD_NODES_USED], t.state[KD_NODES_FREE] = 0, NONE
    t.state[KD_BLOCKS_USED], t.state[KD_BLOCKS_FREE] = 0, NONE
    t.state[KD_ADDED] = 0
    t.state[KD_ROOT] = new_leaf(t, NONE, 0)
    for at in range(count):
        put(t, t.state[KD_ROOT], t.moving[at])
    t.stack[0] = t.state[KD_ROOT]
    height = 1
    while height > 0 and kd_has_room(t):
        height -= 1
        leaf = np.int64(t.stack[height])
        if t.sizes[leaf] > t.state[KD_OVERFLOW]:
            split_leaf(t, leaf)
            if t.dimensions[leaf] != LEAF:
                t.stack[height], t.stack[height + 1] = t.children[leaf, FIRST], t.children[leaf, LAST]
                height += 2


@kernel
def add_to_kd(t, row):
    """Add a row to its leaf, and split the leaf if it overflows.

    A bucket of equal points cannot be split; splitting is tried again only after a different point is added.
    """
    if t.state[KD_ROOT] == NONE:
        t.state[KD_ROOT] = new_leaf(t, NONE, 0)
    rank_point(t.thresholds, t.points, row, t.ranks, row)
    node = t.state[KD_ROOT]
    while t.dimensions[node] != LEAF:
        node = np.int64(t.children[node, FIRST if t.points[row, t.dimensions[node]] <= t.splits[node] else LAST])
    size = t.sizes[node]
    is_new = size == 0 or not equals_first(t, node, row)
    put(t, node, row)
    if size >= t.state[KD_OVERFLOW] and (is_new or size == t.state[KD_OVERFLOW]):
        split_leaf(t, node)
    t.state[KD_LIVE] += 1
    t.state[KD_ADDED] += 1
    if t.depths[node] > MAX_SHALLOW_DEPTH and is_deep(t, t.depths[node]):
        build_anew(t)
    t.state[KD_ROOM] -= 1
    if t.state[KD_ROOM] <= 0:
        rank_anew(t)


@kernel
def drop_from_kd(t, row):
    """Remove a row; a bucket below the underflow limit is merged with its sibling if that is a leaf and both fit."""
    leaf = take(t, row)
    t.state[KD_LIVE] -= 1
    while t.sizes[leaf] < t.state[KD_UNDERFLOW] and t.parents[leaf] != NONE:
        parent = np.int64(t.parents[leaf])
        left, right = np.int64(t.children[parent, FIRST]), np.int64(t.children[parent, LAST])
        sibling = left + right - leaf
        size = t.sizes[leaf] + t.sizes[sibling]
        if t.dimensions[sibling] != LEAF or size > t.state[KD_OVERFLOW]:
            return
        count = gather_rows(t, right, gather_rows(t, left, 0))
        empty_bucket(t, left)
        empty_bucket(t, right)
        free_node(t, left)
        free_node(t, right)
        t.dimensions[parent] = LEAF
        t.children[parent, FIRST] = NONE
        t.sizes[parent] = 0
        for at in range(count):
            put(t, parent, t.moving[at])
        leaf = parent
