"""Regions of any size that degrade common algorithms: edges whose boxes all overlap, rings that all meet in one point.

Each shape has about as many vertices as asked for and integer coordinates, so that rational arithmetic can judge
copies of it. `HOSTILE` maps a name to the function that makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import shapely

from generators.families.curves import comb_outlines, spiral_path
from generators.rings import Floats

RADIUS = 1 << 22
TILT = np.array([[3.0, -4.0], [4.0, 3.0]])  # a turn by no multiple of an eighth, five times larger


def circle(count: int, radius: int = RADIUS) -> Floats:
    """Return `count` points in order around the origin, rounded to integers."""
    angle = np.arange(count) * (2 * np.pi / count)
    return np.round(radius * np.stack([np.cos(angle), np.sin(angle)], axis=-1))


def square(half: float) -> Floats:
    """Return the corners of a square around the origin."""
    return half * np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)])


def sectors(vertices: int) -> Floats:
    """Return triangles (n, 3, 2) that have the origin in common and nothing else."""
    rim = circle(2 * max(vertices // 4, 1)).reshape(-1, 2, 2)
    return np.concatenate([np.zeros((len(rim), 1, 2)), rim], axis=1)


def fan_of_holes(vertices: int) -> Any:
    """Return a square whose holes all meet in one point."""
    return shapely.Polygon(square(2 * RADIUS), list(sectors(vertices)))


def fan_of_parts(vertices: int) -> Any:
    """Return triangles that all meet in one point."""
    return shapely.multipolygons(shapely.polygons(sectors(vertices)))


def star(vertices: int) -> Any:
    """Return a star whose spikes almost reach the centre."""
    ring = circle(2 * (vertices // 2))
    ring[1::2] = np.round(ring[1::2] / 8)
    return shapely.Polygon(ring)


def spiral(vertices: int) -> Any:
    """Return a strip along a square spiral: eight vertices a turn, turned so that boxes of its edges overlap."""
    path, normals = spiral_path(max(vertices // 2, 4))
    side = np.concatenate([normals[:1], normals[:-1] + normals[1:], normals[-1:]])
    return shapely.Polygon(np.concatenate([path - 2 * side, (path + 2 * side)[::-1]]) @ TILT.T)


def slivers(vertices: int) -> Floats:
    """Return thin triangles (n, 3, 2) side by side along a diagonal; the boxes of all of them overlap."""
    count = max(vertices // 4, 1)
    along = 8 * np.arange(count)[:, None, None] * np.array([1.0, -1.0])
    return np.asarray(along + np.array([(0.0, 0.0), (1.0, -1.0), (8.0 * count, 8.0 * count)]))


def sliver_parts(vertices: int) -> Any:
    """Return many slivers as parts."""
    return shapely.multipolygons(shapely.polygons(slivers(vertices)))


def sliver_holes(vertices: int) -> Any:
    """Return many slivers as holes."""
    rings = slivers(vertices)
    return shapely.Polygon(square(2 * float(np.abs(rings).max()) + 1), list(rings))


def comb(vertices: int) -> Any:
    """Return a comb with long teeth, turned so that the boxes of its edges overlap."""
    teeth = max(vertices // 4, 1)
    height = np.full((1, teeth), 16.0 * teeth)
    (ring,) = comb_outlines(np.array([[0]]), np.array([[8]]), height, np.array([[0, 8]]))
    return shapely.Polygon(ring @ TILT.T)


def nested_parts(vertices: int) -> Any:
    """Return frames, each in the hole of the next."""
    frames = range(1, max(vertices // 10, 1) + 1)
    return shapely.MultiPolygon([shapely.Polygon(square(4 * k), [square(4 * k - 2)]) for k in frames])


def holes_on_an_edge(vertices: int) -> Any:
    """Return a triangle whose holes all touch one of its edges from within."""
    count = max(vertices // 4, 1)
    tip = 4 * np.arange(1, count + 1)[:, None, None] * np.array([1.0, 1.0])
    holes = tip + np.array([(0.0, 0.0), (1.0, 0.0), (2.0, 1.0)])
    size = 4.0 * count + 8
    return shapely.Polygon([(0, 0), (size, 0), (size, size)], list(holes))


def checkerboard(vertices: int) -> Any:
    """Return squares of a checkerboard, which touch at their corners, as parts."""
    side = max(int(np.sqrt(2 * vertices / 5)), 2)
    cells = [(x, y) for x in range(side) for y in range(side) if (x + y) % 2 == 0]
    return shapely.MultiPolygon([shapely.box(x, y, x + 1, y + 1) for x, y in cells])


HOSTILE: dict[str, Callable[[int], Any]] = {
    "fan of holes": fan_of_holes,
    "fan of parts": fan_of_parts,
    "star": star,
    "spiral": spiral,
    "sliver holes": sliver_holes,
    "sliver parts": sliver_parts,
    "comb": comb,
    "nested parts": nested_parts,
    "holes on an edge": holes_on_an_edge,
    "checkerboard": checkerboard,
}
