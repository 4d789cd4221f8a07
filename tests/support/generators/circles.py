"""Circles that touch shapes, nearly touch them, or have nothing to do with them; and shapes on a coarse grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely

import contrada as ct
from oracles.circles import squares_to
from oracles.distance import doubles_around_root


def shapes(rng: np.random.Generator, count: int) -> list[Any]:
    """Return points, boxes, triangles, regions with holes and of two parts on a coarse grid, many of them equal."""
    made: list[Any] = []
    for _ in range(count):
        x, y, w, h = rng.integers(0, 13), rng.integers(0, 13), rng.integers(1, 5), rng.integers(1, 5)
        box = shapely.box(x, y, x + w, y + h)
        kind = rng.integers(0, 6)
        if kind == 0:
            made.append(shapely.Point(x, y))
        elif kind == 1:
            made.append(shapely.Polygon([(x, y), (x + w, y), (x + w, y + h)]))
        elif kind == 2:
            hole = [(x + w / 4, y + h / 4), (x + w / 2, y + h / 4), (x + w / 2, y + h / 2)]
            made.append(shapely.Polygon(box.exterior.coords, [hole]))
        elif kind == 3:
            made.append(shapely.MultiPolygon([box, shapely.box(x + w + 1, y, x + w + 2, y + 1)]))
        elif kind == 4:  # with room for a circle in the hole
            made.append(shapely.Polygon(shapely.box(x - 4, y - 4, x + 9, y + 9).exterior.coords, [box.exterior.coords]))
        else:
            made.append(box)
    return made


def circles_near(rng: np.random.Generator, shape: Any, count: int) -> list[ct.Circle]:
    """Return circles with centres on a grid, whose radii make them touch the shape, or nearly so, and other ones."""
    made = []
    xmin, ymin, xmax, ymax = (round(bound) for bound in shape.bounds)
    for _ in range(count):
        x, y = rng.integers(2 * xmin - 5, 2 * xmax + 6) / 2, rng.integers(2 * ymin - 5, 2 * ymax + 6) / 2
        if rng.random() < 0.2:
            x, y = rng.uniform(xmin - 2, xmax + 2), rng.uniform(ymin - 2, ymax + 2)
        near, far = squares_to(ct.Circle((x, y), 0), shape)
        choices = (*doubles_around_root(near), *doubles_around_root(far), 0.0, float(rng.integers(0, 9)) / 2, 1e-3, 1e6)
        made.append(ct.Circle((x, y), float(choices[rng.integers(len(choices))])))
    return made
