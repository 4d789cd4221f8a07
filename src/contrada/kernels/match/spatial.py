"""Find the constraints of a packed tree that a message satisfies.

A walk through the tree (search.py) leaves the items whose boxes come near the message's boundary. Each relation is
computed only as far as its constraints need; the number of candidates decides how the message is prepared for that.
"""

import numpy as np

from contrada.codes import CONTAINS, DISJOINT, EQUALS, INSIDE, MAX_LEVELS, MAX_SCANNED_VERTICES, MEETS, NO_INDEX
from contrada.jit import entry, kernel
from contrada.kernels.match.item_trees import are_wanted, has_tree, item_tree, item_trees_at, spend_on
from contrada.kernels.match.packed_tree import list_bits
from contrada.kernels.match.search import (
    AT_IS_POINTS,
    BY_BOXES,
    OF_REGION_TO_POINT,
    MatchSink,
    items_at,
    report,
    search,
    tree_at,
)
from contrada.kernels.match.tables import TREE_SCRATCH
from contrada.kernels.relate.chains import COUNTER_ROW, FOUND_ROWS, STACK_ROWS, fill_chain
from contrada.kernels.relate.contacts import RegionColumn, make_work
from contrada.kernels.relate.edge_tree import ZERO, EdgeTree, build_tree, locate_in_tree
from contrada.kernels.relate.grid import Grid, build_grid
from contrada.kernels.relate.grid_edges import box_bits_gridded, relate_gridded
from contrada.kernels.relate.regions import (
    RELATION,
    box_bits,
    build_after,
    finish,
    most_rings,
    relate_bits,
    treed_bits,
    vertex_bits,
)
from contrada.kernels.relate.rings import IN, ON, locate
from contrada.kernels.relate.small import MAX_SMALL_VERTICES, UNDECIDED, relate_few
from contrada.kernels.relate.touch_nodes import A_LEAVES, B_LEAVES, BOUNDARY_A_IN_B, BOUNDARY_B_IN_A, STOPS, is_decided
from contrada.kernels.runtime.gil_gate import enter, leave, wait_at
from contrada.kernels.runtime.pointers import reader
from contrada.kernels.runtime.prefetch import prefetch

# Preparations of a message in turn: a grid of GRID_SIZES[k] cells per side, for at most MAX_CANDIDATES[k] candidates.
# If a search without a grid finds more than SMALL_GRID_CANDIDATES, these are evaluated with a small grid.
GRID_SIZES = np.array([0, 32, 64, 256])
MAX_CANDIDATES = np.array([40, 120, 1500, 1 << 31])
SMALL_GRID = np.int64(16)
# Above LARGE_GRID_MIN_CANDIDATES the large grid pays off even if the candidates are larger than its cells.
LARGE_GRID, LARGE_GRID_MIN_CANDIDATES = np.int64(64), 2000
SMALL_GRID_CANDIDATES = 6
NO_LIMIT = np.int64(1) << 62
PREFETCH_AHEAD, PREFETCH_VERTICES = 4, 16
OF_POINT_TO_REGION, OF_POINTS = np.uint8(0b00010011), np.uint8(0b1001)
scratch_at = reader(TREE_SCRATCH, "TreeScratch")


@kernel
def number_of(items, item):
    """Return the number of `item` among the large items."""
    low = 0
    high = len(items.large)
    while high - low > 1:
        middle = (low + high) >> 1
        if items.large[middle] <= item:
            low = middle
        else:
            high = middle
    return low


@kernel
def base_of(items, c0, c1, item):
    """Return the position of the edge index of `item`, which has rings c0..c1, or NO_INDEX."""
    if items.column.rings[c1] - items.column.rings[c0] <= MAX_SCANNED_VERTICES:
        return NO_INDEX
    return items.bases[number_of(items, item)]


@kernel
def are_large(bounds, candidates, count, box, cells):
    """Return True if the first candidates are, on average, larger than a cell of a grid over the message's box."""
    width = 0.0
    height = 0.0
    for k in range(count):
        item = candidates[k]
        width += bounds[item, 2] - bounds[item, 0]
        height += bounds[item, 3] - bounds[item, 1]
    return width * cells > (box[2] - box[0]) * count or height * cells > (box[3] - box[1]) * count


@kernel
def stops_of(tree, item):
    """Return the states of bits that decide every entry of `item`."""
    first = tree.offsets[item]
    stops = STOPS[tree.masks[first]]
    for e in range(first + 1, tree.offsets[item + 1]):
        stops &= STOPS[tree.masks[e]]
    return stops


@kernel
def ungridded_bits(m, m0, m1, m_base, m_bounds, i, is_few, c, c0, c1, base, bounds, item, bits, stops, work):
    """Return the bits of message region i and an item's region that decide `stops`, without a grid: points first."""
    v = c.rings[c0]
    bits |= vertex_bits(
        c.xy[v, 0], c.xy[v, 1], m, m0, m1, m_base, m_bounds, i, BOUNDARY_B_IN_A, B_LEAVES, work
    )  # fmt: skip
    if is_decided(bits, stops):
        return bits
    if is_few and c1 - c0 == 1 and base < 0:
        few_bits = relate_few(m.xy, m.rings, m0, m_bounds, i, c.xy, c.rings[c0], c.rings[c1] - 1, bits)
        if few_bits != UNDECIDED:
            return few_bits
    else:
        v = m.rings[m0]
        bits |= vertex_bits(
            m.xy[v, 0], m.xy[v, 1], c, c0, c1, base, bounds, item, BOUNDARY_A_IN_B, A_LEAVES, work
        )  # fmt: skip
        if is_decided(bits, stops):
            return bits
    return relate_bits(m, m0, m1, m_base, m_bounds, i, c, c0, c1, base, bounds, item, bits, stops, work)


@kernel
def candidate_bits(m, m0, m1, m_base, m_bounds, i, is_few, items, bounds, item, grid, tree, stops, work):
    """Return the bits of message region i and an item's region that decide `stops`.

    The box comes first: it decides most items, and then their coordinates need not come from memory.
    """
    bits = box_bits(m_bounds, i, bounds, item)
    if is_decided(bits, stops):
        return bits
    if grid.size > 0:
        whole = box_bits_gridded(m, m0, m1, m_base, grid, bounds, item, work)
        if whole != UNDECIDED:
            return whole
    c = items.column
    c0 = np.int64(items.regions[item])
    c1 = np.int64(items.regions[item + 1])
    base = base_of(items, c0, c1, item)
    if grid.size == 0:
        return ungridded_bits(m, m0, m1, m_base, m_bounds, i, is_few, c, c0, c1, base, bounds, item, bits, stops, work)
    bits = relate_gridded(m, m0, m1, m_base, c, c0, c1, base, grid, tree.leaves > 0, bits, stops, work)
    if is_decided(bits, stops):  # checked here, because a call with this many arguments is slow
        return bits
    return finish(m, m0, m1, m_base, m_bounds, i, c, c0, c1, base, bounds, item, tree, bits, stops, work)


@kernel
def large_candidate_bits(
    m, m0, m1, m_base, m_bounds, i, is_few, items, bounds, item, trees, grid, edge_tree, stops, work
):
    """Relate an item that is larger than the message; after enough comparisons a tree is requested for the item."""
    number = number_of(items, item)
    c0 = np.int64(items.regions[item])
    c1 = np.int64(items.regions[item + 1])
    vertices = items.column.rings[c1] - items.column.rings[c0]
    bits = box_bits(m_bounds, i, bounds, item)
    if bits >= 0 and not is_decided(bits, stops) and has_tree(trees, number):
        base = items.bases[number]
        tree = item_tree(trees, number, items, bounds)
        return treed_bits(
            m, m0, m1, m_base, m_bounds, i, items.column, c0, c1, base, bounds, item, tree, bits, work
        )  # fmt: skip
    bits = candidate_bits(m, m0, m1, m_base, m_bounds, i, is_few, items, bounds, item, grid, edge_tree, stops, work)
    labels = vertices if grid.size > 0 else 0  # look-ups of labels
    spend_on(trees, number, work.found[COUNTER_ROW, 0] + labels, vertices)
    return bits


@kernel
def ask_for_region(items, item):
    """Prefetch the first vertices of an item's region: cache lines of four vertices each."""
    v = items.column.rings[items.regions[item]]
    for k in range(0, PREFETCH_VERTICES, 4):
        prefetch(items.column.xy, v + k)


@kernel
def evaluate(
    m, m0, m1, m_base, m_bounds, i, items, trees, tree, grid, edge_tree, are_asked_for, candidates, start, found, left,
    sink, count, work,
):  # fmt: skip
    """Relate message region i to candidates[start:found] and report the rows that ask for the relation.

    `are_asked_for` prefetches regions: if they are small, their boxes decide most of them. Stops after more than `left`
    comparisons; returns the number of rows and the first candidate that was not evaluated.
    """
    vertices = m.rings[m1] - m.rings[m0]
    is_few = m1 - m0 == 1 and vertices <= MAX_SMALL_VERTICES
    rings = items.column.rings
    for k in range(start, found):
        item = np.int64(candidates[k])
        if are_asked_for and k + PREFETCH_AHEAD < found:
            ask_for_region(items, np.int64(candidates[k + PREFETCH_AHEAD]))
        stops = stops_of(tree, item)
        work.found[COUNTER_ROW, 0] = 0
        size = rings[items.regions[item + 1]] - rings[items.regions[item]]
        if size > max(vertices, MAX_SCANNED_VERTICES):
            bits = large_candidate_bits(
                m, m0, m1, m_base, m_bounds, i, is_few, items, tree.bounds, item, trees, grid, edge_tree, stops, work
            )
        else:
            bits = candidate_bits(
                m, m0, m1, m_base, m_bounds, i, is_few, items, tree.bounds, item, grid, edge_tree, stops, work
            )
            left -= work.found[COUNTER_ROW, 0]
        count = report(tree, item, np.int64(RELATION[bits & 15]), sink, count)
        if left < 0:
            return count, np.int64(k + 1)
    return count, found


@kernel
def locate_items(m, m0, m1, m_base, c, tree, edge_tree, candidates, start, found, left, sink, count, work):
    """Match candidates that are points; return the number of rows and the first candidate that was not evaluated."""
    work.found[COUNTER_ROW, 0] = 0
    for k in range(start, found):
        item = np.int64(candidates[k])
        x = c.xy[item, 0]
        y = c.xy[item, 1]
        if edge_tree.leaves > 0:
            side = locate_in_tree(x, y, m.xy, edge_tree, work.stack, ZERO)
        else:
            side = locate(x, y, m.xy, m.rings, m0, m1, m.boxes, m_base, work.stack, work.found)
        count = report(tree, item, CONTAINS if side == IN else (MEETS if side == ON else DISJOINT), sink, count)
        if work.found[COUNTER_ROW, 0] > left:
            return count, np.int64(k + 1)
    return count, found


@kernel
def begin_turn(tree, bitmap, used):
    """Return the number of rows before the next message: `used`, or with a bit map all that ask for `disjoint`."""
    if len(bitmap) == 0:
        return used
    for k in range(len(bitmap)):
        bitmap[k] = tree.disjoint_map[k]
    return np.int64(len(tree.disjoint_rows))


@kernel
def has_room(tree, out, bitmap, marked, used):
    """Return True if there is room even if every entry matches the next message."""
    if len(bitmap) == 0:
        return len(out) - used >= len(tree.rows)
    return len(marked) == 0 or len(marked) - used >= len(tree.rows) + 8


@kernel
def end_turn(bitmap, words, first_row, marked, used, count):
    """Return the end of the rows of all messages so far; `count` is the last message's number of rows or list end."""
    if len(bitmap) == 0 or len(marked) == 0:
        return count
    return list_bits(bitmap, words, first_row, marked, used, count)


@entry("f8[2] i8[1] i4[1] u1[1] f8[2] f8[2]! i8[1] i8[1] i8[1] i8 i8[1]", checked=False)
def match_regions(m_xy, m_rings, m_regions, m_flags, m_bounds, m_boxes, m_chains, table, order, start, scratch):
    """Write the rows of the entries whose constraints messages satisfy, one message after another.

    `table` and `scratch` are tables of addresses (tables.py). The messages are order[start:]. ends[k] gets the end of
    the rows of message order[k]. Returns the first k that was not matched: a message is tried only while there is room
    for every entry, and while no large item waits for a tree (item_trees.py).

    If `bitmap` is empty, rows go to `out` in no order. Otherwise it starts as the tree's `disjoint_map`, matching rows
    are marked in it (`words` are its bytes, eight at a time) and listed in `marked`. If `marked` is empty, there is one
    message, and its end is the number of marks. `candidates` and `stack` have room for every item and level.
    """
    stack, candidates, out, bitmap, words, first_row, marked, ends, gate = scratch_at(scratch)
    enter(gate)
    m = RegionColumn(m_xy, m_rings, m_flags, m_boxes)
    items = items_at(table)
    tree = tree_at(table)
    sink = MatchSink(out, bitmap, first_row)
    starts = np.empty(MAX_LEVELS, np.int64)
    work = make_work(most_rings(m_regions), items.ring_count)
    no_grid = Grid(np.int64(0), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, work.marks, candidates, candidates, candidates, starts)
    item_count = np.int64(len(tree.bounds))
    is_points = table[AT_IS_POINTS] != 0
    possible = OF_REGION_TO_POINT if is_points else BY_BOXES
    used = np.int64(0)
    trees = item_trees_at(table)
    for turn in range(start, len(order)):
        if not has_room(tree, out, bitmap, marked, used) or (turn > start and are_wanted(trees)):
            leave(gate)
            return turn
        i = order[turn]
        m0 = np.int64(m_regions[i])
        m1 = np.int64(m_regions[i + 1])
        m_base = m_chains[i]
        box = (m_bounds[i, 0], m_bounds[i, 1], m_bounds[i, 2], m_bounds[i, 3])
        grid = no_grid
        count = first = begin_turn(tree, bitmap, used)
        found = np.int64(0)
        are_asked_for = False
        for k in range(len(GRID_SIZES)):
            if k > 0:
                grid = build_grid(m.xy, m.rings, m0, m1, m_bounds, i, GRID_SIZES[k])
            room = min(item_count, MAX_CANDIDATES[k])
            # A list starts again from its beginning; marks in a bit map stay correct and counted.
            begun = count if len(bitmap) > 0 else first
            count, found = search(tree, box, possible, grid, stack, starts, candidates, room, sink, begun)
            if found <= room:
                break
            if k > 0 and are_large(tree.bounds, candidates, room, box, GRID_SIZES[k]):  # smaller cells would not help
                begun = count if len(bitmap) > 0 else first
                count, found = search(tree, box, possible, no_grid, stack, starts, candidates, item_count, sink, begun)
                are_asked_for = True
                if found > LARGE_GRID_MIN_CANDIDATES:
                    grid = build_grid(m.xy, m.rings, m0, m1, m_bounds, i, LARGE_GRID)
                break
        if grid.size == 0 and found > SMALL_GRID_CANDIDATES:
            grid = build_grid(m.xy, m.rings, m0, m1, m_bounds, i, SMALL_GRID)
        if grid.size > 0 and m_base < 0:
            fill_chain(m.xy, m.rings, m0, m1, work.boxes, np.int64(0))
        edge_tree = EdgeTree(ZERO, 0.0, work.boxes, grid.edges)  # no tree yet
        left = build_after(m, m0, m1, m_base)
        seen = np.int64(0)
        while seen < found:
            if is_points:
                count, seen = locate_items(
                    m, m0, m1, m_base, items.column, tree, edge_tree, candidates, seen, found, left, sink, count, work
                )
            else:
                count, seen = evaluate(
                    m, m0, m1, m_base, m_bounds, i, items, trees, tree, grid, edge_tree, are_asked_for, candidates,
                    seen, found, left, sink, count, work,
                )  # fmt: skip
            left = NO_LIMIT
            if seen < found:
                edge_tree = build_tree(m.xy, m.rings, m0, m1, m_bounds, i)
        ends[turn] = used = end_turn(bitmap, words, first_row, marked, used, count)
    leave(gate)
    return len(order)


@kernel
def locate_in_item(x, y, items, item, c0, c1, bounds, trees, stack, found):
    """Return IN, ON or OUT for the point and the region of an item, through its tree if it has one."""
    c = items.column
    if c.rings[c1] - c.rings[c0] <= MAX_SCANNED_VERTICES:
        return locate(x, y, c.xy, c.rings, c0, c1, c.boxes, NO_INDEX, stack, found)
    number = number_of(items, item)
    if has_tree(trees, number):
        return locate_in_tree(x, y, c.xy, item_tree(trees, number, items, bounds), stack, ZERO)
    found[COUNTER_ROW, 0] = 0
    side = locate(x, y, c.xy, c.rings, c0, c1, c.boxes, items.bases[number], stack, found)
    spend_on(trees, number, found[COUNTER_ROW, 0], c.rings[c1] - c.rings[c0])
    return side


@entry("f8[2] i8[1] i8[1] i8 i8[1]", checked=False)
def match_points(points, table, order, start, scratch):
    """Match messages that are points, as `match_regions` does."""
    stack, candidates, out, bitmap, words, first_row, marked, ends, gate = scratch_at(scratch)
    items = items_at(table)
    c = items.column
    tree = tree_at(table)
    sink = MatchSink(out, bitmap, first_row)
    starts = np.empty(MAX_LEVELS, np.int64)
    chain_stack = np.empty((STACK_ROWS if len(items.large) > 0 else 0, 4), np.int64)
    chain_found = np.empty((FOUND_ROWS if len(items.large) > 0 else 0, 2), np.int64)
    trees = item_trees_at(table)
    no_grid = Grid(np.int64(0), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, bitmap, candidates, candidates, candidates, starts)
    is_points = table[AT_IS_POINTS] != 0
    possible = OF_POINTS if is_points else OF_POINT_TO_REGION
    used = np.int64(0)
    for turn in range(start, len(order)):
        if not has_room(tree, out, bitmap, marked, used) or (turn > start and are_wanted(trees)):
            return turn
        i = order[turn]
        x = points[i, 0]
        y = points[i, 1]
        room = np.int64(len(candidates))
        count = begin_turn(tree, bitmap, used)
        count, found = search(tree, (x, y, x, y), possible, no_grid, stack, starts, candidates, room, sink, count)
        for k in range(found):
            item = np.int64(candidates[k])
            if is_points:
                relation = EQUALS if c.xy[item, 0] == x and c.xy[item, 1] == y else DISJOINT
            else:
                c0 = np.int64(items.regions[item])
                c1 = np.int64(items.regions[item + 1])
                side = locate_in_item(x, y, items, item, c0, c1, tree.bounds, trees, chain_stack, chain_found)
                relation = INSIDE if side == IN else (MEETS if side == ON else DISJOINT)
            count = report(tree, item, relation, sink, count)
        ends[turn] = used = end_turn(bitmap, words, first_row, marked, used, count)
    wait_at(gate)
    return len(order)
