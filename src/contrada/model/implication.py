"""Decide whether one constraint covers another, and whether two conflict: always sound, complete as stated below.

`covers(a, b)`: every message that satisfies b satisfies a. `conflicts(a, b)`: no message satisfies both. Unknown does
not satisfy. True is always right; False may mean "not known", but only in these cases:

- regions and points: limited to the composition table, which is complete without holes and several parts, and to what
  holds of values that are lines too;
- OGC's relations to lines: equal geometry;
- numbers, times, booleans, and text compared as a whole or by prefix: complete, except that numbers of more than 103
  bits are only known to equal themselves, and that times have nanosecond resolution is not used;
- suffixes, contains and LIKE: see `text_covers`; text of different foldings only if one names its values;
- distances: one geometry; a region or line within another shape; circles, by their centres and radii; not against
  relations, nor in metres against the units of coordinates;
- registered types: equal constraints only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sized
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from contrada.codes import BEYOND_REACH, ENCLOSED, ENCLOSED_BIT, PATTERN, TEXT, WITHIN_MASK
from contrada.errors import CrsError
from contrada.geometry import Line, Point, Region, Relation, RelationSet, relate
from contrada.geometry.composition import conflicting_by_kinds, covering_by_kinds
from contrada.geometry.crs import common_crs
from contrada.geometry.distance import near_outcomes
from contrada.geometry.line_relating import line_relation
from contrada.geometry.line_relation import LineRelationSet
from contrada.geometry.metres import within_metres
from contrada.geometry.relate import ALL_ROWS
from contrada.model.constraint import Constraint
from contrada.model.evaluate import truth
from contrada.model.operators import NULLS, TEXTUAL, is_negation
from contrada.model.pieces import intersection, lie_in, pieces_of
from contrada.model.reach import WHOLE, DistanceOperator
from contrada.model.text import ANY_ONE, ANY_RUN, Token, fold, like_of, tokens_match, tokens_of

T = TypeVar("T")
Shape: TypeAlias = Region | Point | Line
ROOM_METRES = 0.01  # more than the error of several distances in metres
MAX_COMPARED_PAIRS = 4096  # pairs of constraints of two filters that are compared; beyond, only equal constraints count


def covers(first: Constraint, second: Constraint) -> bool:
    """Return True if every message that satisfies `second` satisfies `first`.

    >>> covers(Constraint("size", ">", 1), Constraint("size", "in", (2, 3)))
    True
    >>> covers(Constraint("size", ">", 1), Constraint("weight", ">", 1))
    False
    """
    if first.attribute != second.attribute:
        return False
    related = _related(first, second)
    if related is not None:  # that of equal constraints too, and faster than comparing all vertices
        return bool(covering_by_kinds()[related.places] >> related.between & 1)
    if first == second:
        return True
    if isinstance(first.operator, LineRelationSet) and isinstance(second.operator, LineRelationSet):
        return second.operator <= first.operator and _are_of_one_shape(first, second)
    if isinstance(first.operator, DistanceOperator) and isinstance(second.operator, DistanceOperator):
        return reach_covers(first, second)
    if first.operator in NULLS or second.operator in NULLS:
        return first.operator == "is not null" and second.operator != "is null"
    if not are_comparable(first, second):
        return False
    if first._test.form == second._test.form < PATTERN:
        return lie_in(pieces_of(second._test), pieces_of(first._test))
    members = _listed(second)
    if members is not None:
        return all(truth(first, member) is True for member in members)
    return text_covers(first, second, is_negation(str(first.operator)))


def are_compared(first: Sized, second: Sized, most: int = MAX_COMPARED_PAIRS) -> bool:
    """Return True if two filters are small enough to compare each constraint of one with each of the other."""
    return len(first) * len(second) <= most


def each_covers(
    first: Collection[T], second: Collection[T], covers: Callable[[T, T], bool], most: int = MAX_COMPARED_PAIRS
) -> bool:
    """Return True if each constraint in `first` covers one in `second`; in large filters only equal ones count."""
    if not are_compared(first, second, most):
        return set(first) <= set(second)
    for one in first:
        for other in second:
            if covers(one, other):
                break
        else:
            return False
    return True


def conflicts(first: Constraint, second: Constraint) -> bool:
    """Return True if no message satisfies both.

    >>> conflicts(Constraint("size", ">", 1), Constraint("size", "<=", 1))
    True
    >>> conflicts(Constraint("size", ">", 1), Constraint("size", "prefix", "a"))
    True
    """
    if first.attribute != second.attribute:
        return False
    if first.operator in NULLS or second.operator in NULLS:
        return first.operator != second.operator and "is null" in (first.operator, second.operator)
    if _is_own(first) or _is_own(second):
        return False
    if first.is_spatial != second.is_spatial:
        return True
    if isinstance(first.operator, DistanceOperator) or isinstance(second.operator, DistanceOperator):
        return _reaches_conflict(first, second)
    related = _related(first, second)
    if related is not None:
        return bool(conflicting_by_kinds()[related.places] >> related.between & 1)
    if isinstance(first.operator, LineRelationSet) and isinstance(second.operator, LineRelationSet):
        return not first.operator & second.operator and _are_of_one_shape(first, second)
    if first.is_spatial:  # in different coordinate systems, or with OGC's relations
        return False
    if _kind(first._test.form) != _kind(second._test.form):
        return True
    if not are_comparable(first, second):
        return False
    if first._test.form == second._test.form < PATTERN:
        return next(intersection(pieces_of(first._test), pieces_of(second._test)), None) is None
    for one, other in ((first, second), (second, first)):
        members = _listed(one)
        if members is not None:
            return not any(truth(other, member) is True for member in members)
    return text_covers(first, second, not is_negation(str(first.operator)))  # the negation of `first` covers `second`


def _is_own(constraint: Constraint) -> bool:
    """Return True for a registered type, whose values may be of any other type too."""
    return constraint.kind is not None and not constraint.is_spatial


def reach_covers(first: Constraint, second: Constraint) -> bool:
    """Return True if every message that satisfies a distance constraint satisfies another one.

    >>> from contrada.geometry import Point
    >>> from contrada.model import WithinDistance
    >>> at = Constraint("at", WithinDistance(5), Point(0, 0))
    >>> reach_covers(at, Constraint("at", WithinDistance(2), Point(3, 0)))
    True
    """
    one, other = first.operator, second.operator
    if not isinstance(one, DistanceOperator) or not isinstance(other, DistanceOperator):
        return False
    if first.columns or second.columns or one.is_within != other.is_within or one.unit != other.unit:
        return False
    if not one.is_within:  # the negations the other way round
        return reach_covers(second.negated, first.negated)
    if other.mask & ~one.mask:
        return False
    try:
        if first.value == second.value:
            return one.number >= other.number and first.value.crs == second.value.crs
        if one.unit is not None:
            return _metres_cover(first, second)
        if isinstance(first.value, Point):  # it encloses what is near the other's value
            return bool(_outcome(second.value, other.number, first.value, one.number, ENCLOSED_BIT) == ENCLOSED)
        return one.number >= other.number and _is_within(second.value, first.value)
    except CrsError:
        return False


def _is_within(value: Shape, other: Shape) -> bool:
    """Return True if a value surely lies within another one."""
    if isinstance(value, Line) or isinstance(other, Line):
        common_crs(value.crs, other.crs)
        return line_relation(value, other) in LineRelationSet.S_WITHIN
    return relate(value, other) in RelationSet.S_WITHIN


def _metres_cover(first: Constraint, second: Constraint) -> bool:
    """Return True if all within a distance in metres of one value is within that of another; with room for rounding."""
    one, other = first.operator, second.operator
    assert isinstance(one, DistanceOperator)
    assert isinstance(other, DistanceOperator)
    common_crs(first.value.crs, second.value.crs)
    spare = one.number - other.number - ROOM_METRES
    if spare < 0:
        return False
    if isinstance(first.value, Point):  # the way to its value leads over the other's
        return isinstance(second.value, Point) and within_metres(second.value, first.value, spare)
    return bool(relate(second.value, first.value) in RelationSet.S_WITHIN)


def _reaches_conflict(first: Constraint, second: Constraint) -> bool:
    """Return True if no message satisfies both, one or both of which are distance constraints."""
    one, other = first.operator, second.operator
    if (
        not isinstance(one, DistanceOperator)
        or not isinstance(other, DistanceOperator)
        or first.columns
        or second.columns
        or one.unit != other.unit
    ):
        return False
    if one.is_within != other.is_within:
        return reach_covers(first.negated, second) or reach_covers(second.negated, first)
    if not one.is_within or WHOLE not in (one.mask, other.mask):
        return False  # a large value is near everything
    if one.mask != WHOLE:
        first, second, one, other = second, first, other, one
    try:
        found = _outcome(first.value, one.number, second.value, other.number, WITHIN_MASK)
    except CrsError:
        return False
    return found == BEYOND_REACH


def _outcome(value: Shape, radius: float, other: Shape, distance: float, asked: int) -> int:
    """Return the outcome of a value grown by a radius and a distance from another value."""
    common_crs(value.crs, other.crs)
    limits = np.array([distance]), np.array([asked], np.uint8), np.array([radius])
    return int(near_outcomes(value._column, other._column, ALL_ROWS, np.zeros(1, np.int64), *limits)[0])


class _Related(NamedTuple):
    """Two constraints on the eight relations: places in tables by kinds and masks; relation of the second's value."""

    places: tuple[int, int, int, int]
    between: Relation


def _related(first: Constraint, second: Constraint) -> _Related | None:
    """Return how two constraints on the eight relations are related; None for others, and in different CRS."""
    if not isinstance(first.operator, RelationSet) or not isinstance(second.operator, RelationSet):
        return None
    try:
        between = relate(second.value, first.value)
    except CrsError:
        return None
    kinds = (int(isinstance(one.value, Point)) for one in (first, second))
    return _Related((*kinds, first.operator.mask, second.operator.mask), between)  # type: ignore[arg-type]


def _are_of_one_shape(first: Constraint, second: Constraint) -> bool:
    """Return True if two constraints compare with equal values in one CRS."""
    if first.columns or second.columns:
        return False
    return bool(first.value == second.value and first.value.crs == second.value.crs)


def are_comparable(first: Constraint, second: Constraint) -> bool:
    """Return True for scalars and text of one kind that their tests distinguish."""
    for one in (first, second):
        if one.kind is not None or one.long_numbers:
            return False
    return _kind(first._test.form) == _kind(second._test.form)


def _kind(form: int) -> int:
    """Return the kind of values that a form belongs to: a kind of scalar, or text."""
    return TEXT if form >= TEXT else form


def _listed(constraint: Constraint) -> tuple[str, ...] | None:
    """Return all texts that satisfy a constraint, if it names them."""
    if constraint.casei or constraint.accenti or constraint.operator not in ("=", "in"):
        return None
    return constraint.value if constraint.operator == "in" else (constraint.value,)


def text_covers(first: Constraint, second: Constraint, is_negated: bool) -> bool:
    """Return True if every text that satisfies `second` satisfies the pattern of `first`, or its negation.

    False may mean "not known". A pattern matches all texts that another one matches if it matches the other letter by
    letter, where each wildcard of the other is a letter that only wildcards match: complete for patterns without `_` if
    there are enough letters, and sound for all. That no text matches both follows from the beginnings and ends of the
    patterns, and from how long texts can be.

    >>> text_covers(Constraint("x", "like", "%b%"), Constraint("x", "like", "a_b%c"), is_negated=False)
    True
    >>> text_covers(Constraint("x", "like", "a_"), Constraint("x", "like", "a%"), is_negated=False)
    False
    """
    one, other = _tokens(first), _tokens(second)
    if one is None or other is None or (first.casei, first.accenti) != (second.casei, second.accenti):
        return False
    if not is_negation(str(second.operator)):
        return are_apart(one, other) if is_negated else tokens_match(one, other)
    return is_negated and tokens_match(other, one)


def _tokens(constraint: Constraint) -> list[Token] | None:
    """Return the pattern of a constraint on text, ignoring its negation; None if it is no pattern."""
    operator, value = str(constraint.operator), constraint.value
    casei, accenti = constraint.casei, constraint.accenti
    if operator in ("=", "!="):
        return list(fold(value, casei, accenti))
    if operator not in TEXTUAL:
        return None
    return tokens_of(like_of(operator, value).folded(casei, accenti))


def are_apart(one: list[Token], other: list[Token]) -> bool:
    """Return True if beginnings, ends or lengths show that no text matches both patterns.

    >>> from contrada.model.text import parse_like
    >>> are_apart(tokens_of(parse_like("ab%")), tokens_of(parse_like("a_c%d")))
    False
    >>> are_apart(tokens_of(parse_like("ab%")), tokens_of(parse_like("_c%")))
    True
    """
    if _differ(one, other) or _differ(one[::-1], other[::-1]):
        return True
    least = [sum(token is not ANY_RUN for token in tokens) for tokens in (one, other)]
    is_fixed = [ANY_RUN not in tokens for tokens in (one, other)]
    return (is_fixed[0] and least[0] < least[1]) or (is_fixed[1] and least[1] < least[0])


def _differ(one: list[Token], other: list[Token]) -> bool:
    """Return True if two patterns have different letters at some position before any run."""
    for a, b in zip(one, other, strict=False):
        if a is ANY_RUN or b is ANY_RUN:
            return False
        if a != b and ANY_ONE not in (a, b):
            return True
    return False
