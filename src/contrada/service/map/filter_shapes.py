"""The shapes of filters: regions and points that they ask about, and the conditions besides.

Parsing a filter with a region takes half a millisecond, mostly to check the region. Filters of a map were checked when
they were subscribed, and most differ in literals only: those are read by their shape, in a tenth of that time.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import shapely

from contrada.cql2.queries import bound_predicate
from contrada.cql2.scanner import QUOTED, STRING
from contrada.cql2.shapes import TextShapes
from contrada.geometry import Circle, Point, Region, RelationSet
from contrada.model import Column, Constraint, Filter, Predicate
from contrada.service.map.schemas import Box, SubscriptionShape

SIMPLE_VERTICES = 32  # geometry with no more is not simplified
_BOX = re.compile(
    rf"{QUOTED}|{STRING}|\bBBOX\s*+\(\s*+([0-9eE.+-]++)\s*+,\s*+([0-9eE.+-]++)\s*+,\s*+([0-9eE.+-]++)\s*+,"
    r"\s*+([0-9eE.+-]++)\s*+\)",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"\$_(\d+)")


class AskedShape(NamedTuple):
    """A geometry that a filter asks about, and the relations of the message's value to it that satisfy the filter."""

    attribute: str
    operator: RelationSet
    geometry: shapely.Geometry

    @property
    def word(self) -> str:
        """The operator as CQL2 writes it; RELATION for a set of relations that has no name."""
        return operator_word(self.operator)[0]

    def view(self, simplify: float = 0.0) -> SubscriptionShape:
        """Return the shape for the page."""
        word, is_negated = operator_word(self.operator)
        shown = simplified(self.geometry, simplify)
        relations = [str(relation) for relation in self.operator]
        return SubscriptionShape(self.attribute, word, is_negated, relations, geometry_json(shown))


class FilterShapes(NamedTuple):
    """The shapes of a filter, each once, and its other conditions as text."""

    shapes: tuple[AskedShape, ...]
    conditions: str

    @property
    def bounds(self) -> Box | None:
        """The box of all shapes; None without any."""
        return box_of(shape.geometry for shape in self.shapes)


def operator_word(operator: RelationSet) -> tuple[str, bool]:
    """Return the name of a spatial operator, and whether it is negated.

    >>> operator_word(RelationSet.S_WITHIN), operator_word(~RelationSet.S_WITHIN)
    (('S_WITHIN', False), ('S_WITHIN', True))
    """
    if operator.word is not None:
        return operator.word, False
    contrary = (~operator).word
    return ("RELATION", False) if contrary is None else (contrary, True)


def box_of(geometries: Iterable[shapely.Geometry]) -> Box | None:
    """Return the box of geometries; None without any."""
    found = list(geometries)
    if not found:
        return None
    xmin, ymin, xmax, ymax = shapely.total_bounds(found).tolist()
    return None if math.isnan(xmin) else (xmin, ymin, xmax, ymax)


def simplified(geometry: shapely.Geometry, tolerance: float) -> shapely.Geometry:
    """Return a geometry with fewer vertices that is off by at most `tolerance`; unchanged if small, or for 0."""
    if not tolerance or shapely.get_num_coordinates(geometry) <= SIMPLE_VERTICES:
        return geometry
    found = shapely.simplify(geometry, tolerance, preserve_topology=True)
    return geometry if found.is_empty else found


def geometry_json(geometry: shapely.Geometry) -> msgspec.Raw:
    """Return a geometry as GeoJSON."""
    return msgspec.Raw(shapely.to_geojson(geometry).encode())


def drawn_circle(circle: Circle) -> dict[str, Any]:
    """Return the polygon that a page draws for a circle, or its centre if it is too small for one."""
    drawn: dict[str, Any] = shapely.geometry.mapping(circle.to_shapely())
    return drawn


class FilterShapeReader:
    """Finds the shapes of filters; threads may share one."""

    def __init__(self) -> None:
        self._known = TextShapes()
        self._lock = threading.Lock()

    def read(self, filter: Any) -> FilterShapes:
        """Return the shapes of a filter that a subscription has: CQL2 text, or JSON.

        >>> found = FilterShapeReader().read("S_INTERSECTS(area, BBOX(0, 0, 2, 1)) AND depth >= 3")
        >>> found.bounds, found.conditions, found.shapes[0].word
        ((0.0, 0.0, 2.0, 1.0), 'depth >= 3', 'S_INTERSECTS')
        """
        if isinstance(filter, str) and not filter.lstrip().startswith("{"):
            with self._lock:
                found = self._known.find(_BOX.sub(_written_out, filter))
            if found is not None and found[0].template is not None:
                return _quickly(found[0].template, found[1])
        return shapes_of(bound_predicate(filter))


def shapes_of(predicate: Predicate) -> FilterShapes:
    """Return the shapes of a predicate, and its other conditions."""
    found: dict[tuple[str, RelationSet, Any], AskedShape] = {}
    rests: list[str] = []
    for part in predicate:
        others = list[Constraint]()
        for constraint in part:
            operator = spatial_operator(constraint)
            if operator is not None:
                name = (constraint.attribute, operator, constraint.value)
                found.setdefault(name, AskedShape(constraint.attribute, operator, constraint.value.to_shapely()))
            else:
                others.append(constraint)
        rests.append(str(Filter(others)) if others else "")
    return FilterShapes(tuple(found.values()), _joined(rests))


def spatial_operator(constraint: Constraint) -> RelationSet | None:
    """Return the relations that a constraint asks for to a region or a point; None if it asks for something else."""
    operator = constraint.operator
    return operator if isinstance(operator, RelationSet) and isinstance(constraint.value, Region | Point) else None


def _written_out(found: re.Match[str]) -> str:
    """Return a box as a polygon; anything in quotes stays."""
    xmin, ymin, xmax, ymax = found.groups()
    if xmin is None:
        return found.group()
    return f"POLYGON(({xmin} {ymin}, {xmax} {ymin}, {xmax} {ymax}, {xmin} {ymax}, {xmin} {ymin}))"


def _quickly(template: Predicate, literals: Sequence[str]) -> FilterShapes:
    """Return the shapes of a text, given the template it shares with other texts and its own literals."""
    found: dict[tuple[str, RelationSet, str], AskedShape] = {}
    rests: list[str] = []
    for part in template:
        others = list[str]()
        for constraint in part:
            operator, value = constraint.operator, constraint.value
            if isinstance(operator, RelationSet) and isinstance(value, Column):
                literal = literals[int(value.name[1:])]
                name = (constraint.attribute, operator, literal)
                if name not in found:
                    found[name] = AskedShape(constraint.attribute, operator, shapely.from_wkt(literal))
            else:
                others.append(_PLACEHOLDER.sub(lambda mark: literals[int(mark[1])], str(constraint)))
        rests.append(" AND ".join(others))
    return FilterShapes(tuple(found.values()), _joined(rests))


def _joined(rests: list[str]) -> str:
    """Join the non-spatial conditions of several filters by OR."""
    distinct = list(dict.fromkeys(rests))
    if len(distinct) == 1:
        return distinct[0]
    return " OR ".join(f"({rest})" if rest else "TRUE" for rest in distinct)
