"""The judge of DE-9IM matrices: points, lines and regions in exact rational arithmetic, without the kernels' methods.

All edges of both shapes are cut at every point where two of them meet. Every cut is a point, every piece between two
cuts an open segment that no edge enters or leaves, and both sides of every piece are faces. So each point of the
plane is alike, to both shapes, to one of these places or to the outside of everything. Locating them all, by
definition, fills the matrix.

A shape is ("point", [(x, y)]), ("line", parts) or ("region", polygons); parts and rings are sequences of (x, y).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from oracles.rational import (
    Edge,
    Outline,
    all_cuts,
    boundary,
    common_scale,
    integer,
    make_edge,
    odd_crossings,
    point_rational,
)

Place = tuple[Fraction, Fraction]
ORDER = "IBE"


class Shape:
    """A point, line or region with coordinates scaled to integers."""

    def __init__(self, kind: str, content: Any, scale: int) -> None:
        self.kind = kind
        self.edges: Outline = []
        self.spots: list[Any] = []
        self.ends: set[Any] = set()
        if kind == "region":
            self.edges = boundary(content, scale)
            self.polygons = [
                ([scaled(p, scale) for p in shell], [[scaled(p, scale) for p in hole] for hole in holes])
                for shell, holes in content
            ]
        elif kind == "line":
            counts: Counter[tuple[int, int]] = Counter()
            for part in content:
                nodes = [scaled(p, scale) for p in part]
                counts.update([nodes[0], nodes[-1]])
                self.edges += [make_edge(p, q) for p, q in pairwise(nodes) if p != q]
            self.ends = {node for node, count in counts.items() if count % 2}
        else:
            self.spots = [scaled(p, scale) for p in content]

    def locate(self, place: Place) -> str:
        """Return I, B or E."""
        if self.kind == "point":
            return "I" if place in self.spots else "E"
        if self.kind == "line":
            if place in self.ends:
                return "B"
            return "I" if any(is_on(place, edge) for edge in self.edges) else "E"
        return {1: "B", 4: "I", 0: "E"}[point_rational(place, self.polygons)]


def scaled(point: Sequence[Any], scale: int) -> tuple[int, int]:
    """Return a point of integers."""
    return integer(point[0], scale), integer(point[1], scale)


def is_on(place: Place, edge: Edge) -> bool:
    """Return True if the place is on the edge, its ends included."""
    x, y = place
    turn = (edge.qx - edge.px) * (y - edge.py) - (edge.qy - edge.py) * (x - edge.px)
    return turn == 0 and edge.xmin <= x <= edge.xmax and edge.ymin <= y <= edge.ymax


def matrix_rational(a: tuple[str, Any], b: tuple[str, Any]) -> str:
    """Return the DE-9IM matrix of two shapes."""
    scale = common_scale(*(as_polygons(*shape) for shape in (a, b)))
    shapes = Shape(*a, scale), Shape(*b, scale)
    dims: dict[tuple[str, str], int] = {("E", "E"): 2}

    def note(place: tuple[str, str], dimension: int) -> None:
        dims[place] = max(dims.get(place, -1), dimension)

    edges = shapes[0].edges + shapes[1].edges
    cutters = edges + [make_edge(spot, spot) for shape in shapes for spot in shape.spots]
    outlines = [shape.edges if shape.kind == "region" else [] for shape in shapes]
    for spot in shapes[0].spots + shapes[1].spots:
        place = Fraction(spot[0]), Fraction(spot[1])
        note((shapes[0].locate(place), shapes[1].locate(place)), 0)
    for edge in edges:
        dx, dy = edge.qx - edge.px, edge.qy - edge.py
        places = sorted(all_cuts(edge, cutters))
        for t in places:
            place = edge.px + t * dx, edge.py + t * dy
            note((shapes[0].locate(place), shapes[1].locate(place)), 0)
        for low, high in pairwise(places):
            t = (low + high) / 2
            middle = edge.px + t * dx, edge.py + t * dy
            note((shapes[0].locate(middle), shapes[1].locate(middle)), 1)
            n, w = t.numerator, t.denominator
            for face in odd_crossings((w * edge.px + n * dx, w * edge.py + n * dy, w), (dx, dy), outlines):
                note(("I" if 0 in face else "E", "I" if 1 in face else "E"), 2)
    return "".join(str(dims.get((row, column), "F")) for row in ORDER for column in ORDER)


def as_polygons(kind: str, content: Any) -> Any:
    """Return any shape in the form that `common_scale` takes."""
    if kind == "region":
        return content
    return [(part, []) for part in ([content] if kind == "point" else content)]


def shape_of(geometry: Any) -> tuple[str, Any]:
    """Return a Shapely geometry as this module takes it."""
    kind = geometry.geom_type
    if kind == "Point":
        return "point", [geometry.coords[0][:2]]
    if kind in ("LineString", "LinearRing"):
        return "line", [list(geometry.coords)]
    if kind == "MultiLineString":
        return "line", [list(part.coords) for part in geometry.geoms]
    parts = [geometry] if kind == "Polygon" else list(geometry.geoms)
    return "region", [(list(p.exterior.coords), [list(ring.coords) for ring in p.interiors]) for p in parts]
