"""Operators on distances: whether a value lies within a distance of a region, point or line, or beyond it."""

from __future__ import annotations

from typing import Any, Literal

from contrada.arguments import checked_length, checks_methods
from contrada.codes import BEYOND_BIT, ENCLOSED_BIT, WITHIN_MASK
from contrada.errors import ArgumentError, FilterError
from contrada.geometry import RelationSet
from contrada.geometry.immutable import Immutable
from contrada.geometry.metres import METRES, checked_unit
from contrada.model.operators import Column, printed_value

ALL_OUTCOMES = WITHIN_MASK | BEYOND_BIT
WHOLE = ENCLOSED_BIT  # all of the value lies within the distance of a point: in a circle


# What the relation of a value to a circle is as a set of outcomes of its distance from the centre.
CIRCLE_OUTCOMES = {
    RelationSet.S_INTERSECTS: WITHIN_MASK, RelationSet.S_DISJOINT: BEYOND_BIT, RelationSet.S_WITHIN: ENCLOSED_BIT,
    ~RelationSet.S_WITHIN: ALL_OUTCOMES ^ ENCLOSED_BIT,
}  # fmt: skip
CIRCLE_RELATIONS = "circles take part in S_INTERSECTS, S_DISJOINT, S_WITHIN and distances; other relations need a"
CIRCLE_DISTANCE = "a circle has a distance already: write S_INTERSECTS, or the distance from its centre"


class DistanceOperator(Immutable):
    """Set of outcomes of a value and a distance from a region, point or line, as a mask of the bits in codes.py.

    `WithinDistance` and `BeyondDistance` are the two that users write. Distances are finite and at least 0, in the
    units of the coordinates or, with the unit "m", in metres on longitude and latitude.
    """

    __slots__ = ("distance", "mask", "unit")
    distance: float | Column
    mask: int
    unit: str | None

    def __init__(self, distance: Any, mask: int, unit: Any = None) -> None:
        object.__setattr__(self, "distance", checked_distance(distance))
        object.__setattr__(self, "mask", mask)
        object.__setattr__(self, "unit", unit_of(unit))

    @property
    def number(self) -> float:
        """The distance, which is no column of a template."""
        assert isinstance(self.distance, float), "a template has no distance yet"
        return self.distance

    @property
    def is_within(self) -> bool:
        """Whether only values near the region, point or line satisfy the operator."""
        return not self.mask & BEYOND_BIT

    def __invert__(self) -> DistanceOperator:
        return reach_of(self.distance, ALL_OUTCOMES ^ self.mask, self.unit)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DistanceOperator) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.mask, self.distance, self.unit

    def __reduce__(self) -> tuple[object, tuple[Any, ...]]:
        return reach_of, (self.distance, self.mask, self.unit)

    def __repr__(self) -> str:
        unit = "" if self.unit is None else f", {self.unit!r}"
        return f"{type(self).__name__}({self.distance!r}{unit})"


@checks_methods("__init__")
class WithinDistance(DistanceOperator):
    """Operator: the value has a point at most `distance` away from the constraint's region, point or line; exact.

    With the unit "m", the distance is in metres, and coordinates are longitude and latitude.

    >>> from contrada import Constraint, Point
    >>> print(Constraint("area", WithinDistance(500), Point(1, 2)))
    within_distance(area, POINT (1 2), 500)
    >>> print(Constraint("area", WithinDistance(500, "m"), Point(1, 2)))
    within_distance(area, POINT (1 2), 500, 'm')
    >>> ~WithinDistance(500)
    BeyondDistance(500.0)
    """

    __slots__ = ()

    def __init__(self, distance: float | Column, unit: Literal["m"] | None = None) -> None:
        super().__init__(distance, WITHIN_MASK, unit)


@checks_methods("__init__")
class BeyondDistance(DistanceOperator):
    """Operator: the value has no point at most `distance` away from the constraint's region, point or line; exact.

    With the unit "m", the distance is in metres, and coordinates are longitude and latitude.

    >>> from contrada import Constraint, Point
    >>> print(Constraint("area", BeyondDistance(500), Point(1, 2)))
    beyond_distance(area, POINT (1 2), 500)
    """

    __slots__ = ()

    def __init__(self, distance: float | Column, unit: Literal["m"] | None = None) -> None:
        super().__init__(distance, BEYOND_BIT, unit)


def reach_of(distance: Any, mask: int, unit: Any = None) -> DistanceOperator:
    """Return the operator with these outcomes, of the class that users write if there is one."""
    if mask == WITHIN_MASK:
        return WithinDistance(distance, unit)
    if mask == BEYOND_BIT:
        return BeyondDistance(distance, unit)
    if unit is not None:
        raise FilterError(
            "circles are in the units of the coordinates; write within_distance(area, POINT(1 2), 5, 'm')"
        )
    return DistanceOperator(distance, mask)


def unit_of(unit: Any) -> str | None:
    """Return the unit of a distance, checked; raise FilterError for one that is not known."""
    try:
        return checked_unit(unit)
    except ArgumentError as error:
        raise FilterError(str(error)) from error


def read_reach(distance: Any, mask: Any, unit: Any = None) -> DistanceOperator:
    """Return the operator of parts that came from outside; raise FilterError unless they are those of an operator."""
    if type(mask) is not int or not 0 < mask < ALL_OUTCOMES or isinstance(distance, Column):
        raise FilterError(f"a distance constraint with the outcomes {mask!r:.60}")
    return reach_of(distance, mask, unit)


def checked_distance(distance: Any) -> float | Column:
    """Return a distance as a double, or a template's column; raise FilterError unless it is finite and not negative.

    >>> checked_distance(-1)
    Traceback (most recent call last):
    contrada.errors.FilterError: distance: need a finite number of at least 0, got -1
    """
    if isinstance(distance, Column):
        return distance
    return checked_length(distance, "distance", of_type=FilterError, of_value=FilterError)


def printed_reach(name: str, operator: DistanceOperator, value: Any) -> str:
    """Return a constraint on a distance as CQL2 text."""
    distance = operator.distance
    if isinstance(distance, float) and distance.is_integer() and distance < 2**53:
        distance = int(distance)
    shown = printed_value(distance)
    if operator.mask in (WHOLE, ALL_OUTCOMES ^ WHOLE):
        circle = f"CIRCLE({value if isinstance(value, Column) else value.to_wkt()}, {shown})"
        return f"{'' if operator.mask == WHOLE else 'NOT '}S_WITHIN({name}, {circle})"
    word = "within_distance" if operator.is_within else "beyond_distance"
    unit = "" if operator.unit is None else f", '{METRES}'"
    return f"{word}({name}, {value if isinstance(value, Column) else value.to_wkt()}, {shown}{unit})"
