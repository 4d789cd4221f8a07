"""Algorithm 1 of [SPATIAL] as printed: the relation of two simple polygons from samples of their boundaries.

The loop that checks samples also makes them; nothing is allocated per pair. The errors of the algorithm are kept
(docs/sampled.md).
"""

import math

import numpy as np

from contrada.codes import CONTAINS, COVERED_BY, COVERS, DISJOINT, EQUALS, INSIDE, MEETS, OVERLAPS
from contrada.jit import entry, kernel
from contrada.kernels.relate.rings import CROSSED, ON_EDGE, cross_edge

SEEN_IN, SEEN_MEET, SEEN_OUT = 1, 2, 4  # answers of POINTCHECK, combined as bits over a loop
SAMPLE_LIMIT = 2.0**31  # samples on one boundary; more means that the density is a mistake


@kernel
def ring_length(xy, first, last):
    """Return the length of the line from vertex `first` to vertex `last`: the whole ring if `last` closes it."""
    length = 0.0
    for k in range(first, last):
        length += math.hypot(xy[k + 1, 0] - xy[k, 0], xy[k + 1, 1] - xy[k, 1])
    return length


@kernel
def extra_samples(length, ends, density, extra):
    """Return the number of samples a ring gets besides its end points: 0 if the end points alone are dense enough."""
    wanted = int(length * density + 0.5)
    if extra:
        return wanted
    return max(wanted - ends, 0)


@kernel
def extra_until(count, travelled, length):
    """Return how many of `count` extra samples lie on the first `travelled` of a ring: a fair share per segment."""
    return min(int(count * (travelled / length)), count)


@kernel
def is_near(x, y, xy, first, last, radius):
    """Return True if (x, y) is closer than `radius` to the ring of vertices first..last."""
    bx = xy[first, 0]
    by = xy[first, 1]
    for k in range(first + 1, last + 1):
        ax = bx
        ay = by
        bx = xy[k, 0]
        by = xy[k, 1]
        if y + radius < min(ay, by) or y - radius > max(ay, by):
            continue
        if x + radius < min(ax, bx) or x - radius > max(ax, bx):
            continue
        dx = bx - ax
        dy = by - ay
        t = ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy)
        t = min(max(t, 0.0), 1.0)
        ex = ax + t * dx - x
        ey = ay + t * dy - y
        if ex * ex + ey * ey < radius * radius:
            return True
    return False


@kernel
def point_check(x, y, xy, first, last, radius):
    """Return the POINTCHECK answer for a point and the ring of vertices first..last: SEEN_IN, SEEN_MEET or SEEN_OUT.

    Meeting is exact; with a positive `radius`, every point closer than that to the ring also meets.
    """
    if radius > 0.0 and is_near(x, y, xy, first, last, radius):
        return SEEN_MEET
    inside = False
    bx = xy[first, 0]
    by = xy[first, 1]
    for k in range(first + 1, last + 1):
        ax = bx
        ay = by
        bx = xy[k, 0]
        by = xy[k, 1]
        if (ay > y) == (by > y) and ay != y:
            continue
        met = cross_edge(x, y, ax, ay, bx, by)
        if met == ON_EDGE:
            return SEEN_MEET
        inside ^= met == CROSSED
    return SEEN_IN if inside else SEEN_OUT


@kernel
def boundary_witnesses(a_xy, a_rings, a, a_length, b_xy, b_rings, b, density, extra, halo, first_loop):
    """Return as bits which of in, meet and out the samples of ring a have to ring b.

    Stops early as Algorithm 1 does: the first loop after it has seen both in and out (line 15), the second at the first
    sample that is in or out (lines 28-33).
    """
    seen = 0
    first = a_rings[a]
    last = a_rings[a + 1] - 1
    b_first = b_rings[b]
    b_last = b_rings[b + 1] - 1
    count = extra_samples(a_length, last - first, density, extra)
    placed = 0
    travelled = 0.0
    gap_before = 0.0
    if halo:  # gap of the last segment, which ends at the first vertex
        before = ring_length(a_xy, first, last - 1)
        gap_before = (a_length - before) / (count - extra_until(count, before, a_length) + 1)
    for k in range(first, last):
        ax = a_xy[k, 0]
        ay = a_xy[k, 1]
        dx = a_xy[k + 1, 0] - ax
        dy = a_xy[k + 1, 1] - ay
        length = math.hypot(dx, dy)
        travelled += length
        until = count if k == last - 1 else extra_until(count, travelled, a_length)
        pieces = until - placed + 1
        placed = until
        gap = length / pieces
        radius = 0.5 * min(gap_before, gap) if halo else 0.0  # an end point has a neighbour on either segment
        for j in range(pieces):
            t = j / pieces
            seen |= point_check(ax + dx * t, ay + dy * t, b_xy, b_first, b_last, radius)
            decisive = seen & (SEEN_IN | SEEN_OUT)
            if decisive == (SEEN_IN | SEEN_OUT) or (decisive != 0 and not first_loop):
                return seen
            radius = 0.5 * gap if halo else 0.0
        gap_before = gap
    return seen


@kernel
def find_relation(a_xy, a_rings, a, a_length, b_xy, b_rings, b, b_length, density, extra, halo):
    """Return the relation of ring a to ring b: FINDRELATION of [SPATIAL], lines 6-43."""
    seen = boundary_witnesses(a_xy, a_rings, a, a_length, b_xy, b_rings, b, density, extra, halo, True)
    i1 = seen & SEEN_MEET != 0
    i2 = seen & SEEN_IN != 0
    i4 = seen & SEEN_OUT != 0
    if i2 and i4:
        return OVERLAPS
    if i1 and not i2 and not i4:
        return EQUALS
    if not i1 and i2 and not i4:
        return INSIDE
    if i1 and i2 and not i4:
        return COVERED_BY
    seen = boundary_witnesses(b_xy, b_rings, b, b_length, a_xy, a_rings, a, density, extra, halo, False)
    i3 = seen & SEEN_IN != 0
    if i3:
        return COVERS if i1 else CONTAINS
    return MEETS if i1 else DISJOINT


@kernel
def inverse(relation):
    """Return the relation of b to a, given the relation of a to b."""
    if relation == INSIDE:
        return CONTAINS
    if relation == CONTAINS:
        return INSIDE
    if relation == COVERS:
        return COVERED_BY
    if relation == COVERED_BY:
        return COVERS
    return relation


@kernel
def are_apart(a, b):
    """Return True if two boxes share no point."""
    return a[2] < b[0] or a[0] > b[2] or a[3] < b[1] or a[1] > b[3]


@kernel
def fill_lengths(xy, rings, regions, lengths):
    """Write the boundary length of region i, which has one ring, to lengths[i]."""
    for i in range(len(lengths)):
        lengths[i] = ring_length(xy, rings[regions[i]], rings[regions[i] + 1] - 1)


@entry("f8[2] i8[1] i4[1] f8[2] f8[2] i8[1] i4[1] f8[2] f8 b1 b1 b1 u1[1]!")
def relate_sampled_pairs(
    a_xy,
    a_rings,
    a_regions,
    a_boxes,
    b_xy,
    b_rings,
    b_regions,
    b_boxes,
    density,
    halo,
    extra,
    boxes_first,
    out,
):
    """Write the relation of region k of column a to region k of column b to out[k]; a column of one serves all k.

    Every region has one ring. The shorter boundary goes first and the answer is translated back. With `boxes_first`,
    which is not in the paper, regions whose boxes are apart are disjoint without a sample. Returns False, and fills
    nothing, if a boundary would get more than SAMPLE_LIMIT samples.
    """
    a_lengths = np.empty(len(a_regions) - 1)
    b_lengths = np.empty(len(b_regions) - 1)
    fill_lengths(a_xy, a_rings, a_regions, a_lengths)
    fill_lengths(b_xy, b_rings, b_regions, b_lengths)
    if len(out) == 0:
        return True
    if max(a_lengths.max(), b_lengths.max()) * density > SAMPLE_LIMIT:
        return False
    for k in range(len(out)):
        i = k if len(a_lengths) > 1 else 0
        j = k if len(b_lengths) > 1 else 0
        if boxes_first and are_apart(a_boxes[i], b_boxes[j]):
            out[k] = DISJOINT
            continue
        a = a_regions[i]
        b = b_regions[j]
        la = a_lengths[i]
        lb = b_lengths[j]
        if lb < la:
            out[k] = inverse(find_relation(b_xy, b_rings, b, lb, a_xy, a_rings, a, la, density, extra, halo))
        else:
            out[k] = find_relation(a_xy, a_rings, a, la, b_xy, b_rings, b, lb, density, extra, halo)
    return True
