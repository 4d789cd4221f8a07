"""Validate whole regions: rings against each other, holes in their shells, parts beside each other.

All rings are counter-clockwise until the checks of holes have passed; then holes are turned clockwise, so that the
interior lies left of every edge. Rings and parts are compared by the code that relates regions.
"""

import numpy as np

from contrada.codes import (
    DISCONNECTED,
    EMPTY,
    GOOD,
    HOLE,
    HOLE_CROSSES,
    HOLE_OUTSIDE,
    HOLES_OVERLAP,
    MAX_SCANNED_VERTICES,
    NO_INDEX,
    PARTS_OVERLAP,
    SELF_INTERSECTION,
    SHARED_EDGE,
    TOUCHING,
)
from contrada.jit import allocating_kernel, entry, kernel
from contrada.kernels.read.clean import (
    clean_ring,
    is_star,
    large_ring_fault,
    meeting_point,
    reverse_ring,
    small_ring_fault,
)
from contrada.kernels.read.sweep_validity import ALONG, CROSS, CYCLE, FINE, sweep_parts
from contrada.kernels.read.touches import is_disconnected
from contrada.kernels.read.wkb import POLYGON, read_bits, read_header, read_u4
from contrada.kernels.relate.chains import (
    COUNTER_ROW,
    FOUND_ROWS,
    MAX_COMPARISONS_PER_VERTEX,
    STACK_ROWS,
    begin_count,
    chain_size,
    fill_chain,
    is_spent,
    ring_of,
)
from contrada.kernels.relate.contacts import CROSSING, RegionColumn, edge_contact, half, make_work
from contrada.kernels.relate.orientation import orient
from contrada.kernels.relate.regions import box_bits, compare_bits
from contrada.kernels.relate.touch_nodes import A_LEAVES, MEET, SHARED, TOUCH, UNTIL_SETTLED

MAX_PLACE_EDGE_PAIRS = 4_000_000  # edge pairs tested at most to find the place of a fault
TOO_MANY_COMPARISONS = np.int64(-1)  # limit exceeded (is_spent): sweep_validity.py decides
RING_PAIR_COST = 8  # comparisons that a pair of rings costs at least


@kernel
def ring_box(xy, start, end, boxes, row):
    """Write the box of a ring."""
    boxes[row, 0] = boxes[row, 2] = xy[start, 0]
    boxes[row, 1] = boxes[row, 3] = xy[start, 1]
    for k in range(start + 1, end - 1):
        boxes[row, 0] = min(boxes[row, 0], xy[k, 0])
        boxes[row, 1] = min(boxes[row, 1], xy[k, 1])
        boxes[row, 2] = max(boxes[row, 2], xy[k, 0])
        boxes[row, 3] = max(boxes[row, 3], xy[k, 1])


@allocating_kernel
def numbers(start, stop):
    """Return start, start + 1, ..., stop - 1 (np.arange takes Numba a second to compile)."""
    array = np.empty(stop - start, np.int64)
    for k in range(len(array)):
        array[k] = start + k
    return array


@kernel
def sort_by_xmin(order, rows, bounds):
    """Sort `order` by the left side of the boxes bounds[rows[number]] (shell sort: few, and no sort to compile)."""
    gap = max(len(order) * 5 // 11, 1)  # halving the gap would take n * n steps on adversarial orders
    while gap > 0:
        for i in range(gap, len(order)):
            number = order[i]
            j = i
            while j >= gap and bounds[rows[order[j - gap]], 0] > bounds[rows[number], 0]:
                order[j] = order[j - gap]
                j -= gap
            order[j] = number
        gap = gap * 5 // 11 if gap > 2 else gap - 1


@kernel
def runs_along(xy, i, j):
    """Return True if edges i and j, which touch, lie on one line."""
    for k in (j, j + 1):
        if orient(xy[i, 0], xy[i, 1], xy[i + 1, 0], xy[i + 1, 1], xy[k, 0], xy[k, 1]) != 0:
            return False
    return True


@kernel
def conflict_place(xy, rings, r, s):
    """Return a place near which rings r and s conflict: a crossing or a shared piece; else a vertex of r."""
    if (rings[r + 1] - rings[r]) * (rings[s + 1] - rings[s]) <= MAX_PLACE_EDGE_PAIRS:
        for i in range(rings[r], rings[r + 1] - 1):
            for j in range(rings[s], rings[s + 1] - 1):
                contact = edge_contact(xy, i, xy, j)
                if contact == CROSSING or (contact != 0 and runs_along(xy, i, j)):
                    return meeting_point(xy, i, xy, j)
    return xy[rings[r], 0], xy[rings[r], 1]


@kernel
def keep_touches(r0, s0, r1, s1, flags, marks):
    """Flag the rings that the last compare_bits found to touch."""
    for r in range(r0, r1):
        if marks[r - r0]:
            flags[r] |= TOUCHING
    for s in range(s0, s1):
        if marks[half(marks) + s - s0]:
            flags[s] |= TOUCHING


@kernel
def hole_fault(column, bounds, bases, r, shell, work):
    """Return the fault of hole r in its shell, its place, and the bits of the two rings: (fault, x, y, bits)."""
    bits = compare_bits(
        column, r, r + 1, bases[r], bounds, r, column, shell, shell + 1, bases[shell], bounds, shell,
        box_bits(bounds, r, bounds, shell), UNTIL_SETTLED, work,
    )  # fmt: skip
    if bits & (MEET | A_LEAVES | SHARED) == MEET:
        return GOOD, 0.0, 0.0, bits
    x, y = conflict_place(column.xy, column.rings, r, shell)
    return (HOLE_CROSSES if bits & (MEET | SHARED) else HOLE_OUTSIDE), x, y, bits


@allocating_kernel
def check_holes(column, bounds, bases, shell, stop, flags, work):
    """Return the first fault among the holes of one part, (fault, ring, x, y), or TOO_MANY_COMPARISONS."""
    xy = column.xy
    rings = column.rings
    spent = np.int64(0)
    allowed = MAX_COMPARISONS_PER_VERTEX * (rings[stop] - rings[shell])
    for r in range(shell + 1, stop):
        fault, x, y, bits = hole_fault(column, bounds, bases, r, shell, work)
        spent += RING_PAIR_COST + work.found[COUNTER_ROW, 0]
        if spent > allowed or is_spent(work.found):
            return TOO_MANY_COMPARISONS, shell, xy[0, 0], xy[0, 1]
        if fault != GOOD:
            return fault, r, x, y
        if bits & TOUCH:
            keep_touches(r, shell, r + 1, shell + 1, flags, work.marks)
    holes = numbers(shell + 1, stop)
    order = numbers(np.int64(0), stop - shell - 1)
    sort_by_xmin(order, holes, bounds)
    for k in range(len(order)):
        r = holes[order[k]]
        for m in range(k + 1, len(order)):
            s = holes[order[m]]
            if bounds[s, 0] > bounds[r, 2]:
                break
            bits = compare_bits(
                column, r, r + 1, bases[r], bounds, r, column, s, s + 1, bases[s], bounds, s,
                box_bits(bounds, r, bounds, s), UNTIL_SETTLED, work,
            )  # fmt: skip
            if bits & (MEET | SHARED):
                x, y = conflict_place(xy, rings, max(r, s), min(r, s))
                return HOLES_OVERLAP, max(r, s), x, y
            spent += RING_PAIR_COST + work.found[COUNTER_ROW, 0]
            if spent > allowed or is_spent(work.found):
                return TOO_MANY_COMPARISONS, shell, xy[0, 0], xy[0, 1]
            if bits & TOUCH:
                keep_touches(r, s, r + 1, s + 1, flags, work.marks)
    begin_count(work.found, rings[stop] - rings[shell])
    x, y, broken = is_disconnected(column, bounds, bases, shell, stop, work)
    if is_spent(work.found):
        return TOO_MANY_COMPARISONS, shell, xy[0, 0], xy[0, 1]
    if broken:
        return DISCONNECTED, shell, x, y
    return GOOD, shell, xy[0, 0], xy[0, 1]


@allocating_kernel
def check_parts(column, part_rings, bounds, bases, flags, work):
    """Return the first fault between parts, (fault, part, x, y); the box of a part is that of its shell.

    The fault is TOO_MANY_COMPARISONS if the limit was exceeded.
    """
    spent = np.int64(0)
    allowed = MAX_COMPARISONS_PER_VERTEX * (column.rings[part_rings[-1]] - column.rings[part_rings[0]])
    order = numbers(np.int64(0), len(bases))
    sort_by_xmin(order, part_rings, bounds)
    for k in range(len(order)):
        p = order[k]
        r0 = part_rings[p]
        r1 = part_rings[p + 1]
        for m in range(k + 1, len(order)):
            q = order[m]
            s0 = part_rings[q]
            s1 = part_rings[q + 1]
            if bounds[s0, 0] > bounds[r0, 2]:
                break
            bits = compare_bits(
                column, r0, r1, bases[p], bounds, r0, column, s0, s1, bases[q], bounds, s0,
                box_bits(bounds, r0, bounds, s0), UNTIL_SETTLED, work,
            )  # fmt: skip
            if bits & (MEET | SHARED):
                x, y = conflict_place(column.xy, column.rings, max(r0, s0), min(r0, s0))
                return PARTS_OVERLAP if bits & MEET else SHARED_EDGE, max(p, q), x, y
            spent += RING_PAIR_COST + work.found[COUNTER_ROW, 0]
            if spent > allowed or is_spent(work.found):
                return TOO_MANY_COMPARISONS, np.int64(0), 0.0, 0.0
            if bits & TOUCH:
                keep_touches(r0, s0, r1, s1, flags, work.marks)
    return GOOD, np.int64(0), 0.0, 0.0


@allocating_kernel
def index_ranges(xy, rings, limits, first):
    """Return edge indexes of the large runs of rings limits[k]..limits[k + 1]: boxes, and bases[first + k]."""
    count = len(limits) - 1
    bases = np.empty(first + count, np.int64)
    total = 0
    for k in range(count):
        bases[first + k] = NO_INDEX
        vertices = rings[limits[k + 1]] - rings[limits[k]]
        if vertices > MAX_SCANNED_VERTICES:
            bases[first + k] = total
            total += chain_size(vertices - 1)
    boxes = np.empty((total, 4))
    for k in range(count):
        if bases[first + k] >= 0:
            fill_chain(xy, rings, limits[k], limits[k + 1], boxes, bases[first + k])
    return boxes, bases


@allocating_kernel
def check_large_ring(xy, rings, flags, r, stack, found):
    """Return the first pair of edges that makes ring r not simple, or (-1, -1)."""
    boxes = np.empty((chain_size(rings[r + 1] - rings[r] - 1), 4))
    fill_chain(xy, rings, r, r + 1, boxes, np.int64(0))
    i, j = large_ring_fault(xy, rings[r], rings[r + 1], boxes, np.int64(0), stack, found)
    if i < -1:
        _, _, _, i, j, _, _ = sweep_parts(xy, rings, numbers(r, r + 2), flags)
    return i, j


@kernel
def check_rings(xy, rings, flags, r0, r1, stack, found, sides):
    """Return the first ring that is not simple: (ring or -1, x, y)."""
    for r in range(r0, r1):
        if is_star(xy, rings[r], rings[r + 1]):
            continue
        if rings[r + 1] - rings[r] <= MAX_SCANNED_VERTICES:  # nothing is allocated for these, as most rings are small
            i, j = small_ring_fault(xy, rings[r], rings[r + 1], sides)
        else:
            i, j = check_large_ring(xy, rings, flags, r, stack, found)
        if i >= 0:
            x, y = meeting_point(xy, i, xy, j)
            return r, x, y
    return np.int64(-1), 0.0, 0.0


@kernel
def part_of(part_rings, r):
    """Return the part that ring r belongs to."""
    return ring_of(part_rings, np.int64(0), np.int64(len(part_rings) - 1), r)


@allocating_kernel
def check_swept(column, part_rings, flags, bounds, bases, work):
    """Return the fault a sweep finds in a region before its holes are turned: (fault, part, ring in part, x, y)."""
    kind, r, s, i, j, x, y = sweep_parts(column.xy, column.rings, part_rings, flags)
    if kind == FINE:
        return GOOD, np.int64(0), np.int64(0), x, y
    if kind == CYCLE:
        return DISCONNECTED, part_of(part_rings, r), np.int64(0), x, y
    if kind == CROSS or kind == ALONG:
        x, y = meeting_point(column.xy, i, column.xy, j)
    p = part_of(part_rings, r)
    shell = part_rings[p]
    if kind != CROSS and kind != ALONG and r != shell:
        fault, at_x, at_y, _ = hole_fault(column, bounds, bases, r, shell, work)
        if fault != GOOD and not is_spent(work.found):
            return fault, p, r - shell, at_x, at_y
    q = part_of(part_rings, s) if s >= 0 else p
    if p != q:
        return (SHARED_EDGE if kind == ALONG else PARTS_OVERLAP), max(p, q), np.int64(0), x, y
    if r == shell or s == shell:
        return HOLE_CROSSES, p, max(r, s) - shell, x, y
    return HOLES_OVERLAP, p, max(r, s) - shell, x, y


@allocating_kernel
def check_by_pairs(column, flags, part_rings, bounds, work, bases):
    """Return the first fault of holes in their parts, (fault, part, ring in part, x, y), or TOO_MANY_COMPARISONS."""
    for p in range(len(part_rings) - 1):
        fault, r, x, y = check_holes(column, bounds, bases, part_rings[p], part_rings[p + 1], flags, work)
        if fault != GOOD:
            return fault, p, r - part_rings[p], x, y
    return GOOD, np.int64(0), np.int64(0), 0.0, 0.0


@kernel
def turn_holes(xy, rings, flags, part_rings):
    """Reverse the holes and toggle their flags."""
    for p in range(len(part_rings) - 1):
        for r in range(part_rings[p] + 1, part_rings[p + 1]):
            reverse_ring(xy, rings[r], rings[r + 1])
            flags[r] ^= HOLE


@allocating_kernel
def check_compound(column, flags, part_rings, xy, bounds):
    """Validate a region of several simple rings and turn its holes; return (fault, part, ring in part, x, y)."""
    rings = column.rings
    r0 = part_rings[0]
    r1 = part_rings[-1]
    # Rows of bounds and bases are rings of the column; rows before r0 belong to other regions.
    boxes, bases = index_ranges(column.xy, rings, numbers(r0, r1 + 1), r0)
    work = make_work(r1 - r0, r1 - r0)
    column = RegionColumn(column.xy, rings, column.flags, boxes)
    fault, part, ring, x, y = check_by_pairs(column, flags, part_rings, bounds, work, bases)
    is_turned = fault == GOOD
    if is_turned:
        turn_holes(xy, rings, flags, part_rings)
    if is_turned and len(part_rings) > 2:
        part_boxes, part_bases = index_ranges(column.xy, rings, part_rings, np.int64(0))
        parts = RegionColumn(column.xy, rings, column.flags, part_boxes)
        fault, part, x, y = check_parts(parts, part_rings, bounds, part_bases, flags, work)
    if fault == TOO_MANY_COMPARISONS:
        if is_turned:
            turn_holes(xy, rings, flags, part_rings)
        fault, part, ring, x, y = check_swept(column, part_rings, flags, bounds, bases, work)
        turn_holes(xy, rings, flags, part_rings)
    return fault, part, ring, x, y


@kernel
def unite_boxes(boxes, rows, count, bounds, row):
    """Write the box around boxes[rows[:count]] to bounds[row]."""
    for k in range(count):
        box = rows[k]
        for axis in range(2):
            low = boxes[box, axis]
            high = boxes[box, axis + 2]
            bounds[row, axis] = low if k == 0 else min(bounds[row, axis], low)
            bounds[row, axis + 2] = high if k == 0 else max(bounds[row, axis + 2], high)


@kernel
def clean_region(raw, raw_rings, raw_parts, p0, p1, xy, rings, flags, ring_bounds, part_rings, at):
    """Copy the rings of raw parts p0..p1 to ring rows from `at` on; empty rings and parts are skipped.

    Returns (fault, part, ring in part, x, y, parts kept); part_rings gets the first ring of each part kept.
    """
    parts = 0
    for p in range(p0, p1):
        first = at
        for r in range(raw_parts[p], raw_parts[p + 1]):
            if raw_rings[r] == raw_rings[r + 1]:
                continue
            fault, end, x, y = clean_ring(raw, raw_rings[r], raw_rings[r + 1], xy, rings[at])
            if fault != GOOD:
                return fault, p - p0, r - raw_parts[p], x, y, parts
            ring_box(xy, rings[at], end, ring_bounds, at)
            flags[at] = 0
            at += 1
            rings[at] = end
        if at > first:
            part_rings[parts] = first
            parts += 1
    part_rings[parts] = at
    return (GOOD if parts else EMPTY), np.int64(0), np.int64(0), np.nan, np.nan, parts


@entry(
    "f8[2] i8[1] i8[1] i8[1] f8[2]! i8[1]! u1[1]! f8[2]! i4[1]! f8[2]! f8[2] i8[1] u1[1] f8[2] i8[1] i8[2]! f8[2]!",
    interpreted=True,
)
def validate_regions(
    raw, raw_rings, raw_parts, raw_regions,
    xy, rings, flags, ring_bounds, regions, bounds,
    xy_view, rings_view, flags_view, ring_bounds_view, faults, reports, places,
):  # fmt: skip
    """Clean and validate every row whose fault is GOOD; valid regions are packed in the output arrays.

    The views are read-only views of the output arrays. reports[row] = (fault, part, ring); places[row] = (x, y).
    Returns the number of regions kept.
    """
    kept = 0
    rings[0] = 0
    regions[0] = 0
    most = 1
    for row in range(len(faults)):
        most = max(most, raw_regions[row + 1] - raw_regions[row])
    part_rings = np.empty(most + 1, np.int64)
    stack = np.empty((STACK_ROWS, 4), np.int64)
    found = np.empty((FOUND_ROWS, 2), np.int64)
    sides = np.empty((4, MAX_SCANNED_VERTICES))
    column = RegionColumn(xy_view, rings_view, flags_view, np.empty((0, 4)))
    for row in range(len(faults)):
        reports[row, 0] = faults[row]
        if faults[row] != GOOD:
            continue
        at = np.int64(regions[kept])
        fault, part, ring, x, y, parts = clean_region(
            raw, raw_rings, raw_parts, raw_regions[row], raw_regions[row + 1],
            xy, rings, flags, ring_bounds, part_rings, at,
        )  # fmt: skip
        end = part_rings[parts]
        if fault == GOOD:
            r, x, y = check_rings(xy_view, rings_view, flags, at, end, stack, found, sides)
            if r >= 0:
                fault = SELF_INTERSECTION
                part = ring = np.int64(0)
                for p in range(parts):
                    if part_rings[p] <= r:
                        part = np.int64(p)
                        ring = r - part_rings[p]
        if fault == GOOD and end - at > 1:
            fault, part, ring, x, y = check_compound(column, flags, part_rings[: parts + 1], xy, ring_bounds_view)
        reports[row, 0] = fault
        reports[row, 1] = part
        reports[row, 2] = ring
        places[row, 0] = x
        places[row, 1] = y
        if fault == GOOD:
            unite_boxes(ring_bounds, part_rings, parts, bounds, kept)
            kept += 1
            regions[kept] = end
    return kept


@entry("u1[1] f8[1]!", checked=False, interpreted=True)
def read_polygon(data, out):
    """Read one WKB value, if it is a valid polygon of one closed ring that fits `out` exactly: its box, then vertices.

    Returns False for anything else; the caller then uses the general reader. There is room in `out` for at most
    MAX_SCANNED_VERTICES.
    """
    bounds, xy = out[:4].reshape((1, 4)), out[4:].reshape((-1, 2))
    bits = np.empty((len(xy), 2), np.uint64)
    raw = bits.view(np.float64)
    size = np.int64(len(data))
    kind, width, srid, order, at = read_header(data, np.int64(0), size)
    if kind != POLYGON or srid > 0 or size - at < 8 or read_u4(data, at, order) != 1:
        return False
    vertices = read_u4(data, at + 4, order)
    at += 8
    if vertices * width != size - at or vertices != len(xy):
        return False
    for k in range(vertices):
        bits[k, 0] = read_bits(data, at, order)
        bits[k, 1] = read_bits(data, at + 8, order)
        at += width
    # An open ring would be closed, beyond the end of xy; a repeated vertex would be dropped.
    if bits[0, 0] != bits[vertices - 1, 0] or bits[0, 1] != bits[vertices - 1, 1]:
        return False
    start = np.int64(0)
    fault, end, _, _ = clean_ring(raw, start, vertices, xy, start)
    if fault != GOOD or end != vertices:
        return False
    if not is_star(xy, start, end):
        if small_ring_fault(xy, start, end, np.empty((4, MAX_SCANNED_VERTICES)))[0] >= 0:
            return False
    ring_box(xy, start, end, bounds, start)
    return True
