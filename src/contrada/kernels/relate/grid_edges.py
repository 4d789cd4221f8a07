"""Relation bits of one region under a grid (grid.py) and another region, from vertices and edges."""

import numpy as np

from contrada.codes import FANOUT, FANOUT_SHIFT, NO_INDEX
from contrada.jit import kernel
from contrada.kernels.relate.chains import COUNTER_ROW, FOUND_FLOOR, begin_count, is_spent, query_chain, start_query
from contrada.kernels.relate.contacts import clear_marks, half, pair_bits
from contrada.kernels.relate.edges import scan_edges
from contrada.kernels.relate.grid import cell_of
from contrada.kernels.relate.orientation import orient
from contrada.kernels.relate.rings import IN, locate
from contrada.kernels.relate.small import CROSSED_OVER, NO_CONTACT, UNDECIDED, first_contact_blocks, is_beside
from contrada.kernels.relate.touch_nodes import A_LEAVES, B_LEAVES, BOUNDARY_B_IN_A, SETTLED, TOUCH, is_decided

MAX_WALKED_CELLS = 12  # cells whose edge lists are walked; a longer edge is compared with the region's edges instead
EXTRA_VERTICES_IF_TREED = np.int64(8)
MAX_BOX_EDGE_TESTS = 1024  # edges tested to decide whether a box lies wholly inside or outside a region


@kernel
def label_bits(b, b0, b1, grid, bits, stops, marks):
    """Return bits from the labels of b's vertices; mark the rings that have a labelled vertex."""
    size = grid.size
    x0 = grid.x0
    y0 = grid.y0
    sx = grid.sx
    sy = grid.sy
    for r in range(b0, b1):
        seen = 0
        for k in range(b.rings[r], b.rings[r + 1] - 1):
            column = cell_of(b.xy[k, 0], x0, sx, size)
            row = cell_of(b.xy[k, 1], y0, sy, size)
            seen |= grid.labels[row * size + column]
            if is_decided(bits | seen, stops):
                return bits | seen
        bits |= seen
        marks[half(marks) + r - b0] = seen != 0
    return bits


@kernel
def touches_box(xy, i, lx, ly, hx, hy):
    """Return True if the box of edge i meets the box lx, ly, hx, hy."""
    return not (
        min(xy[i, 0], xy[i + 1, 0]) > hx
        or max(xy[i, 0], xy[i + 1, 0]) < lx
        or min(xy[i, 1], xy[i + 1, 1]) > hy
        or max(xy[i, 1], xy[i + 1, 1]) < ly
    )


@kernel
def candidates_in_cells(a, grid, c0, r0, c1, r1, lx, ly, hx, hy, found):
    """Collect edges of a listed in cells c0..c1, r0..r1 whose boxes meet the given box; return their number.

    Returns -1 if `found` has no room for them, or if there are more edges to test than may be compared (is_spent).
    """
    count = 0
    looks = 0
    most = found[COUNTER_ROW, 1] - found[COUNTER_ROW, 0]
    for row in range(r0, r1 + 1):
        for cell in range(row * grid.size + c0, row * grid.size + c1 + 1):
            if grid.labels[cell] != 0:
                continue
            link = grid.heads[cell]
            while link >= 0:
                i = grid.edges[link]
                link = grid.links[link]
                looks += 1
                if looks > most:
                    found[COUNTER_ROW, 0] += looks
                    return -1
                if touches_box(a.xy, i, lx, ly, hx, hy):
                    if count == FOUND_FLOOR:
                        found[COUNTER_ROW, 0] += looks
                        return -1
                    found[count, 0] = i
                    count += 1
    found[COUNTER_ROW, 0] += looks
    return count


@kernel
def line_bits(j, a, a0, a1, b, b0, b1, b_base, lx, ly, hx, hy, bits, stops, work):
    """Return bits from edge j of b and all edges of a (a small region) that reach both sides of the line through j."""
    px = b.xy[j, 0]
    py = b.xy[j, 1]
    qx = b.xy[j + 1, 0]
    qy = b.xy[j + 1, 1]
    for r in range(a0, a1):
        first = a.rings[r]
        v_side = orient(px, py, qx, qy, a.xy[first, 0], a.xy[first, 1])
        for i in range(first, a.rings[r + 1] - 1):
            u_side = v_side
            v_side = orient(px, py, qx, qy, a.xy[i + 1, 0], a.xy[i + 1, 1])
            if u_side * v_side > 0 or not touches_box(a.xy, i, lx, ly, hx, hy):
                continue
            bits |= pair_bits(i, j, a, a0, a1, NO_INDEX, b, b0, b1, b_base, work)
            if is_decided(bits, stops) or is_spent(work.found):
                return bits
    return bits


@kernel
def long_edge_bits(j, a, a0, a1, a_base, b, b0, b1, b_base, lx, ly, hx, hy, bits, stops, work):
    """Return bits from edge j of b, which spans many cells: uses the index of a's edges, or scans all of them."""
    if a_base < 0:
        return line_bits(j, a, a0, a1, b, b0, b1, b_base, lx, ly, hx, hy, bits, stops, work)
    first = a.rings[a0]
    last = a.rings[a1] - 1
    floor = np.int64(0)
    depth = start_query(last - first, work.stack, floor)
    while depth > floor:
        count, depth = query_chain(
            a.boxes,
            a_base,
            last - first,
            lx,
            ly,
            hx,
            hy,
            work.stack,
            floor,
            depth,
            work.found,
            floor,
            FOUND_FLOOR,
        )
        for c in range(count):
            start = first + (work.found[c, 0] << FANOUT_SHIFT)
            stop = min(start + FANOUT, last)
            bits = scan_edges(
                a, a0, a1, a_base, start, stop, b, b0, b1, b_base, j, j + 1, lx, ly, hx, hy, bits, stops, work
            )
            if is_decided(bits, stops) or is_spent(work.found):
                return bits
    return bits


@kernel
def box_bits_gridded(a, a0, a1, a_base, grid, bounds, row, work):
    """Return all bits of a and a region whose box bounds[row] no edge of a comes near, otherwise UNDECIDED.

    Such a box lies wholly inside or outside a: a labelled cell decides, or else a corner. Also returns UNDECIDED if the
    box spans more than MAX_WALKED_CELLS cells or needs more than MAX_BOX_EDGE_TESTS edge tests.
    """
    lx = bounds[row, 0]
    ly = bounds[row, 1]
    hx = bounds[row, 2]
    hy = bounds[row, 3]
    c0 = cell_of(lx, grid.x0, grid.sx, grid.size)
    c1 = cell_of(hx, grid.x0, grid.sx, grid.size)
    r0 = cell_of(ly, grid.y0, grid.sy, grid.size)
    r1 = cell_of(hy, grid.y0, grid.sy, grid.size)
    if (c1 - c0 + 1) * (r1 - r0 + 1) > MAX_WALKED_CELLS:
        return UNDECIDED
    label = 0
    looks = 0
    for cell_row in range(r0, r1 + 1):
        for cell in range(cell_row * grid.size + c0, cell_row * grid.size + c1 + 1):
            if grid.labels[cell] != 0:
                label = grid.labels[cell]
                continue
            link = grid.heads[cell]
            while link >= 0:
                i = grid.edges[link]
                link = grid.links[link]
                looks += 1
                if looks > MAX_BOX_EDGE_TESTS:
                    return UNDECIDED
                if touches_box(a.xy, i, lx, ly, hx, hy) and not is_beside(
                    a.xy[i, 0], a.xy[i, 1], a.xy[i + 1, 0], a.xy[i + 1, 1], bounds, row
                ):
                    return UNDECIDED
    if label == 0:
        side = locate(lx, ly, a.xy, a.rings, a0, a1, a.boxes, a_base, work.stack, work.found)
        label = BOUNDARY_B_IN_A if side == IN else B_LEAVES
    return BOUNDARY_B_IN_A if label == BOUNDARY_B_IN_A else A_LEAVES | B_LEAVES


@kernel
def relate_gridded(a, a0, a1, a_base, b, b0, b1, b_base, grid, is_treed, bits, stops, work):
    """Return bits from the labels of b's vertices, then from the edges of b that come near a's boundary.

    Stops if the comparisons exceed the limit (is_spent). The limit counts b's vertices alone if a tree of a's edges can
    take over. If a is a small simple polygon, its edge index is in work.boxes.
    """
    clear_marks(a1 - a0, b1 - b0, work.marks)
    begin_count(
        work.found, b.rings[b1] - b.rings[b0] + (EXTRA_VERTICES_IF_TREED if is_treed else a.rings[a1] - a.rings[a0])
    )
    bits = label_bits(b, b0, b1, grid, bits, stops, work.marks)
    if is_decided(bits, stops):
        return bits
    size = grid.size
    width = size + 1
    x0 = grid.x0
    y0 = grid.y0
    x1 = grid.x1
    y1 = grid.y1
    sx = grid.sx
    sy = grid.sy
    for r in range(b0, b1):
        for j in range(b.rings[r], b.rings[r + 1] - 1):
            lx = min(b.xy[j, 0], b.xy[j + 1, 0])
            hx = max(b.xy[j, 0], b.xy[j + 1, 0])
            ly = min(b.xy[j, 1], b.xy[j + 1, 1])
            hy = max(b.xy[j, 1], b.xy[j + 1, 1])
            if lx > x1 or hx < x0 or ly > y1 or hy < y0:
                continue
            c0 = cell_of(lx, x0, sx, size)
            c1 = cell_of(hx, x0, sx, size)
            r0 = cell_of(ly, y0, sy, size)
            r1 = cell_of(hy, y0, sy, size)
            top = r0 * width
            end = (r1 + 1) * width
            near = grid.sums[end + c1 + 1] - grid.sums[top + c1 + 1] - grid.sums[end + c0] + grid.sums[top + c0]
            if near == 0:
                continue
            count = -1
            if (c1 - c0 + 1) * (r1 - r0 + 1) <= MAX_WALKED_CELLS:
                count = candidates_in_cells(a, grid, c0, r0, c1, r1, lx, ly, hx, hy, work.found)
                if count < 0 and is_spent(work.found):
                    return bits
            if count < 0 and a_base < 0 and a1 - a0 == 1:
                # Passing two arrays is faster than passing everything that a contact needs, and contacts are rare.
                i = first_contact_blocks(j, a.rings[a0], a.rings[a1] - 1, a.xy, b.xy, work.boxes)
                if i == CROSSED_OVER:
                    return bits | SETTLED | TOUCH
                if i != NO_CONTACT:
                    bits = line_bits(j, a, a0, a1, b, b0, b1, b_base, lx, ly, hx, hy, bits, stops, work)
            elif count < 0:
                bits = long_edge_bits(j, a, a0, a1, a_base, b, b0, b1, b_base, lx, ly, hx, hy, bits, stops, work)
            else:
                for c in range(count):
                    bits |= pair_bits(work.found[c, 0], j, a, a0, a1, a_base, b, b0, b1, b_base, work)
            if is_decided(bits, stops) or is_spent(work.found):
                return bits
    return bits
