"""Walk through a packed tree of constraints: boxes decide most items, the others become candidates.

The tree takes part in the evaluation: a node apart from the message decides `disjoint` for all items below it, a node
within the message's interior decides `contains`. Rows that match are either listed, or marked in a bit map that starts
with all `disjoint` constraints set: then items far from the message cost nothing, and the answer comes out sorted.
"""

from typing import Any, NamedTuple

import numpy as np

from contrada.codes import CONTAINS, CONTAINS_BIT, DISJOINT_BIT, FAN, FAN_SHIFT, MAX_LEVELS
from contrada.jit import entry, kernel
from contrada.kernels.match.packed_tree import fill_starts
from contrada.kernels.match.tables import TREE
from contrada.kernels.relate.contacts import RegionColumn
from contrada.kernels.relate.grid import cell_of
from contrada.kernels.relate.touch_nodes import B_LEAVES
from contrada.kernels.runtime.gil_gate import wait_at
from contrada.kernels.runtime.pointers import reader

BY_BOXES = np.uint8(0)  # the boxes of two regions limit the possible relations
NOT_WITHIN = np.uint8(0b01100111)  # relations that are possible if the other box does not contain this one
OF_REGION_TO_POINT = np.uint8(0b00100011)  # relations of a region to a point that its box contains
UNKNOWN, APART, WITHIN = 0, 1, 2
AT_IS_POINTS = TREE.at("is_points")


class ConstraintTree(NamedTuple):
    """Packed tree of constraints (tables.py describes each array)."""

    bounds: Any
    nodes: Any
    node_masks: Any
    union: Any
    offsets: Any
    masks: Any
    rows: Any
    disjoint_before: Any
    disjoint_rows: Any
    contains_before: Any
    contains_rows: Any
    disjoint_map: Any


class TreeItems(NamedTuple):
    """Regions, or points, of the items (tables.py describes each array)."""

    column: Any
    regions: Any
    large: Any
    bases: Any
    ring_count: Any


COLUMN_SOURCE = RegionColumn, {"rings": "ring_offsets", "flags": "ring_flags"}
ITEMS_SOURCE = TreeItems, {"column": COLUMN_SOURCE, "regions": "region_offsets"}
items_at = reader(TREE, *ITEMS_SOURCE)
tree_at = reader(TREE, ConstraintTree)


class MatchSink(NamedTuple):
    """Destination of rows that match: the list `out`, or, if not empty, `bitmap`, whose first bit is first_row."""

    out: Any
    bitmap: Any
    first_row: Any


@kernel
def mark(sink, row, is_match):
    """Set a row's bit to `is_match` (1 or 0); return the change of the number of matching rows.

    Here as elsewhere, branches on what constraints ask are avoided: they are hard to predict.
    """
    k = row - sink.first_row
    byte = np.int64(sink.bitmap[k >> 3])
    was_match = (byte >> (k & 7)) & 1
    sink.bitmap[k >> 3] = np.uint8(byte ^ ((was_match ^ is_match) << (k & 7)))
    return is_match - was_match


@kernel
def list_apart(tree, first, last, sink, count):
    """List the rows of runs first..last that ask for `disjoint`; a bit map has them set from the start."""
    for k in range(tree.disjoint_before[first], tree.disjoint_before[last]):
        sink.out[count] = tree.disjoint_rows[k]
        count += 1
    return count


@kernel
def report_within(tree, first, last, sink, count):
    """Report that the message contains all items of runs first..last."""
    if len(sink.bitmap) > 0:
        for k in range(tree.disjoint_before[first], tree.disjoint_before[last]):
            count += mark(sink, tree.disjoint_rows[k], np.int64(0))
        for k in range(tree.contains_before[first], tree.contains_before[last]):
            count += mark(sink, tree.contains_rows[k], np.int64(1))
        return count
    for k in range(tree.contains_before[first], tree.contains_before[last]):
        sink.out[count] = tree.contains_rows[k]
        count += 1
    return count


@kernel
def report(tree, item, relation, sink, count):
    """Report the relation of the message to one item: entries that ask for it match."""
    for e in range(tree.offsets[item], tree.offsets[item + 1]):
        is_match = (np.int64(tree.masks[e]) >> relation) & 1
        if len(sink.bitmap) > 0:
            count += mark(sink, tree.rows[e], is_match)
        else:
            sink.out[count] = tree.rows[e]
            count += is_match
    return count


@kernel
def grid_state(b0, b1, b2, b3, grid):
    """Return where a box lies: APART from the region under the grid, WITHIN its interior, or UNKNOWN."""
    size = grid.size
    c0 = cell_of(b0, grid.x0, grid.sx, size)
    c1 = cell_of(b2, grid.x0, grid.sx, size)
    r0 = cell_of(b1, grid.y0, grid.sy, size)
    r1 = cell_of(b3, grid.y0, grid.sy, size)
    top = r0 * (size + 1)
    end = (r1 + 1) * (size + 1)
    if grid.sums[end + c1 + 1] - grid.sums[top + c1 + 1] - grid.sums[end + c0] + grid.sums[top + c0] != 0:
        return UNKNOWN
    return APART if grid.labels[r0 * size + c0] == B_LEAVES else WITHIN


@kernel
def box_state(boxes, k, box, grid):
    """Return where box k lies relative to the message: APART, WITHIN or UNKNOWN."""
    # No short-circuit: one branch that is mostly taken costs less than four that are hard to predict.
    if (boxes[k, 0] > box[2]) | (boxes[k, 2] < box[0]) | (boxes[k, 1] > box[3]) | (boxes[k, 3] < box[1]):
        return APART
    if grid.size == 0:
        return UNKNOWN
    return grid_state(boxes[k, 0], boxes[k, 1], boxes[k, 2], boxes[k, 3], grid)


@kernel
def is_hopeless(nodes, k, box, mask):
    """Return True if all items below node k ask the message to lie in regions that cannot contain it."""
    return mask & NOT_WITHIN == 0 and not (
        nodes[k, 0] <= box[0] and nodes[k, 1] <= box[1] and nodes[k, 2] >= box[2] and nodes[k, 3] >= box[3]
    )


@kernel
def visit_nodes(tree, box, grid, level, starts, first, last, stack, depth, lists_apart, sink, count):
    """Visit nodes first..last of a level; nodes that boxes do not decide go to the stack."""
    runs = len(tree.disjoint_before) - 1
    shift = FAN_SHIFT * (level - 1)
    for c in range(first, last):
        node = starts[level] + c
        state = box_state(tree.nodes, node, box, grid)
        if state == APART:
            if lists_apart:
                count = list_apart(tree, c << shift, min((c + 1) << shift, runs), sink, count)
        elif state == WITHIN:
            count = report_within(tree, c << shift, min((c + 1) << shift, runs), sink, count)
        elif not is_hopeless(tree.nodes, node, box, tree.node_masks[node]):
            stack[depth, 0] = level
            stack[depth, 1] = c
            depth += 1
    return depth, count


@kernel
def admitted(boxes, k, box):
    """Return the relations to the region in box k that the message's box allows (Table 2, corrected), without branches.

    Boxes that meet allow disjoint and meets. Overlaps needs common inner points, and the others need one box within the
    other, strictly within for inside and contains. Disjoint stays possible throughout: regions have holes and bays.
    """
    b0 = boxes[k, 0]
    b1 = boxes[k, 1]
    b2 = boxes[k, 2]
    b3 = boxes[k, 3]
    together = np.int64((box[2] >= b0) & (box[0] <= b2) & (box[3] >= b1) & (box[1] <= b3))
    overlaps = np.int64((box[2] > b0) & (box[0] < b2) & (box[3] > b1) & (box[1] < b3))
    covered = np.int64((box[0] >= b0) & (box[1] >= b1) & (box[2] <= b2) & (box[3] <= b3))
    inside = np.int64((box[0] > b0) & (box[1] > b1) & (box[2] < b2) & (box[3] < b3))
    covers = np.int64((box[0] <= b0) & (box[1] <= b1) & (box[2] >= b2) & (box[3] >= b3))
    contains = np.int64((box[0] < b0) & (box[1] < b1) & (box[2] > b2) & (box[3] > b3))
    equals = covered & covers
    if_overlaps = overlaps << 2 | equals << 3 | inside << 4 | contains << 5 | covers << 6 | covered << 7
    return np.uint8(together | together << 1 | if_overlaps * overlaps)


@kernel
def list_candidates(tree, box, first, last, candidates, found, room):
    """List the candidates among items first..last, if boxes decide nothing else; stop if there are more than `room`."""
    for c in range(first, last):
        is_candidate = tree.union[c] & admitted(tree.bounds, c, box) != 0
        if found == room:
            if is_candidate:
                return found + 1
        else:
            candidates[found] = c
            found += np.int64(is_candidate)
    return found


@kernel
def visit_items(tree, box, possible, grid, first, last, candidates, found, room, lists_apart, sink, count):
    """Visit items first..last; items that boxes do not decide become candidates. Stop beyond `room` candidates."""
    for c in range(first, last):
        state = box_state(tree.bounds, c, box, grid)
        if state == APART:
            if lists_apart and tree.union[c] & DISJOINT_BIT:
                count = report(tree, c, np.int64(0), sink, count)
        elif state == WITHIN:
            if tree.union[c] & (CONTAINS_BIT | DISJOINT_BIT):
                count = report(tree, c, CONTAINS, sink, count)
        elif tree.union[c] & (admitted(tree.bounds, c, box) if possible == BY_BOXES else possible) != 0:
            if found == room:
                return found + 1, count
            candidates[found] = c
            found += 1
    return found, count


@kernel
def search(tree, box, possible, grid, stack, starts, candidates, room, sink, count):
    """Walk the tree: rows decided by boxes go to `sink`, undecided items to `candidates`.

    Returns the ends of both. If there are more than `room` candidates, stops and returns a second end above `room`.
    """
    found = none = np.int64(0)
    items = np.int64(len(tree.bounds))
    is_list = len(sink.bitmap) == 0
    if len(tree.nodes) == 0:
        found, count = visit_items(tree, box, possible, grid, none, items, candidates, none, room, is_list, sink, count)
        return count, found
    lists_apart = is_list and len(tree.disjoint_rows) > 0
    levels = fill_starts(items, starts)
    top = starts[levels + 1] - starts[levels]
    depth, count = visit_nodes(tree, box, grid, levels, starts, none, top, stack, none, lists_apart, sink, count)
    while depth > 0:
        depth -= 1
        level = stack[depth, 0] - 1
        first = stack[depth, 1] << FAN_SHIFT
        if level == 0:
            last = min(first + FAN, items)
            if grid.size == 0 and possible == BY_BOXES and not lists_apart:
                found = list_candidates(tree, box, first, last, candidates, found, room)
            else:
                found, count = visit_items(
                    tree, box, possible, grid, first, last, candidates, found, room, lists_apart, sink, count
                )
            if found > room:
                return count, found
        else:
            last = min(first + FAN, starts[level + 1] - starts[level])
            depth, count = visit_nodes(
                tree, box, grid, level, starts, first, last, stack, depth, lists_apart, sink, count
            )
    return count, found


@kernel
def is_apart(boxes, k, box):
    """Return True if box k does not meet the message's box."""
    return (boxes[k, 0] > box[2]) | (boxes[k, 2] < box[0]) | (boxes[k, 1] > box[3]) | (boxes[k, 3] < box[1])


@kernel
def has_candidate(tree, is_points, box, first, last):
    """Return True if the boxes allow a relation that one of the items first..last asks for; `disjoint` is not asked."""
    for c in range(first, last):
        if is_apart(tree.bounds, c, box):
            continue
        possible = OF_REGION_TO_POINT if is_points else admitted(tree.bounds, c, box)
        if tree.union[c] & possible != 0:
            return True
    return False


@entry("f8[1] i8[1] i8[1]", checked=False)
def finds_nothing(message, table, gate):
    """Return True if boxes alone tell that a region satisfies no constraint of a tree; False if that is unknown.

    The box of the region is message[:4]. Most messages of many sources meet nothing: for these, this is a fraction of
    a call of `match_regions`, which takes the arrays of the region and makes scratch space. It is unknown if a
    constraint asks for `disjoint`, and for items without nodes.
    """
    tree = tree_at(table)
    items = np.int64(len(tree.bounds))
    if len(tree.disjoint_rows) > 0 or len(tree.nodes) == 0:
        return False
    box = (message[0], message[1], message[2], message[3])
    is_points = table[AT_IS_POINTS] != 0
    starts = np.empty(MAX_LEVELS, np.int64)
    stack = np.empty(FAN * MAX_LEVELS, np.int64)  # nodes by number; those of a level lie together
    levels = fill_starts(items, starts)
    depth = np.int64(0)
    for node in range(starts[levels], starts[levels + 1]):
        stack[depth] = node
        depth += 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if is_apart(tree.nodes, node, box) or is_hopeless(tree.nodes, node, box, tree.node_masks[node]):
            continue
        level = 1
        while node >= starts[level + 1]:
            level += 1
        first = (node - starts[level]) << FAN_SHIFT
        if level > 1:
            for child in range(first, min(first + FAN, starts[level] - starts[level - 1])):
                stack[depth] = starts[level - 1] + child
                depth += 1
        elif has_candidate(tree, is_points, box, first, min(first + FAN, items)):
            wait_at(gate)
            return False
    wait_at(gate)
    return True
