"""Hypothesis strategies for regions, points and relations: coarse coordinates, so that boundaries touch."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import shapely
from hypothesis import strategies as st

from contrada.geometry import Circle, Point, Region, Relation, RelationSet
from contrada.model import BeyondDistance, WithinDistance
from contrada.model.reach import DistanceOperator
from contrada.papers.spatial.drawn_regions import star_order
from generators.families.mosaic import Mosaic

GRID = 6  # coordinates are 0..GRID


def coordinates() -> st.SearchStrategy[float]:
    """Small integers, as floats."""
    return st.integers(0, GRID).map(float)


@lru_cache
def mosaic(size: int, diagonals: int) -> Mosaic:
    """Return size * size squares, each cut by one of its diagonals; the number chooses which."""
    return Mosaic.triangles(np.random.default_rng(diagonals), size)


@st.composite
def mosaic_shapes(draw: st.DrawFn, count: int = 1) -> tuple[Any, ...]:
    """So many Shapely regions of the cells of one mosaic: holes and parts that touch in every way."""
    cells = mosaic(draw(st.integers(1, 3)), draw(st.integers(0, 3)))
    chosen = st.lists(st.booleans(), min_size=len(cells), max_size=len(cells)).filter(any)
    masks = np.array([draw(chosen) for _ in range(count)])
    return tuple(cells.regions(masks))


def grid_points(is_unique: bool = False) -> st.SearchStrategy[list[tuple[float, float]]]:
    """Three to seven points on the grid."""
    return st.lists(st.tuples(coordinates(), coordinates()), min_size=3, max_size=7, unique=is_unique)


def simple_shapes() -> st.SearchStrategy[Any]:
    """Simple Shapely polygons of three to seven vertices on the grid, in order around their mean."""
    polygons = grid_points(is_unique=True).map(lambda points: shapely.Polygon(star_order(np.array(points))))
    return polygons.filter(shapely.is_valid)


def shapes() -> st.SearchStrategy[Any]:
    """Valid Shapely polygons and multipolygons."""
    return simple_shapes() | mosaic_shapes().map(lambda shapes: shapes[0])


def shape_pairs(count: int = 2) -> st.SearchStrategy[tuple[Any, ...]]:
    """Two or so many valid Shapely regions, unrelated or of the same cells."""
    return st.tuples(*[shapes()] * count) | mosaic_shapes(count)


def regions() -> st.SearchStrategy[Region]:
    """Regions: simple, with holes, of several parts."""
    return shapes().map(Region.from_shapely)


def points() -> st.SearchStrategy[Point]:
    """Points on the grid and in the middles between: often vertices, often on edges."""
    place = st.integers(0, 2 * GRID).map(lambda k: k / 2)
    return st.builds(Point, place, place)


def circles() -> st.SearchStrategy[Circle]:
    """Circles around places of the grid, which often touch edges and vertices; some are points."""
    return st.builds(Circle, points(), st.sampled_from([0.0, 0.5, 1.0, 2.0, 2.5, 5.0, 2**0.5, 1e9]))


def relations() -> st.SearchStrategy[Relation]:
    """Any of the eight."""
    return st.sampled_from(Relation)


def distances() -> st.SearchStrategy[DistanceOperator]:
    """Within or beyond a distance that is common on the grid: 0, sides and diagonals."""
    distance = st.sampled_from([0.0, 0.5, 1.0, 2.0, 5.0, 2**0.5, 1e9])
    return st.builds(WithinDistance, distance) | st.builds(BeyondDistance, distance)


def relation_sets() -> st.SearchStrategy[RelationSet]:
    """Any set of relations."""
    return st.integers(0, 255).map(RelationSet.from_mask)


def rings() -> st.SearchStrategy[list[tuple[float, float]]]:
    """Closed rings of any three to seven grid points in any order: most of them not simple."""
    return grid_points().map(lambda ring: [*ring, ring[0]])


def any_polygons() -> st.SearchStrategy[Any]:
    """Shapely polygons and multipolygons of any rings, valid or not."""
    shell = st.just([(0.0, 0.0), (GRID, 0.0), (GRID, GRID), (0.0, GRID), (0.0, 0.0)]) | rings()
    part = st.builds(shapely.Polygon, shell, st.lists(rings(), max_size=2))
    return part | st.lists(part, min_size=2, max_size=3).map(shapely.MultiPolygon)


coarse_coordinates: st.SearchStrategy[float] = st.integers(0, 4).map(float) | st.sampled_from(
    [-np.inf, np.inf, 0.5, -1e300, 1e300]
)


def coarse_points(dimensions: int) -> st.SearchStrategy[list[float]]:
    """Points of any dimension with many ties, and with ends that are infinite or huge."""
    return st.lists(coarse_coordinates, min_size=dimensions, max_size=dimensions)
