"""Find the distance constraints of a packed tree that a message satisfies.

A node whose box, grown by the largest distance below it, does not meet the message's box decides `beyond` for all
below; a node all of whose items are within the least distance, wherever in the boxes they and the message lie, decides
`enclosed` (all of the message within reach of all of the item). Both are answered by copying a run of a list.
Points of a batch that lie close together descend together where they ask for points: the items near any of them are
gathered once, and compared with each.
"""

from typing import Any, NamedTuple

import numpy as np

from contrada.codes import BEYOND_BIT, ENCLOSED, ENCLOSED_BIT, FAN, FAN_SHIFT, MAX_LEVELS
from contrada.jit import entry, kernel
from contrada.kernels.match.packed_tree import fill_starts
from contrada.kernels.match.tables import NEAR, NEAR_SCRATCH
from contrada.kernels.relate.chains import FOUND_ROWS, STACK_ROWS
from contrada.kernels.relate.distance import (
    BOX_SLACK,
    LARGEST_SQUARE,
    LEAST_SQUARE,
    SQUARE_BOUND,
    Shapes,
    are_boxes_within,
    is_point_near,
    outcome_of,
)
from contrada.kernels.runtime.gil_gate import enter, leave
from contrada.kernels.runtime.pointers import reader

MAX_GROUP = 16  # messages that descend together
MAX_GATHERED = 4096  # items near a group; with more, lists answer more of them at once
SAMPLED_NODES = 64  # of which the usual extent is taken
GX0, GY0, GX1, GY1, X0, Y0, X1, Y1, LEAST = range(9)  # columns of nodes: the grown box, the box, the least distance


class NearTree(NamedTuple):
    """Packed tree of distance constraints (tables.py describes each array)."""

    nodes: Any
    node_masks: Any
    grown: Any
    distances: Any
    masks: Any
    rows: Any
    enclosed_before: Any
    enclosed_rows: Any
    beyond_before: Any
    beyond_rows: Any


ITEMS_SOURCE = Shapes, {"rings": "ring_offsets", "regions": "region_offsets"}
tree_at = reader(NEAR, NearTree)
items_at = reader(NEAR, *ITEMS_SOURCE)
scratch_at = reader(NEAR_SCRATCH, "NearScratch")


@kernel
def grown_box(box, by):
    """Return a box that surely holds all points at most `by` from a box."""
    slack = BOX_SLACK * (max(abs(box[0]), abs(box[1]), abs(box[2]), abs(box[3])) + by)
    return box[0] - by - slack, box[1] - by - slack, box[2] + by + slack, box[3] + by + slack


@kernel
def list_run(before, listed, first, last, out, count):
    """List the rows of runs first..last."""
    for k in range(before[first], before[last]):
        out[count] = listed[k]
        count += 1
    return count


@kernel
def visit_near_nodes(tree, box, far, radius, level, starts, first, last, stack, depth, out, count):
    """Visit nodes first..last of a level: those that boxes decide are answered, the others go on the stack."""
    runs = np.int64(len(tree.beyond_before)) - 1
    shift = FAN_SHIFT * (level - 1)
    for c in range(first, last):
        node = starts[level] + c
        g = tree.nodes
        # One branch in place of four, of which none is likely.
        in_x = (far[2] >= g[node, GX0]) & (far[0] <= g[node, GX1])
        if not (in_x & (far[3] >= g[node, GY0]) & (far[1] <= g[node, GY1])):
            if tree.node_masks[node] & BEYOND_BIT:
                last_run = min((c + 1) << shift, runs)
                count = list_run(tree.beyond_before, tree.beyond_rows, c << shift, last_run, out, count)
        elif g[node, LEAST] > radius and are_boxes_within(
            box[0], box[1], box[2], box[3], g[node, X0], g[node, Y0], g[node, X1], g[node, Y1], g[node, LEAST] - radius
        ):
            if tree.node_masks[node] & ENCLOSED_BIT:
                last_run = min((c + 1) << shift, runs)
                count = list_run(tree.enclosed_before, tree.enclosed_rows, c << shift, last_run, out, count)
        else:
            stack[depth, 0] = level
            stack[depth, 1] = c
            depth += 1
    return depth, count


@kernel
def visit_near_items(tree, items, message, i, radius, far, first, last, chains, found, out, count):
    """Decide items first..last, and list the rows of those whose constraint holds."""
    for k in range(first, last):
        mask = np.int64(tree.masks[k])
        g = tree.grown
        if far[2] < g[k, 0] or far[0] > g[k, 2] or far[3] < g[k, 1] or far[1] > g[k, 3]:
            out[count] = tree.rows[k]
            count += (mask >> 2) & 1
            continue
        outcome = outcome_of(message, i, radius, items, k, tree.distances[k], mask, chains, found)
        out[count] = tree.rows[k]
        count += (mask >> outcome) & 1
    return count


@kernel
def visit_near_points(tree, items, x, y, radius, first, last, out, count):
    """Decide items first..last that are points for a message that is a point."""
    for k in range(first, last):
        mask = np.int64(tree.masks[k])
        ux = x - items.xy[k, 0]
        uy = y - items.xy[k, 1]
        d = tree.distances[k]
        square = ux * ux + uy * uy
        asked = d * d
        # The quick answers of is_point_near, which is called for the rest.
        is_far = square > asked + SQUARE_BOUND * asked
        is_quick = (radius == 0.0) & (asked > LEAST_SQUARE) & (asked < LARGEST_SQUARE)
        if is_quick & (is_far | (square < asked - SQUARE_BOUND * asked)):
            is_match = (mask >> (np.int64(2) if is_far else np.int64(ENCLOSED))) & 1
        elif not is_point_near(x, y, items.xy[k, 0], items.xy[k, 1], d, radius):
            is_match = (mask >> 2) & 1
        elif radius == 0.0 or (d >= radius and is_point_near(x, y, items.xy[k, 0], items.xy[k, 1], d, -radius)):
            is_match = (mask >> ENCLOSED) & 1
        else:
            is_match = (mask >> 1) & 1
        out[count] = tree.rows[k]
        count += is_match
    return count


@kernel
def match_one(
    tree, items, message, i, radius, box, far, levels, starts, stack, chains, found, are_all_points, out, count
):  # fmt: skip
    """List the rows of the constraints that message i satisfies."""
    size = np.int64(len(tree.rows))
    stack[0, 0] = levels + 1
    stack[0, 1] = 0
    depth = np.int64(1)
    while depth > 0:
        depth -= 1
        level = stack[depth, 0] - 1
        first = stack[depth, 1] << FAN_SHIFT
        if level > 0:
            last = min(first + FAN, starts[level + 1] - starts[level])
            depth, count = visit_near_nodes(
                tree, box, far, radius, level, starts, first, last, stack, depth, out, count
            )  # fmt: skip
            continue
        last = min(first + FAN, size)
        if are_all_points:
            count = visit_near_points(tree, items, box[0], box[1], radius, first, last, out, count)
        else:
            count = visit_near_items(tree, items, message, i, radius, far, first, last, chains, found, out, count)
    return count


@kernel
def is_beyond_asked(tree, levels, starts):
    """Return True if a constraint asks for values beyond its distance."""
    asked = np.int64(0)
    for node in range(starts[levels], starts[levels + 1]):
        asked |= tree.node_masks[node]
    return asked & BEYOND_BIT != 0


@kernel
def usual_extent(tree, starts):
    """Return the mean width and height, added, of nodes above items: of some of them."""
    count = starts[2] - starts[1]
    step = max(np.int64(1), count // SAMPLED_NODES)
    total = 0.0
    taken = 0
    g = tree.nodes
    for node in range(0, count, step):
        total += (g[node, GX1] - g[node, GX0]) + (g[node, GY1] - g[node, GY0])
        taken += 1
    return total / taken


@kernel
def group_of(m_xy, order, turn, extent):
    """Return the end of a run of messages order[turn:], and its box, whose sides add up to at most `extent`."""
    x0 = x1 = m_xy[order[turn], 0]
    y0 = y1 = m_xy[order[turn], 1]
    stop = turn + 1
    last = min(turn + MAX_GROUP, len(order))
    while stop < last:
        x = m_xy[order[stop], 0]
        y = m_xy[order[stop], 1]
        if max(x1, x) - min(x0, x) + (max(y1, y) - min(y0, y)) > extent:
            break
        x0, y0, x1, y1 = min(x0, x), min(y0, y), max(x1, x), max(y1, y)
        stop += 1
    return stop, (x0, y0, x1, y1)


@kernel
def gather_near_points(tree, items, box, levels, starts, stack, near, places):
    """Gather the points whose grown boxes meet a box; return their number, or MAX_GATHERED + 1 if they are more.

    `near` gets their coordinates, and the squares below which a point surely is near and above which it surely is not.
    """
    size = np.int64(len(tree.rows))
    stack[0, 0] = levels + 1
    stack[0, 1] = 0
    depth = 1
    count = np.int64(0)
    while depth > 0:
        depth -= 1
        level = stack[depth, 0] - 1
        first = stack[depth, 1] << FAN_SHIFT
        if level > 0:
            g = tree.nodes
            last = min(first + FAN, starts[level + 1] - starts[level])
            for c in range(first, last):
                node = starts[level] + c
                in_x = (box[2] >= g[node, GX0]) & (box[0] <= g[node, GX1])
                stack[depth, 0] = level
                stack[depth, 1] = c
                depth += in_x & (box[3] >= g[node, GY0]) & (box[1] <= g[node, GY1])
            continue
        if count > MAX_GATHERED - FAN:
            return np.int64(MAX_GATHERED + 1)
        for k in range(first, min(first + FAN, size)):
            g = tree.grown
            in_x = (box[2] >= g[k, 0]) & (box[0] <= g[k, 2])
            if not (in_x & (box[3] >= g[k, 1]) & (box[1] <= g[k, 3])) or tree.masks[k] & ENCLOSED_BIT == 0:
                continue  # where a point is near, it is enclosed
            asked = tree.distances[k] * tree.distances[k]
            is_quick = (asked > LEAST_SQUARE) & (asked < LARGEST_SQUARE)
            near[0, count] = items.xy[k, 0]
            near[1, count] = items.xy[k, 1]
            near[2, count] = asked - SQUARE_BOUND * asked if is_quick else -1.0
            near[3, count] = asked + SQUARE_BOUND * asked if is_quick else np.inf
            places[count] = k
            count += 1
    return count


@kernel
def match_group(tree, m_xy, order, turn, stop, near, places, gathered, out, ends, count):
    """List the rows of the gathered points that each of messages order[turn:stop] is near.

    Returns the first message for which there was no room, or `stop`, and the number of rows.
    """
    while turn < stop and len(out) - count > gathered:
        x = m_xy[order[turn], 0]
        y = m_xy[order[turn], 1]
        for k in range(gathered):
            ux = x - near[0, k]
            uy = y - near[1, k]
            square = ux * ux + uy * uy
            if square > near[3, k]:
                continue
            place = places[k]
            if square >= near[2, k] and not is_point_near(x, y, near[0, k], near[1, k], tree.distances[place], 0.0):
                continue
            out[count] = tree.rows[place]
            count += 1
        ends[turn] = count
        turn += 1
    return turn, count


@entry("f8[2] i8[1] i4[1] f8[2] f8[2]! i8[1] f8[1] i8[1] i8[1] i8 i8[1]", checked=False)
def match_near(m_xy, m_rings, m_regions, m_bounds, m_boxes, m_chains, radii, table, order, start, scratch):
    """Write the rows of the distance constraints that messages order[start:] satisfy, one message after another.

    The messages are regions, or points if `m_regions` is empty; `radii` is empty, or a radius for each. ends[k] gets
    the end of the rows of message order[k]. Returns the first k that was not matched: a message is tried only while
    there is room in `out` for every row, and one more.
    """
    stack, out, ends, gate = scratch_at(scratch)
    enter(gate)
    tree = tree_at(table)
    items = items_at(table)
    message = Shapes(m_xy, m_rings, m_regions, m_bounds, m_boxes, m_chains)
    are_points = len(m_regions) == 0
    are_all_points = are_points and len(items.regions) == 0
    starts = np.empty(MAX_LEVELS, np.int64)
    chains = np.empty((0 if are_all_points else STACK_ROWS, 4), np.int64)
    found = np.empty((0 if are_all_points else FOUND_ROWS, 2), np.int64)
    size = np.int64(len(tree.rows))
    levels = fill_starts(size, starts)
    are_grouped = are_all_points and len(radii) == 0 and levels > 0 and len(order) - start > 1
    are_grouped = are_grouped and not is_beyond_asked(tree, levels, starts)
    near = np.empty((4, MAX_GATHERED + 1 if are_grouped else 0))
    places = np.empty(near.shape[1], np.int64)
    extent = usual_extent(tree, starts) if are_grouped else 0.0
    alone = start  # messages before this one are matched one by one
    count = np.int64(0)
    turn = start
    while turn < len(order):
        if len(out) - count <= size:
            break
        if are_grouped and turn >= alone:
            alone, box = group_of(m_xy, order, turn, extent)
            if alone > turn + 1:
                gathered = gather_near_points(tree, items, box, levels, starts, stack, near, places)
                if gathered <= MAX_GATHERED:
                    turn, count = match_group(
                        tree, m_xy, order, turn, alone, near, places, gathered, out, ends, count
                    )  # fmt: skip
                    alone = turn
                    continue
        i = order[turn]
        radius = radii[i] if len(radii) > 0 else 0.0
        if are_points:
            box = (m_xy[i, 0], m_xy[i, 1], m_xy[i, 0], m_xy[i, 1])
        else:
            box = (m_bounds[i, 0], m_bounds[i, 1], m_bounds[i, 2], m_bounds[i, 3])
        far = box if radius == 0.0 else grown_box(box, radius)
        count = match_one(
            tree, items, message, i, radius, box, far, levels, starts, stack, chains, found, are_all_points, out, count
        )  # fmt: skip
        ends[turn] = count
        turn += 1
    leave(gate)
    return turn
