"""Safe bounds in metres between boxes of degrees, and boxes of degrees that hold all within some metres.

Longitudes are periodic: 190 is -170. Lower bounds follow from two facts. A way between two parallels is at least as
long as the meridian between them. A point at the distance r from the axis is at least r * sin(x) away from the half
plane of a meridian x degrees apart, for x up to 90, and at least r for larger x.
"""

from math import asin, cos, pi, sin, sqrt

import numpy as np

from contrada.jit import entry, kernel
from contrada.kernels.globe.inverse import DEGREE, E2, A, turned

LEAST_DEGREE = A * (1 - E2) * DEGREE * (1 - 1e-12)  # metres of a degree of latitude, at the equator
MOST_DEGREE = A / sqrt(1 - E2) * DEGREE * (1 + 1e-12)  # and at the poles
MOST_METRES = 20_004_000.0  # more than the distance of any two points
EVERYWHERE = 3600.0  # degrees: boxes from -EVERYWHERE to EVERYWHERE have all longitudes
LARGEST_LONGITUDE = 540.0  # in magnitude; beyond, and where latitudes exceed 90, there is no place
SLACK = 1e-9  # degrees, far more than the rounding of longitudes and their turns
# Radii of circles that bend more, and less, than any normal section and any geodesic, which bend as radii of 6,335,439
# to 6,399,594 metres do.
LEAST_RADIUS, LARGEST_RADIUS = 6_300_000.0, 6_450_000.0
ROUNDING = 1e-6  # metres: more than the error of lengths and chords
ROOM = 0.001  # metres by which boxes must decide that all below is within a distance


@kernel
def is_place(x0, y0, x1, y1):
    """Return True if a box is within the longitudes and latitudes that shapes may have."""
    return x0 >= -LARGEST_LONGITUDE and x1 <= LARGEST_LONGITUDE and y0 >= -90 and y1 <= 90


@kernel
def steepest(y0, y1):
    """Return the largest latitude in magnitude."""
    return max(abs(y0), abs(y1))


@kernel
def radius_at(latitude):
    """Return a lower bound of the distance from the axis, in metres."""
    return A * max(0.0, cos(latitude * DEGREE) - 1e-15)


@kernel
def metres_between(a0, a1, a2, a3, b0, b1, b2, b3):
    """Return a lower bound of the metres between two boxes."""
    up = max(b1 - a3, a1 - b3, 0.0) * LEAST_DEGREE
    middles = abs(turned(0.5 * (b0 + b2) - 0.5 * (a0 + a2)))
    gap = middles - 0.5 * ((a2 - a0) + (b2 - b0)) - SLACK
    if gap <= 0:
        return up
    r = max(radius_at(steepest(a1, a3)), radius_at(steepest(b1, b3)))
    return max(up, r * sin(min(gap, 90.0) * DEGREE) * (1 - 1e-12))


@kernel
def most_metres_between(a0, a1, a2, a3, b0, b1, b2, b3):
    """Return an upper bound of the metres between any point of one box and any of another: along parallel, meridian."""
    x = max(a2 - b0, b2 - a0) * DEGREE
    y = max(a3 - b1, b3 - a1)
    return A * x * (1 + 1e-12) + MOST_DEGREE * y + ROOM


@kernel
def first_turn(a0, b1):
    """Return the least k so that a box that ends at b1, turned k times, reaches the longitude a0."""
    return np.int64(np.ceil((a0 - b1) / 360.0 - SLACK))


@kernel
def last_turn(a1, b0):
    """Return the largest k so that a box that begins at b0, turned k times, begins before a1."""
    return np.int64(np.floor((a1 - b0) / 360.0 + SLACK))


@kernel
def do_meet(a0, a1, a2, a3, b0, b1, b2, b3):
    """Return True if two boxes meet after whole turns of one of them."""
    return a1 <= b3 and b1 <= a3 and last_turn(a2, b0) >= first_turn(a0, b2)


@kernel
def grown_by_metres(x0, y0, x1, y1, metres):
    """Return a box that holds all points at most `metres` from a box, but for turns; maybe of all longitudes."""
    up = metres / LEAST_DEGREE * (1 + 1e-12) + SLACK
    r = radius_at(steepest(y0, y1))
    if metres >= r * (1 - 1e-9):
        return -EVERYWHERE, y0 - up, EVERYWHERE, y1 + up
    across = asin(metres / r) / DEGREE * (1 + 1e-9) + SLACK
    return x0 - across, y0 - up, x1 + across, y1 + up


@kernel
def place_of(lon, lat):
    """Return the metres of a point from the centre of the ellipsoid, along three axes."""
    sine = sin(lat * DEGREE)
    n = A / sqrt(1 - E2 * sine * sine)
    r = n * cos(lat * DEGREE)
    return r * cos(lon * DEGREE), r * sin(lon * DEGREE), n * (1 - E2) * sine


@kernel
def metres_of_chord(chord):
    """Return a lower bound of the metres of a geodesic from its chord: the circle of LARGEST_RADIUS bends less."""
    return 2 * LARGEST_RADIUS * asin(min(1.0, chord / (2 * LARGEST_RADIUS))) - ROUNDING


@kernel
def chord_within(metres):
    """Return a chord so that all geodesics with a chord at most as long are less than some metres long."""
    return 2 * LEAST_RADIUS * sin(min(metres / (2 * LEAST_RADIUS), pi / 2)) - ROOM


@kernel
def chord_between(ax, ay, bx, by):
    """Return the metres of the straight line through the Earth between two points."""
    x, y, z = place_of(ax, ay)
    u, v, w = place_of(bx, by)
    return sqrt((x - u) * (x - u) + (y - v) * (y - v) + (z - w) * (z - w))


@entry("f8[2] f8[1] f8[2]!", interpreted=True)
def grow_by_metres(boxes, distances, grown):
    """Write to grown[k] a box that holds all points at most distances[k] metres from box k, but for turns."""
    for k in range(len(boxes)):
        grown[k, 0], grown[k, 1], grown[k, 2], grown[k, 3] = grown_by_metres(
            boxes[k, 0], boxes[k, 1], boxes[k, 2], boxes[k, 3], distances[k]
        )


@entry("f8[2] f8[1] f8[2]!", interpreted=True)
def fill_places(points, distances, places):
    """Write to places[k] the metres of point k from the centre along three axes, and a chord surely within a distance.

    Points with a chord that is at most as long are less than distances[k] metres away.
    """
    for k in range(len(points)):
        places[k, 0], places[k, 1], places[k, 2] = place_of(points[k, 0], points[k, 1])
        places[k, 3] = chord_within(distances[k])
