"""Families of long winding polygons: spirals and combs, on integer coordinates."""

from __future__ import annotations

import numpy as np
import shapely

from generators.families.family import Pairs
from generators.rings import Floats, Geometries, Ints

PITCH = 16  # between two arms of a spiral and between two teeth of a comb
POOL = 240


def spirals(rng: np.random.Generator, count: int) -> Pairs:
    """Return strips along one spiral: beside, within and across each other, at any of its turns."""
    path, normals = spiral_path(40)
    strips = [spiral_strip(rng, path, normals) for _ in range(POOL)]
    return paired(rng, count, tilted(rng, np.array([shapely.Polygon(strip) for strip in strips])))


def spiral_path(corners: int) -> tuple[Floats, Floats]:
    """Return the corners of a square spiral that turns left, and the left normal of each of its runs."""
    heading = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
    runs = heading[np.arange(corners - 1) % 4]
    lengths = PITCH * (np.arange(corners - 1) // 2 + 1)
    path = np.concatenate([np.zeros((1, 2)), np.cumsum(runs * lengths[:, None], axis=0)])
    return path, np.stack([-runs[:, 1], runs[:, 0]], axis=-1).astype(float)


def spiral_strip(rng: np.random.Generator, path: Floats, normals: Floats) -> Floats:
    """Return the strip between two curves parallel to the path, from one corner of it to a later one."""
    first = int(rng.integers(2, 5))
    last = first + int(rng.choice([3, 5, 8, 12, 25]))
    right, left = np.sort(rng.choice([-8, -6, -4, -2, 2, 4, 6], 2, replace=False))
    turns = normals[first : last - 1] + normals[first + 1 : last]
    ends = [normals[first], normals[last - 1]]
    side = np.concatenate([ends[:1], turns, ends[1:]])
    middle = path[first : last + 1].copy()
    for end, normal in ((0, ends[0]), (-1, ends[1])):
        along = np.array([normal[1], -normal[0]])  # the heading of that run
        middle[end] += along * rng.choice([-2, 0, 2]) * (1 if end else -1)
    return np.concatenate([middle + right * side, (middle + left * side)[::-1]])


def combs(rng: np.random.Generator, count: int) -> Pairs:
    """Return combs from below and from above whose teeth reach into each other's gaps, or are the other's."""
    teeth = int(rng.integers(3, 12))
    start = rng.choice([0, 2, 4, 8, 10], (POOL, 1))
    width = rng.choice([4, 8, 8], (POOL, 1))
    height = rng.choice([4, 20, 24, 26], (POOL, 1)) + rng.choice([0, 0, 2, 4], (POOL, teeth))
    base = np.concatenate([rng.choice([-2, 0], (POOL, 1)), rng.choice([8, 12], (POOL, 1))], axis=1)
    inset = rng.integers(0, 2, (POOL, 5)) | (rng.random((POOL, 1)) < 0.5)  # at which sides, for the partner
    outlines = comb_outlines(start, width, height, base)
    partners = comb_outlines(
        start + inset[:, :1], width - inset[:, :1] - inset[:, 1:2], height - inset[:, 2:3], base - inset[:, 3:]
    )
    falling = rng.random(POOL) < 0.4
    level = rng.choice([28, 30, 32], (falling.sum(), 1))
    for lot in (outlines, partners):
        lot[falling, :, 1] = level - lot[falling, :, 1]
    regions = np.asarray(shapely.polygons(np.stack([outlines, partners], axis=1)))
    return paired(rng, count, tilted(rng, regions))


def comb_outlines(start: Ints, width: Ints, height: Ints, base: Ints) -> Floats:
    """Return combs whose teeth start at start + i * PITCH on a base from y = -base[1] to base[0]."""
    left = start + PITCH * np.arange(height.shape[1])
    right = left + width
    top = np.broadcast_to(base[:, :1], left.shape)
    x = np.stack([left, left, right, right], axis=-1).reshape(len(left), -1)
    y = np.stack([top, height, height, top], axis=-1).reshape(len(left), -1)
    x = np.concatenate([x, right[:, -1:], left[:, :1]], axis=1)
    y = np.concatenate([y, -base[:, 1:], -base[:, 1:]], axis=1)
    return np.stack([x, y], axis=-1).astype(float)


def tilted(rng: np.random.Generator, regions: Geometries) -> Geometries:
    """Return the regions as they are, turned by an eighth and grown, or slanted; all exactly."""
    maps = np.array([[[1, 0], [0, 1]], [[1, -1], [1, 1]], [[1, 2], [0, 1]], [[3, -4], [4, 3]]])
    chosen = maps[rng.integers(0, len(maps))]
    return np.asarray(shapely.transform(regions, lambda xy: xy @ chosen.T))


def paired(rng: np.random.Generator, count: int, regions: Geometries) -> Pairs:
    """Return random pairs of the lot, a tenth of them equal; of two columns, a third of them rows."""
    good = shapely.is_valid(regions)
    flat = regions.ravel()[good.ravel()]
    first, second = rng.integers(0, len(flat), (2, count))
    second = np.where(rng.random(count) < 0.1, first, second)
    a, b = flat[first], flat[second]
    if regions.ndim == 2:
        rows = regions[good.all(axis=1)]
        a[: count // 3], b[: count // 3] = rows[rng.integers(0, len(rows), count // 3)].T
    return a, b
