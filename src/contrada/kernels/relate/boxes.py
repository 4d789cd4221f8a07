"""Relations between two boxes (xmin, ymin, xmax, ymax) of positive area."""

from contrada.codes import CONTAINS, COVERED_BY, COVERS, DISJOINT, EQUALS, INSIDE, MEETS, OVERLAPS
from contrada.jit import entry, kernel


@kernel
def box_relation(a0, a1, a2, a3, b0, b1, b2, b3):
    """Return the relation of box `a` to box `b`, one of the eight."""
    if a2 < b0 or a0 > b2 or a3 < b1 or a1 > b3:
        return DISJOINT
    if a2 == b0 or a0 == b2 or a3 == b1 or a1 == b3:
        return MEETS
    a_within = a0 >= b0 and a1 >= b1 and a2 <= b2 and a3 <= b3
    b_within = b0 >= a0 and b1 >= a1 and b2 <= a2 and b3 <= a3
    if a_within and b_within:
        return EQUALS
    if a_within:
        return INSIDE if a0 > b0 and a1 > b1 and a2 < b2 and a3 < b3 else COVERED_BY
    if b_within:
        return CONTAINS if b0 > a0 and b1 > a1 and b2 < a2 and b3 < a3 else COVERS
    return OVERLAPS


@kernel
def fill_box_relations(a, b, out):
    """Write the relation of box a[k] to box b[k] to out[k]; if `a` or `b` has one box, that box is used for every k."""
    for k in range(len(out)):
        i = k if len(a) > 1 else 0
        j = k if len(b) > 1 else 0
        out[k] = box_relation(a[i, 0], a[i, 1], a[i, 2], a[i, 3], b[j, 0], b[j, 1], b[j, 2], b[j, 3])


@entry("f8[2] f8[2] u1[1]!")
def box_relations(a, b, out):
    """Write the relation of box a[k] to box b[k] to out[k]; if `a` or `b` has one box, that box is used for every k."""
    fill_box_relations(a, b, out)
