"""Families made of the cells of mosaics: holes and parts in all their forms, and their exact partners."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import shapely

from generators.families.family import Maker, Pairs
from generators.families.mosaic import UNIT, Census, Mosaic, partner_masks
from generators.rings import Bools, Geometries, add_straight, drop_straight, redescribe

PER_MOSAIC = 250  # pairs of one mosaic, before another is made


def any_mosaic(rng: np.random.Generator) -> Mosaic:
    """Return a small mosaic of squares or triangles."""
    kind = rng.integers(0, 3)
    if kind == 0:
        return Mosaic.squares(int(rng.integers(3, 8)))
    if kind == 1:
        return Mosaic.triangles(rng, int(rng.integers(2, 7)))
    return Mosaic.scattered(rng, int(rng.integers(8, 40)), int(rng.integers(4, 10)))


def gathered(make: Maker) -> Maker:
    """Make pairs of many mosaics together: `make` gives those of one, perhaps none."""

    def gather(rng: np.random.Generator, count: int) -> Pairs:
        a, b = np.empty(0, dtype=object), np.empty(0, dtype=object)
        while len(a) < count:
            more_a, more_b = make(rng, min(PER_MOSAIC, count))
            a, b = np.concatenate([a, more_a]), np.concatenate([b, more_b])
        return a[:count], b[:count]

    return gather


@gathered
def mosaics(rng: np.random.Generator, count: int) -> Pairs:
    """Return unions of cells and their partners, straight vertices dropped or not on either side."""
    return masked(rng, any_mosaic(rng), count)


@gathered
def fans(rng: np.random.Generator, count: int) -> Pairs:
    """Return regions of sectors around one point, and partners: many parts and holes meet there."""
    return masked(rng, Mosaic.fan(rng, int(rng.integers(4, 40))), count)


def structured(wanted: Callable[[Census], Bools], dense: bool = False, triangles: bool = False) -> Maker:
    """Make regions that have the wanted structure, and partners without any condition."""

    @gathered
    def make(rng: np.random.Generator, count: int) -> Pairs:
        mosaic = Mosaic.triangles(rng, int(rng.integers(4, 7))) if triangles else any_mosaic(rng)
        masks = mosaic.random_masks(rng, 2 * count, 0.6 if dense else 0.05)
        masks = masks[masks.any(axis=1)]
        masks = masks[wanted(Census.of(mosaic.regions(masks)))]
        masks = masks[rng.integers(0, len(masks), count)] if len(masks) else masks
        return finished(rng, mosaic, masks, partner_masks(rng, mosaic, masks))

    return make


# Holes that touch neither shell nor each other; that touch at common vertices; parts apart; parts that touch at points.
holes = structured(lambda c: (c.parts == 1) & (c.holes > 0) & ~c.rings_touch, dense=True)
holes_at_vertices = structured(lambda c: (c.parts == 1) & (c.holes > 0) & c.rings_touch, dense=True)
parts = structured(lambda c: (c.parts > 1) & ~c.parts_touch)
touching_parts = structured(lambda c: c.parts_touch)
straight_touching = structured(lambda c: c.straight_touch, dense=True, triangles=True)


def holes_at_edges(rng: np.random.Generator, count: int) -> Pairs:
    """Return regions with a ring whose vertex lies in the middle of another ring's edge, and partners."""
    a, b = straight_touching(rng, count)
    return drop_straight(rng, a, 1.0), b


def nested_parts(rng: np.random.Generator, count: int) -> Pairs:
    """Return regions with a part inside a hole of another part, and partners."""
    mosaic = Mosaic.squares(15)
    place = np.abs(np.arange(15) - 7)
    distance = np.maximum(place[:, None], place[None, :]).ravel()
    noise = rng.random((count, len(mosaic))) < rng.uniform(0, 1, (count, 1))
    narrow = rng.random((count, 1)) < 0.5
    around = np.where(narrow, distance == 5, (distance >= 4) & (distance <= 6)) | (noise & (distance >= 5))
    centre = (distance == 0) | (noise & (distance <= 1)) | (~narrow & (distance <= 1))
    a = around | centre
    pick = rng.integers(0, 4, (count, 1))
    b = np.where(pick < 3, partner_masks(rng, mosaic, a), np.where(noise[:, :1], around, a | (distance <= 3)))
    return finished(rng, mosaic, a, b)


@gathered
def nearly_equal(rng: np.random.Generator, count: int) -> Pairs:
    """Return regions and the same but for up to two cells."""
    mosaic = any_mosaic(rng)
    a = mosaic.random_masks(rng, count)
    a = a[a.sum(axis=1) > 2]
    b = a.copy()
    for _ in range(2):
        row = np.flatnonzero(rng.random(len(a)) < 0.5)
        b[row, rng.integers(0, len(mosaic), len(row))] ^= True
    some = b.any(axis=1)
    return sparse(rng, mosaic.regions(a[some])), sparse(rng, mosaic.regions(b[some]))


def redescribed(rng: np.random.Generator, count: int) -> Pairs:
    """Return regions and the same but for up to two cells, with vertices added and rings turned."""
    a, b = nearly_equal(rng, count)
    return a, redescribe(rng, add_straight(rng, b, 0.3))


def masked(rng: np.random.Generator, mosaic: Mosaic, count: int) -> Pairs:
    """Return regions of one mosaic and partners."""
    masks = mosaic.random_masks(rng, count)
    return finished(rng, mosaic, masks, partner_masks(rng, mosaic, masks))


@gathered
def fillers(rng: np.random.Generator, count: int) -> Pairs:
    """Return regions with holes and what fills these holes exactly, wholly or in part."""
    mosaic = any_mosaic(rng)
    masks = mosaic.random_masks(rng, 3 * count, 0.5)
    gap = mosaic.around(rng, len(masks))
    wide = rng.random((len(masks), 1)) < 0.5
    masks = np.where(wide, (masks | mosaic.dilate(gap)) & ~gap, masks)
    gaps = mosaic.holes(masks)
    some = np.flatnonzero(gaps.any(axis=1))[:count]
    masks, gaps = masks[some], gaps[some]
    noise = rng.random(masks.shape) < 0.5
    kinds = [gaps, gaps & noise, gaps | noise, masks | gaps, mosaic.erode(gaps), masks | gaps | noise, masks]
    first = np.choose(rng.integers(0, 4, (len(masks), 1)), [masks, masks, gaps, masks | gaps])
    return finished(rng, mosaic, first, np.choose(rng.integers(0, len(kinds), (len(masks), 1)), kinds))


def finished(rng: np.random.Generator, mosaic: Mosaic, masks_a: Bools, masks_b: Bools) -> Pairs:
    """Return the regions of pairs of masks, where neither is empty, with fewer straight vertices."""
    some = masks_a.any(axis=1) & masks_b.any(axis=1)
    a, b = mosaic.regions(masks_a[some]), mosaic.regions(masks_b[some])
    return sparse(rng, a), sparse(rng, moved(rng, b))


def moved(rng: np.random.Generator, regions: Geometries) -> Geometries:
    """Return one region in ten moved by whole cells, the others where they are."""
    chosen = rng.random(len(regions)) < 0.1
    owner = np.repeat(chosen, shapely.get_num_coordinates(regions))
    shift = np.repeat(rng.integers(-7, 8, (len(regions), 2)), shapely.get_num_coordinates(regions), axis=0)
    return np.asarray(shapely.transform(regions, lambda xy: np.where(owner[:, None], xy + UNIT * shift, xy)))


def sparse(rng: np.random.Generator, regions: Geometries) -> Geometries:
    """Return half of the regions as they are, and half with vertices of straight edges dropped."""
    if not len(regions):
        return regions
    dropped = drop_straight(rng, regions, float(rng.choice([0.5, 1.0])))
    return np.where(rng.random(len(regions)) < 0.5, dropped, regions)
