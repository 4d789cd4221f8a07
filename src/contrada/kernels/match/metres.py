"""Find the constraints on distances in metres of a packed tree that a message satisfies.

A node whose box, grown by the largest distance below it, does not meet the message's box after whole turns decides
`beyond` for all below; a node all of whose items are within the least distance decides `within`. Both are answered by
copying a run of a list. Points are compared by the chord between them first: it is at most as long as the geodesic.
"""

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from contrada.codes import BEYOND_BIT, ENCLOSED_BIT, FAN, FAN_SHIFT, MAX_LEVELS, REACHED
from contrada.jit import entry, kernel
from contrada.kernels.globe.bounds import ROUNDING, do_meet, is_place, most_metres_between, place_of
from contrada.kernels.globe.edges import CELL_ROWS
from contrada.kernels.globe.rows import are_points_near, metres_outcome
from contrada.kernels.match.near import (
    GX0,
    GX1,
    GY0,
    GY1,
    ITEMS_SOURCE,
    LEAST,
    X0,
    X1,
    Y0,
    Y1,
    list_run,
    scratch_at,
)
from contrada.kernels.match.packed_tree import fill_starts
from contrada.kernels.match.tables import METRES
from contrada.kernels.relate.chains import FOUND_ROWS, STACK_ROWS
from contrada.kernels.relate.distance import Shapes
from contrada.kernels.runtime.gil_gate import enter, leave
from contrada.kernels.runtime.pointers import reader


class MetreTree(NamedTuple):
    """Packed tree of distance constraints in metres (tables.py describes each array)."""

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
    places: Any


tree_at = reader(METRES, MetreTree)
items_at = reader(METRES, *ITEMS_SOURCE)


@kernel
def visit_metre_nodes(tree, box, level, starts, first, last, stack, depth, out, count):
    """Visit nodes first..last of a level: those that boxes decide are answered, the others go on the stack."""
    runs = np.int64(len(tree.beyond_before)) - 1
    shift = FAN_SHIFT * (level - 1)
    for c in range(first, last):
        node = starts[level] + c
        g = tree.nodes
        if not do_meet(box[0], box[1], box[2], box[3], g[node, GX0], g[node, GY0], g[node, GX1], g[node, GY1]):
            if tree.node_masks[node] & BEYOND_BIT:
                last_run = min((c + 1) << shift, runs)
                count = list_run(tree.beyond_before, tree.beyond_rows, c << shift, last_run, out, count)
        elif (
            most_metres_between(box[0], box[1], box[2], box[3], g[node, X0], g[node, Y0], g[node, X1], g[node, Y1])
            < g[node, LEAST]
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
def visit_metre_items(tree, items, message, i, box, first, last, cells, chains, found, out, count):
    """Decide items first..last, and list the rows of those whose constraint holds."""
    for k in range(first, last):
        mask = np.int64(tree.masks[k])
        g = tree.grown
        out[count] = tree.rows[k]
        if do_meet(box[0], box[1], box[2], box[3], g[k, 0], g[k, 1], g[k, 2], g[k, 3]):
            outcome = metres_outcome(message, i, items, k, tree.distances[k], cells, chains, found)
            count += (mask >> outcome) & 1
        else:
            count += (mask >> 2) & 1
    return count


@kernel
def visit_metre_points(tree, items, lon, lat, place, first, last, out, count):
    """Decide items first..last that are points for a message that is a point."""
    for k in range(first, last):
        mask = np.int64(tree.masks[k])
        x = tree.places[k, 0] - place[0]
        y = tree.places[k, 1] - place[1]
        z = tree.places[k, 2] - place[2]
        chord = sqrt(x * x + y * y + z * z)
        d = tree.distances[k]
        is_near = chord < tree.places[k, 3]
        if not is_near and chord <= d + ROUNDING:
            is_near = are_points_near(lon, lat, items.xy[k, 0], items.xy[k, 1], d)
        out[count] = tree.rows[k]
        count += (mask >> REACHED) & 1 if is_near else (mask >> 2) & 1
    return count


@entry("f8[2] i8[1] i4[1] f8[2] f8[2]! i8[1] i8[1] i8[1] i8 i8[1]", checked=False)
def match_metres(m_xy, m_rings, m_regions, m_bounds, m_boxes, m_chains, table, order, start, scratch):
    """Write the rows of the constraints in metres that messages order[start:] satisfy, one message after another.

    The messages are regions, or points if `m_regions` is empty. ends[k] gets the end of the rows of message order[k].
    Returns the first k that was not matched: a message is tried only while there is room in `out` for every row, and
    one more. A message outside the longitudes and latitudes that shapes may have satisfies nothing.
    """
    stack, out, ends, gate = scratch_at(scratch)
    enter(gate)
    tree = tree_at(table)
    items = items_at(table)
    message = Shapes(m_xy, m_rings, m_regions, m_bounds, m_boxes, m_chains)
    are_points = len(m_regions) == 0
    are_all_points = are_points and len(items.regions) == 0
    starts = np.empty(MAX_LEVELS, np.int64)
    cells = np.empty((0 if are_all_points else CELL_ROWS, 4))
    chains = np.empty((0 if are_all_points else STACK_ROWS, 4), np.int64)
    found = np.empty((0 if are_all_points else FOUND_ROWS, 2), np.int64)
    size = np.int64(len(tree.rows))
    levels = fill_starts(size, starts)
    none = np.int64(0)
    count = none
    for turn in range(start, len(order)):
        if len(out) - count <= size:
            leave(gate)
            return turn
        i = order[turn]
        if are_points:
            box = (m_xy[i, 0], m_xy[i, 1], m_xy[i, 0], m_xy[i, 1])
        else:
            box = (m_bounds[i, 0], m_bounds[i, 1], m_bounds[i, 2], m_bounds[i, 3])
        if not is_place(box[0], box[1], box[2], box[3]):
            ends[turn] = count
            continue
        place = place_of(box[0], box[1])
        depth = none
        if levels > 0:
            top = starts[levels + 1] - starts[levels]
            depth, count = visit_metre_nodes(tree, box, levels, starts, none, top, stack, depth, out, count)
        elif are_all_points:
            count = visit_metre_points(tree, items, box[0], box[1], place, none, size, out, count)
        else:
            count = visit_metre_items(tree, items, message, i, box, none, size, cells, chains, found, out, count)
        while depth > 0:
            depth -= 1
            level = stack[depth, 0] - 1
            first = stack[depth, 1] << FAN_SHIFT
            if level > 0:
                last = min(first + FAN, starts[level + 1] - starts[level])
                depth, count = visit_metre_nodes(tree, box, level, starts, first, last, stack, depth, out, count)
            elif are_all_points:
                last = min(first + FAN, size)
                count = visit_metre_points(tree, items, box[0], box[1], place, first, last, out, count)
            else:
                last = min(first + FAN, size)
                count = visit_metre_items(
                    tree, items, message, i, box, first, last, cells, chains, found, out, count
                )  # fmt: skip
        ends[turn] = count
    leave(gate)
    return len(order)
