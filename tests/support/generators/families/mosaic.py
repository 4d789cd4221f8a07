"""Regions as unions of the cells of a mosaic: exact partners in every relation, with every kind of contact.

Cells share whole edges and all coordinates are small integers, so that a union constructs no coordinate.
A region is a row of booleans, one per cell; subsets, complements and neighbourhoods of such rows force
the relation of two regions while their boundaries keep touching in vertices and edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import shapely

from generators.rings import Bools, Floats, Geometries, Ints, Rings

UNIT = 4  # side of a square cell: divisible, so that middles of edges are integers


@dataclass(frozen=True)
class Mosaic:
    """Cells that cover an area without gap or overlap; which share a point or an edge, which form the rim."""

    cells: Geometries
    touching: Bools
    adjacent: Bools
    rim: Bools

    @classmethod
    def of(cls, cells: Geometries) -> Mosaic:
        """Take cells with integer coordinates that share whole edges, or vertices, or nothing."""
        xy, owner = shapely.get_coordinates(cells, return_index=True)
        nodes, which = np.unique(xy, axis=0, return_inverse=True)
        corners = np.zeros((len(cells), len(nodes)), np.float32)
        corners[owner, which] = 1
        common = corners @ corners.T
        around = shapely.get_coordinates(shapely.coverage_union_all(cells))
        outer = (nodes[:, None] == np.unique(around, axis=0)).all(axis=2).any(axis=1)
        return cls(cells, common >= 1, common == 2, np.asarray(corners[:, outer].any(axis=1)))

    @classmethod
    def squares(cls, size: int) -> Mosaic:
        """Make size * size squares, row by row."""
        x, y = np.meshgrid(np.arange(size) * UNIT, np.arange(size) * UNIT)
        return cls.of(np.asarray(shapely.box(x, y, x + UNIT, y + UNIT)).ravel())

    @classmethod
    def triangles(cls, rng: np.random.Generator, size: int) -> Mosaic:
        """Make size * size squares, each cut by one of its diagonals."""
        x, y = np.meshgrid(np.arange(size), np.arange(size))
        corner = np.stack([x.ravel(), y.ravel()], axis=-1)[:, None, :]
        rising = np.array([[[0, 0], [1, 0], [1, 1]], [[0, 0], [1, 1], [0, 1]]])
        falling = np.array([[[0, 0], [1, 0], [0, 1]], [[1, 0], [1, 1], [0, 1]]])
        chosen = np.where(rng.random((size * size, 1, 1, 1)) < 0.5, rising, falling)
        triangles = (corner[:, None] + chosen).reshape(-1, 3, 2) * float(UNIT)
        return cls.of(np.asarray(shapely.polygons(triangles)))

    @classmethod
    def scattered(cls, rng: np.random.Generator, points: int, size: int) -> Mosaic:
        """Make the Delaunay triangles of integer points within size * size."""
        places = np.unique(rng.integers(0, size + 1, (points, 2)), axis=0) * float(UNIT)
        cells = shapely.get_parts(shapely.delaunay_triangles(shapely.multipoints(places)))
        return cls.of(np.asarray(cells[shapely.area(cells) > 0]))

    @classmethod
    def fan(cls, rng: np.random.Generator, spokes: int) -> Mosaic:
        """Make a ring of triangles that all meet in one point, and two rings of quadrilaterals around it."""
        ways = rng.integers(-12, 13, (4 * spokes, 2))
        ways = ways[np.gcd(ways[:, 0], ways[:, 1]) == 1]  # so that no two have the same direction
        ways = np.unique(np.concatenate([ways[:spokes], [(7, 1), (-1, 6), (-8, -1), (1, -7)]]), axis=0)
        ways = UNIT * ways[np.argsort(np.arctan2(ways[:, 1], ways[:, 0]))]
        after = np.roll(ways, -1, axis=0)
        triangles = [shapely.Polygon([(0, 0), p, q]) for p, q in zip(ways, after, strict=True)]
        rings = [
            shapely.Polygon([near * p, far * p, far * q, near * q])
            for near, far in ((1, 2), (2, 3))
            for p, q in zip(ways, after, strict=True)
        ]
        return cls.of(np.array([*triangles, *rings], dtype=object))

    def __len__(self) -> int:
        return len(self.cells)

    def regions(self, masks: Bools) -> Geometries:
        """Return the union of the chosen cells for each row; of no cells, an empty geometry."""
        none = np.full(1, None, dtype=object)
        return np.asarray(shapely.coverage_union_all(np.where(masks, self.cells, none), axis=1))

    def dilate(self, masks: Bools) -> Bools:
        """Add all cells that share a point with a chosen one."""
        return reach(masks, self.touching)

    def erode(self, masks: Bools) -> Bools:
        """Keep the cells in the interior of the region: not on the rim, and all neighbours chosen too."""
        return masks & ~self.rim & ~reach(~masks, self.touching)

    def holes(self, masks: Bools) -> Bools:
        """Return the cells in the holes of each region: no way to the rim around the region through edges."""
        outside = ~masks & self.rim
        while True:
            grown = outside | (reach(outside, self.adjacent) & ~masks)
            if (grown == outside).all():
                return ~masks & ~outside
            outside = grown

    def random_masks(self, rng: np.random.Generator, count: int, least: float = 0.05) -> Bools:
        """Return regions of densities from least to 0.95: scattered, with solid places, only those, small."""
        noise = rng.random((count, len(self))) < rng.uniform(least, 0.95, (count, 1))
        solid = self.around(rng, count) | (self.around(rng, count) & (rng.random((count, 1)) < 0.5))
        small = (noise | self.around(rng, count)) & reach(self.around(rng, count), self.touching)
        return np.choose(rng.integers(0, 4, (count, 1)), [noise, noise | solid, solid, small])

    def around(self, rng: np.random.Generator, count: int) -> Bools:
        """Return a random cell and all that touch it, count times."""
        return self.touching[rng.integers(0, len(self), count)]


def reach(masks: Bools, neighbours: Bools) -> Bools:
    """Return the cells that have a chosen cell among their neighbours."""
    return np.asarray(masks.astype(np.float32) @ neighbours.astype(np.float32) > 0)


def partner_masks(rng: np.random.Generator, mosaic: Mosaic, masks: Bools) -> Bools:
    """Return a partner for each region, of a kind that is drawn: unrelated, within, beyond, apart, equal."""
    noise = rng.random(masks.shape) < rng.uniform(0.05, 0.95, (len(masks), 1))
    inner, outer = mosaic.erode(masks), ~mosaic.dilate(masks)
    kinds = [noise, masks, masks & noise, masks | noise, inner, inner & noise]
    kinds += [~masks, ~masks & noise, outer, outer & noise]
    return np.choose(rng.integers(0, len(kinds), (len(masks), 1)), kinds)


@dataclass(frozen=True)
class Census:
    """How the rings of each region are composed; for unions of the cells of a mosaic only."""

    parts: Ints
    holes: Ints
    rings_touch: Bools
    parts_touch: Bools
    straight_touch: Bools

    @classmethod
    def of(cls, regions: Geometries) -> Census:
        """Count parts and holes; find vertices that rings of one part, or several parts, have in common."""
        rings = Rings.of(regions)
        count = len(regions)
        part = rings.part_of_ring[rings.ring_of_vertex]
        in_part, in_region = shared(part, rings.xy), shared(rings.region_of_vertex, rings.xy)
        region = rings.region_of_vertex
        parts = np.bincount(rings.region_of_part, minlength=count)
        all_rings = np.bincount(rings.region_of_part[rings.part_of_ring], minlength=count)
        return cls(
            parts,
            all_rings - parts,
            np.bincount(region, in_part > 1, count) > 0,
            np.bincount(region, in_region > in_part, count) > 0,
            np.bincount(region, (in_part > 1) & rings.straight(), count) > 0,
        )


def shared(owner: Ints, xy: Floats) -> Ints:
    """Return for each vertex how many vertices of the same owner lie in the same place."""
    place = xy.astype(np.int64) + (1 << 15)
    _, which, counts = np.unique(
        (owner << 32) | (place[:, 0] << 16) | place[:, 1], return_inverse=True, return_counts=True
    )
    return np.asarray(counts[which])
