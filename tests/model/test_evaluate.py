"""One constraint against one value, held against plain evaluation; and tests turned back into constraints."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import Constraint, FilterError, Point, Region, Relation
from contrada.model.evaluate import asked_kind, comparable, relation_to, truth
from contrada.model.restore import constraint_of
from contrada.model.values import INEXACT, NUMBER, TEXT, exact_number, scalar_of
from effort import examples
from generators.scalars import ATTRIBUTES, constraints, messages, values
from oracles.plain import holds

TENTH = Decimal("0.1")


@settings(deadline=None, max_examples=examples(600))
@given(constraint=constraints(), message=messages() | st.fixed_dictionaries(dict.fromkeys(ATTRIBUTES, values())))
def test_any_value_is_judged_like_by_plain_evaluation(constraint, message):
    assert truth(constraint, message.get(constraint.attribute)) is holds(constraint, message)


@pytest.mark.parametrize(
    ("operator", "asked", "value", "expected"),
    [
        *((">=", TENTH, value, True) for value in (TENTH, 0.1, Decimal("0." + "0" * 60 + "1") + TENTH)),
        (">=", TENTH, 0, False),
        ("=", 10**400, 10**400 + 1, False),
        ("in", [10**400, 1], 10**400 + 1, False),
    ],
)
def test_long_numbers_compare_exactly(operator, asked, value, expected):
    assert truth(Constraint("x", operator, asked), value) is expected


def test_numbers_that_share_their_bits_are_told_apart():
    assert scalar_of(10**400) == scalar_of(10**400 + 1)
    assert comparable(10**400) < comparable(10**400 + 1)


def test_relations():
    asked = Constraint("at", Relation.INSIDE, Region.box(0, 0, 2, 2))
    assert relation_to(asked, Point(1, 1)) is Relation.INSIDE
    assert relation_to(asked, "here") is None
    assert relation_to(Constraint("at", "=", 1), Point(1, 1)) is None


def test_kinds_that_are_asked_for():
    assert asked_kind(Constraint("x", "in", [1, 2.5])) == NUMBER
    assert asked_kind(Constraint("x", "like", "a%")) == TEXT
    assert asked_kind(Constraint("x", "is null")) is None
    assert asked_kind(Constraint("x", Relation.INSIDE, Point(0, 0))) is None


@settings(deadline=None, max_examples=examples(200))
@given(constraint=constraints().filter(lambda constraint: constraint.kind is None))
def test_tests_lead_back_to_equal_constraints(constraint):
    operands = constraint.value if isinstance(constraint.value, tuple) else (constraint.value,)
    scalars = {value: scalar_of(value) for value in operands if not isinstance(value, str)}
    long = [value for value, scalar in scalars.items() if scalar and scalar.rest & 7 == INEXACT]
    exact = {scalars[value][1:]: exact_number(value) for value in long}
    restored = constraint_of(constraint.attribute, constraint._test, lambda key, rest: exact[key, rest])
    assert restored._test == constraint._test
    if len(exact) == len({exact_number(value) for value in long}):  # a table refuses those that share their bits
        assert restored == constraint


@pytest.mark.parametrize("value", [10**1001, -(10**5000), np.longdouble("1e-4000"), Decimal("1E+2000")], ids=type)
def test_numbers_out_of_range_are_refused(value):
    with pytest.raises(FilterError, match="exponents can be at most 1000"):
        Constraint("x", "<", value)
