"""Exact DE-9IM matrices of lines with regions, lines and points, by orientation tests on input vertices alone.

A matrix is a number with two bits per entry: 0 for an empty intersection, otherwise its dimension plus one. Entries are
in the order of the text: II, IB, IE, BI, BB, BE, EI, EB, EE.

- Two edges that cross inside both cross at a point that is constructed. The sides of the crossed edge show where the
  line is before and after it, so that its place is never needed. If an input vertex is at the same point (an end of a
  line, a ring that touches there), the vertex shows that by orientation tests against both edges.
- Every other contact is at an input vertex. The order of the edges around it shows where the line goes.
- A part of a line without any contact is wholly inside or outside: one vertex decides.
- Whether edges cover an edge is a question of intervals on its line, whose ends are input vertices.
"""

import numpy as np

from contrada.codes import ASKS_MEETING, ASKS_RELATION, TOUCHING
from contrada.jit import entry, kernel
from contrada.kernels.relate.chains import COUNTER_ROW, is_spent, ring_of
from contrada.kernels.relate.line_contacts import (
    ALONG,
    APART,
    CROSS,
    bump,
    edge_meeting,
    has_vertex_at_crossing,
    side_towards,
    vertex_on_both,
)
from contrada.kernels.relate.line_edges import (
    EdgeColumn,
    begin_pair,
    box_of_edges,
    covers_edges,
    crosses_at_end,
    is_end,
    is_on_edges,
    list_edges,
    list_edges_at,
    make_line_scratch,
    meets_box,
)
from contrada.kernels.relate.rings import IN, ON, OUT, locate
from contrada.kernels.relate.rows import row_at

II, IB, IE, BI, BB, BE, EI, EB, EE = range(9)
LINE_IN, LINE_OUT = 1 << (2 * II + 1), 1 << (2 * IE + 1)  # bits of entries of one dimension
POINT_OUT, POINT_END, POINT_IN = 0, 1, 2
LINE_BOTH = LINE_IN | LINE_OUT
FEW = 64  # edges of a region that are tried with each edge of a line, without asking its edge index
SPENT = np.int64(-1)  # in place of a matrix that takes more comparisons than allowed


@kernel
def have_boxes_apart(a, i, b, j):
    """Return True if boxes i and j do not meet."""
    return a[i, 2] < b[j, 0] or a[i, 0] > b[j, 2] or a[i, 3] < b[j, 1] or a[i, 1] > b[j, 3]


@kernel
def edge_box(xy, k):
    """Return the box x0, y0, x1, y1 of edge k."""
    ax, ay, bx, by = xy[k, 0], xy[k, 1], xy[k + 1, 0], xy[k + 1, 1]
    return (ax if ax < bx else bx), (ay if ay < by else by), (ax if ax > bx else bx), (ay if ay > by else by)


@kernel
def region_edge_contact(code, i, j, a, ends, e0, e1, b, b0, b1, b_base, flags, work):
    """Return the code of a line and a region after a contact of edge i of the line and edge j of the region."""
    meeting = edge_meeting(a.xy, i, b.xy, j)
    if meeting == APART:
        return code, False
    both = np.int64(LINE_IN | LINE_OUT)
    if meeting == CROSS:
        if (code >> np.int64(2 * IB)) & 3 == 0 and not crosses_at_end(a.xy, i, b.xy, j, ends, e0, e1, work):
            code = bump(code, IB, 0)
        if code & both != both:
            is_alone = flags[ring_of(b.runs, b0, b1, j)] & TOUCHING == 0
            if is_alone or not has_vertex_at_crossing(a.xy, i, b, b0, b1, b_base, j, work):
                code |= both
        return code, True
    if meeting == ALONG:
        code = bump(code, IB, 1)
    for k in range(4):
        if code & both == both and (code >> np.int64(2 * IB)) & 3 != 0:
            break
        x, y, is_on = vertex_on_both(a.xy, i, b.xy, j, k)
        if not is_on:
            continue
        if not is_end(x, y, ends, e0, e1):
            code = bump(code, IB, 0)
        for way in range(2):
            tx = a.xy[i + way, 0]
            ty = a.xy[i + way, 1]
            if (tx != x or ty != y) and code & both != both:
                side = side_towards(x, y, tx, ty, b, b0, b1, b_base, work)
                if side != ON:
                    code |= np.int64(LINE_IN) if side == IN else np.int64(LINE_OUT)
    return code, True


@kernel
def meeting_code(code, a, a0, a1, a_base, a_bounds, i, b, b0, b1, b_base, b_bounds, j, work):
    """Return the code after looking for a common point of a line, runs a0..a1 of a, and a region: IB if there is one.

    Edges of the region that are not near the line are left out first; without the others a vertex of each part decides.
    """
    met = bump(code, IB, 0)
    for r in range(a0, a1):
        x = a.xy[a.runs[r], 0]
        y = a.xy[a.runs[r], 1]
        if b_bounds[j, 0] <= x <= b_bounds[j, 2] and b_bounds[j, 1] <= y <= b_bounds[j, 3]:
            if locate(x, y, b.xy, b.runs, b0, b1, b.boxes, b_base, work.stack, work.found) != OUT:
                return met
    box = a_bounds[i]
    near = list_edges(b, b0, b1, b_base, box[0], box[1], box[2], box[3], work.near, work)
    if near == 0:
        return code
    x0, y0, x1, y1 = box_of_edges(b.xy, work.near, near)
    listed = list_edges(a, a0, a1, a_base, x0, y0, x1, y1, work.first, work)
    is_listed = b_base < 0 or near <= FEW
    for c in range(listed):
        k = work.first[c]
        if not is_listed:
            near = list_edges_at(b, b0, b1, b_base, a.xy, k, work.near, work)
        x0, y0, x1, y1 = edge_box(a.xy, k)
        for n in range(near):
            m = work.near[n]
            if meets_box(b.xy, m, x0, y0, x1, y1) and edge_meeting(a.xy, k, b.xy, m) != APART:
                return met
        work.found[COUNTER_ROW, 0] += near
        if is_spent(work.found):
            return SPENT
    return SPENT if is_spent(work.found) else code


@kernel
def contacts_code(
    code, a, a0, a1, a_base, a_bounds, i, ends, e0, e1, b, b0, b1, b_base, b_bounds, j, flags, asked, work
):
    """Return the code after all contacts of a line and a region, and mark the runs of the line that have one.

    Only edges of the region near the line count, of which long lists are asked for each edge of the line. If only the
    relation is asked for, any contact sets IB, and a line that goes both in and out ends the search.
    """
    box = b_bounds[j]
    listed = list_edges(a, a0, a1, a_base, box[0], box[1], box[2], box[3], work.first, work)
    if listed < a.runs[a1] - a.runs[a0] - (a1 - a0):
        code |= np.int64(LINE_OUT)  # an edge is outside the box
    box = a_bounds[i]
    near = list_edges(b, b0, b1, b_base, box[0], box[1], box[2], box[3], work.near, work)
    if near == 0:
        return code
    is_listed = b_base < 0 or near <= FEW
    for c in range(listed):
        k = work.first[c]
        if not is_listed:
            near = list_edges_at(b, b0, b1, b_base, a.xy, k, work.near, work)
        is_touched = False
        x0, y0, x1, y1 = edge_box(a.xy, k)
        for n in range(near):
            m = work.near[n]
            if meets_box(b.xy, m, x0, y0, x1, y1):
                code, is_met = region_edge_contact(code, k, m, a, ends, e0, e1, b, b0, b1, b_base, flags, work)
                is_touched |= is_met
        work.found[COUNTER_ROW, 0] += near
        if is_touched:
            work.marks[ring_of(a.runs, a0, a1, k) - a0] = 1
        if is_touched and asked == ASKS_RELATION:
            code = bump(code, IB, 0)
            if code & LINE_BOTH == LINE_BOTH:
                return code
        if is_spent(work.found):
            return code
    return code


@kernel
def line_region_code(a, a0, a1, a_base, a_bounds, i, ends, e0, e1, b, b0, b1, b_base, b_bounds, j, flags, asked, work):
    """Return the matrix of a line, runs a0..a1 of a, and a region, rings b0..b1 of b, as far as `asked` needs it."""
    code = bump(bump(np.int64(0), EI, 2), EE, 2)
    if have_boxes_apart(a_bounds, i, b_bounds, j):
        code = bump(bump(code, IE, 1), EB, 1)
        return bump(code, BE, 0) if e1 > e0 else code
    if asked == ASKS_MEETING:
        return meeting_code(code, a, a0, a1, a_base, a_bounds, i, b, b0, b1, b_base, b_bounds, j, work)
    for r in range(a1 - a0):
        work.marks[r] = 0
    code = contacts_code(
        code, a, a0, a1, a_base, a_bounds, i, ends, e0, e1, b, b0, b1, b_base, b_bounds, j, flags, asked, work
    )
    for r in range(a0, a1):
        if is_spent(work.found):
            return SPENT
        if asked == ASKS_RELATION and code & LINE_BOTH == LINE_BOTH:
            return code
        if work.marks[r - a0] == 0:
            v = a.runs[r]
            side = locate(a.xy[v, 0], a.xy[v, 1], b.xy, b.runs, b0, b1, b.boxes, b_base, work.stack, work.found)
            code |= np.int64(LINE_IN) if side == IN else np.int64(LINE_OUT)
    if asked == ASKS_RELATION:
        return code
    for e in range(e0, e1):
        side = locate(ends[e, 0], ends[e, 1], b.xy, b.runs, b0, b1, b.boxes, b_base, work.stack, work.found)
        if is_spent(work.found):
            return SPENT
        code = bump(code, BI if side == IN else (BB if side == ON else BE), 0)
    is_along = (code >> np.int64(2 * IB)) & 3 == 2
    if not (is_along and covers_edges(a, a0, a1, a_base, b, b0, b1, work)):
        code = bump(code, EB, 1)
    return SPENT if is_spent(work.found) else code


@kernel
def line_edge_contact(code, i, j, a, a_ends, e0, e1, b, b_ends, f0, f1, work):
    """Return the code of two lines after edge i of a and edge j of b."""
    meeting = edge_meeting(a.xy, i, b.xy, j)
    if meeting == APART:
        return code
    if meeting == ALONG:
        return bump(code, II, 1)
    if (code >> np.int64(2 * II)) & 3 != 0:
        return code
    if meeting == CROSS:
        if crosses_at_end(a.xy, i, b.xy, j, a_ends, e0, e1, work):
            return code
        if crosses_at_end(a.xy, i, b.xy, j, b_ends, f0, f1, work):
            return code
        return bump(code, II, 0)
    for k in range(4):
        x, y, is_on = vertex_on_both(a.xy, i, b.xy, j, k)
        if is_on and not is_end(x, y, a_ends, e0, e1) and not is_end(x, y, b_ends, f0, f1):
            return bump(code, II, 0)
    return code


@kernel
def ends_code(code, ends, e0, e1, others, f0, f1, b, b0, b1, b_base, inside, outside, work):
    """Return the code after the ends of one line were located on the other, whose ends are others[f0:f1]."""
    for e in range(e0, e1):
        if is_spent(work.found):
            return code
        x = ends[e, 0]
        y = ends[e, 1]
        if is_end(x, y, others, f0, f1):
            code = bump(code, BB, 0)
        else:
            code = bump(code, inside if is_on_edges(x, y, b, b0, b1, b_base, work) else outside, 0)
    return code


@kernel
def lines_code(
    a, a0, a1, a_base, a_bounds, i, a_ends, e0, e1, b, b0, b1, b_base, b_bounds, j, b_ends, f0, f1, asked, work
):
    """Return the matrix of two lines: runs a0..a1 of a and b0..b1 of b.

    If only a common point is asked for, the first six entries are certain to show it; a relation needs all entries.
    """
    code = bump(np.int64(0), EE, 2)
    if have_boxes_apart(a_bounds, i, b_bounds, j):
        code = bump(bump(code, IE, 1), EI, 1)
        code = bump(code, BE, 0) if e1 > e0 else code
        return bump(code, EB, 0) if f1 > f0 else code
    box = b_bounds[j]
    listed = list_edges(a, a0, a1, a_base, box[0], box[1], box[2], box[3], work.first, work)
    for c in range(listed):
        k = work.first[c]
        near = list_edges_at(b, b0, b1, b_base, a.xy, k, work.near, work)
        for n in range(near):
            code = line_edge_contact(code, k, work.near[n], a, a_ends, e0, e1, b, b_ends, f0, f1, work)
        if asked == ASKS_MEETING and code & 3 != 0:
            return code
        if is_spent(work.found):
            return SPENT
    code = ends_code(code, a_ends, e0, e1, b_ends, f0, f1, b, b0, b1, b_base, BI, BE, work)
    code = ends_code(code, b_ends, f0, f1, a_ends, e0, e1, a, a0, a1, a_base, IB, EB, work)
    overlap = code & 3 == 2
    if not (overlap and covers_edges(b, b0, b1, b_base, a, a0, a1, work)):
        code = bump(code, IE, 1)
    if not (overlap and covers_edges(a, a0, a1, a_base, b, b0, b1, work)):
        code = bump(code, EI, 1)
    return SPENT if is_spent(work.found) else code


@entry(
    "f8[2] i8[1] i4[1] f8[2] f8[2]! i8[1] f8[2] i8[1] f8[2] i8[1] i4[1] u1[1] f8[2] f8[2]! i8[1]"
    " i8[1] i8[1] i8 i8 i8 i8 i8 i8 i8[1]!",
    interpreted=True,
)
def relate_lines_to_regions(
    a_xy, a_parts, a_lines, a_bounds, a_boxes, a_chains, a_ends, a_end_offsets,
    b_xy, b_rings, b_regions, b_flags, b_bounds, b_boxes, b_chains,
    a_rows, b_rows, asked, most, a_vertices, b_vertices, start, stop, out,
):  # fmt: skip
    """Write the matrix of line a_rows[k] of a and region b_rows[k] of b to out[k], start <= k < stop.

    Where a list of rows is empty, the value is that of row k, or the only one. out[k] is SPENT if the pair takes more
    than `most` comparisons. No line or region has more than `a_vertices` or `b_vertices`.
    """
    a = EdgeColumn(a_xy, a_parts, a_boxes)
    b = EdgeColumn(b_xy, b_rings, b_boxes)
    work = make_line_scratch(a_vertices, b_vertices)
    for k in range(start, stop):
        i = row_at(a_rows, a_lines, k)
        j = row_at(b_rows, b_regions, k)
        begin_pair(work.found, most)
        out[k] = line_region_code(
            a, np.int64(a_lines[i]), np.int64(a_lines[i + 1]), a_chains[i], a_bounds, i,
            a_ends, a_end_offsets[i], a_end_offsets[i + 1],
            b, np.int64(b_regions[j]), np.int64(b_regions[j + 1]), b_chains[j], b_bounds, j, b_flags, asked, work,
        )  # fmt: skip


@entry(
    "f8[2] i8[1] i4[1] f8[2] f8[2]! i8[1] f8[2] i8[1] f8[2] i8[1] i4[1] f8[2] f8[2]! i8[1] f8[2] i8[1]"
    " i8[1] i8[1] i8 i8 i8 i8 i8 i8 i8[1]!",
    interpreted=True,
)
def relate_lines(
    a_xy, a_parts, a_lines, a_bounds, a_boxes, a_chains, a_ends, a_end_offsets,
    b_xy, b_parts, b_lines, b_bounds, b_boxes, b_chains, b_ends, b_end_offsets,
    a_rows, b_rows, asked, most, a_vertices, b_vertices, start, stop, out,
):  # fmt: skip
    """Write the matrix of line a_rows[k] of a and line b_rows[k] of b to out[k], start <= k < stop."""
    a = EdgeColumn(a_xy, a_parts, a_boxes)
    b = EdgeColumn(b_xy, b_parts, b_boxes)
    work = make_line_scratch(a_vertices, b_vertices)
    for k in range(start, stop):
        i = row_at(a_rows, a_lines, k)
        j = row_at(b_rows, b_lines, k)
        begin_pair(work.found, most)
        out[k] = lines_code(
            a, np.int64(a_lines[i]), np.int64(a_lines[i + 1]), a_chains[i], a_bounds, i,
            a_ends, a_end_offsets[i], a_end_offsets[i + 1],
            b, np.int64(b_lines[j]), np.int64(b_lines[j + 1]), b_chains[j], b_bounds, j,
            b_ends, b_end_offsets[j], b_end_offsets[j + 1], asked, work,
        )  # fmt: skip


@entry("f8[2] f8[2] i8[1] i4[1] f8[2] f8[2]! i8[1] f8[2] i8[1] i8[1] i8[1] i8 i8 i8 u1[1]!", interpreted=True)
def locate_on_lines(
    xy, b_xy, b_parts, b_lines, b_bounds, b_boxes, b_chains, b_ends, b_end_offsets, a_rows, b_rows, b_vertices,
    start, stop, out,
):  # fmt: skip
    """Write where point a_rows[k] is on line b_rows[k]: POINT_OUT, POINT_END (on its boundary) or POINT_IN."""
    b = EdgeColumn(b_xy, b_parts, b_boxes)
    work = make_line_scratch(np.int64(1), b_vertices)
    for k in range(start, stop):
        i = a_rows[k] if len(a_rows) > 0 else (np.int64(k) if len(xy) > 1 else np.int64(0))
        j = row_at(b_rows, b_lines, k)
        begin_pair(work.found, np.int64(1) << 62)
        x = xy[i, 0]
        y = xy[i, 1]
        out[k] = POINT_OUT
        if x < b_bounds[j, 0] or y < b_bounds[j, 1] or x > b_bounds[j, 2] or y > b_bounds[j, 3]:
            continue
        if is_end(x, y, b_ends, b_end_offsets[j], b_end_offsets[j + 1]):
            out[k] = POINT_END
        elif is_on_edges(x, y, b, np.int64(b_lines[j]), np.int64(b_lines[j + 1]), b_chains[j], work):
            out[k] = POINT_IN
