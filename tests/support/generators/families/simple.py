"""Families of simple polygons with few vertices on coarse integer grids, and partners forced into contact."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import shapely

from contrada.papers.spatial.drawn_regions import star_order
from generators.families.family import Maker, Pairs
from generators.rings import Bools, Floats, Geometries, add_straight, redescribe

ROUNDS = 16  # in which polygons are drawn, each with another number of vertices
UNIT = 12  # the grid's step: halves, thirds and quarters are integers too

Derive = Callable[[np.random.Generator, Floats], Floats]


def stars(rng: np.random.Generator, count: int, vertices: int, size: int) -> Floats:
    """Return polygons (count, vertices, 2) on a grid of 0..size, star-shaped if they are simple.

    Each has its first vertex anywhere; centre(polygons) lies within those that are simple.
    """
    points = (UNIT * rng.integers(0, size + 1, (count, vertices, 2))).astype(np.float64)
    return star_order(points, centre(points))


def centre(polygons: Floats) -> Floats:
    """Return the grid point or middle between two next to the mean of the vertices, (count, 1, 2)."""
    half = UNIT / 2
    return np.asarray(np.round(polygons.mean(axis=1, keepdims=True) / half) * half)


def pick(rng: np.random.Generator, polygons: Floats, after: int = 0) -> Floats:
    """Return a random vertex of each polygon, (count, 1, 2); with after, also the ones that follow."""
    count, vertices = polygons.shape[:2]
    places = rng.integers(0, vertices, (count, 1)) + np.arange(after + 1)
    return np.take_along_axis(polygons, places[..., None] % vertices, axis=1)


def about_vertex(rng: np.random.Generator, polygons: Floats) -> Floats:
    """Shrink, grow or reflect each polygon about one of its vertices."""
    factor = rng.choice([-1, -1 / 2, 1 / 4, 1 / 2, 3 / 4, 3 / 2, 2], (len(polygons), 1, 1))
    vertex = pick(rng, polygons)
    return np.asarray(vertex + factor * (polygons - vertex))


def about_centre(rng: np.random.Generator, polygons: Floats) -> Floats:
    """Shrink each polygon about its centre."""
    middle = centre(polygons)
    return np.asarray(middle + rng.choice([1 / 3, 1 / 2, 2 / 3], (len(polygons), 1, 1)) * (polygons - middle))


def mirrored(rng: np.random.Generator, polygons: Floats) -> Floats:
    """Reflect each polygon in the right or the upper side of its box."""
    axis = rng.random((len(polygons), 1, 1)) < np.array([0.5, 0.5])
    axis[..., 1] = ~axis[..., 0]
    return np.where(axis, 2 * polygons.max(axis=1, keepdims=True) - polygons, polygons)


def slid(rng: np.random.Generator, polygons: Floats) -> Floats:
    """Move each polygon from one of its vertices to another, or half of that way."""
    way = pick(rng, polygons) - pick(rng, polygons)
    return np.asarray(polygons + way * rng.choice([0.5, 1, 1], (len(polygons), 1, 1)))


def stepped(rng: np.random.Generator, polygons: Floats) -> Floats:
    """Move each polygon by a few grid steps."""
    return np.asarray(polygons + UNIT * rng.integers(-4, 5, (len(polygons), 1, 2)))


def without_vertex(rng: np.random.Generator, polygons: Floats) -> Floats:
    """Drop one vertex of each polygon; a triangle stays."""
    vertices = polygons.shape[1]
    return polygons if vertices == 3 else pick(rng, polygons, after=vertices - 2)


def with_moved_vertex(rng: np.random.Generator, polygons: Floats) -> Floats:
    """Move one vertex of each polygon to another grid point; the edges that do not end there stay."""
    turned = pick(rng, polygons, after=polygons.shape[1] - 1)
    turned[:, 0] += UNIT * rng.integers(-2, 3, (len(polygons), 2))
    return turned


def on_edge(rng: np.random.Generator, polygons: Floats) -> Floats:
    """Make a triangle over an edge of each polygon, or a piece of the edge, to a grid point or its centre."""
    edge = pick(rng, polygons, after=1)
    start = rng.choice([0, 0, 1 / 4, 1 / 2], (len(polygons), 1))
    end = rng.choice([1, 1, 3 / 4], (len(polygons), 1))
    way = edge[:, 1] - edge[:, 0]
    apex = edge[:, 0] + UNIT * rng.integers(-3, 4, (len(polygons), 2))
    apex = np.where(rng.random((len(polygons), 1)) < 0.4, centre(polygons)[:, 0], apex)
    return np.stack([edge[:, 0] + start * way, edge[:, 0] + end * way, apex], axis=1)


def at_middle(rng: np.random.Generator, polygons: Floats) -> Floats:
    """Move another polygon so that one of its vertices lies in the middle of an edge of each."""
    other = polygons[rng.permutation(len(polygons))]
    return np.asarray(other - pick(rng, other) + pick(rng, polygons, after=1).mean(axis=1, keepdims=True))


def at_vertex(rng: np.random.Generator, polygons: Floats) -> Floats:
    """Move another polygon, small or large, so that one of its vertices is a vertex of each."""
    other = polygons[rng.permutation(len(polygons))] * rng.choice([1 / 4, 1 / 2, 1, 2], (len(polygons), 1, 1))
    return np.asarray(other - pick(rng, other) + pick(rng, polygons))


def unrelated(rng: np.random.Generator, polygons: Floats) -> Floats:
    """Return another polygon of the lot, of another size."""
    other = polygons[rng.permutation(len(polygons))]
    return np.asarray(other * rng.choice([1 / 4, 1 / 2, 1], (len(polygons), 1, 1)))


def chosen_vertices(rng: np.random.Generator, polygons: Floats) -> Floats:
    """Make a triangle of three vertices of each polygon."""
    order = rng.random(polygons.shape[:2]).argsort(axis=1)[:, :3]
    return np.take_along_axis(polygons, np.sort(order, axis=1)[..., None], axis=1)


def boxed(rng: np.random.Generator, polygons: Floats) -> Floats:
    """Return the box of each polygon, or that box one step larger."""
    step = UNIT * rng.integers(0, 2, (len(polygons), 2))
    low, high = polygons.min(axis=1) - step, polygons.max(axis=1) + step
    corners = [low, np.stack([high[:, 0], low[:, 1]], -1), high, np.stack([low[:, 0], high[:, 1]], -1)]
    return np.stack(corners, axis=1)


def same(rng: np.random.Generator, polygons: Floats) -> Floats:
    """Return each polygon again."""
    return polygons


ALL: Sequence[Derive] = (
    about_vertex, about_centre, mirrored, slid, stepped, without_vertex, with_moved_vertex, on_edge,
    at_middle, at_vertex, unrelated, chosen_vertices, boxed, same,
)  # fmt: skip


def derived(vertices: tuple[int, int], derivations: Sequence[Derive]) -> Maker:
    """Make polygons of so many vertices and what each derivation makes of its share of them."""

    def make(rng: np.random.Generator, count: int) -> Pairs:
        firsts, seconds = [], []
        for _ in range(ROUNDS):
            polygons = valid_stars(rng, -(-count // ROUNDS), int(rng.integers(vertices[0], vertices[1] + 1)))
            lots = np.array_split(rng.permutation(len(polygons)), len(derivations))
            for lot, derive in zip(lots, derivations, strict=True):
                if len(lot):
                    firsts.append(shapely.polygons(polygons[lot]))
                    seconds.append(shapely.polygons(derive(rng, polygons[lot])))
        return np.concatenate(firsts), reordered(rng, np.concatenate(seconds))

    return make


coarse = derived((3, 9), ALL)
triangles = derived((3, 3), ALL)
shared_edges = derived((4, 8), (without_vertex, with_moved_vertex, on_edge, same))  # a piece of an edge in common
shared_vertices = derived((3, 7), (about_vertex, at_vertex, chosen_vertices, same))  # a vertex in common


def valid_stars(rng: np.random.Generator, count: int, vertices: int) -> Floats:
    """Return simple polygons on grids of several sizes."""
    polygons = np.concatenate([stars(rng, count, vertices, size) for size in rng.integers(4, 9, 2)])
    simple: Bools = shapely.is_valid(shapely.polygons(polygons))
    return polygons[simple][:count]


def reordered(rng: np.random.Generator, regions: Geometries) -> Geometries:
    """Return a third of the regions turned and with vertices added in straight edges."""
    chosen = np.flatnonzero((rng.random(len(regions)) < 1 / 3) & shapely.is_valid(regions))
    regions[chosen] = redescribe(rng, add_straight(rng, regions[chosen], 0.2))
    return regions
