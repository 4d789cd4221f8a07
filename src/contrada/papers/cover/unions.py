"""Does a union of regions or of boxes hold another one? Exact, with bounded work: what is not decided counts as no."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.geometry import Region

Number = int | Fraction
Place = tuple[Number, Number]
Bounds = NDArray[np.float64]
MAX_EDGES = 160  # of all regions together
MAX_PIECES = 500  # of a box, while others are cut out of it
FLOAT_ERROR = 1e-9  # share of a region's area that a union in doubles may miss and still be tried exactly


class Edge(NamedTuple):
    """A directed edge whose owner's interior lies on its left."""

    start: Place
    end: Place
    owner: int


def is_box_within(low: Bounds, high: Bounds, others: Bounds) -> bool:
    """Return True if boxes (rows of lows, then highs) together hold a box; False also after MAX_PIECES pieces.

    Each box is cut out of the pieces that are left.

    >>> halves = np.array([[0.0, 0.0, 2.0, 4.0], [2.0, 0.0, 4.0, 4.0]])
    >>> is_box_within(np.array([1.0, 1.0]), np.array([3.0, 3.0]), halves)
    True
    """
    lows, highs = low[None, :], high[None, :]
    for other in others:
        near, far = np.split(other, 2)
        is_cut = ((lows < far) & (highs > near)).all(axis=1)
        parts = [(lows[~is_cut], highs[~is_cut]), *cut_out(lows[is_cut], highs[is_cut], near, far)]
        lows, highs = (np.concatenate(ends) for ends in zip(*parts, strict=True))
        if not 0 < len(lows) <= MAX_PIECES:
            break
    return not len(lows)


def cut_out(lows: Bounds, highs: Bounds, near: Bounds, far: Bounds) -> Iterator[tuple[Bounds, Bounds]]:
    """Yield boxes that hold, together with the box near..far, all of boxes that share something with it."""
    lows, highs = lows.copy(), highs.copy()
    for axis in range(lows.shape[1]):
        for is_out, end, cut in ((lows < near, highs, near), (highs > far, lows, far)):
            rows = is_out[:, axis]
            outer = [lows[rows], highs[rows]]
            outer[0 if end is lows else 1][:, axis] = cut[axis]
            yield outer[0], outer[1]
        lows[:, axis] = np.maximum(lows[:, axis], near[axis])
        highs[:, axis] = np.minimum(highs[:, axis], far[axis])


def is_region_within(region: Region, others: Sequence[Region]) -> bool:
    """Return True if regions together hold another; False also if they have more than MAX_EDGES edges.

    A first look in doubles excludes most; then every part of an edge between two crossings is looked at in rational
    numbers: the region is held if no part has a side that lies within it and outside all others.

    >>> halves = [Region.box(0, 0, 2, 4), Region.box(2, 0, 4, 4)]
    >>> is_region_within(Region.box(1, 1, 3, 3), halves), is_region_within(Region.box(1, 1, 3, 5), halves)
    (True, False)
    """
    shapes = [one.to_shapely() for one in (region, *others)]
    if sum(map(shapely.get_num_coordinates, shapes)) > MAX_EDGES:
        return False
    left = shapely.difference(shapes[0], shapely.union_all(shapes[1:]))
    if shapely.area(left) > FLOAT_ERROR * shapely.area(shapes[0]):
        return False
    scale = max(x.as_integer_ratio()[1] for shape in shapes for x in shapely.get_coordinates(shape).ravel().tolist())
    edges = [edge for owner, shape in enumerate(shapes) for edge in edges_of(shape, owner, scale)]
    diagonal = diagonal_of(edges)
    near = [edge for edge in edges if not is_far(edge, diagonal)]
    return not any(is_uncovered(edges, edge, place) for edge in near for place in middles(edges, edge))


def diagonal_of(edges: list[Edge]) -> Edge:
    """Return the diagonal of the box of the first region, as an edge: it is far from what is far from the box."""
    xs, ys = zip(*(edge.start for edge in edges if edge.owner == 0), strict=True)
    return Edge((min(xs), min(ys)), (max(xs), max(ys)), 0)


def edges_of(shape: object, owner: int, scale: int) -> Iterator[Edge]:
    """Yield the edges of a polygon or of several, with the interior on the left; `scale` makes them whole numbers."""
    for part in shapely.get_parts(shape):
        turned = shapely.orient_polygons(part)  # shells counter-clockwise, holes clockwise
        for ring in (turned.exterior, *turned.interiors):
            places = [(whole(x, scale), whole(y, scale)) for x, y in shapely.get_coordinates(ring).tolist()]
            yield from (Edge(*pair, owner) for pair in pairwise(places))


def whole(x: float, scale: int) -> int:
    """Return a double times a power of two that makes it whole."""
    above, below = x.as_integer_ratio()
    return above * (scale // below)


def cross(a: Place, b: Place, c: Place) -> Number:
    """Return twice the area of the triangle: above 0 if c lies left of the line from a to b."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def middles(edges: list[Edge], edge: Edge) -> Iterator[Place]:
    """Yield the middle of each part of an edge between places where other edges cross, touch or end."""
    (ax, ay), (bx, by) = edge.start, edge.end
    cuts: set[Number] = {0, 1}
    for other in edges:
        if is_far(edge, other):
            continue
        first, second = cross(edge.start, edge.end, other.start), cross(edge.start, edge.end, other.end)
        if first * second < 0:
            one, two = cross(other.start, other.end, edge.start), cross(other.start, other.end, edge.end)
            if one != two:
                cuts.add(Fraction(one, one - two))
        for side, end in ((first, other.start), (second, other.end)):
            if side == 0:
                cuts.add(Fraction(end[0] - ax, bx - ax) if ax != bx else Fraction(end[1] - ay, by - ay))
    inner = sorted(cut for cut in cuts if 0 <= cut <= 1)
    for low, high in pairwise(inner):
        middle = Fraction(low + high) / 2
        yield ax + middle * (bx - ax), ay + middle * (by - ay)


def is_far(edge: Edge, other: Edge) -> bool:
    """Return whether the boxes of two edges have no common point."""
    return any(
        max(edge.start[axis], edge.end[axis]) < min(other.start[axis], other.end[axis])
        or min(edge.start[axis], edge.end[axis]) > max(other.start[axis], other.end[axis])
        for axis in range(2)
    )


def is_uncovered(edges: list[Edge], edge: Edge, place: Place) -> bool:
    """Return whether a side of an edge at a place lies within the first region and outside all others."""
    x, y = place
    inside: dict[int, int] = {}  # by owner, how often a ray to the right crosses its edges
    sides: dict[int, set[bool]] = {}  # owners with an edge at the place: whether they lie on the left of `edge`
    for other in edges:
        (ax, ay), (bx, by) = other.start, other.end
        if (ay > y) != (by > y):
            side = cross(other.start, other.end, place)
            inside[other.owner] = inside.get(other.owner, 0) + ((side > 0) == (by > ay) and side != 0)
        if min(ax, bx) <= x <= max(ax, bx) and min(ay, by) <= y <= max(ay, by) and cross(*other[:2], place) == 0:
            along = (bx - ax) * (edge.end[0] - edge.start[0]) + (by - ay) * (edge.end[1] - edge.start[1])
            sides.setdefault(other.owner, set()).add(along > 0)
    owners = {other.owner for other in edges}
    for is_left in (True, False):
        holding = {one for one in owners if (is_left in sides[one] if one in sides else inside.get(one, 0) % 2)}
        if holding == {0}:
            return True
    return False
