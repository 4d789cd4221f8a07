"""Map real messages and filters to boxes: which attributes route, and which dimensions they use.

A number takes one dimension, a region two, those of its box. Anything without bounds there (another operator, another
type of value, an absent attribute) is unbounded, so a box never excludes a message that the exact test may accept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from contrada.errors import OverlayError
from contrada.formats.message_values import read_message
from contrada.formats.messages import message_of
from contrada.geometry import Circle, Line, Point, Region
from contrada.matching.routing_boxes import box_of
from contrada.model import Constraint, Filter, Predicate
from contrada.model.evaluate import truth
from contrada.model.reach import DistanceOperator
from contrada.model.values import NUMBER, scalar_of
from contrada.overlay.boxes import Box, bounds
from contrada.overlay.protocol import Publication

Side = tuple[float, float]
UNBOUNDED: Side = (-math.inf, math.inf)
KINDS = ("number", "region")


class RoutingAttribute(NamedTuple):
    """An attribute that routes, and its kind."""

    name: str
    kind: str

    @property
    def width(self) -> int:
        """The number of dimensions it takes."""
        return 2 if self.kind == "region" else 1


class Space:
    """The attributes by which an overlay routes, in order; equal for all its peers.

    >>> space = Space.parse("price, area:region")
    >>> space.where({"price": 5, "area": Region.box(0, 0, 2, 1)})
    (5.0, 0.0, 0.0, 5.0, 2.0, 1.0)
    """

    def __init__(self, attributes: Iterable[RoutingAttribute]) -> None:
        self.attributes = tuple(attributes)
        if not self.attributes:
            raise OverlayError("an overlay needs at least one attribute to route by")
        names = [attribute.name for attribute in self.attributes]
        for name, kind in self.attributes:
            if not name or kind not in KINDS:
                raise OverlayError(f"attribute {name!r}: unknown kind {kind!r:.60}; kinds: {', '.join(KINDS)}")
            if names.count(name) > 1:
                raise OverlayError(f"duplicate attribute {name!r}")
        self.dimensions = sum(attribute.width for attribute in self.attributes)

    @classmethod
    def parse(cls, text: str) -> Space:
        """Parse a comma-separated list of names; each is a number unless followed by `:region`."""
        parts = [part.strip().partition(":") for part in text.split(",")]
        return cls(RoutingAttribute(name.strip(), kind.strip() or "number") for name, _, kind in parts)

    @classmethod
    def of(cls, predicates: Iterable[Predicate]) -> Space:
        """Return the space of all attributes that predicates bound.

        >>> from contrada import parse
        >>> str(Space.of([parse("price < 3 AND kind = 'x' AND overlaps(area, BBOX(0, 0, 1, 1))")]))
        'price:number,area:region'
        """
        found: dict[str, str] = {}
        for constraint in (one for predicate in predicates for part in predicate for one in part):
            if _number_bounds(constraint) != UNBOUNDED:
                found.setdefault(constraint.attribute, "number")
            elif constraint.is_spatial:
                found.setdefault(constraint.attribute, "region")
        return cls(RoutingAttribute(name, kind) for name, kind in found.items())

    def __str__(self) -> str:
        return ",".join(f"{name}:{kind}" for name, kind in self.attributes)

    def where(self, message: Mapping[str, Any]) -> Box:
        """Return the box of a message: numbers as points, regions by their boxes, everything else unbounded."""
        names = {name for name, _ in self.attributes}
        message = read_message(message, names.__contains__)
        sides: list[Side] = []
        for name, kind in self.attributes:
            value = message.get(name)
            sides += _spatial_sides(value) if kind == "region" else [_number_side(value)]
        return _box(sides)

    def box_of(self, part: Filter) -> Box | None:
        """Return the box of a filter; None if no message can match it."""
        sides: list[Side] = []
        for attribute in self.attributes:
            is_region = attribute.kind == "region"
            own = [constraint for constraint in part if constraint.attribute == attribute.name]
            asked = [_region_bounds(one) if is_region else [_number_bounds(one)] for one in own]
            for axis in range(attribute.width):
                lows, highs = zip(*(sides_of[axis] for sides_of in asked or [[UNBOUNDED] * 2]), strict=True)
                # A number cannot satisfy bounds that exclude each other, but a region can meet two boxes that are
                # apart: it meets the box around them. A region that meets boxes which are not apart also meets their
                # intersection (Helly's theorem, on each axis).
                is_apart = max(lows) > min(highs)
                if is_apart and not is_region:
                    return None
                sides.append((min(lows), max(highs)) if is_apart else (max(lows), min(highs)))
        return _box(sides)

    def boxes_of(self, predicate: Predicate) -> list[Box]:
        """Return the boxes of all filters of a predicate that a message can match."""
        return [box for box in map(self.box_of, predicate) if box is not None]


def _box(sides: Sequence[Side]) -> Box:
    return (*(low for low, _ in sides), *(high for _, high in sides))


def _as_float(value: Any) -> float:
    """Return the nearest double, which keeps the order of numbers; infinity beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _is_number(value: Any) -> bool:
    scalar = scalar_of(value)
    return scalar is not None and scalar.kind == NUMBER


def _number_side(value: Any) -> Side:
    number = _as_float(value) if _is_number(value) else None
    return UNBOUNDED if number is None else (number, number)


def _spatial_sides(value: Any) -> list[Side]:
    if isinstance(value, Region | Circle | Line):
        xmin, ymin, xmax, ymax = value.bounds
        return [(xmin, xmax), (ymin, ymax)]
    if isinstance(value, Point):
        return [(value.x, value.x), (value.y, value.y)]
    return [UNBOUNDED, UNBOUNDED]


def _number_bounds(constraint: Constraint) -> Side:
    """Return bounds of the numbers that satisfy a constraint."""
    operator, value = constraint.operator, constraint.value
    if constraint.kind is not None or operator not in ("=", "<", "<=", ">", ">=", "between", "in"):
        return UNBOUNDED
    operands = value if operator in ("between", "in") else (value,)
    if not all(map(_is_number, operands)):
        return UNBOUNDED
    numbers = [_as_float(operand) for operand in operands]
    low, high = numbers if operator == "between" else (min(numbers), max(numbers))
    return -math.inf if operator in ("<", "<=") else low, math.inf if operator in (">", ">=") else high


def _region_bounds(constraint: Constraint) -> list[Side]:
    """Return the sides of a box that a region must meet to satisfy a constraint."""
    if not constraint.is_local:
        return [UNBOUNDED, UNBOUNDED]
    if isinstance(constraint.operator, DistanceOperator):
        xmin, ymin, xmax, ymax = box_of(constraint).tolist()
        return [(xmin, xmax), (ymin, ymax)]
    return _spatial_sides(constraint.value)


class PeerQueries:
    """Subscriptions that are predicates: boxes for routing, and a test of all constraints at delivery.

    The body of a publication is the message, or its JSON.
    """

    __slots__ = ("_last", "_names", "box", "boxes", "predicates")

    def __init__(self, predicates: Iterable[Predicate], space: Space) -> None:
        self._last: tuple[str, Mapping[str, Any]] = ("{}", {})
        self.predicates = tuple(predicates)
        self._names = {one.attribute for predicate in self.predicates for part in predicate for one in part}
        self.boxes = tuple(box for predicate in self.predicates for box in space.boxes_of(predicate))
        if not self.boxes:
            raise OverlayError("no message can match these subscriptions" if self.predicates else "no subscriptions")
        self.box = bounds(self.boxes)

    def warm_up(self) -> None:
        """Load the kernels that relate regions: loading may take longer than neighbours wait for a heartbeat."""
        spatial = {one for predicate in self.predicates for part in predicate for one in part if one.kind == "region"}
        for constraint in list(spatial)[:1]:
            truth(constraint, constraint.value)

    def read(self, body: str) -> Mapping[str, Any]:
        """Return the message in a JSON text; raise ContradaError if it is invalid. The last one is cached."""
        if self._last[0] != body:
            try:
                self._last = body, message_of(body)
            except RecursionError as error:
                raise OverlayError("message is nested too deeply") from error
        return self._last[1]

    def matches(self, publication: Publication) -> bool:
        """Return whether the message satisfies one of the filters."""
        body = publication.body
        message = self.read(body) if isinstance(body, str) else read_message(body, self._names.__contains__)
        parts = (part for predicate in self.predicates for part in predicate)
        return any(all(truth(one, message.get(one.attribute)) is True for one in part) for part in parts)
