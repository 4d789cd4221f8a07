"""Pairs of the shapes in generators.families.shapes, most of them with an exact partner."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely

from generators.families.family import Pairs
from generators.families.shapes import HOSTILE
from generators.rings import redescribe

POOL = 60  # shapes of each call
LARGE_SHARE = 0.1


def hostile(rng: np.random.Generator, count: int) -> Pairs:
    """Return fans, stars, spirals, slivers and combs, each with a partner made from it or from another one."""
    shapes = [drawn_shape(rng) for _ in range(POOL)]
    others = [partner(rng, shape, shapes[int(rng.integers(0, POOL))]) for shape in shapes]
    chosen = rng.integers(0, POOL, count)
    a = np.array(shapes, dtype=object)[chosen]
    return a, redescribe(rng, np.array(others, dtype=object)[chosen])


def drawn_shape(rng: np.random.Generator) -> Any:
    """Return a shape of 12 to 60 vertices, at times of some hundreds, centred near the origin on even integers."""
    make = list(HOSTILE.values())[int(rng.integers(0, len(HOSTILE)))]
    is_large = rng.random() < LARGE_SHARE
    return centred(make(int(rng.integers(100, 400) if is_large else rng.integers(12, 60))))


def centred(shape: Any) -> Any:
    """Return twice the shape, moved by even integers so that its box lies around the origin."""
    xmin, ymin, xmax, ymax = shape.bounds
    middle = np.round([(xmin + xmax) / 2, (ymin + ymax) / 2])
    return shapely.transform(shape, lambda xy: 2 * (xy - middle))


def partner(rng: np.random.Generator, shape: Any, other: Any) -> Any:
    """Return a region that has much to do with the shape; some are not valid."""
    kind = int(rng.integers(0, 10))
    if kind < 2:
        return with_fewer_rings(rng, shape)
    if kind == 2:
        return filling(shape)
    if kind == 3:
        return shapely.box(*(np.array(shape.bounds) * rng.choice([1.0, 2.0, 2.0])))
    if kind == 4:
        return other
    width = shape.bounds[2] - shape.bounds[0]
    aside, along = 2 * rng.integers(-3, 4, 2), np.array([width * rng.integers(1, 3), 0.0])
    factor, shift = [(1, 0), (2, 0), (-1, 0), (1, aside), (1, along)][kind - 5]
    return shapely.transform(shape, lambda xy: factor * xy + shift)


def with_fewer_rings(rng: np.random.Generator, shape: Any) -> Any:
    """Return the shape without some of its holes and parts."""
    parts = shapely.get_parts(shape)
    kept = parts[rng.random(len(parts)) < 0.6]
    polygons = [
        shapely.Polygon(part.exterior, [hole for hole in part.interiors if rng.random() < 0.6])
        for part in (kept if len(kept) else parts[:1])
    ]
    return together(polygons)


def filling(shape: Any) -> Any:
    """Return the holes of the shape as parts, or a frame around it if it has none."""
    holes = [shapely.Polygon(hole) for part in shapely.get_parts(shape) for hole in part.interiors]
    if holes:
        return together(holes)
    frame = shapely.box(*(2 * np.array(shape.bounds)))
    return shapely.Polygon(frame.exterior, [part.exterior for part in shapely.get_parts(shape)])


def together(polygons: list[Any]) -> Any:
    """Return one polygon as it is, several as a multipolygon."""
    return polygons[0] if len(polygons) == 1 else shapely.MultiPolygon(polygons)
