"""Exact relation of two regions, by orientation tests on input vertices alone.

1. If the boxes do not meet, the regions are disjoint. Otherwise a box that sticks out of the other shows which region
   leaves the other.
2. A proper crossing of two edges settles the pair: overlaps.
3. Without a crossing, every contact lies at an input vertex; the order of the edges around it decides (touch_nodes.py).
4. A ring without any contact lies wholly inside or outside the other region: one point decides.

If that takes more than MAX_COMPARISONS_PER_VERTEX (chains.py), a sweep line takes over (sweep_relation.py). If one
region is related to many, a tree of its edges (edge_tree.py) is built once the pairs so far have taken more than
building would.
"""

import numpy as np

from contrada.codes import (
    CONTAINS,
    COVERED_BY,
    COVERS,
    DISJOINT,
    EQUALS,
    INSIDE,
    MAX_SCANNED_VERTICES,
    MEETS,
    NO_INDEX,
    OVERLAPS,
)
from contrada.jit import kernel
from contrada.kernels.relate.chains import COUNTER_ROW, begin_count, chain_size, fill_chain, is_spent
from contrada.kernels.relate.contacts import RegionColumn, clear_marks, half
from contrada.kernels.relate.edge_tree import BUILD_AFTER
from contrada.kernels.relate.edges import join_edges, scan_edges
from contrada.kernels.relate.grid_edges import box_bits_gridded, relate_gridded
from contrada.kernels.relate.rings import IN, ON, locate
from contrada.kernels.relate.small import UNDECIDED, relate_few
from contrada.kernels.relate.sweep_relation import sweep_bits
from contrada.kernels.relate.touch_nodes import (
    A_LEAVES,
    B_LEAVES,
    BOUNDARY_A_IN_B,
    BOUNDARY_B_IN_A,
    MEET,
    SETTLED,
    TOUCH,
    UNTIL_SETTLED,
    is_decided,
)
from contrada.kernels.relate.tree_edges import is_small, treed_edges_bits, treed_ring_bits, treed_vertex_bits

# Relation codes by the bits TOUCH, B_LEAVES, A_LEAVES, MEET (touch_nodes.py).
RELATION = np.repeat(np.array([DISJOINT, MEETS], np.uint8), 8)
RELATION[MEET], RELATION[MEET | TOUCH] = EQUALS, EQUALS
RELATION[MEET | B_LEAVES], RELATION[MEET | B_LEAVES | TOUCH] = INSIDE, COVERED_BY
RELATION[MEET | A_LEAVES], RELATION[MEET | A_LEAVES | TOUCH] = CONTAINS, COVERS
RELATION[SETTLED], RELATION[SETTLED | TOUCH] = OVERLAPS, OVERLAPS


@kernel
def vertex_bits(x, y, b, b0, b1, base, bounds, row, inside, outside, work):
    """Return bits from a boundary point of one region that lies inside, outside or on the boundary of the other."""
    if x < bounds[row, 0] or y < bounds[row, 1] or x > bounds[row, 2] or y > bounds[row, 3]:
        return outside
    side = locate(x, y, b.xy, b.rings, b0, b1, b.boxes, base, work.stack, work.found)
    return inside if side == IN else (TOUCH if side == ON else outside)


@kernel
def untouched_bits(a, a0, a1, first_mark, b, b0, b1, base, bounds, row, inside, outside, bits, stops, work):
    """Return bits from the rings of a that have no contact with b: each lies wholly inside or outside b."""
    work.found[COUNTER_ROW, 0] += a1 - a0
    for r in range(a0, a1):
        if work.marks[first_mark + r - a0]:
            continue
        v = a.rings[r]
        bits |= vertex_bits(a.xy[v, 0], a.xy[v, 1], b, b0, b1, base, bounds, row, inside, outside, work)
        if is_decided(bits, stops) or is_spent(work.found):
            return bits
    return bits


@kernel
def locate_rings(a, a0, a1, a_base, a_bounds, i, b, b0, b1, b_base, b_bounds, j, bits, stops, work):
    """Return the bits after all contacts are known: rings without a contact are located by one point each."""
    # If two simple polygons have no contact and one leaves the other, it cannot lie in the other.
    single = a1 - a0 == 1 and b1 - b0 == 1
    if not (single and bits & (TOUCH | A_LEAVES)):
        bits = untouched_bits(
            a, a0, a1, np.int64(0), b, b0, b1, b_base, b_bounds, j, BOUNDARY_A_IN_B, A_LEAVES, bits, stops, work
        )
    if is_decided(bits, stops) or is_spent(work.found) or (single and bits & (TOUCH | B_LEAVES)):
        return bits
    return untouched_bits(
        b, b0, b1, half(work.marks), a, a0, a1, a_base, a_bounds, i, BOUNDARY_B_IN_A, B_LEAVES, bits, stops, work
    )


@kernel
def finish_treed(a, a0, a1, b, b0, b1, b_base, b_bounds, j, tree, bits, stops, work):
    """Return the bits after relate_gridded, by a tree of a's edges: from rings, and b's edges if it was stopped."""
    was_stopped = is_spent(work.found)
    begin_count(work.found, a.rings[a1] - a.rings[a0] + b.rings[b1] - b.rings[b0])
    if was_stopped:
        bits = treed_edges_bits(tree, a, a0, a1, b, b0, b1, b_base, bits, stops, work)
    single = a1 - a0 == 1 and b1 - b0 == 1  # see locate_rings
    if not (is_decided(bits, stops) or is_spent(work.found) or (single and bits & (TOUCH | B_LEAVES))):
        bits = treed_ring_bits(tree, a, b, b0, b1, bits, stops, work)
    if is_decided(bits, stops) or is_spent(work.found) or (single and bits & (TOUCH | A_LEAVES)):
        return bits
    if is_small(b, b0, b1):
        return treed_vertex_bits(tree, a, b, b0, b1, b_bounds, j, bits, stops, work)
    return untouched_bits(
        a, a0, a1, np.int64(0), b, b0, b1, b_base, b_bounds, j, BOUNDARY_A_IN_B, A_LEAVES, bits, stops, work
    )


@kernel
def finish(a, a0, a1, a_base, a_bounds, i, b, b0, b1, b_base, b_bounds, j, tree, bits, stops, work):
    """Return the bits after relate_gridded: from rings without contact, or from a sweep if comparisons are too many."""
    if is_decided(bits, stops):
        return bits
    if tree.leaves > 0:
        bits = finish_treed(a, a0, a1, b, b0, b1, b_base, b_bounds, j, tree, bits, stops, work)
    elif not is_spent(work.found):
        bits = locate_rings(
            a, a0, a1, a_base, a_bounds, i, b, b0, b1, b_base, b_bounds, j, bits, stops, work
        )  # fmt: skip
    if is_spent(work.found) and not is_decided(bits, stops):
        return sweep_bits(a, a0, a1, b, b0, b1, bits, stops)
    return bits


@kernel
def swap_bits(bits):
    """Return the bits of (b, a), given the bits of (a, b)."""
    return (bits & ~(A_LEAVES | B_LEAVES)) | (bits & A_LEAVES) << 1 | (bits & B_LEAVES) >> 1


@kernel
def treed_bits(a, a0, a1, a_base, a_bounds, i, b, b0, b1, b_base, b_bounds, j, tree, bits, work):
    """Return all bits of the regions of rings a0..a1 of a and b0..b1 of b; `tree` holds b's edges."""
    work.found[COUNTER_ROW, 0] = 1  # exceeds the limit, as after a stopped grid search: all edges are compared
    work.found[COUNTER_ROW, 1] = 0
    return swap_bits(
        finish(
            b, b0, b1, b_base, b_bounds, j, a, a0, a1, a_base, a_bounds, i, tree, swap_bits(bits), UNTIL_SETTLED, work
        )
    )


@kernel
def box_bits(a, i, b, j):
    """Return -1 if the boxes of regions i and j are apart, else the bits for the region that leaves the other."""
    if a[i, 2] < b[j, 0] or a[i, 0] > b[j, 2] or a[i, 3] < b[j, 1] or a[i, 1] > b[j, 3]:
        return -1
    bits = 0
    if a[i, 0] < b[j, 0] or a[i, 1] < b[j, 1] or a[i, 2] > b[j, 2] or a[i, 3] > b[j, 3]:
        bits |= A_LEAVES
    if b[j, 0] < a[i, 0] or b[j, 1] < a[i, 1] or b[j, 2] > a[i, 2] or b[j, 3] > a[i, 3]:
        bits |= B_LEAVES
    return bits


@kernel
def compare_bits(a, a0, a1, a_base, a_bounds, i, b, b0, b1, b_base, b_bounds, j, bits, stops, work):
    """Return bits of the region of rings a0..a1 of a and the region of rings b0..b1 of b; `bits` come from their boxes.

    Stops early at bits that decide the caller's question (is_decided). With UNTIL_SETTLED all bits are found, unless
    that takes too many comparisons (is_spent).
    """
    n = a.rings[a1] - a.rings[a0]
    m = b.rings[b1] - b.rings[b0]
    begin_count(work.found, max(n + m, 5 * MAX_SCANNED_VERTICES))  # enough to compare all edges of two small regions
    if bits < 0:
        return 0
    clear_marks(a1 - a0, b1 - b0, work.marks)
    if n <= MAX_SCANNED_VERTICES and m <= MAX_SCANNED_VERTICES:
        work.found[COUNTER_ROW, 0] += n * m >> 2
        bits = scan_edges(
            a, a0, a1, NO_INDEX, a.rings[a0], a.rings[a1] - 1, b, b0, b1, NO_INDEX, b.rings[b0], b.rings[b1] - 1,
            a_bounds[i, 0], a_bounds[i, 1], a_bounds[i, 2], a_bounds[i, 3], bits, stops, work,
        )  # fmt: skip
    else:
        if a_base < 0:
            a_base = np.int64(0)
            a = RegionColumn(a.xy, a.rings, a.flags, work.boxes)
            fill_chain(a.xy, a.rings, a0, a1, work.boxes, a_base)
        if b_base < 0:
            b_base = chain_size(np.int64(MAX_SCANNED_VERTICES))
            b = RegionColumn(b.xy, b.rings, b.flags, work.boxes)
            fill_chain(b.xy, b.rings, b0, b1, work.boxes, b_base)
        bits = join_edges(a, a0, a1, a_base, b, b0, b1, b_base, bits, stops, work)
    if is_decided(bits, stops) or is_spent(work.found):
        return bits
    return locate_rings(a, a0, a1, a_base, a_bounds, i, b, b0, b1, b_base, b_bounds, j, bits, stops, work)


@kernel
def relate_bits(a, a0, a1, a_base, a_bounds, i, b, b0, b1, b_base, b_bounds, j, bits, stops, work):
    """Return the bits of two regions of any shape; a sweep line takes over where comparing edges takes too long."""
    bits = compare_bits(a, a0, a1, a_base, a_bounds, i, b, b0, b1, b_base, b_bounds, j, bits, stops, work)
    if is_spent(work.found) and not is_decided(bits, stops):
        return sweep_bits(a, a0, a1, b, b0, b1, bits, stops)
    return bits


@kernel
def most_rings(regions):
    """Return the largest number of rings of any region."""
    most = 1
    for i in range(len(regions) - 1):
        most = max(most, np.int64(regions[i + 1] - regions[i]))
    return most


@kernel
def few_bits(a, a0, a_bounds, i, b, b_regions, b_bounds, b_chains, j, bits, work):
    """Return all bits of region i of a, a simple polygon of few vertices, and region j of b."""
    b0 = np.int64(b_regions[j])
    b1 = np.int64(b_regions[j + 1])
    if b1 - b0 == 1 and b_chains[j] < 0:
        found = relate_few(a.xy, a.rings, a0, a_bounds, i, b.xy, b.rings[b0], b.rings[b1] - 1, bits)
        if found != UNDECIDED:
            return found
    return relate_bits(
        a, a0, a0 + 1, NO_INDEX, a_bounds, i, b, b0, b1, b_chains[j], b_bounds, j, bits, UNTIL_SETTLED, work
    )


@kernel
def gridded_bits(a, a0, a1, a_base, a_bounds, i, b, b_regions, b_bounds, b_chains, j, grid, tree, bits, stops, work):
    """Return the bits of region i of a, which has the grid, and region j of b; stop at bits that `stops` names."""
    work.found[COUNTER_ROW, 0] = 0
    whole = box_bits_gridded(a, a0, a1, a_base, grid, b_bounds, j, work)
    if whole != UNDECIDED:
        return whole
    b0 = np.int64(b_regions[j])
    b1 = np.int64(b_regions[j + 1])
    bits = relate_gridded(a, a0, a1, a_base, b, b0, b1, b_chains[j], grid, tree.leaves > 0, bits, stops, work)
    if is_decided(bits, stops):
        return bits
    return finish(a, a0, a1, a_base, a_bounds, i, b, b0, b1, b_chains[j], b_bounds, j, tree, bits, stops, work)


@kernel
def build_after(a, a0, a1, a_base):
    """Return the number of comparisons after which a tree of a's edges is built: infinite without an edge index."""
    return BUILD_AFTER * (a.rings[a1] - a.rings[a0]) if a_base >= 0 else np.int64(1) << 62
