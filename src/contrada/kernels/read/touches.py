"""Check that the interior of a polygon is connected: rings that touch form a graph; a cycle in it cuts the interior."""

import numpy as np

from contrada.codes import TOUCHING
from contrada.jit import allocating_kernel, kernel
from contrada.kernels.read.sweep_validity import root
from contrada.kernels.relate.chains import COUNTER_ROW, is_spent
from contrada.kernels.relate.rings import ON, locate

LOCATE_COST = 4  # comparisons that locating a vertex costs at least


@kernel
def fill_touches(column, bounds, bases, r, s, work, points, count):
    """Add the vertices of rings r and s that lie on the other ring; only count them if `points` is empty."""
    rings = column.rings
    for way in range(2):
        a = r if way == 0 else s
        b = s if way == 0 else r
        for k in range(rings[a], rings[a + 1] - 1):
            x = column.xy[k, 0]
            y = column.xy[k, 1]
            work.found[COUNTER_ROW, 0] += LOCATE_COST
            if x < bounds[b, 0] or y < bounds[b, 1] or x > bounds[b, 2] or y > bounds[b, 3]:
                continue
            if locate(x, y, column.xy, rings, b, b + 1, column.boxes, bases[b], work.stack, work.found) != ON:
                continue
            for ring in (a, b):
                if len(points) > 0:
                    points[count, 0] = ring
                    points[count, 1] = x
                    points[count, 2] = y
                count += 1
    return count


@kernel
def scan_touches(column, bounds, bases, shell, stop, work, points):
    """Write all (ring, x, y) where rings of one polygon touch, with repeats; return their number.

    Stops if the comparisons exceed the limit (is_spent).
    """
    count = np.int64(0)
    for r in range(shell, stop):
        if column.flags[r] & TOUCHING == 0:
            continue
        work.found[COUNTER_ROW, 0] += stop - r
        if is_spent(work.found):
            return count
        for s in range(r + 1, stop):
            if column.flags[s] & TOUCHING and bounds[s, 0] <= bounds[r, 2] and bounds[r, 0] <= bounds[s, 2]:
                count = fill_touches(column, bounds, bases, r, s, work, points, count)
    return count


@kernel
def first_like(points, k, columns):
    """Return the first row with the coordinates of row k, and with its ring too if `columns` is 3."""
    for m in range(k):
        if points[m, 1] == points[k, 1] and points[m, 2] == points[k, 2]:
            if columns < 3 or points[m, 0] == points[k, 0]:
                return m
    return k


@allocating_kernel
def is_disconnected(column, bounds, bases, shell, stop, work):
    """Return (x, y, True) if rings shell..stop of one polygon touch in a cycle, closed at (x, y).

    Nodes of the graph are rings and touching points; a ring is joined with every point where it touches another. The
    caller starts the count of comparisons; the result is valid only if they did not exceed the limit (is_spent).
    """
    count = scan_touches(column, bounds, bases, shell, stop, work, np.empty((0, 3)))
    work.found[COUNTER_ROW, 0] += count * count
    if is_spent(work.found):
        return 0.0, 0.0, False
    points = np.empty((count, 3))
    scan_touches(column, bounds, bases, shell, stop, work, points)
    if is_spent(work.found):  # not all points were written
        return 0.0, 0.0, False
    rings = stop - shell
    parents = np.empty(rings + count, np.int64)
    for k in range(len(parents)):
        parents[k] = k
    for k in range(count):
        if first_like(points, k, np.int64(3)) < k:
            continue
        a = root(parents, np.int64(points[k, 0]) - shell)
        b = root(parents, rings + first_like(points, k, np.int64(2)))
        if a == b:
            return points[k, 1], points[k, 2], True
        parents[a] = b
    return 0.0, 0.0, False
