"""Columns of Shapely polygons as flat rings, to describe the same regions in other ways, many at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray

from oracles.rational import Polygons

Geometries: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Rings:
    """Every ring without its closing vertex; which ring, part and region each vertex, ring and part is of."""

    xy: Floats
    ring_of_vertex: Ints
    part_of_ring: Ints
    region_of_part: Ints

    @classmethod
    def of(cls, regions: Geometries) -> Rings:
        """Flatten polygons and multipolygons."""
        _, xy, (ends, ring_offsets, part_offsets) = shapely.to_ragged_array(as_multipolygons(regions))
        ring_of_vertex = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        closing = np.zeros(len(xy), bool)
        closing[ends[1:] - 1] = True
        return cls(
            np.ascontiguousarray(xy[~closing, :2]),
            ring_of_vertex[~closing],
            np.repeat(np.arange(len(ring_offsets) - 1), np.diff(ring_offsets)),
            np.repeat(np.arange(len(part_offsets) - 1), np.diff(part_offsets)),
        )

    @property
    def starts(self) -> Ints:
        """The first vertex of each ring, and the number of vertices."""
        return offsets(self.ring_of_vertex, len(self.part_of_ring))

    @property
    def region_of_vertex(self) -> Ints:
        """The region of each vertex."""
        return self.region_of_part[self.part_of_ring[self.ring_of_vertex]]

    def neighbours(self) -> tuple[Floats, Floats]:
        """Return the vertex before and the vertex after each, around its ring."""
        starts = self.starts
        before, after = np.arange(len(self.xy)) - 1, np.arange(len(self.xy)) + 1
        before[starts[:-1]] = starts[1:] - 1
        after[starts[1:] - 1] = starts[:-1]
        return self.xy[before], self.xy[after]

    def straight(self) -> Bools:
        """Whether each vertex lies on the line of its neighbours; exact for integers below 2**25."""
        before, after = self.neighbours()
        arriving, leaving = self.xy - before, after - self.xy
        return np.asarray(arriving[:, 0] * leaving[:, 1] == arriving[:, 1] * leaving[:, 0])

    def keep(self, wanted: Bools) -> Rings:
        """Drop the other vertices; at least three of each ring must stay."""
        return replace(self, xy=self.xy[wanted], ring_of_vertex=self.ring_of_vertex[wanted])

    def geometries(self) -> Geometries:
        """Return the regions, one part as a Polygon, several as a MultiPolygon."""
        starts = self.starts
        closed = np.insert(np.arange(len(self.xy)), starts[1:], starts[:-1])
        ends = starts + np.arange(len(starts))
        ring_offsets = offsets(self.part_of_ring, len(self.region_of_part))
        count = int(self.region_of_part[-1]) + 1 if len(self.region_of_part) else 0
        part_offsets = offsets(self.region_of_part, count)
        regions = shapely.from_ragged_array(
            shapely.GeometryType.MULTIPOLYGON, self.xy[closed], (ends, ring_offsets, part_offsets)
        )
        single = np.diff(part_offsets) == 1
        regions[single] = shapely.get_geometry(regions[single], 0)
        return np.asarray(regions)


def offsets(owner: Ints, count: int) -> Ints:
    """Return where each of count owners begins in a sorted array of owners, and its length."""
    return np.searchsorted(owner, np.arange(count + 1)).astype(np.int64)


def as_multipolygons(regions: Geometries) -> Geometries:
    """Return regions with the single polygons wrapped, so that one layout holds all."""
    wrapped = np.array(regions, dtype=object)
    rows = np.flatnonzero(shapely.get_type_id(wrapped) == shapely.GeometryType.POLYGON)
    wrapped[rows] = shapely.multipolygons(wrapped[rows], indices=np.arange(len(rows)))
    return wrapped


def polygons(region: Any) -> Polygons:
    """Return the coordinates of one Shapely polygon or multipolygon as the judge reads them."""
    return [
        (
            shapely.get_coordinates(part.exterior).tolist(),
            [shapely.get_coordinates(hole).tolist() for hole in part.interiors],
        )
        for part in shapely.get_parts(region)
    ]


def redescribe(rng: np.random.Generator, regions: Geometries) -> Geometries:
    """Return the same regions with other ring starts and directions and another order of parts and holes."""
    rings = Rings.of(regions)
    parts = np.lexsort((rng.random(len(rings.region_of_part)), rings.region_of_part))
    part_rank = np.argsort(parts)
    first = offsets(rings.part_of_ring, len(parts))[:-1]
    hole = np.ones(len(rings.part_of_ring), bool)
    hole[first] = False
    order = np.lexsort((rng.random(len(hole)), hole, part_rank[rings.part_of_ring]))
    sizes = np.diff(rings.starts)[order]
    ring_of_vertex = np.repeat(np.arange(len(order)), sizes)
    place = np.arange(len(rings.xy)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    turn = rng.choice([-1, 1], len(order))[ring_of_vertex]
    shift = rng.integers(0, sizes)[ring_of_vertex]
    source = rings.starts[order][ring_of_vertex] + (shift + turn * place) % sizes[ring_of_vertex]
    return Rings(
        rings.xy[source], ring_of_vertex, part_rank[rings.part_of_ring][order], rings.region_of_part
    ).geometries()


def drop_straight(rng: np.random.Generator, regions: Geometries, share: float) -> Geometries:
    """Return the same regions, on integer coordinates, without a share of the vertices in straight edges."""
    rings = Rings.of(regions)
    return rings.keep(~rings.straight() | (rng.random(len(rings.xy)) >= share)).geometries()


def add_straight(rng: np.random.Generator, regions: Geometries, share: float) -> Geometries:
    """Return the same regions with the middle of a share of the edges as a vertex; exact on even integers."""
    rings = Rings.of(regions)
    chosen = np.flatnonzero(rng.random(len(rings.xy)) < share)
    _, after = rings.neighbours()
    middle = (rings.xy[chosen] + after[chosen]) / 2
    xy = np.insert(rings.xy, chosen + 1, middle, axis=0)
    owner = np.insert(rings.ring_of_vertex, chosen + 1, rings.ring_of_vertex[chosen])
    return replace(rings, xy=xy, ring_of_vertex=owner).geometries()
