"""Which constraints of a packed tree does a message satisfy?

The tree takes part in the evaluation: a node apart from the message decides `disjoint` for all below it, a node within
the message's interior decides `contains`, both by copying a list. Only items whose boxes come near the message's
boundary are looked at one by one. Whether a grid is made over the message is decided once enough of them are seen.
"""

from typing import Any, NamedTuple

import numpy as np

from contrada.jit import entry, inlined_kernel, kernel
from contrada.kernels.boxes import box_relation
from contrada.kernels.chains import LARGE, NO_INDEX, fill_chain
from contrada.kernels.contacts import Column, make_work
from contrada.kernels.few import FEW, UNDECIDED, relate_few
from contrada.kernels.grid import build_grid, cell_of
from contrada.kernels.gridded import relate_gridded
from contrada.kernels.nodes import B_LEAVES, SETTLED
from contrada.kernels.packed import FAN, FAN_SHIFT, MAX_LEVELS, append_entries, append_list, fill_starts
from contrada.kernels.relate import RELATION, box_bits, finish, most_rings, relate_bits
from contrada.kernels.rings import IN, ON, locate

DISJOINT_BIT, CONTAINS_BIT = np.uint8(1), np.uint8(32)
ENOUGH = np.int64(48)  # candidates for which a grid over the message pays
MANY = 20000  # items for which a finer one does
COARSE, FINE = np.int64(64), np.int64(256)  # cells per side
UNKNOWN, APART, WITHIN = 0, 1, 2

# For each relation of two boxes, the relations of their regions that it allows (Table 2, corrected, transposed).
ADMITS = np.array(
    [
        0b00000001,  # disjoint: disjoint
        0b00000011,  # meets: disjoint, meets
        0b00000111,  # overlaps: disjoint, meets, overlaps
        0b11001111,  # equals: all but inside and contains (disjoint with several parts)
        0b10010111,  # inside: disjoint, meets, overlaps, inside, covered-by
        0b01100111,  # contains: disjoint, meets, overlaps, contains, covers
        0b01000111,  # covers: disjoint, meets, overlaps, covers
        0b10000111,  # covered-by: disjoint, meets, overlaps, covered-by
    ],
    np.uint8,
)


class Tree(NamedTuple):
    """A packed tree of constraints: boxes of items and nodes, masks, entries, and the two lists."""

    bounds: Any
    nodes: Any
    masks: Any
    entry_offsets: Any
    entry_masks: Any
    entry_rows: Any
    disjoint_before: Any
    disjoint_rows: Any
    contains_before: Any
    contains_rows: Any


@inlined_kernel
def grid_state(b0, b1, b2, b3, grid):
    """Where a box lies: APART from the region under the grid, WITHIN its interior, or UNKNOWN."""
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


@inlined_kernel
def box_state(boxes, k, box, grid):
    """Where box k lies to the message: APART, WITHIN or UNKNOWN."""
    if boxes[k, 0] > box[2] or boxes[k, 2] < box[0] or boxes[k, 1] > box[3] or boxes[k, 3] < box[1]:
        return APART
    if grid.size == 0:
        return UNKNOWN
    return grid_state(boxes[k, 0], boxes[k, 1], boxes[k, 2], boxes[k, 3], grid)


@inlined_kernel
def is_admitted(bounds, k, box, mask):
    """True if the boxes allow item k a relation that its constraints ask for."""
    relation = box_relation(box[0], box[1], box[2], box[3], bounds[k, 0], bounds[k, 1], bounds[k, 2], bounds[k, 3])
    return mask & ADMITS[relation] != 0


@kernel
def search(tree, box, is_point, grid, stack, starts, candidates, room, out, count):
    """Walk the tree: rows decided by boxes go to out, items to be looked at to candidates.

    Returns the ends of both; stops, with the second above the room, when there are more candidates.
    """
    found = np.int64(0)
    items = len(tree.bounds)
    runs = len(tree.disjoint_before) - 1
    levels = fill_starts(items, starts) if len(tree.nodes) > 0 else 0  # without nodes all items are scanned
    depth = 1
    stack[0, 0] = levels + 1
    stack[0, 1] = 0
    while depth > 0:
        depth -= 1
        level = stack[depth, 0] - 1
        parent = stack[depth, 1]
        below = items if level == 0 else starts[level + 1] - starts[level]
        end = below if levels == 0 else min((parent + 1) << FAN_SHIFT, below)
        for c in range(parent << FAN_SHIFT, end):
            if level > 0:
                state = box_state(tree.nodes, starts[level] + c, box, grid)
                if state == UNKNOWN:
                    stack[depth, 0] = level
                    stack[depth, 1] = c
                    depth += 1
                    continue
                shift = FAN_SHIFT * (level - 1)
                first = c << shift
                last = min((c + 1) << shift, runs)
                if state == APART:
                    count = append_list(tree.disjoint_before, tree.disjoint_rows, first, last, out, count)
                else:
                    count = append_list(tree.contains_before, tree.contains_rows, first, last, out, count)
                continue
            state = box_state(tree.bounds, c, box, grid)
            if state != UNKNOWN:
                bit = DISJOINT_BIT if state == APART else CONTAINS_BIT
                if tree.masks[c] & bit:
                    count = append_entries(tree.entry_offsets, tree.entry_masks, tree.entry_rows, c, bit, out, count)
            elif is_point or is_admitted(tree.bounds, c, box, tree.masks[c]):
                if found == room:
                    return count, found + 1
                candidates[found] = c
                found += 1
    return count, found


@inlined_kernel
def append_related(tree, item, relation, out, count):
    """Append the rows of one item's entries that ask for a relation."""
    bit = np.uint8(1 << relation)
    return append_entries(tree.entry_offsets, tree.entry_masks, tree.entry_rows, item, bit, out, count)


@inlined_kernel
def base_of(c, c0, c1, large, bases, item):
    """The edge index of an item: large lists the items that have one, in order."""
    if c.rings[c1] - c.rings[c0] <= LARGE:
        return NO_INDEX
    low = 0
    high = len(large)
    while high - low > 1:
        middle = (low + high) >> 1
        if large[middle] <= item:
            low = middle
        else:
            high = middle
    return bases[low]


@kernel
def evaluate(m, m0, m1, m_base, m_bounds, i, c, regions, large, bases, tree, grid, candidates, found, out, count, work):
    """Relate the message region i to every candidate region and append the rows that ask for what holds."""
    few = m1 - m0 == 1 and m.rings[m1] - m.rings[m0] <= FEW
    for k in range(found):
        item = np.int64(candidates[k])
        c0 = np.int64(regions[item])
        c1 = np.int64(regions[item + 1])
        base = base_of(c, c0, c1, large, bases, item)
        bits = UNDECIDED
        if few and c1 - c0 == 1 and base < 0:
            bits = box_bits(m_bounds, i, tree.bounds, item)
            bits = relate_few(m.xy, m.rings, m0, m_bounds, i, c.xy, c.rings[c0], c.rings[c1] - 1, bits)
        elif grid.size > 0:
            bits = box_bits(m_bounds, i, tree.bounds, item)
            bits = relate_gridded(m, m0, m1, m_base, c, c0, c1, base, grid, bits, work)
            if bits & SETTLED != SETTLED:
                bits = finish(m, m0, m1, m_base, m_bounds, i, c, c0, c1, base, tree.bounds, item, bits, work)
        if bits == UNDECIDED:
            bits = relate_bits(m, m0, m1, m_base, m_bounds, i, c, c0, c1, base, tree.bounds, item, work)
        count = append_related(tree, item, RELATION[bits & 15], out, count)
    return count


@kernel
def evaluate_points(
    point, items_are_points, m, m0, m1, m_base, i, c, regions, large, bases, tree, candidates, found, out, count, work
):
    """The same where the message, the items or both are points."""
    for k in range(found):
        item = np.int64(candidates[k])
        if point and items_are_points:
            same = c.xy[item, 0] == m.xy[i, 0] and c.xy[item, 1] == m.xy[i, 1]
            relation = 3 if same else 0
        elif point:
            c0 = np.int64(regions[item])
            c1 = np.int64(regions[item + 1])
            base = base_of(c, c0, c1, large, bases, item)
            side = locate(m.xy[i, 0], m.xy[i, 1], c.xy, c.rings, c0, c1, c.boxes, base, work.stack, work.found)
            relation = 4 if side == IN else (1 if side == ON else 0)
        else:
            x = c.xy[item, 0]
            y = c.xy[item, 1]
            side = locate(x, y, m.xy, m.rings, m0, m1, m.boxes, m_base, work.stack, work.found)
            relation = 5 if side == IN else (1 if side == ON else 0)
        count = append_related(tree, item, relation, out, count)
    return count


@entry(
    "f8[2] i8[1] i4[1] u1[1] f8[2] f8[2]! i8[1] f8[2] i8[1] i4[1] u1[1] f8[2] f8[2]! i4[1] i8[1] i8 "
    "f8[2] u1[1] i4[1] u1[1] i4[1] i4[1] i4[1] i4[1] i4[1] b1 b1 i8 i8 i4[1]! i4[1]! i8[1]!"
)
def match_packed(
    m_xy, m_rings, m_regions, m_flags, m_bounds, m_boxes, m_chains,
    xy, rings, regions, flags, bounds, boxes, large, bases, ring_count,
    nodes, masks, entry_offsets, entry_masks, entry_rows,
    disjoint_before, disjoint_rows, contains_before, contains_rows,
    is_point, items_are_points, start, stop, candidates, out, ends,
):  # fmt: skip
    """Rows of the entries whose constraints the messages start..stop satisfy, one message after another, to out.

    ends[i] gets the end of message i's rows. Returns the first message that was not matched, stop if all were: a
    message is only tried while out has room for every entry. candidates has room for every item; no item has more
    rings than ring_count.
    """
    m = Column(m_xy, m_rings, m_flags, m_boxes)
    c = Column(xy, rings, flags, boxes)
    tree = Tree(
        bounds, nodes, masks, entry_offsets, entry_masks, entry_rows,
        disjoint_before, disjoint_rows, contains_before, contains_rows,
    )  # fmt: skip
    stack = np.empty((MAX_LEVELS * FAN, 2), np.int64)
    starts = np.empty(MAX_LEVELS, np.int64)
    items = np.int64(len(bounds))
    room = items if is_point else min(items, ENOUGH)
    nothing = np.int64(0)
    no_grid = build_grid(m.xy, m.rings, nothing, nothing, m_bounds, start, nothing)
    work = make_work(most_rings(m_regions), ring_count)
    used = np.int64(0)
    for i in range(start, stop):
        if len(out) - used < len(entry_rows):
            return i
        m0 = np.int64(0) if is_point else np.int64(m_regions[i])
        m1 = np.int64(0) if is_point else np.int64(m_regions[i + 1])
        m_base = NO_INDEX if is_point else m_chains[i]
        box = (m_bounds[i, 0], m_bounds[i, 1], m_bounds[i, 2], m_bounds[i, 3])
        grid = no_grid
        count, found = search(tree, box, is_point, grid, stack, starts, candidates, room, out, used)
        if found > room:
            grid = build_grid(m.xy, m.rings, m0, m1, m_bounds, i, FINE if items >= MANY else COARSE)
            if m_base < 0:
                fill_chain(m.xy, m.rings, m0, m1, work.boxes, nothing)
            count, found = search(tree, box, is_point, grid, stack, starts, candidates, items, out, used)
        if is_point or items_are_points:
            used = evaluate_points(
                is_point, items_are_points, m, m0, m1, m_base, i, c, regions, large, bases,
                tree, candidates, found, out, count, work,
            )  # fmt: skip
        else:
            used = evaluate(
                m, m0, m1, m_base, m_bounds, i, c, regions, large, bases,
                tree, grid, candidates, found, out, count, work,
            )  # fmt: skip
        ends[i] = used
    return stop
