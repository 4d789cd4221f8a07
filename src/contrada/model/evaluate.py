"""Evaluate one constraint for one value: true, false or unknown. For explanations; tables do not use it."""

from __future__ import annotations

from fractions import Fraction
from operator import ge, gt, le, lt
from typing import Any

import numpy as np

from contrada.codes import ELSEWHERE, ENCLOSED_BIT, WITHIN_MASK
from contrada.geometry import Circle, Line, Point, Region, Relation, RelationSet, relate
from contrada.geometry.circle import CircleArray
from contrada.geometry.crs import common_crs
from contrada.geometry.distance import near_outcomes
from contrada.geometry.line_column import LineArray
from contrada.geometry.line_relating import line_relation
from contrada.geometry.line_relation import LineRelation, LineRelationSet, line_mask_of
from contrada.geometry.metres import metre_outcomes
from contrada.geometry.relate import ALL_ROWS
from contrada.model.constraint import Constraint
from contrada.model.operators import NULLS, PAIRS, SETS, TEXTUAL, is_negation
from contrada.model.reach import DistanceOperator
from contrada.model.text import fold, like_of, plain_text
from contrada.model.types import type_named
from contrada.model.values import INEXACT, NUMBER, TEXT, exact_number, scalar_of

Comparable = tuple[int, Any]  # a kind, and a key that compares within the kind
_ORDERS = {"<": lt, "<=": le, ">": gt, ">=": ge}


def truth(constraint: Constraint, value: Any) -> bool | None:
    """Return whether a constraint is true of a value; None (unknown) if the value is absent, None or of another kind.

    >>> asked = Constraint("size", "!=", 1)
    >>> [truth(asked, value) for value in (2, 1.0, "1", float("nan"), None)]
    [True, False, None, None, None]
    """
    if isinstance(constraint.operator, RelationSet | LineRelationSet):
        relation = relation_to(constraint, value)
        if relation is None:
            return None
        if isinstance(relation, LineRelation) and isinstance(constraint.operator, RelationSet):
            return _of_words(constraint.operator, relation)
        return relation in constraint.operator
    if isinstance(constraint.operator, DistanceOperator):
        outcome = outcome_of(constraint, value)
        return None if outcome is None else bool(constraint.operator.mask >> outcome & 1)
    operator = constraint.operator
    if constraint.kind is not None:
        own = type_named(constraint.kind)
        return own.holds(operator, constraint.value, value) if own.accepts(value) else None
    if operator in NULLS:
        return (value is None) == (operator == "is null")
    found = comparable(value, constraint.casei, constraint.accenti)
    if found is None or found[0] != asked_kind(constraint):
        return None
    return _passes(constraint, operator, found) != is_negation(operator)


def relation_to(constraint: Constraint, value: Any) -> Relation | LineRelation | None:
    """Return the relation of a value to the shape of a spatial constraint; None unless both are spatial.

    It is one of OGC's relations if the constraint asks for these, or the value is a line.

    >>> relation_to(Constraint("at", Relation.INSIDE, Region.box(0, 0, 2, 2)), Point(2, 1))
    <Relation.MEETS: 1>
    """
    if not isinstance(constraint.operator, RelationSet | LineRelationSet):
        return None
    if not isinstance(value, Region | Point | Circle | Line):
        return None
    if isinstance(value, Line):
        return line_relation(value, constraint.value)
    if isinstance(constraint.operator, LineRelationSet):
        return None if isinstance(value, Circle) else line_relation(value, constraint.value)
    relation: Relation = relate(value, constraint.value)
    return relation


def _of_words(asked: RelationSet, relation: LineRelation) -> bool | None:
    """Return whether the relation of a line satisfies a set of the eight relations, by OGC's words in the set.

    None if neither the words in the set nor those in its negation say so.
    """
    if line_mask_of(asked.mask) >> relation & 1:
        return True
    return False if line_mask_of((~asked).mask) >> relation & 1 else None


def outcome_of(constraint: Constraint, value: Any) -> int | None:
    """Return whether a value is enclosed, reached or beyond, as a code; None if it is not spatial.

    Distances in metres are not known either of circles and lines, and of values outside longitudes and latitudes.

    >>> from contrada.model import WithinDistance
    >>> outcome_of(Constraint("at", WithinDistance(2), Point(0, 0)), Region.box(0, 0, 1, 1))
    0
    """
    operator = constraint.operator
    if not isinstance(operator, DistanceOperator) or not isinstance(value, Region | Point | Circle | Line):
        return None
    asked = np.array([ENCLOSED_BIT if isinstance(constraint.value, Point) else WITHIN_MASK], np.uint8)
    first, second = value._column, constraint.value._column
    common_crs(first.crs, second.crs)
    distances = np.array([operator.number])
    if operator.unit is not None:
        if isinstance(first, CircleArray | LineArray):
            return None
        found = int(metre_outcomes(first, second, ALL_ROWS, np.zeros(1, np.int64), distances)[0])
        return None if found == ELSEWHERE else found
    return int(near_outcomes(first, second, ALL_ROWS, np.zeros(1, np.int64), distances, asked)[0])


def asked_kind(constraint: Constraint) -> int | None:
    """Return the kind of value that a constraint is about; None for regions, points and null tests."""
    value = constraint.value
    some = comparable(value[0] if isinstance(value, tuple) else value)
    return None if some is None else some[0]


def comparable(value: Any, casei: bool = False, accenti: bool = False) -> Comparable | None:
    """Return a value's kind and a key that compares within it; None for values that cannot be compared.

    >>> comparable(2**53 + 1) > comparable(2.0**53), comparable("É", casei=True), comparable([1])
    (True, (3, 'é'), None)
    """
    if isinstance(value, str):
        return TEXT, fold(plain_text(value), casei, accenti)
    scalar = scalar_of(value)
    if scalar is None:
        return None
    is_long = scalar.kind == NUMBER and scalar.rest & 7 == INEXACT  # other numbers may have the same bits
    return scalar.kind, (scalar.key, scalar.rest, exact_number(value) if is_long else Fraction(0))


def _passes(constraint: Constraint, operator: str, found: Comparable) -> bool:
    """Return whether a value of the right kind passes the test, ignoring a negation."""
    casei, accenti = constraint.casei, constraint.accenti
    if operator in TEXTUAL:
        return like_of(operator, constraint.value).folded(casei, accenti).matches(found[1])
    several = operator in PAIRS or operator in SETS
    given = constraint.value if several else (constraint.value,)
    operands = [item for item in (comparable(each, casei, accenti) for each in given) if item is not None]
    if operator in PAIRS:
        return operands[0] <= found <= operands[1]
    if operator in _ORDERS:
        return bool(_ORDERS[operator](found, operands[0]))
    return found in operands
