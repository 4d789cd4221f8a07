"""The adaptive k-d tree of [COVER], section IV.C: all points in buckets at the leaves, split at the median.

A bucket is a block of points, column by column; points that no dimension tells apart spill into further blocks. Points
at most as large as the discriminator go left, larger ones right.

Blocks hold no coordinates but ranks, a byte each (kernels/cover/point_ranks.py), of which a word compares eight and a
vector instruction more; only points that these do not rule out are compared in full. Nodes, buckets and their counts
are the paper's.
"""

from typing import Any, NamedTuple

import numpy as np

from contrada.jit import kernel
from contrada.kernels.cover.dominance import NOBODY
from contrada.kernels.cover.point_ranks import choose_thresholds, rank_point, write_rank

ROOT, NODES_USED, NODES_FREE, BLOCKS_USED, BLOCKS_FREE = 0, 1, 2, 3, 4  # places in state
OVERFLOW, UNDERFLOW = 5, 6  # the limits of a bucket
LIVE, ROOM = 7, 8  # points, and how many may come before ranks are taken anew
SINCE = 9  # points that came since the tree was built anew
SHALLOW = 16  # a depth that is no reason to build a tree anew
FEWEST = 64  # points worth ranks
LEAF = -1  # the dimension of a node that has a bucket
FIRST, LAST = 0, 1  # the children of an inner node; a leaf has its first block at FIRST


class KdTreeArrays(NamedTuple):
    """Nodes: dimension, discriminator, children, parent, depth, size. Blocks: ranks, rows, size, next, leaf."""

    points: Any
    arrivals: Any
    dimensions: Any
    splits: Any
    children: Any
    parents: Any
    depths: Any
    sizes: Any
    signatures: Any
    rows: Any
    counts: Any
    nexts: Any
    leaves: Any
    blocks: Any  # of a row
    places: Any  # of a row in its block
    state: Any
    stack: Any  # nodes still to be searched, and what is known of them
    insides: Any
    alive: Any  # the points of a bucket that are not ruled out yet
    thresholds: Any
    ranks: Any  # of a row
    query_ranks: Any
    order: Any  # dimensions in which a query is to be compared
    moving: Any  # room for rows that change places, and for coordinates among which a median is sought
    values: Any


@kernel
def new_leaf(t, parent, depth):
    """A leaf with an empty bucket."""
    node = t.state[NODES_FREE]
    if node == NOBODY:
        node = t.state[NODES_USED]
        t.state[NODES_USED] = node + 1
    else:
        t.state[NODES_FREE] = t.parents[node]
    t.dimensions[node] = LEAF
    t.parents[node] = parent
    t.depths[node] = depth
    t.sizes[node] = 0
    t.children[node, FIRST] = NOBODY
    return node


@kernel
def free_node(t, node):
    """Give a node back; free nodes are linked by their parents."""
    t.parents[node] = t.state[NODES_FREE]
    t.state[NODES_FREE] = node


@kernel
def free_block(t, block):
    """Give a block back; free blocks are linked by their nexts."""
    t.nexts[block] = t.state[BLOCKS_FREE]
    t.state[BLOCKS_FREE] = block


@kernel
def open_block(t, leaf):
    """The block that takes a leaf's next point: its first one, or a new one in front if that is full."""
    first = np.int64(t.children[leaf, FIRST])
    if first != NOBODY and t.counts[first] < t.state[OVERFLOW]:
        return first
    block = t.state[BLOCKS_FREE]
    if block == NOBODY:
        block = t.state[BLOCKS_USED]
        t.state[BLOCKS_USED] = block + 1
    else:
        t.state[BLOCKS_FREE] = t.nexts[block]
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
    """Take a row out of its bucket; the last point of the first block takes its place. Returns the leaf."""
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
    t.blocks[row] = NOBODY
    t.sizes[leaf] -= 1
    if last == 0:
        t.children[leaf, FIRST] = t.nexts[first]
        free_block(t, first)
    return leaf


@kernel
def gather_rows(t, leaf, count):
    """Write the rows of a leaf's bucket behind count others; returns the new count."""
    block = np.int64(t.children[leaf, FIRST])
    while block != NOBODY:
        for place in range(t.counts[block]):
            t.moving[count] = t.rows[block, place]
            count += 1
        block = np.int64(t.nexts[block])
    return count


@kernel
def empty_bucket(t, leaf):
    """Free the blocks of a leaf whose rows are gathered."""
    block = np.int64(t.children[leaf, FIRST])
    while block != NOBODY:
        after = np.int64(t.nexts[block])
        free_block(t, block)
        block = after
    t.children[leaf, FIRST] = NOBODY
    t.sizes[leaf] = 0


@kernel
def select(values, count, k):
    """The k-th smallest of count values, which change places [Hoare 1961]."""
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
    """The first dimension from the one of the leaf's level on that tells its points apart, and their median there.

    If the median is the largest value, the next smaller one stands for it, so that both sides get points. Without such
    a dimension: -1.
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
    return NOBODY, 0.0


@kernel
def split_leaf(t, leaf):
    """Make a leaf an inner node with two leaves, if its points can be told apart."""
    dimension, value = discriminator(t, leaf)
    if dimension == NOBODY:
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
    """True if a row equals the first point of a leaf."""
    other = t.rows[t.children[leaf, FIRST], 0]
    for i in range(t.points.shape[1]):
        if t.points[other, i] != t.points[row, i]:
            return False
    return True


@kernel
def kd_has_room(t):
    """True if a row can be added: two more nodes, and a block for each of them."""
    return t.state[NODES_USED] + 3 <= len(t.dimensions) and t.state[BLOCKS_USED] + 3 <= len(t.counts)


@kernel
def rank_anew(t):
    """Choose thresholds among the points that are there; they hold until as many have come."""
    count = 0
    for row in range(len(t.blocks)):
        if t.blocks[row] != NOBODY:
            t.moving[count] = row
            count += 1
    choose_thresholds(t.points, t.moving, count, t.thresholds)
    for at in range(count):
        row = t.moving[at]
        rank_point(t.thresholds, t.points, row, t.ranks, row)
        for i in range(t.points.shape[1]):
            write_rank(t.signatures, t.blocks[row], i, t.places[row], t.ranks[row, i])
    t.state[ROOM] = max(FEWEST, count)


@kernel
def is_deep(t, depth):
    """True if a leaf lies much deeper than in a balanced tree, and as many points came as pay for building it anew."""
    limit = SHALLOW
    size = t.state[LIVE] // t.state[OVERFLOW]
    while size > 0:
        limit += 2
        size >>= 1
    return depth > limit and 4 * t.state[SINCE] > t.state[LIVE]


@kernel
def build_anew(t):
    """Put all points into one bucket and split that until none overflows; one may, for now, if nodes run out."""
    count = 0
    for row in range(len(t.blocks)):
        if t.blocks[row] != NOBODY:
            t.moving[count] = row
            count += 1
    t.state[NODES_USED], t.state[NODES_FREE] = 0, NOBODY
    t.state[BLOCKS_USED], t.state[BLOCKS_FREE] = 0, NOBODY
    t.state[SINCE] = 0
    t.state[ROOT] = new_leaf(t, NOBODY, 0)
    for at in range(count):
        put(t, t.state[ROOT], t.moving[at])
    t.stack[0] = t.state[ROOT]
    height = 1
    while height > 0 and kd_has_room(t):
        height -= 1
        leaf = np.int64(t.stack[height])
        if t.sizes[leaf] > t.state[OVERFLOW]:
            split_leaf(t, leaf)
            if t.dimensions[leaf] != LEAF:
                t.stack[height], t.stack[height + 1] = t.children[leaf, FIRST], t.children[leaf, LAST]
                height += 2


@kernel
def add_to_kd(t, row):
    """Put a row into its leaf and split that if it overflows.

    A bucket of equal points cannot be split, and is looked at again only when it gets a point that differs.
    """
    if t.state[ROOT] == NOBODY:
        t.state[ROOT] = new_leaf(t, NOBODY, 0)
    rank_point(t.thresholds, t.points, row, t.ranks, row)
    node = t.state[ROOT]
    while t.dimensions[node] != LEAF:
        node = np.int64(t.children[node, FIRST if t.points[row, t.dimensions[node]] <= t.splits[node] else LAST])
    size = t.sizes[node]
    is_new = size == 0 or not equals_first(t, node, row)
    put(t, node, row)
    if size >= t.state[OVERFLOW] and (is_new or size == t.state[OVERFLOW]):
        split_leaf(t, node)
    t.state[LIVE] += 1
    t.state[SINCE] += 1
    if t.depths[node] > SHALLOW and is_deep(t, t.depths[node]):
        build_anew(t)
    t.state[ROOM] -= 1
    if t.state[ROOM] <= 0:
        rank_anew(t)


@kernel
def drop_from_kd(t, row):
    """Take a row out; a bucket below the underflow limit is merged with its sibling if that is a leaf and both fit."""
    leaf = take(t, row)
    t.state[LIVE] -= 1
    while t.sizes[leaf] < t.state[UNDERFLOW] and t.parents[leaf] != NOBODY:
        parent = np.int64(t.parents[leaf])
        left, right = np.int64(t.children[parent, FIRST]), np.int64(t.children[parent, LAST])
        sibling = left + right - leaf
        size = t.sizes[leaf] + t.sizes[sibling]
        if t.dimensions[sibling] != LEAF or size > t.state[OVERFLOW]:
            return
        count = gather_rows(t, right, gather_rows(t, left, 0))
        empty_bucket(t, left)
        empty_bucket(t, right)
        free_node(t, left)
        free_node(t, right)
        t.dimensions[parent] = LEAF
        t.children[parent, FIRST] = NOBODY
        t.sizes[parent] = 0
        for at in range(count):
            put(t, parent, t.moving[at])
        leaf = parent
