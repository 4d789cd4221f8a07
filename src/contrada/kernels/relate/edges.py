"""Compare all pairs of edges of two regions that can meet, by a scan or through the edge indexes of large regions."""

import numpy as np

from contrada.codes import FANOUT, FANOUT_SHIFT
from contrada.jit import kernel
from contrada.kernels.relate.chains import COUNTER_ROW, EDGE_PAIR_COST, chain_levels, is_spent, join_chains, ring_of
from contrada.kernels.relate.contacts import CROSSING, contact_bits, edge_contact
from contrada.kernels.relate.touch_nodes import SETTLED, TOUCH, is_decided


@kernel
def scan_edges(
    a, a0, a1, a_base, i_first, i_stop, b, b0, b1, b_base, j_first, j_stop, x0, y0, x1, y1, bits, stops, work
):
    """Return bits from all pairs of edges i_first..i_stop of a and j_first..j_stop of b within the box x0..y1."""
    rb = ring_of(b.rings, b0, b1, j_first)
    for j in range(j_first, j_stop):
        if j == b.rings[rb + 1] - 1:  # the slot between two rings
            rb += 1
            continue
        lx = min(b.xy[j, 0], b.xy[j + 1, 0])
        hx = max(b.xy[j, 0], b.xy[j + 1, 0])
        ly = min(b.xy[j, 1], b.xy[j + 1, 1])
        hy = max(b.xy[j, 1], b.xy[j + 1, 1])
        if lx > x1 or hx < x0 or ly > y1 or hy < y0:
            continue
        ra = ring_of(a.rings, a0, a1, i_first)
        start = i_first
        while start < i_stop:
            stop = min(a.rings[ra + 1] - 1, i_stop)
            for i in range(start, stop):
                if (
                    min(a.xy[i, 0], a.xy[i + 1, 0]) > hx
                    or max(a.xy[i, 0], a.xy[i + 1, 0]) < lx
                    or min(a.xy[i, 1], a.xy[i + 1, 1]) > hy
                    or max(a.xy[i, 1], a.xy[i + 1, 1]) < ly
                ):
                    continue
                work.found[COUNTER_ROW, 0] += EDGE_PAIR_COST
                contact = edge_contact(a.xy, i, b.xy, j)
                if contact == 0:
                    continue
                if contact == CROSSING:
                    return bits | SETTLED | TOUCH
                bits |= contact_bits(contact, i, j, a, a0, a1, a_base, b, b0, b1, b_base, work)
                if is_decided(bits, stops) or is_spent(work.found):
                    return bits
            start = stop + 1
            ra += 1
    return bits


@kernel
def join_edges(a, a0, a1, a_base, b, b0, b1, b_base, bits, stops, work):
    """Return bits from all pairs of edges whose index blocks meet; stop if comparisons exceed the limit (is_spent)."""
    a_first = a.rings[a0]
    b_first = b.rings[b0]
    a_slots = a.rings[a1] - a_first - 1
    b_slots = b.rings[b1] - b_first - 1
    work.stack[0, 0] = chain_levels(a_slots)
    work.stack[0, 1] = 0
    work.stack[0, 2] = chain_levels(b_slots)
    work.stack[0, 3] = 0
    depth = np.int64(1)
    while depth > 0:
        count, depth = join_chains(a.boxes, a_base, a_slots, b.boxes, b_base, b_slots, work.stack, depth, work.found)
        for k in range(count):
            i = work.found[k, 0] << FANOUT_SHIFT
            j = work.found[k, 1] << FANOUT_SHIFT
            box = a_base + work.found[k, 0]
            bits = scan_edges(
                a, a0, a1, a_base, a_first + i, a_first + min(i + FANOUT, a_slots),
                b, b0, b1, b_base, b_first + j, b_first + min(j + FANOUT, b_slots),
                a.boxes[box, 0], a.boxes[box, 1], a.boxes[box, 2], a.boxes[box, 3], bits, stops, work,
            )  # fmt: skip
            if is_decided(bits, stops) or is_spent(work.found):
                return bits
    return bits
