"""Tree over the edges of one region with long thin parts side by side at any angle, where axis-parallel boxes fail.

Chains (chains.py) and grids (grid.py) separate edges by boxes along the axes. The boxes of slivers that lie side by
side along a diagonal all overlap, so every edge is a candidate for every other. A node of this tree has two slabs
besides its box, each between two parallels: one along the leftmost and one along the rightmost of its long edges. The
two slabs of parallel edges form a thin strip, the slabs of edges from one point form a wedge. Long edges are divided
across their main direction. Building takes n log n time and 40 to 72 bytes per edge, so it starts only after
comparisons without the tree have taken longer than building would (regions.py).

Boxes and slabs only exclude edges, with room for rounding; exact orientation tests decide about the rest.
"""

from typing import Any, NamedTuple

import numpy as np

from contrada.jit import allocating_kernel, entry, kernel
from contrada.kernels.relate.orientation import orient
from contrada.kernels.relate.rings import CROSSED, IN, ON, ON_EDGE, OUT, cross_edge
from contrada.kernels.relate.sweep import LCG_FACTOR, LCG_MODULUS, count_edges

MAX_LEAF_EDGES = 8  # edges
X0, Y0, X1, Y1 = range(4)  # columns of nodes: a box, then two slabs
SLABS = (4, 8)  # first column of each slab: a unit vector, then the limits along that vector
NX, NY, LOW, HIGH = range(4)  # columns of slabs
NODE_COLUMNS = 12
ROUNDING = 4e-15  # error of a projection to a unit vector, relative to the coordinates; ten times the bound
MIN_NORMAL_X = 1e-3  # slabs whose normal has a smaller x do not limit where a horizontal line meets them
ZERO = np.int64(0)
BUILD_AFTER = np.int64(128)  # comparisons per vertex; take about as long as building (benchmarks/relate/growth.py)


class EdgeTree(NamedTuple):
    """Binary tree in heap order: the root is node 1, the children of node k are 2k and 2k + 1.

    Leaf i is node leaves + i; its edges start at i * len(edges) // leaves. `leaves` is 0 if there is no tree.
    """

    leaves: Any
    slack: Any  # room for the rounding of the region's coordinates
    nodes: Any
    edges: Any


@kernel
def middle_along(xy, i, nx, ny):
    """Return twice the projection of the middle of edge i."""
    return (xy[i, 0] + xy[i + 1, 0]) * nx + (xy[i, 1] + xy[i + 1, 1]) * ny


@kernel
def main_normal(xy, edges, start, stop):
    """Return the unit vector across the main direction of edges[start:stop]; long edges count most."""
    along = 0.0
    across = 0.0
    for e in range(start, stop):
        dx = xy[edges[e] + 1, 0] - xy[edges[e], 0]
        dy = xy[edges[e] + 1, 1] - xy[edges[e], 1]
        along += dx * dx - dy * dy
        across += 2 * dx * dy
    size = np.hypot(along, across)
    if not size > 0.0:
        return 1.0, 0.0
    # Half of the angle whose cosine is along / size and whose sine is across / size, without cancellation.
    if along >= 0.0:
        cosine = np.sqrt(0.5 + 0.5 * (along / size))
        return -0.5 * (across / size) / cosine, cosine
    sine = np.sqrt(0.5 - 0.5 * (along / size))
    return -sine, 0.5 * (across / size) / sine


@kernel
def extreme_slopes(xy, edges, start, stop, nx, ny):
    """Return the least and largest slope, relative to the main direction, of long edges within 45 degrees of it."""
    longest = 0.0
    for e in range(start, stop):
        i = edges[e]
        longest = max(longest, abs(xy[i + 1, 0] - xy[i, 0]) + abs(xy[i + 1, 1] - xy[i, 1]))
    least = 1.0
    most = -1.0
    for e in range(start, stop):
        dx = xy[edges[e] + 1, 0] - xy[edges[e], 0]
        dy = xy[edges[e] + 1, 1] - xy[edges[e], 1]
        along = dx * ny - dy * nx
        across = dx * nx + dy * ny
        if abs(dx) + abs(dy) > 0.25 * longest and abs(across) < abs(along):
            least = min(least, across / along)
            most = max(most, across / along)
    return (least, most) if least <= most else (0.0, 0.0)


@kernel
def fill_slab(xy, edges, start, stop, nx, ny, slack, nodes, row, slab):
    """Write the slab of edges[start:stop] along the vector nx, ny to nodes[row]."""
    low = np.inf
    high = -np.inf
    for e in range(start, stop):
        for v in range(edges[e], edges[e] + 2):
            along = xy[v, 0] * nx + xy[v, 1] * ny
            low = min(low, along)
            high = max(high, along)
    nodes[row, slab + NX] = nx
    nodes[row, slab + NY] = ny
    nodes[row, slab + LOW] = low - slack
    nodes[row, slab + HIGH] = high + slack


@kernel
def fill_node(xy, edges, start, stop, slack, nodes, row):
    """Write the box and the slabs of edges[start:stop] to nodes[row]; return the vector across their main direction."""
    nodes[row, X0] = nodes[row, Y0] = np.inf
    nodes[row, X1] = nodes[row, Y1] = -np.inf
    for e in range(start, stop):
        for v in range(edges[e], edges[e] + 2):
            nodes[row, X0] = min(nodes[row, X0], xy[v, 0])
            nodes[row, Y0] = min(nodes[row, Y0], xy[v, 1])
            nodes[row, X1] = max(nodes[row, X1], xy[v, 0])
            nodes[row, Y1] = max(nodes[row, Y1], xy[v, 1])
    nx, ny = main_normal(xy, edges, start, stop)
    least, most = extreme_slopes(xy, edges, start, stop, nx, ny)
    for slab in SLABS:
        slope = least if slab == 4 else most
        size = np.sqrt(1 + slope * slope)
        ux = (nx - slope * ny) / size
        uy = (ny + slope * nx) / size
        fill_slab(xy, edges, start, stop, ux, uy, slack, nodes, row, np.int64(slab))
    return nx, ny


@kernel
def gain_along(xy, edges, start, stop, nx, ny):
    """Return how far edges[start:stop] spread along a unit vector, minus twice their mean length along it."""
    least = np.inf
    most = -np.inf
    length = 0.0
    for e in range(start, stop):
        i = edges[e]
        middle = middle_along(xy, i, nx, ny)
        least = min(least, middle)
        most = max(most, middle)
        length += abs((xy[i + 1, 0] - xy[i, 0]) * nx + (xy[i + 1, 1] - xy[i, 1]) * ny)
    return 0.5 * (most - least) - 2 * length / (stop - start)


@kernel
def split_normal(xy, edges, start, stop, nx, ny):
    """Return the direction in which to divide edges[start:stop]: an axis, or along or across their main direction."""
    best_x = nx
    best_y = ny
    best = gain_along(xy, edges, start, stop, nx, ny)
    for way in range(3):
        ux = -ny if way == 0 else (1.0 if way == 1 else 0.0)
        uy = nx if way == 0 else (0.0 if way == 1 else 1.0)
        gain = gain_along(xy, edges, start, stop, ux, uy)
        if gain > best:
            best = gain
            best_x = ux
            best_y = uy
    return best_x, best_y


@kernel
def divide(keys, edges, start, stop, middle, state):
    """Reorder edges[start:stop] by `keys`: no key before `middle` is larger than a key from `middle` on.

    Uses Hoare's selection with random pivots: pivots that the input could predict would allow quadratic time. Returns
    the state of the random generator.
    """
    low = start
    high = stop - 1
    while low < high:
        state = state * LCG_FACTOR % LCG_MODULUS
        pivot = keys[low + state % (high - low + 1)]
        i = low
        j = high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                key = keys[i]
                keys[i] = keys[j]
                keys[j] = key
                edge = edges[i]
                edges[i] = edges[j]
                edges[j] = edge
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return state
    return state


@kernel
def count_leaves(count):
    """Return the number of leaves of a tree over `count` edges, a power of two."""
    leaves = np.int64(1)
    while leaves * MAX_LEAF_EDGES < count:
        leaves *= 2
    return leaves


@kernel
def rounding_of(bounds, row):
    """Return room for the rounding of projections of points in the box bounds[row]."""
    return ROUNDING * (max(abs(bounds[row, 0]), abs(bounds[row, 2])) + max(abs(bounds[row, 1]), abs(bounds[row, 3])))


@allocating_kernel
def build_tree(xy, rings, r0, r1, bounds, row):
    """Build the tree over the edges of rings r0..r1, a region with the box bounds[row]."""
    count = count_edges(rings, r0, r1)
    edges = np.empty(count, np.int64)
    at = 0
    for r in range(r0, r1):
        for i in range(rings[r], rings[r + 1] - 1):
            edges[at] = i
            at += 1
    leaves = np.int64(count_leaves(count))
    nodes = np.empty((2 * leaves, NODE_COLUMNS))
    keys = np.empty(count)
    slack = rounding_of(bounds, row)
    state = (np.int64(nodes.ctypes.data) >> 4) % (LCG_MODULUS - 1) + 1
    width = np.int64(1)
    while width <= leaves:
        for p in range(width):
            start = p * count // width
            stop = (p + 1) * count // width
            nx, ny = fill_node(xy, edges, start, stop, slack, nodes, width + p)
            if width == leaves:
                continue
            nx, ny = split_normal(xy, edges, start, stop, nx, ny)
            for e in range(start, stop):
                keys[e] = middle_along(xy, edges[e], nx, ny)
            state = divide(keys, edges, start, stop, (2 * p + 1) * count // (2 * width), state)
        width *= 2
    return EdgeTree(leaves, slack, nodes, edges)


@entry("f8[2] i8[1] i4[1] f8[2] i8")
def build_edge_tree(xy, rings, regions, bounds, item):
    """Return nodes and edges of the tree of region `item` of a column."""
    tree = build_tree(xy, rings, np.int64(regions[item]), np.int64(regions[item + 1]), bounds, item)
    return tree.nodes, tree.edges


@kernel
def leaf_limits(tree, k):
    """Return where the edges of leaf k begin and end."""
    i = k - tree.leaves
    return i * len(tree.edges) // tree.leaves, (i + 1) * len(tree.edges) // tree.leaves


@kernel
def is_left_at(y, xy, e, f):
    """Return True if edge e is left of edge f just above height y; both edges reach over y and do not cross."""
    e0 = e if xy[e, 1] < xy[e + 1, 1] else e + 1
    e1 = e + e + 1 - e0
    f0 = f if xy[f, 1] < xy[f + 1, 1] else f + 1
    f1 = f + f + 1 - f0
    if xy[e0, 1] >= xy[f0, 1]:
        side = orient(xy[f0, 0], xy[f0, 1], xy[f1, 0], xy[f1, 1], xy[e0, 0], xy[e0, 1])
        if side == 0:
            side = orient(xy[f0, 0], xy[f0, 1], xy[f1, 0], xy[f1, 1], xy[e1, 0], xy[e1, 1])
        return side > 0
    side = orient(xy[e0, 0], xy[e0, 1], xy[e1, 0], xy[e1, 1], xy[f0, 0], xy[f0, 1])
    if side == 0:
        side = orient(xy[e0, 0], xy[e0, 1], xy[e1, 0], xy[e1, 1], xy[f1, 0], xy[f1, 1])
    return side < 0


@kernel
def reach_of(x, y, nodes, row):
    """Return a lower bound of the x where edges of a node meet the ray from (x, y) to the right; inf if none does."""
    if y < nodes[row, Y0] or y > nodes[row, Y1] or x > nodes[row, X1]:
        return np.inf
    reach = nodes[row, X0]
    for slab in SLABS:
        nx = nodes[row, slab + NX]
        if abs(nx) < MIN_NORMAL_X:
            continue
        along = nodes[row, slab + NY] * y
        slack = 2 * ROUNDING * (abs(along) + abs(x * nx))
        if nx > 0:
            if x * nx + along > nodes[row, slab + HIGH] + slack:
                return np.inf
            reach = max(reach, (nodes[row, slab + LOW] - along - slack) / nx)
        else:
            if x * nx + along < nodes[row, slab + LOW] - slack:
                return np.inf
            reach = max(reach, (nodes[row, slab + HIGH] - along + slack) / nx)
    return reach


@kernel
def meeting_x(y, xy, e, slack):
    """Return an upper bound of the x where edge e, which reaches over height y, has that height."""
    low = min(xy[e, 0], xy[e + 1, 0])
    high = max(xy[e, 0], xy[e + 1, 0])
    part = (y - xy[e, 1]) / (xy[e + 1, 1] - xy[e, 1])
    return min(max(xy[e, 0] + part * (xy[e + 1, 0] - xy[e, 0]), low), high) + slack


@kernel
def locate_in_tree(x, y, xy, tree, stack, floor):
    """Return IN, ON or OUT for the point and the tree's region, decided by the first edge to the right of the point.

    Interiors lie to the left of edges, so the direction of that edge decides. If two edges are met in one point, the
    edge that is left just above the point counts, as in cross_edge.
    """
    slack = tree.slack / MIN_NORMAL_X  # at least the rounding error of reach_of, and more than that of meeting_x
    first = np.int64(-1)
    limit = np.inf
    stack[floor, 0] = 1
    depth = floor + 1
    while depth > floor:
        depth -= 1
        k = stack[depth, 0]
        reach = reach_of(x, y, tree.nodes, k)
        if reach == np.inf or reach - slack > limit:
            continue
        if k < tree.leaves:
            row = 2 * k
            near = 2 * k + (reach_of(x, y, tree.nodes, row + 1) < reach_of(x, y, tree.nodes, row))
            stack[depth, 0] = near ^ 1
            stack[depth + 1, 0] = near
            depth += 2
            continue
        start, stop = leaf_limits(tree, k)
        for e in range(start, stop):
            i = tree.edges[e]
            met = cross_edge(x, y, xy[i, 0], xy[i, 1], xy[i + 1, 0], xy[i + 1, 1])
            if met == ON_EDGE:
                return ON
            if met == CROSSED and (first < 0 or is_left_at(y, xy, i, first)):
                first = i
                limit = meeting_x(y, xy, i, slack)
    if first < 0:
        return OUT
    return IN if xy[first + 1, 1] > xy[first, 1] else OUT
