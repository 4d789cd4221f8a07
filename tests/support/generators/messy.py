"""Polygons and multipolygons on coarse grids, most of them invalid, in every way that a polygon can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import shapely

from contrada.papers.spatial.drawn_regions import star_order
from generators.rings import Geometries, Rings

Maker = Callable[[np.random.Generator], Any]


def messy_regions(rng: np.random.Generator, count: int) -> Geometries:
    """Return regions of all kinds in turn; between a tenth and the half of them are valid."""
    return np.fromiter((KINDS[row % len(KINDS)](rng) for row in range(count)), dtype=object, count=count)


def any_ring(rng: np.random.Generator) -> Any:
    """Return a polygon of grid points in any order: bow ties, spikes, repeated vertices, no area."""
    return shapely.Polygon(rng.integers(0, int(rng.integers(3, 6)), (int(rng.integers(3, 8)), 2)))


def orderly_ring(rng: np.random.Generator) -> Any:
    """Return a polygon of grid points in order around their mean, at times with a spike or a vertex twice."""
    ring = star_order(rng.integers(0, int(rng.integers(3, 8)), (int(rng.integers(3, 9)), 2)).astype(float))
    if rng.random() < 0.3:
        place = int(rng.integers(0, len(ring)))
        ring = np.insert(ring, place, ring[[place, place - 1][int(rng.integers(0, 2))]], axis=0)
    return shapely.Polygon(ring)


def turning_ring(rng: np.random.Generator) -> Any:
    """Return a polygon of grid points around the origin that turns once or twice."""
    count = int(rng.integers(3, 12))
    angles = np.sort(rng.uniform(0, 2 * np.pi * rng.integers(1, 3), count))
    return shapely.Polygon(np.round(np.column_stack([np.cos(angles), np.sin(angles)]) * rng.uniform(1, 6, (count, 1))))


def small_ring(rng: np.random.Generator, size: int) -> list[tuple[float, float]]:
    """Return a diamond, square or triangle somewhere on the grid."""
    outline = [
        [(1, 0), (2, 1), (1, 2), (0, 1)],
        [(0, 0), (1, 0), (1, 1), (0, 1)],
        [(0, 0), (2, 0), (2, 2), (0, 2)],
        [(0, 0), (1, 1), (0, 2)],
        [(0, 0), (2, 1), (1, 2)],
    ][int(rng.integers(0, 5))]
    x, y = (int(k) for k in rng.integers(-1, size, 2))
    return [(float(x + dx), float(y + dy)) for dx, dy in outline]


def shell_with_holes(rng: np.random.Generator) -> Any:
    """Return a square with holes anywhere: outside, across, at the edge, touching, nested, in chains."""
    size = int(rng.integers(3, 6))
    holes = [small_ring(rng, size) for _ in range(int(rng.integers(1, 5)))]
    return shapely.Polygon([(0, 0), (size, 0), (size, size), (0, size)], holes)


def ring_with_holes(rng: np.random.Generator) -> Any:
    """Return a polygon of four corners with a small hole or two."""
    corners = np.array([(0, 0), (8, 0), (8, 8), (0, 8)]) + rng.integers(-2, 3, (4, 2))
    return shapely.Polygon(corners, [small_ring(rng, 8) for _ in range(int(rng.integers(1, 3)))])


def several_parts(rng: np.random.Generator) -> Any:
    """Return small polygons together: apart, touching, sharing edges, overlapping, one in the other."""
    return shapely.MultiPolygon([shapely.Polygon(small_ring(rng, 6)) for _ in range(int(rng.integers(2, 5)))])


def part_in_hole(rng: np.random.Generator) -> Any:
    """Return a frame with another part in its hole, across it, or elsewhere."""
    frame = shapely.Polygon([(0, 0), (7, 0), (7, 7), (0, 7)], [[(1, 1), (6, 1), (6, 6), (1, 6)]])
    parts = [frame, *(shapely.Polygon(small_ring(rng, 7)) for _ in range(int(rng.integers(1, 3))))]
    return shapely.MultiPolygon([parts[k] for k in rng.permutation(len(parts))])


def mixed_parts(rng: np.random.Generator) -> Any:
    """Return two polygons of any of the other kinds together."""
    kinds = (any_ring, orderly_ring, shell_with_holes)
    first, second = (kinds[int(rng.integers(0, 3))](rng) for _ in range(2))
    return shapely.MultiPolygon([first, shapely.transform(second, lambda xy: xy + rng.integers(0, 7, 2))])


def disturbed(rng: np.random.Generator, regions: Geometries) -> Geometries:
    """Return each region with one vertex or one whole ring moved a little way: some stay valid."""
    rings = Rings.of(regions)
    region = rings.region_of_vertex
    ends = np.searchsorted(region, np.arange(len(regions) + 1))
    chosen = rng.integers(ends[:-1], ends[1:])[region]  # a vertex of each region, for each of its vertices
    moved = np.arange(len(region)) == chosen
    whole = (rng.random(len(regions)) < 0.5)[region]
    moved |= whole & (rings.ring_of_vertex == rings.ring_of_vertex[chosen])
    shift = rng.integers(-15, 16, (len(regions), 2))[region]
    return replace(rings, xy=rings.xy + np.where(moved[:, None], shift, 0)).geometries()


KINDS: tuple[Maker, ...] = (
    any_ring, orderly_ring, turning_ring, shell_with_holes, ring_with_holes, several_parts, part_in_hole, mixed_parts,
)  # fmt: skip
