"""Regions of hundreds and thousands of vertices: coastlines and large mosaics, and exact partners."""

from __future__ import annotations

import numpy as np
import shapely

from generators.families.composed import finished
from generators.families.family import Pairs
from generators.families.mosaic import Mosaic, partner_masks
from generators.rings import Floats, redescribe


def hundreds(rng: np.random.Generator, count: int) -> Pairs:
    """Return regions of about 100 to 400 vertices, some with a small partner, a few of some thousands."""
    mosaic = Mosaic.triangles(rng, int(rng.integers(10, 17)))
    masks = mosaic.random_masks(rng, count // 2)
    partners = partner_masks(rng, mosaic, masks)
    small = rng.random((len(masks), 1)) < 0.3
    partners = np.where(small, partners & mosaic.around(rng, len(masks)), partners)
    made = [finished(rng, mosaic, masks, partners)]
    for vertices, share in ((100, 0.2), (400, 0.28), (3000, 0.02)):
        made.append(coastlines(rng, max(1, round(count * share)), vertices))
    return np.concatenate([a for a, _ in made]), np.concatenate([b for _, b in made])


def coastlines(rng: np.random.Generator, count: int, vertices: int) -> Pairs:
    """Return star-shaped regions with a rough boundary, and partners that share long stretches of it.

    The partner keeps some of the directions' radii and shrinks or grows the others; or it is the whole
    region smaller, the same, elsewhere, or reflected in the easternmost vertex.
    """
    angle, radius = coastline_radii(rng, count, vertices)
    waves, phase = rng.integers(1, 5, (count, 1)), rng.uniform(0, 2 * np.pi, (count, 1))
    kept = np.sin(waves * angle + phase) > rng.uniform(-1, 1, (count, 1))
    less, more = np.where(kept, radius, radius * 0.9), np.where(kept, radius, radius * 1.1)
    either = np.where(rng.random((count, vertices)) < 0.9, less, more)
    kinds = np.stack([less, more, either, radius * 0.8, radius * 1.25, radius, radius, radius])
    kind = rng.integers(0, len(kinds), count)
    a = outline(angle, radius)
    b = outline(angle, kinds[kind, np.arange(count)])
    away, across = kind == 6, kind == 7
    b[away] += rng.uniform(-2.5, 2.5, (count, 1, 2))[away]
    east = np.take_along_axis(b, b[..., 0].argmax(axis=1)[:, None, None], axis=1)
    b[across] = (2 * east - b)[across]
    return np.asarray(shapely.polygons(a)), redescribe(rng, np.asarray(shapely.polygons(b)))


def coastline_radii(rng: np.random.Generator, count: int, vertices: int) -> tuple[Floats, Floats]:
    """Return the angles and radii, (count, vertices) each, of star-shaped regions of size about 1.

    However many vertices, the boundary stays as steep as it is, so that its length hardly grows.
    """
    angle = np.broadcast_to(np.arange(vertices) * (2 * np.pi / vertices), (count, vertices))
    radius = np.ones((count, vertices))
    for wave in (2, 3, 5, 9, 17, 33, 129, 1025):
        phase = rng.uniform(0, 2 * np.pi, (count, 1))
        height = rng.uniform(0, 0.5 / wave, (count, 1)) if 4 * wave < vertices else 0.0
        radius = radius + height * np.sin(wave * angle + phase)
    return angle, radius * rng.uniform(1 - min(0.03, 10 / vertices), 1, (count, vertices))


def outline(angle: Floats, radius: Floats) -> Floats:
    """Return the vertices at the angles and radii."""
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
