"""Lines that are hard: on coarse grids, crossing themselves, along edges of regions, in parts that meet."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import shapely
from hypothesis import strategies as st

from generators.strategies import GRID, coordinates, mosaic_shapes, shapes

Vertices = list[tuple[float, float]]


def chains(most: int = 6) -> st.SearchStrategy[Vertices]:
    """Two to `most` grid points in any order, not all equal: often collinear, closed, crossing itself, going back."""
    vertices = st.lists(st.tuples(coordinates(), coordinates()), min_size=2, max_size=most)
    return vertices.filter(lambda chain: len(set(chain)) > 1)


def parts_that_meet() -> st.SearchStrategy[list[Vertices]]:
    """Several parts that begin or end in few common points."""
    hubs = st.lists(st.tuples(coordinates(), coordinates()), min_size=1, max_size=2, unique=True)

    def joined(hubs: Vertices) -> st.SearchStrategy[list[Vertices]]:
        hub = st.sampled_from(hubs)
        part = st.tuples(hub, chains(3), st.booleans(), st.booleans()).map(
            lambda drawn: [drawn[0]] * drawn[2] + drawn[1] + [drawn[0]] * drawn[3]
        )
        return st.lists(part, min_size=1, max_size=4)

    return hubs.flatmap(joined)


def as_line(parts: list[Vertices]) -> Any:
    """Return the Shapely line of these parts."""
    return shapely.LineString(parts[0]) if len(parts) == 1 else shapely.MultiLineString(parts)


def line_shapes() -> st.SearchStrategy[Any]:
    """Shapely lines of one or several parts."""
    single = chains().map(lambda chain: [chain])
    several = st.lists(chains(4), min_size=2, max_size=4)
    return (single | several | parts_that_meet()).map(as_line)


def outline_parts(shape: Any) -> list[Vertices]:
    """Return the rings of a Shapely region as parts of a line."""
    return [list(ring.coords) for part in shapely.get_parts(shape) for ring in (part.exterior, *part.interiors)]


@st.composite
def lines_along(draw: st.DrawFn, shape: Any) -> Any:
    """Lines that follow the outline of a region for some way, and may leave it."""
    rings = outline_parts(shape)
    parts = []
    for ring in draw(st.lists(st.sampled_from(rings), min_size=1, max_size=3)):
        start = draw(st.integers(0, len(ring) - 2))
        length = draw(st.integers(1, len(ring) - 1))
        turned = ring[start:-1] + ring[:start] + [ring[start]]
        way = turned[: length + 1]
        extra = draw(st.lists(st.tuples(coordinates(), coordinates()), max_size=2))
        parts.append(way + extra if draw(st.booleans()) else extra + way)
    return as_line(parts)


@st.composite
def mixed_pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """Two Shapely shapes, at least one of them a line; points are often vertices or middles of edges."""
    region = draw(shapes() | mosaic_shapes().map(lambda found: found[0]))
    line = draw(line_shapes() | lines_along(region))
    kind = draw(st.sampled_from(["region", "line", "along", "point", "same"]))
    if kind == "region":
        return line, region
    if kind == "line":
        return line, draw(line_shapes())
    if kind == "along":
        return line, draw(lines_along(region))
    if kind == "same":
        edges = [list(pair) for part in shapely.get_parts(line) for pair in pairwise(part.coords)]
        edges = [edge for edge in edges if edge[0] != edge[1]]
        some = draw(st.lists(st.sampled_from(edges), min_size=1, max_size=len(edges)))
        return line, as_line([edge[:: draw(st.sampled_from([1, -1]))] for edge in some])
    place = st.integers(0, 2 * GRID).map(lambda k: k / 2)
    return line, shapely.Point(draw(place), draw(place))


def random_lines(rng: np.random.Generator, count: int, size: int, step: float) -> Any:
    """Shapely lines of random walks with `size` vertices, on a grid of sixteenths."""
    walks = np.cumsum(np.round(rng.normal(0, step, (count, size, 2)) * 16) / 16, axis=1)
    starts = np.round(rng.uniform(0, 100, (count, 1, 2)) * 16) / 16
    return shapely.linestrings(starts + walks)
