"""Relate points to regions, row by row or for lists of rows."""

import numpy as np

from contrada.jit import entry
from contrada.kernels.relate.chains import COUNTER_ROW, FOUND_ROWS, STACK_ROWS
from contrada.kernels.relate.edge_tree import BUILD_AFTER, NODE_COLUMNS, ZERO, EdgeTree, build_tree, locate_in_tree
from contrada.kernels.relate.rings import IN, ON, locate
from contrada.kernels.relate.rows import row_at


@entry("f8[2] f8[2] i8[1] i4[1] f8[2] f8[2]! i8[1] i8[1] i8[1] i8 i8 u1[1]!", interpreted=True)
def relate_points(points, xy, rings, regions, bounds, boxes, chains, point_rows, region_rows, start, stop, out):
    """Write the relation of point point_rows[k] to region region_rows[k] to out[k]: inside, meets or disjoint.

    Where a list of rows is empty, point or region is that of row k, or the only one.

    If one region is related to many points, a tree of its edges is built once comparisons exceed the cost of building.
    """
    stack = np.empty((STACK_ROWS, 4), np.int64)
    found = np.empty((FOUND_ROWS, 2), np.int64)
    found[COUNTER_ROW, 0] = 0
    is_single = len(regions) == 2 and chains[0] >= 0
    most = BUILD_AFTER * (rings[regions[1]] - rings[regions[0]])
    tree = EdgeTree(ZERO, 0.0, np.empty((0, NODE_COLUMNS)), np.empty(0, np.int64))
    for k in range(start, stop):
        i = point_rows[k] if len(point_rows) > 0 else (k if len(points) > 1 else 0)
        j = row_at(region_rows, regions, k)
        x = points[i, 0]
        y = points[i, 1]
        if x < bounds[j, 0] or y < bounds[j, 1] or x > bounds[j, 2] or y > bounds[j, 3]:
            out[k] = 0
            continue
        r0 = np.int64(regions[j])
        r1 = np.int64(regions[j + 1])
        if is_single and found[COUNTER_ROW, 0] > most:
            if tree.leaves == 0:
                tree = build_tree(xy, rings, r0, r1, bounds, np.int64(0))
            side = locate_in_tree(x, y, xy, tree, stack, np.int64(0))
        else:
            side = locate(x, y, xy, rings, r0, r1, boxes, chains[j], stack, found)
        out[k] = 4 if side == IN else (1 if side == ON else 0)
