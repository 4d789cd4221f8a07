"""Families made of small exact pairs by a map of the plane: shifted, scaled, rotated, squeezed, rounded.

Both regions of a pair go through the same map, so that equal coordinates stay equal; what lay on a line
lies only nearly on it once coordinates are rounded. One pair in four has its second region moved by a few
units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import shapely

from generators.families.composed import holes, mosaics
from generators.families.family import Maker, Pairs
from generators.families.simple import coarse
from generators.rings import Floats, Geometries

Map = Callable[[Floats], Floats]
PER_MAP = 250  # pairs that go through one map, before another is drawn


def distorting(draw: Callable[[np.random.Generator], Map]) -> Maker:
    """Make a family of what draws a map: small exact pairs go through maps, some hundreds through each."""

    def make(rng: np.random.Generator, count: int) -> Pairs:
        a, b = exact_pairs(rng, count)
        for start in range(0, len(a), PER_MAP):
            lot = slice(start, start + PER_MAP)
            chosen = draw(rng)
            a[lot], b[lot] = shapely.transform(a[lot], chosen), shapely.transform(b[lot], chosen)
        return a, nudged(rng, b)

    return make


@distorting
def shifted(rng: np.random.Generator) -> Map:
    """Return pairs a million away from the origin, in whole numbers and decimals, or 1e15 away."""
    if rng.random() < 0.2:
        return lambda xy: xy + 1e15
    offset = rng.choice([-1e6, 1e6], 2) + rng.integers(-50, 50, 2) * 0.1
    step = float(rng.choice([1.0, 0.1, 1e-3]))
    return lambda xy: xy * step + offset


def scaled(factor: float) -> Maker:
    """Return the maker of pairs scaled by about the factor, half of them exactly, by a power of two."""

    @distorting
    def draw(rng: np.random.Generator) -> Map:
        exact = 2.0 ** round(np.log2(factor))
        chosen = exact if rng.random() < 0.5 else factor * rng.uniform(1, 10)
        offset = rng.integers(-3, 4, 2) * float(rng.choice([0, 100])) * factor
        return lambda xy: xy * chosen + offset

    return draw


@distorting
def stretched(rng: np.random.Generator) -> Map:
    """Return pairs whose coordinates k have become powers: magnitudes from 1e-90 to 1e110 in one region."""
    base = float(rng.choice([2.0, 3.0, 8.0]))
    return lambda xy: exponential(xy, base)


def exponential(xy: Floats, base: float) -> Floats:
    """Return base**(k - 100) of every coordinate k up to 220, -base**(-k - 100) of negative ones, 0 of 0."""
    values, which = np.unique(xy, return_inverse=True)
    # One by one: the same number must give the same power wherever it stands in an array.
    powers = [math.copysign(base ** (min(abs(k), 220) - 100), k) if k else 0.0 for k in values.tolist()]
    return np.array(powers)[which].reshape(xy.shape)


@distorting
def rotated(rng: np.random.Generator) -> Map:
    """Return pairs turned by any angle about the origin."""
    angle = rng.uniform(0, 2 * np.pi)
    across, along = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
    return lambda xy: xy[:, :1] * across + xy[:, 1:] * along


@distorting
def tenths(rng: np.random.Generator) -> Map:
    """Return pairs on multiples of 0.1 or another decimal step, as k * 0.1 or as the nearest float."""
    step = float(rng.choice([0.1, 0.01, 0.3, 0.7]))
    nearest = rng.random() < 0.5
    return lambda xy: np.round(xy * step, 2) if nearest else xy * step


@distorting
def slivers(rng: np.random.Generator) -> Map:
    """Return pairs squeezed to slivers by integer maps of determinant one, half of them then rounded."""
    p, q = rng.integers(5, 3000, 2) * rng.choice([-1, 1], 2)
    matrix = np.array([[1, p], [0, 1]]) @ np.array([[1, 0], [q, 1]])
    if rng.random() < 0.5:
        matrix = matrix.T
    step = float(rng.choice([1.0, 0.1]))
    return lambda xy: (xy @ matrix.T) * step


def exact_pairs(rng: np.random.Generator, count: int) -> Pairs:
    """Return pairs on small integers: simple polygons, unions of cells, polygons with holes."""
    made = [coarse(rng, count // 2), mosaics(rng, count // 2), holes(rng, count // 4)]
    a, b = np.concatenate([a for a, _ in made]), np.concatenate([b for _, b in made])
    order = rng.permutation(len(a))
    return a[order], b[order]


def nudged(rng: np.random.Generator, regions: Geometries) -> Geometries:
    """Return one region in four moved by up to three units in the last place of its largest coordinate."""
    sizes = shapely.get_num_coordinates(regions)
    largest = np.abs(shapely.bounds(regions)).max(axis=1)
    units = np.spacing(largest) * (rng.random(len(regions)) < 0.25)
    shift = rng.integers(-3, 4, (len(regions), 2)) * units[:, None]
    return np.asarray(shapely.transform(regions, lambda xy: xy + np.repeat(shift, sizes, axis=0)))
