"""Whether two edges that are straight in longitude and latitude have points within some metres of each other.

Let f(t, u) be the metres between a place t along one edge and a place u along the other. A search halves cells of
(t, u) until f in the middle of a cell is small enough, or a lower bound of f in the cell is too large. The bound has
two forms. f changes at most as fast as the places move. And, where geodesics are unique, f is at least its tangent
plane less half a second derivative: the curvature of the ellipsoid is at most 1/B^2, so that of f along geodesics is at
least -tan(f / 2B) / B, and edges bend against geodesics by an acceleration that is known too.

A cell whose bound is at most TOLERANCE below f in its middle is not halved. Cells do not depend on the distance asked
for, which only skips some that cannot change the answer. So two edges have one computed distance, at most TOLERANCE
above the true one, and it alone is compared: what is within a distance is within every larger one.
"""

from math import cos, hypot, sin, sqrt, tan

import numpy as np

from contrada.jit import kernel
from contrada.kernels.globe.bounds import (
    MOST_DEGREE,
    ROUNDING,
    chord_between,
    first_turn,
    last_turn,
    metres_between,
    metres_of_chord,
)
from contrada.kernels.globe.inverse import DEGREE, E2, A, B, inverse, turned
from contrada.kernels.relate.distance import are_segments_near

TOLERANCE = 4e-4  # metres
UNIQUE = 19_000_000.0  # metres: shorter geodesics are the only shortest ones, and the second bound holds
CELL_ROWS = 256  # of the stack: the search is at most half as deep
MAX_CELLS = 1_000_000  # only edges more than UNIQUE metres apart could come close to that
FEW_METRES = 1e-5  # cells of this size are not halved


@kernel
def speed_bounds(y0, y1, dx, dy):
    """Return bounds in metres of the speed and the acceleration along a part of an edge between two latitudes."""
    least = 0.0 if y0 <= 0 <= y1 or y1 <= 0 <= y0 else min(abs(y0), abs(y1))
    steep = sin(max(abs(y0), abs(y1)) * DEGREE)
    sine = sin(least * DEGREE)
    radius = A * cos(least * DEGREE) / sqrt(1 - E2 * sine * sine)
    x = abs(dx) * DEGREE
    up = MOST_DEGREE * abs(dy)
    y = abs(dy) * DEGREE
    speed = hypot(radius * x, up) * (1 + 1e-12)
    return speed, hypot(0.0102 * up * y + radius * steep * x * x, 2 * up * steep * x) * (1 + 1e-12)


@kernel
def progress(y, dx, dy, east, north):
    """Return the speed of a place on an edge in a direction, in metres."""
    sine = sin(y * DEGREE)
    square = 1 - E2 * sine * sine
    root = sqrt(square)
    up = A * (1 - E2) / (square * root) * dy * DEGREE
    return A * cos(y * DEGREE) / root * dx * DEGREE * east + up * north


@kernel
def do_edges_meet(ax, ay, bx, by, px, py, qx, qy):
    """Return True if two edges meet in the plane of longitude and latitude after whole turns of one, or in a pole."""
    if (max(ay, by) == 90 and max(py, qy) == 90) or (min(ay, by) == -90 and min(py, qy) == -90):
        return True
    if max(ay, by) < min(py, qy) or max(py, qy) < min(ay, by):
        return False
    first = first_turn(min(ax, bx), max(px, qx))
    last = last_turn(max(ax, bx), min(px, qx))
    for k in range(first, last + 1):
        turn = 360.0 * k
        if are_segments_near(ax, ay, bx, by, px + turn, py, qx + turn, qy, 0.0, 0.0):
            return True
    return False


@kernel
def least_turn(a0, a1, b0, b1):
    """Return the least difference of longitudes of two intervals: on two parallels, metres grow with it."""
    middles = abs(turned(0.5 * (b0 + b1) - 0.5 * (a0 + a1)))
    return max(0.0, middles - 0.5 * ((a1 - a0) + (b1 - b0)))


@kernel
def cell_bound(f, slope_a, slope_b, ha, hb, va, vb, bend_a, bend_b):
    """Return a lower bound of f in a cell, from f and its slopes in the middle and bounds of speed and acceleration."""
    moved = va * ha + vb * hb
    bound = f - moved
    if f + moved < UNIQUE:
        focus = tan((f + moved) / (2 * B)) / B
        curved = (focus * va * va + bend_a) * ha * ha + (focus * vb * vb + bend_b) * hb * hb
        bound = max(bound, f - abs(slope_a) * ha - abs(slope_b) * hb - 0.5 * curved)
    return bound - ROUNDING


@kernel
def are_edges_near(ax, ay, bx, by, px, py, qx, qy, d, cells):
    """Return True if the edges a-b and p-q, or points if their ends are equal, are at most d metres apart."""
    x0 = min(ax, bx)
    x1 = max(ax, bx)
    y0 = min(ay, by)
    y1 = max(ay, by)
    if metres_between(x0, y0, x1, y1, min(px, qx), min(py, qy), max(px, qx), max(py, qy)) > d:
        return False
    adx = bx - ax
    ady = by - ay
    bdx = qx - px
    bdy = qy - py
    va, bend_a = speed_bounds(ay, by, adx, ady)
    vb, bend_b = speed_bounds(py, qy, bdx, bdy)
    chord = chord_between(ax + 0.5 * adx, ay + 0.5 * ady, px + 0.5 * bdx, py + 0.5 * bdy)
    if metres_of_chord(chord) - 0.5 * (va + vb) > d:
        return False
    if do_edges_meet(ax, ay, bx, by, px, py, qx, qy):
        return True
    if ady == 0 and bdy == 0:
        f, _, _, _, _ = inverse(0.0, ay, least_turn(x0, x1, min(px, qx), max(px, qx)), py)
        return f <= d or f < ROUNDING
    best = np.inf
    cells[0, 0] = cells[0, 2] = 0.0
    cells[0, 1] = cells[0, 3] = 1.0
    depth = np.int64(1)
    for _ in range(MAX_CELLS):
        if depth == 0:
            return False
        depth -= 1
        t0 = cells[depth, 0]
        t1 = cells[depth, 1]
        u0 = cells[depth, 2]
        u1 = cells[depth, 3]
        t = 0.5 * (t0 + t1)
        u = 0.5 * (u0 + u1)
        ha = 0.5 * (t1 - t0)
        hb = 0.5 * (u1 - u0)
        ty = ay + t * ady
        uy = py + u * bdy
        f, salp1, calp1, salp2, calp2 = inverse(ax + t * adx, ty, px + u * bdx, uy)
        if f <= d or f < ROUNDING:
            return True
        best = min(best, f)
        va, bend_a = speed_bounds(ay + t0 * ady, ay + t1 * ady, adx, ady)
        vb, bend_b = speed_bounds(py + u0 * bdy, py + u1 * bdy, bdx, bdy)
        slope_a = -progress(ty, adx, ady, salp1, calp1)
        slope_b = progress(uy, bdx, bdy, salp2, calp2)
        bound = cell_bound(f, slope_a, slope_b, ha, hb, va, vb, bend_a, bend_b)
        if bound > d or bound >= best or f - bound <= TOLERANCE + ROUNDING:
            continue
        if max(va * ha, vb * hb) < FEW_METRES or depth + 2 > CELL_ROWS:
            continue
        depth = halve(cells, depth, t0, t, t1, u0, u, u1, va * ha >= vb * hb, slope_a > 0, slope_b > 0)
    return True


@kernel
def halve(cells, depth, t0, t, t1, u0, u, u1, is_first, grows_a, grows_b):
    """Put both halves of a cell on the stack, the nearer one on top; return the depth."""
    for k in range(2):
        is_low = (k == 1) == (grows_a if is_first else grows_b)
        cells[depth, 0] = t if is_first and not is_low else t0
        cells[depth, 1] = t if is_first and is_low else t1
        cells[depth, 2] = u if not is_first and not is_low else u0
        cells[depth, 3] = u if not is_first and is_low else u1
        depth += 1
    return depth
