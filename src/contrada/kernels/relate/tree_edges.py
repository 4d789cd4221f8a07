"""Relation bits of one region under an edge tree (edge_tree.py) and another region, from edges and rings."""

import numpy as np

from contrada.codes import MAX_SCANNED_VERTICES, TOUCHING
from contrada.jit import kernel
from contrada.kernels.relate.chains import COUNTER_ROW, EDGE_PAIR_COST, STACK_FLOOR, is_spent, ring_of
from contrada.kernels.relate.contacts import (
    A_ON_B,
    AT_STARTS,
    B_ON_A,
    CROSSING,
    RAY_PAIR_COST,
    clear_marks,
    edge_contact,
    half,
)
from contrada.kernels.relate.edge_tree import (
    HIGH,
    LOW,
    NX,
    NY,
    ROUNDING,
    SLABS,
    X0,
    X1,
    Y0,
    Y1,
    ZERO,
    leaf_limits,
    locate_in_tree,
    rounding_of,
)
from contrada.kernels.relate.grid_edges import touches_box
from contrada.kernels.relate.rings import IN, OUT, locate_scanned
from contrada.kernels.relate.small import is_beside
from contrada.kernels.relate.touch_nodes import (
    A_LEAVES,
    B_LEAVES,
    BOUNDARY_A_IN_B,
    BOUNDARY_B_IN_A,
    SETTLED,
    TOUCH,
    add_rays,
    gather_rays,
    is_decided,
    node_bits,
)


@kernel
def is_apart(nodes, k, lx, ly, hx, hy):
    """Return True if the box of node k and the box lx, ly, hx, hy have no point in common."""
    return nodes[k, X0] > hx or nodes[k, X1] < lx or nodes[k, Y0] > hy or nodes[k, Y1] < ly


@kernel
def is_edge_beside(px, py, qx, qy, slack, nodes, row):
    """Return True only if the edge p-q lies beside a slab of nodes[row]."""
    for slab in SLABS:
        p = nodes[row, slab + NX] * px + nodes[row, slab + NY] * py
        q = nodes[row, slab + NX] * qx + nodes[row, slab + NY] * qy
        if min(p, q) - slack > nodes[row, slab + HIGH] or max(p, q) + slack < nodes[row, slab + LOW]:
            return True
    return False


@kernel
def next_leaf(px, py, qx, qy, tree, work, floor, depth):
    """Return the next leaf whose edges may come near the edge p-q, or the point p if q equals p, and the stack's depth.

    The caller puts the root, node 1, on the stack at `floor`. Returns 0, which is no node, after the last leaf.
    """
    lx = min(px, qx)
    hx = max(px, qx)
    ly = min(py, qy)
    hy = max(py, qy)
    slack = ROUNDING * (max(abs(lx), abs(hx)) + max(abs(ly), abs(hy)))
    nodes = tree.nodes
    while depth > floor:
        depth -= 1
        k = work.stack[depth, 0]
        work.found[COUNTER_ROW, 0] += 4
        if is_apart(nodes, k, lx, ly, hx, hy):
            continue
        if is_edge_beside(px, py, qx, qy, slack, nodes, k) or is_beside(px, py, qx, qy, nodes, k):
            continue
        if k >= tree.leaves:
            return k, depth
        work.stack[depth, 0] = 2 * k
        work.stack[depth + 1, 0] = 2 * k + 1
        depth += 2
    return ZERO, depth


@kernel
def gather_treed_rays(x, y, tree, a, a0, a1, r, i, work):
    """Write the rays of a at (x, y), a point on edge i of ring r, to work.rays; return their number."""
    count = np.int64(0)
    if a.flags[r] & TOUCHING == 0:
        return add_rays(x, y, a.xy, a.rings, r, i, work.rays, count)
    work.stack[STACK_FLOOR, 0] = 1
    depth = STACK_FLOOR + 1
    while True:
        leaf, depth = next_leaf(x, y, x, y, tree, work, STACK_FLOOR, depth)
        if leaf == 0:
            return count
        start, stop = leaf_limits(tree, leaf)
        for e in range(start, stop):
            edge = tree.edges[e]
            ring = r
            if a.xy[edge, 0] == x and a.xy[edge, 1] == y:
                ring = ring_of(a.rings, a0, a1, edge)
            count = add_rays(x, y, a.xy, a.rings, ring, edge, work.rays, count)


@kernel
def treed_node_bits(x, y, i, j, tree, a, a0, a1, b, b0, b1, b_base, work):
    """Return the bits at the node (x, y) where edge i of a and edge j of b touch."""
    ra = ring_of(a.rings, a0, a1, i)
    rb = ring_of(b.rings, b0, b1, j)
    b_start = half(work.rays)
    n = gather_treed_rays(x, y, tree, a, a0, a1, ra, i, work)
    end = gather_rays(
        x, y, b.xy, b.rings, b.flags, b0, b1, rb, j, b.boxes, b_base, work.stack, work.found, work.rays, b_start
    )
    work.found[COUNTER_ROW, 0] += RAY_PAIR_COST * n * (end - b_start)
    if is_spent(work.found):
        return np.int64(0)
    return node_bits(x, y, work.rays, n, b_start, end - b_start)


@kernel
def treed_edge_bits(j, tree, a, a0, a1, b, b0, b1, b_base, bits, stops, work):
    """Return bits from edge j of b and the edges of a that come near it.

    Many edges of a may touch edge j in one node. The node at the start of j is evaluated once, any other node once per
    run of edges that touch there.
    """
    px = b.xy[j, 0]
    py = b.xy[j, 1]
    qx = b.xy[j + 1, 0]
    qy = b.xy[j + 1, 1]
    lx = min(px, qx)
    hx = max(px, qx)
    ly = min(py, qy)
    hy = max(py, qy)
    is_start_known = False
    last_x = np.inf
    last_y = np.inf
    work.stack[0, 0] = 1
    depth = np.int64(1)
    while True:
        leaf, depth = next_leaf(px, py, qx, qy, tree, work, ZERO, depth)
        if leaf == 0:
            return bits
        start, stop = leaf_limits(tree, leaf)
        for e in range(start, stop):
            i = tree.edges[e]
            if not touches_box(a.xy, i, lx, ly, hx, hy):
                continue
            work.found[COUNTER_ROW, 0] += EDGE_PAIR_COST
            contact = edge_contact(a.xy, i, b.xy, j)
            if contact == 0:
                continue
            if contact == CROSSING:
                return bits | SETTLED | TOUCH
            work.marks[ring_of(a.rings, a0, a1, i) - a0] = 1
            work.marks[half(work.marks) + ring_of(b.rings, b0, b1, j) - b0] = 1
            if contact & (AT_STARTS | B_ON_A) and not is_start_known:
                is_start_known = True
                bits |= treed_node_bits(px, py, i, j, tree, a, a0, a1, b, b0, b1, b_base, work)
            if contact & A_ON_B and (a.xy[i, 0] != last_x or a.xy[i, 1] != last_y):
                last_x = a.xy[i, 0]
                last_y = a.xy[i, 1]
                bits |= treed_node_bits(last_x, last_y, i, j, tree, a, a0, a1, b, b0, b1, b_base, work)
            if is_decided(bits, stops) or is_spent(work.found):
                return bits


@kernel
def treed_edges_bits(tree, a, a0, a1, b, b0, b1, b_base, bits, stops, work):
    """Return bits from all edges of b; mark the rings that touch. Stops if comparisons exceed the limit (is_spent)."""
    clear_marks(a1 - a0, b1 - b0, work.marks)
    for r in range(b0, b1):
        for j in range(b.rings[r], b.rings[r + 1] - 1):
            bits = treed_edge_bits(j, tree, a, a0, a1, b, b0, b1, b_base, bits, stops, work)
            if is_decided(bits, stops) or is_spent(work.found):
                return bits
    return bits


@kernel
def slab_across(b, first, last):
    """Return a vector across the longest edge of the ring first..last of b, and the limits of the ring along it."""
    nx = 1.0
    ny = 0.0
    longest = 0.0
    for k in range(first, last):
        dx = b.xy[k + 1, 0] - b.xy[k, 0]
        dy = b.xy[k + 1, 1] - b.xy[k, 1]
        length = max(abs(dx), abs(dy))
        if length > longest:
            longest = length
            nx = -dy / length
            ny = dx / length
    low = np.inf
    high = -np.inf
    for k in range(first, last):
        low = min(low, b.xy[k, 0] * nx + b.xy[k, 1] * ny)
        high = max(high, b.xy[k, 0] * nx + b.xy[k, 1] * ny)
    return nx, ny, low, high


@kernel
def is_beside_slab(nodes, k, nx, ny, low, high, slack):
    """Return True only if the box of node k lies beside the slab low..high along the vector nx, ny."""
    least = (nodes[k, X0] if nx > 0 else nodes[k, X1]) * nx + (nodes[k, Y0] if ny > 0 else nodes[k, Y1]) * ny
    most = (nodes[k, X1] if nx > 0 else nodes[k, X0]) * nx + (nodes[k, Y1] if ny > 0 else nodes[k, Y0]) * ny
    return least - slack > high or most + slack < low


@kernel
def is_beside_node(b, first, last, nodes, k, slack):
    """Return True only if the vertices first..last of b lie on one side of a slab of node k."""
    for slab in SLABS:
        low = np.inf
        high = -np.inf
        for v in range(first, last):
            along = b.xy[v, 0] * nodes[k, slab + NX] + b.xy[v, 1] * nodes[k, slab + NY]
            low = min(low, along)
            high = max(high, along)
        if high + slack < nodes[k, slab + LOW] or low - slack > nodes[k, slab + HIGH]:
            return True
    return False


@kernel
def is_near_boundary(b, b0, b1, nodes, k):
    """Return False only if no edge of b has a point in the box of node k."""
    for r in range(b0, b1):
        for j in range(b.rings[r], b.rings[r + 1] - 1):
            if touches_box(b.xy, j, nodes[k, X0], nodes[k, Y0], nodes[k, X1], nodes[k, Y1]) and not is_beside(
                b.xy[j, 0], b.xy[j, 1], b.xy[j + 1, 0], b.xy[j + 1, 1], nodes, k
            ):
                return True
    return False


@kernel
def side_bits(x, y, b, b0, b1):
    """Return bits from a boundary point of a that lies inside or outside b, a small region."""
    side = locate_scanned(x, y, b.xy, b.rings, b0, b1)
    return BOUNDARY_A_IN_B if side == IN else (A_LEAVES if side == OUT else np.int64(0))


@kernel
def treed_vertex_bits(tree, a, b, b0, b1, bounds, row, bits, stops, work):
    """Return bits from vertices of a inside and outside b, a small region with the box bounds[row].

    Stops after one vertex of each kind. A node whose box no edge of b comes near is decided as a whole.
    """
    first = b.rings[b0]
    last = b.rings[b1]
    nodes = tree.nodes
    nx, ny, low, high = slab_across(b, first, b.rings[b0 + 1] - 1)
    is_single = b1 - b0 == 1
    slack = rounding_of(bounds, row)
    everything = A_LEAVES | BOUNDARY_A_IN_B
    work.stack[0, 0] = 1
    depth = np.int64(1)
    while depth > 0 and bits & everything != everything and not is_decided(bits, stops):
        depth -= 1
        k = work.stack[depth, 0]
        work.found[COUNTER_ROW, 0] += 8
        if (
            is_apart(nodes, k, bounds[row, 0], bounds[row, 1], bounds[row, 2], bounds[row, 3])
            or (is_single and is_beside_slab(nodes, k, nx, ny, low, high, 2 * (slack + tree.slack)))
            or is_beside_node(b, first, last, nodes, k, slack)
        ):
            bits |= A_LEAVES
            continue
        if not is_near_boundary(b, b0, b1, nodes, k):
            bits |= side_bits(nodes[k, X0], nodes[k, Y0], b, b0, b1)
            continue
        if k < tree.leaves:
            work.stack[depth, 0] = 2 * k
            work.stack[depth + 1, 0] = 2 * k + 1
            depth += 2
            continue
        start, stop = leaf_limits(tree, k)
        for e in range(start, stop):
            bits |= side_bits(a.xy[tree.edges[e], 0], a.xy[tree.edges[e], 1], b, b0, b1)
    return bits


@kernel
def treed_ring_bits(tree, a, b, b0, b1, bits, stops, work):
    """Return bits from the rings of b without contact, each located by one point."""
    for r in range(b0, b1):
        if work.marks[half(work.marks) + r - b0]:
            continue
        v = b.rings[r]
        side = locate_in_tree(b.xy[v, 0], b.xy[v, 1], a.xy, tree, work.stack, STACK_FLOOR)
        bits |= BOUNDARY_B_IN_A if side == IN else (TOUCH if side != OUT else B_LEAVES)
        if is_decided(bits, stops):
            return bits
    return bits


@kernel
def is_small(b, b0, b1):
    """Return True if b has few enough edges to test all of them at every node of a tree."""
    return b.rings[b1] - b.rings[b0] <= MAX_SCANNED_VERTICES
