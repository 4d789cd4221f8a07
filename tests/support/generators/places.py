"""Shapes around places on the globe, of any size in metres: near poles, the date line and the equator."""

from typing import Any

import numpy as np
import shapely

CENTRES = [(10.0, 50.0), (179.9999, 0.0), (-180.0, 66.0), (25.0, 89.999), (-140.0, -90.0), (359.0, -33.3)]
KINDS = ("Point", "Triangle", "Box", "Polygon")


def shape_at(rng: np.random.Generator, centre: tuple[float, float], size: float, kind: str | None = None) -> Any:
    """Return a Shapely point or polygon within about three times `size` metres of a place, valid on the globe."""
    kind = kind or str(rng.choice(KINDS))
    up = np.degrees(size / 6.4e6)
    while True:
        middle = np.array(centre) + rng.uniform(-2, 2, 2) * up
        across = min(up / max(np.cos(np.radians(min(abs(middle[1]), 90))), 1e-3), 100)
        middle[0] = centre[0] + rng.uniform(-2, 2) * across
        middle[1] = np.clip(middle[1], -90, 90)
        if rng.random() < 0.2:
            middle = np.round(middle)
        corners = middle + rng.uniform(-1, 1, (5, 2)) * [across, up]
        corners[:, 1] = np.clip(corners[:, 1], -90, 90)
        if np.abs(corners[:, 0]).max() > 540:
            continue
        if kind == "Point":
            return shapely.Point(*corners[0])
        made = {
            "Triangle": lambda c: shapely.Polygon(c[:3]),
            "Box": lambda c: shapely.box(*c[:2].min(axis=0), *c[:2].max(axis=0)),
            "Polygon": lambda c: shapely.MultiPoint(c).convex_hull,
        }[kind](corners)
        if made.geom_type == "Polygon" and made.is_valid and made.area > 0:
            return made
