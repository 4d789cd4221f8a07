"""Constraint R-tree (CR-tree) of [SPATIAL]: Guttman's insert and delete, plus a list of `disjoint` for every node.

Leaves are nodes of level 0, whose children are constraints; children of other nodes are nodes one level below. The
`disjoint` constraints form one doubly linked list in which those below a node are always adjacent: a node's list is the
run from its head to its tail. Cutting out or inserting a whole subtree changes only two links, and the heads and tails
on one path.
"""

from typing import Any, NamedTuple

import numpy as np

from contrada.codes import CR_FREE, CR_ROOT, CR_USED, DISJOINT, DISJOINT_BIT, MAX_CR_HEIGHT
from contrada.jit import entry, kernel
from contrada.kernels.relate.boxes import box_relation
from contrada.kernels.rtree.split import area_of, copy_box, enlarge_box, fill_split, joint_area, make_split_work

NONE = -1
FREE_LEVEL = -1


class CRTreeItems(NamedTuple):
    """Common attributes of nodes and constraints: a box, a parent and a run of `disjoint` constraints (or none)."""

    boxes: Any
    parents: Any
    heads: Any
    tails: Any


class CRNodes(NamedTuple):
    """CR-tree: its nodes, its constraints, and the links of the list."""

    nodes: Any
    children: Any
    counts: Any
    levels: Any
    entries: Any
    nexts: Any
    prevs: Any
    state: Any


@kernel
def children_of(t, node):
    """Return the items that hold a node's children: constraints or nodes."""
    return t.entries if t.levels[node] == 0 else t.nodes


@kernel
def new_node(t, level):
    """Return a node without children or parent."""
    node = t.state[CR_FREE]
    if node == NONE:
        node = t.state[CR_USED]
        t.state[CR_USED] = node + 1
    else:
        t.state[CR_FREE] = t.nodes.parents[node]
    t.levels[node] = level
    t.counts[node] = 0
    t.nodes.parents[node] = NONE
    t.nodes.heads[node] = NONE
    t.nodes.tails[node] = NONE
    return node


@kernel
def free_node(t, node):
    """Free a node; free nodes are linked by their parents."""
    t.levels[node] = FREE_LEVEL
    t.counts[node] = 0
    t.nodes.parents[node] = t.state[CR_FREE]
    t.state[CR_FREE] = node


@kernel
def cut_run(t, head, tail, node):
    """Remove the run head..tail from the lists of a node and of all above it."""
    if head == NONE:
        return
    before = t.prevs[head]
    after = t.nexts[tail]
    while node != NONE:
        is_first = t.nodes.heads[node] == head
        is_last = t.nodes.tails[node] == tail
        if is_first:
            t.nodes.heads[node] = NONE if is_last else after
        if is_last:
            t.nodes.tails[node] = NONE if is_first else before
        node = t.nodes.parents[node]
    if before != NONE:
        t.nexts[before] = after
    if after != NONE:
        t.prevs[after] = before
    t.prevs[head] = NONE
    t.nexts[tail] = NONE


@kernel
def join_run(t, head, tail, node):
    """Append the run head..tail to the list of a node, and thereby to the lists of all above it."""
    if head == NONE:
        return
    while node != NONE and t.nodes.heads[node] == NONE:
        t.nodes.heads[node] = head
        t.nodes.tails[node] = tail
        node = t.nodes.parents[node]
    before = NONE if node == NONE else t.nodes.tails[node]
    after = NONE if node == NONE else t.nexts[before]
    while node != NONE:
        if t.nodes.tails[node] == before:
            t.nodes.tails[node] = tail
        node = t.nodes.parents[node]
    t.prevs[head] = before
    t.nexts[tail] = after
    if before != NONE:
        t.nexts[before] = head
    if after != NONE:
        t.prevs[after] = tail


@kernel
def attach(t, node, child):
    """Append `child` to the children of a node; boxes do not change."""
    items = children_of(t, node)
    t.children[node, t.counts[node]] = child
    t.counts[node] += 1
    items.parents[child] = node
    join_run(t, items.heads[child], items.tails[child], node)


@kernel
def detach(t, node, at):
    """Remove the child at position `at` from a node; the last child takes its position. Boxes do not change."""
    items = children_of(t, node)
    child = t.children[node, at]
    cut_run(t, items.heads[child], items.tails[child], node)
    t.counts[node] -= 1
    t.children[node, at] = t.children[node, t.counts[node]]
    items.parents[child] = NONE
    return child


@kernel
def place_of(t, node, child):
    """Return the position of a child in its node."""
    at = 0
    while t.children[node, at] != child:
        at += 1
    return at


@kernel
def tighten(t, node):
    """Set a node's box to the box around its children."""
    items = children_of(t, node)
    for axis in range(2):
        t.nodes.boxes[node, axis] = np.inf
        t.nodes.boxes[node, axis + 2] = -np.inf
    for at in range(t.counts[node]):
        enlarge_box(t.nodes.boxes, node, items.boxes, t.children[node, at])


@kernel
def choose_node(t, items, child, level):
    """Return the node of a level that takes a child: descend by least enlargement, then smallest area (ChooseLeaf)."""
    node = t.state[CR_ROOT]
    while t.levels[node] > level:
        best = t.children[node, 0]
        least_gain = np.inf
        least_area = np.inf
        for at in range(t.counts[node]):
            below = t.children[node, at]
            area = area_of(t.nodes.boxes, below)
            gain = joint_area(t.nodes.boxes, below, items.boxes, child) - area
            if gain < least_gain or (gain == least_gain and area < least_area):
                best = below
                least_gain = gain
                least_area = area
        node = np.int64(best)
    return node


@kernel
def split_node(t, node, minimum, method, boxes, work):
    """Split an overfull node and add the new sibling to the parent, made if there is none; return the parent."""
    items = children_of(t, node)
    for at in range(t.counts[node]):
        copy_box(items.boxes, t.children[node, at], boxes, at)
    fill_split(boxes, minimum, method, work)
    parent = np.int64(t.nodes.parents[node])
    if parent == NONE:
        parent = new_node(t, t.levels[node] + 1)
        copy_box(t.nodes.boxes, node, t.nodes.boxes, parent)
        attach(t, parent, node)
        t.state[CR_ROOT] = parent
    sibling = new_node(t, t.levels[node])
    attach(t, parent, sibling)
    for at in range(t.counts[node] - 1, -1, -1):
        if work.assignment[at] == 1:
            attach(t, sibling, detach(t, node, at))
    tighten(t, node)
    tighten(t, sibling)
    return parent


@kernel
def put(t, child, level, minimum, method, boxes, work):
    """Insert `child` below some node of a level; split upwards as far as needed (AdjustTree)."""
    items = t.entries if level == 0 else t.nodes
    node = choose_node(t, items, child, level)
    attach(t, node, child)
    above = node
    while above != NONE:
        enlarge_box(t.nodes.boxes, above, items.boxes, child)
        above = np.int64(t.nodes.parents[above])
    while node != NONE and t.counts[node] == len(boxes):
        node = split_node(t, node, minimum, method, boxes, work)


@kernel
def condense(t, node, minimum, orphans):
    """Remove nodes with too few children, from a leaf to the root; return their number (CondenseTree)."""
    count = 0
    while t.nodes.parents[node] != NONE:
        parent = np.int64(t.nodes.parents[node])
        if t.counts[node] < minimum:
            orphans[count] = detach(t, parent, place_of(t, parent, node))
            count += 1
        else:
            tighten(t, node)
        node = parent
    tighten(t, node)
    return count


@kernel
def lower_root(t):
    """Replace the root by its only child while it has a single node below it."""
    root = np.int64(t.state[CR_ROOT])
    while t.levels[root] > 0 and t.counts[root] == 1:
        child = np.int64(t.children[root, 0])
        t.nodes.parents[child] = NONE
        free_node(t, root)
        root = child
    t.state[CR_ROOT] = root


@entry("f8[2]! i4[1]! i4[1]! i4[1]! i4[2]! i4[1]! i4[1]! f8[2]! i4[1]! i4[1]! i4[1]! i4[1]! i8[1]! i8 i8 i8")
def insert_constraint(
    boxes, parents, heads, tails, children, counts, levels,
    entry_boxes, entry_parents, entry_heads, nexts, prevs, state, item, minimum, method,
):  # fmt: skip
    """Insert a constraint whose box and head are already written; state[CR_ROOT] < 0 makes the first root."""
    t = CRNodes(
        CRTreeItems(boxes, parents, heads, tails), children, counts, levels,
        CRTreeItems(entry_boxes, entry_parents, entry_heads, entry_heads), nexts, prevs, state,
    )  # fmt: skip
    if state[CR_ROOT] == NONE:
        state[CR_ROOT] = new_node(t, 0)
        tighten(t, state[CR_ROOT])
    overfull = np.empty((children.shape[1], 4))
    put(t, item, np.int64(0), minimum, method, overfull, make_split_work(children.shape[1], 2))


@entry("f8[2]! i4[1]! i4[1]! i4[1]! i4[2]! i4[1]! i4[1]! f8[2]! i4[1]! i4[1]! i4[1]! i4[1]! i8[1]! i8 i8 i8")
def delete_constraint(
    boxes, parents, heads, tails, children, counts, levels,
    entry_boxes, entry_parents, entry_heads, nexts, prevs, state, item, minimum, method,
):  # fmt: skip
    """Delete a constraint; it stores its leaf, so FindLeaf is one look-up. Orphans are reinserted, highest first."""
    t = CRNodes(
        CRTreeItems(boxes, parents, heads, tails), children, counts, levels,
        CRTreeItems(entry_boxes, entry_parents, entry_heads, entry_heads), nexts, prevs, state,
    )  # fmt: skip
    leaf = np.int64(entry_parents[item])
    detach(t, leaf, place_of(t, leaf, item))
    orphans = np.empty(MAX_CR_HEIGHT, np.int64)
    count = condense(t, leaf, minimum, orphans)
    overfull = np.empty((children.shape[1], 4))
    work = make_split_work(children.shape[1], 2)
    while count > 0:
        count -= 1
        orphan = orphans[count]
        level = np.int64(levels[orphan])
        while counts[orphan] > 0:
            put(t, np.int64(detach(t, orphan, counts[orphan] - 1)), level, minimum, method, overfull, work)
        free_node(t, orphan)
    lower_root(t)


@kernel
def append_run(nexts, head, tail, out, count):
    """Append the constraints of a run to `out`."""
    item = head
    while item != NONE:
        out[count] = item
        count += 1
        item = NONE if item == tail else nexts[item]
    return count


@kernel
def is_apart(boxes, k, box):
    """Return True if box k and the message's box have no common point."""
    return boxes[k, 0] > box[0, 2] or boxes[k, 2] < box[0, 0] or boxes[k, 1] > box[0, 3] or boxes[k, 3] < box[0, 1]


@kernel
def is_around(boxes, k, box):
    """Return True if box k covers the message's box."""
    return (
        boxes[k, 0] <= box[0, 0] and boxes[k, 2] >= box[0, 2] and boxes[k, 1] <= box[0, 1] and boxes[k, 3] >= box[0, 3]
    )


@entry("f8[2] i4[2]! i4[1]! i4[1]! i4[1]! i4[1]! f8[2]! f8[2]! i4[1]! u1[1]! u1[1] i8 b1 i4[1]! i4[1]! i8[1]!")
def search_constraints(
    box, children, counts, levels, heads, tails, boxes, entry_boxes, nexts, masks, admitted, root, is_within,
    out, candidates, work,
):  # fmt: skip
    """Write constraints that boxes decide to `out`, those to evaluate to `candidates`; return the numbers of both.

    admitted[mask] has the bits of the relations of boxes for which some relation of the mask can hold. With `is_within`
    all constraints ask that the message lies in their region, so that nodes whose box does not cover the message's are
    skipped. Adds to `work` the nodes visited and the boxes of constraints compared.
    """
    stack = np.empty(MAX_CR_HEIGHT * children.shape[1], np.int64)
    stack[0] = root
    depth = 1
    count = 0
    found = 0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        work[0] += 1
        if is_apart(boxes, node, box):
            count = append_run(nexts, heads[node], tails[node], out, count)
            continue
        if is_within and not is_around(boxes, node, box):
            continue
        if levels[node] == 0:
            work[1] += counts[node]
        for at in range(counts[node]):
            child = children[node, at]
            if levels[node] > 0:
                stack[depth] = child
                depth += 1
                continue
            relation = box_relation(
                box[0, 0], box[0, 1], box[0, 2], box[0, 3],
                entry_boxes[child, 0], entry_boxes[child, 1], entry_boxes[child, 2], entry_boxes[child, 3],
            )  # fmt: skip
            if relation == DISJOINT:
                if masks[child] & DISJOINT_BIT:
                    out[count] = child
                    count += 1
            elif admitted[masks[child]] >> relation & 1:
                candidates[found] = child
                found += 1
    return count, found
