"""Copy chosen regions of a column in a new order before they are packed, and mark duplicates."""

import numpy as np

from contrada.jit import entry, kernel


@entry("f8[2] i8[1] i4[1] u1[1] f8[2] i8[1] f8[2]! i8[1]! i4[1]! u1[1]! f8[2]!")
def gather_regions(xy, rings, regions, flags, bounds, rows, out_xy, out_rings, out_regions, out_flags, out_bounds):
    """Copy the arrays of the chosen `rows` of a column, one after another; the outputs have exactly the size needed."""
    ring = np.int64(0)
    vertex = np.int64(0)
    for k in range(len(rows)):
        row = rows[k]
        out_regions[k] = ring
        for side in range(4):
            out_bounds[k, side] = bounds[row, side]
        for r in range(regions[row], regions[row + 1]):
            out_rings[ring] = vertex
            out_flags[ring] = flags[r]
            ring += 1
            for v in range(rings[r], rings[r + 1]):
                out_xy[vertex, 0] = xy[v, 0]
                out_xy[vertex, 1] = xy[v, 1]
                vertex += 1
    out_regions[len(rows)] = ring
    out_rings[ring] = vertex


@kernel
def is_same_region(xy, rings, regions, i, j):
    """Return True if regions i and j of a column have the same rings in the same order from the same vertices."""
    i0 = np.int64(regions[i])
    j0 = np.int64(regions[j])
    count = regions[i + 1] - i0
    if regions[j + 1] - j0 != count:
        return False
    first = rings[i0]
    shift = rings[j0] - first
    for r in range(1, count + 1):
        if rings[j0 + r] - rings[i0 + r] != shift:
            return False
    for v in range(first, rings[i0 + count]):
        if xy[v, 0] != xy[v + shift, 0] or xy[v, 1] != xy[v + shift, 1]:
            return False
    return True


@entry("f8[2] i8[1] i4[1] i8[1] b1[1]!")
def mark_firsts(xy, rings, regions, keys, firsts):
    """Set firsts[k] to whether region k differs from region k - 1; equal regions have equal keys."""
    for k in range(len(keys)):
        firsts[k] = k == 0 or keys[k] != keys[k - 1] or not is_same_region(xy, rings, regions, k - 1, k)
