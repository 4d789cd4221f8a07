"""Orientation test: the sign of a triangle's area, exact for coordinates within 1e-120..1e120 in magnitude.

A floating-point filter decides nearly always. Expansions (Shewchuk 1997), which represent the determinant as a sum of
non-overlapping doubles, decide the rest. Never use fastmath here: it would break the error terms.
"""

import numpy as np

from contrada.jit import allocating_kernel, kernel

# (3 + 16 eps) eps with eps = 2**-53: the bound of Shewchuk's first stage.
ERROR_BOUND = 3.3306690738754716e-16
SPLITTER = 134217729.0  # 2**27 + 1


@kernel
def two_product(a, b):
    """Return a * b as a rounded product and its exact error."""
    p = a * b
    c = SPLITTER * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = SPLITTER * b
    b_high = c - (c - b)
    b_low = b - b_high
    return p, a_low * b_low - (((p - a_high * b_high) - a_low * b_high) - a_high * b_low)


@kernel
def difference_tail(a, b, x):
    """Return the exact error of x = a - b."""
    b_virtual = a - x
    a_virtual = x + b_virtual
    return (a - a_virtual) + (b_virtual - b)


@allocating_kernel
def orient_expanded(ax, ay, bx, by, cx, cy):
    """Return the sign of ax*by - ax*cy - cx*by - ay*bx + ay*cx + cy*bx, summed as one expansion of twelve terms."""
    h = np.empty(12)
    m = 0
    for t in range(6):
        if t == 0:
            p, e = two_product(ax, by)
        elif t == 1:
            p, e = two_product(-ax, cy)
        elif t == 2:
            p, e = two_product(-cx, by)
        elif t == 3:
            p, e = two_product(-ay, bx)
        elif t == 4:
            p, e = two_product(ay, cx)
        else:
            p, e = two_product(cy, bx)
        for k in range(2):
            q = e if k == 0 else p
            for i in range(m):  # grow the expansion by q, with exact sums
                s = q + h[i]
                b_virtual = s - q
                a_virtual = s - b_virtual
                h[i] = (q - a_virtual) + (h[i] - b_virtual)
                q = s
            h[m] = q
            m += 1
    for i in range(m - 1, -1, -1):  # the largest non-zero term carries the sign
        if h[i] > 0:
            return 1
        if h[i] < 0:
            return -1
    return 0


@kernel
def orient_exact(ax, ay, bx, by, cx, cy):
    """Return the sign if the filter cannot decide: by exact differences (grids, shared vertices), or by expansions."""
    if (ax == cx and ay == cy) or (bx == cx and by == cy) or (ax == bx and ay == by):
        return 0
    d1 = ax - cx
    d2 = by - cy
    d3 = ay - cy
    d4 = bx - cx
    if (
        difference_tail(ax, cx, d1) == 0.0
        and difference_tail(by, cy, d2) == 0.0
        and difference_tail(ay, cy, d3) == 0.0
        and difference_tail(bx, cx, d4) == 0.0
    ):
        left, left_tail = two_product(d1, d2)
        right, right_tail = two_product(d3, d4)
        if left != right:
            return 1 if left > right else -1
        if left_tail != right_tail:
            return 1 if left_tail > right_tail else -1
        return 0
    return orient_expanded(ax, ay, bx, by, cx, cy)


@kernel
def orient(ax, ay, bx, by, cx, cy):
    """Return 1 if a, b, c turn left (counter-clockwise), -1 if right, 0 if they lie on one line. Exact."""
    left = (ax - cx) * (by - cy)
    right = (ay - cy) * (bx - cx)
    det = left - right
    bound = ERROR_BOUND * (abs(left) + abs(right))
    if det > bound:
        return 1
    if det < -bound:
        return -1
    return orient_exact(ax, ay, bx, by, cx, cy)
