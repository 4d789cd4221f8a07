"""Putting regions in another order before they are packed: chosen rows of a column, and which of them are new."""

import numpy as np

from contrada.jit import entry, kernel


@entry("f8[2] i8[1] i4[1] u1[1] f8[2] i8[1] f8[2]! i8[1]! i4[1]! u1[1]! f8[2]!")
def gather_regions(xy, rings, regions, flags, bounds, rows, out_xy, out_rings, out_regions, out_flags, out_bounds):
    """The arrays of chosen rows of a column, one after another; there is as much room as they need."""
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
    """True if two regions of a column have the same rings in the same order from the same vertices."""
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
    """firsts[k] = region k differs from the one before it; equal regions have equal keys."""
    for k in range(len(keys)):
        firsts[k] = k == 0 or keys[k] != keys[k - 1] or not is_same_region(xy, rings, regions, k - 1, k)
