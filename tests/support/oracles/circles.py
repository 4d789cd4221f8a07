"""The judge of circles: the relation of a circle to a Shapely shape or another circle, in fractions.

Written for tests, to be obviously right; it shares no code with the kernels. A circle touches a boundary where the
square of a distance of its centre equals the square of its radius.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import contrada as ct

Spot: TypeAlias = tuple[Fraction, Fraction]
R = ct.Relation


def relation_of_circle(circle: ct.Circle, shape: Any) -> ct.Relation:
    """Return the relation of a circle to a Shapely point, polygon or multipolygon."""
    center, square = _spot(circle.center.x, circle.center.y), Fraction(circle.radius) ** 2
    if shape.geom_type == "Point":
        apart = _square(center, _spot(shape.x, shape.y))
        if apart > square:
            return R.DISJOINT
        if circle.radius == 0:
            return R.EQUALS
        return R.MEETS if apart == square else R.CONTAINS
    edges = list(_edges(shape))
    near = min(_from_edge(center, *edge) for edge in edges)
    far = max(_square(center, end) for end, _ in edges)
    is_inside = _is_inside(center, edges)
    if circle.radius == 0:
        return R.MEETS if near == 0 else R.INSIDE if is_inside else R.DISJOINT
    if near > square:
        return R.INSIDE if is_inside else R.DISJOINT
    if near == square:
        return R.COVERED_BY if is_inside else R.MEETS
    return R.OVERLAPS if far > square else R.COVERS if far == square else R.CONTAINS


def squares_to(circle: ct.Circle, shape: Any) -> tuple[Fraction, Fraction]:
    """Return the squares of the distances of a circle's centre from a shape's boundary and from its last corner."""
    center = _spot(circle.center.x, circle.center.y)
    if shape.geom_type == "Point":
        return (_square(center, _spot(shape.x, shape.y)),) * 2
    edges = list(_edges(shape))
    return min(_from_edge(center, *edge) for edge in edges), max(_square(center, end) for end, _ in edges)


def is_circle_within_distance(circle: ct.Circle, shape: Any, distance: float) -> bool:
    """Return whether a circle has a point at most so far from a shape: d + r is added as fractions."""
    asked = Fraction(circle.radius) + Fraction(distance)
    center = _spot(circle.center.x, circle.center.y)
    near, _ = squares_to(circle, shape)
    return near <= asked**2 or (shape.geom_type != "Point" and _is_inside(center, list(_edges(shape))))


def is_circle_within_circle(circle: ct.Circle, x: float, y: float, distance: float) -> bool:
    """Return whether every point of a circle is at most so far from a point."""
    room = Fraction(distance) - Fraction(circle.radius)
    return room >= 0 and _square(_spot(circle.center.x, circle.center.y), _spot(x, y)) <= room**2


def _edges(shape: Any) -> Iterator[tuple[Spot, Spot]]:
    for part in getattr(shape, "geoms", [shape]):
        for ring in (part.exterior, *part.interiors):
            spots = [_spot(*place) for place in ring.coords]
            yield from pairwise(spots)


def _spot(x: float, y: float) -> Spot:
    return Fraction(float(x)), Fraction(float(y))


def _square(a: Spot, b: Spot) -> Fraction:
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2


def _from_edge(spot: Spot, start: Spot, end: Spot) -> Fraction:
    ux, uy = end[0] - start[0], end[1] - start[1]
    length = ux * ux + uy * uy
    if length == 0:
        return _square(spot, start)
    along = ((spot[0] - start[0]) * ux + (spot[1] - start[1]) * uy) / length
    along = min(max(along, Fraction(0)), Fraction(1))
    return _square(spot, (start[0] + along * ux, start[1] + along * uy))


def _is_inside(spot: Spot, edges: list[tuple[Spot, Spot]]) -> bool:
    """Return whether a spot that is on no edge lies inside."""
    x, y = spot
    inside = False
    for (ax, ay), (bx, by) in edges:
        if (ay > y) != (by > y) and x < ax + (y - ay) * (bx - ax) / (by - ay):
            inside = not inside
    return inside
