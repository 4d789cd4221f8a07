"""The metres between shapes in longitude and latitude, by dense sampling with pyproj's Geod and refinement."""

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import Geod

WGS84 = Geod(ellps="WGS84")
COARSE, FINE = 17, 9  # places along an edge, and in a window
STARTS, BEST = 2, 24  # windows for each pair of edges, and more for the nearest places of all
SHARE = 0.5  # of a window that the next window keeps
Floats = NDArray[np.float64]


def metres_apart(a: Any, b: Any) -> float:
    """Return the metres between two Shapely geometries whose edges are straight in degrees; 0.0 if they meet.

    >>> round(metres_apart(shapely.Point(179.999, 0), shapely.Point(-179.999, 0)), 3)
    222.639
    """
    for turn in range(-3, 4):
        if shapely.intersects(shapely.transform(a, lambda xy, turn=turn: np.add(xy, (360.0 * turn, 0.0))), b):
            return 0.0
    one, other = _edges(a), _edges(b)
    i, j = (part.ravel() for part in np.meshgrid(np.arange(len(one)), np.arange(len(other)), indexing="ij"))
    t = u = np.linspace(0, 1, COARSE)
    t, u = (part.ravel() for part in np.meshgrid(t, u, indexing="ij"))
    sampled = _metres(one[i][:, None], t, other[j][:, None], u)
    places = np.argsort(sampled, axis=1)[
        :, :STARTS
    ].ravel()  # near poles, each pair of edges may have the nearest points
    pairs = np.repeat(np.arange(len(i)), min(STARTS, sampled.shape[1]))
    more = np.unravel_index(np.argsort(sampled, axis=None)[:BEST], sampled.shape)
    pairs, places = np.concatenate([pairs, more[0]]), np.concatenate([places, more[1]])
    return float(_refined(one[i[pairs]], t[places], other[j[pairs]], u[places]).min())


def _edges(shape: Any) -> Floats:
    """Return the edges of a geometry as x0, y0, x1, y1; of a point, one without length."""
    if shape.geom_type == "Point":
        return np.array([[shape.x, shape.y, shape.x, shape.y]])
    lines = shapely.get_parts(shape.boundary if "Polygon" in shape.geom_type else shape)
    chains = [shapely.get_coordinates(line) for line in lines]
    return np.concatenate([np.concatenate([chain[:-1], chain[1:]], axis=1) for chain in chains])


def _metres(one: Floats, t: Floats, other: Floats, u: Floats) -> Floats:
    ax, ay = (one[..., k] + t * (one[..., k + 2] - one[..., k]) for k in (0, 1))
    bx, by = (other[..., k] + u * (other[..., k + 2] - other[..., k]) for k in (0, 1))
    ax, ay, bx, by = np.broadcast_arrays(ax, ay, bx, by)
    ends = [np.ascontiguousarray(part).ravel() for part in (ax, ay, bx, by)]
    metres: Floats = np.asarray(WGS84.inv(ends[0], ends[1], ends[2], ends[3])[2], np.float64)
    return metres.reshape(ax.shape)


def _refined(one: Floats, t: Floats, other: Floats, u: Floats) -> Floats:
    """Return the least metres near places on pairs of edges, by grids in windows that shrink around the best place."""
    window = 1.5 / COARSE
    grid = np.linspace(-1, 1, FINE)
    dt, du = (part.ravel() for part in np.meshgrid(grid, grid, indexing="ij"))
    best = _metres(one, t, other, u)
    while window > 1e-10:
        ts, us = (np.clip(place[:, None] + window * step, 0, 1) for place, step in ((t, dt), (u, du)))
        found = _metres(one[:, None], ts, other[:, None], us)
        k = np.arange(len(t)), np.argmin(found, axis=1)
        t, u, best = ts[k], us[k], np.minimum(best, found[k])
        window *= SHARE
    return best
