"""Constraints: what they accept, how they print, when they are equal, and what holds of a value."""

import pickle
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada import Constraint, FilterError, Point, Region, Relation
from contrada.model.evaluate import asked_kind, comparable, relation_to, truth
from contrada.model.values import NUMBER, TEXT, scalar_of
from effort import examples
from generators.scalars import ATTRIBUTES, constraints, messages, values
from oracles.plain import holds

PRINTED = [
    (Constraint("price", "<", 100), "price < 100"),
    (Constraint("price", "<>", 2.5), "price <> 2.5"),
    (Constraint("my price", ">=", Decimal("0.10")), '"my price" >= DECIMAL(\'0.10\')'),
    (Constraint("name", "=", "it's"), "name = 'it''s'"),
    (Constraint("ok", "=", True), "ok = TRUE"),
    (Constraint("at", ">", datetime(2020, 1, 2, 3, 4, 5, 600)), "at > TIMESTAMP('2020-01-02T03:04:05.0006Z')"),
    (Constraint("at", "between", (date(2020, 1, 1), date(2021, 1, 1))),
     "at BETWEEN TIMESTAMP('2020-01-01T00:00:00Z') AND TIMESTAMP('2021-01-01T00:00:00Z')"),
    (Constraint("size", "NOT  in", [3, 1]), "size NOT IN (3, 1)"),
    (Constraint("name", "suffix", "_x"), r"name LIKE '%\_x'"),
    (Constraint("name", "contains", "a", casei=True, accenti=True), "CASEI(ACCENTI(name)) LIKE CASEI(ACCENTI('%a%'))"),
    (Constraint("name", "not like", "5!%", escape="!"), r"name NOT LIKE '5\%'"),
    (Constraint("name", "is null"), "name IS NULL"),
    (Constraint("and", "<", float("-inf")), '"and" < -1e999'),
    (Constraint("a", "in", [float("inf"), Decimal("Infinity")]), "a IN (1e999, 1e999)"),
]  # fmt: skip
REFUSED = [
    (("a", "~", 1), "unknown operator '~'"),
    (("a", "=", None), "`=` needs text, number, boolean or timestamp, got NoneType; use `is null` to test for absence"),
    (("a", "=", float("nan")), "is never true"),
    (("a", "=", [1]), "got list"),
    (("a", "<", True), "`<` does not apply to booleans"),
    (("a", "between", (1,)), "needs two values, got 1"),
    (("a", "between", (1, "x")), "values of one kind, got number, text"),
    (("a", "in", "abc"), "needs several values, got str"),
    (("a", "in", []), "values of one kind, got none"),
    (("a", "prefix", 1), "`prefix` needs text, got int"),
    (("a", "like", "50%\\"), "nothing follows the escape at position 3"),
    (("a", "is null", 1), "`is null` takes no value"),
    (("a", "contains", ct.Region.box(0, 0, 1, 1)), "for regions use a Relation"),
    (
        ("a", ct.Relation.MEETS, 3),
        "constraint on 'a': need a Region, Point or Line, a Shapely geometry or an object with __geo_interface__, got",
    ),
    (("", "=", 1), "attribute name: need non-empty text, got ''"),
]


@pytest.mark.parametrize(("constraint", "text"), PRINTED)
def test_constraints_print_as_cql2(constraint, text):
    assert str(constraint) == text


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_cannot_be_asked_is_a_clear_error(arguments, message):
    with pytest.raises(ct.FilterError) as caught:
        Constraint(*arguments)
    assert message in str(caught.value)


def test_folding_is_for_text():
    with pytest.raises(ct.FilterError, match="casei and accenti apply to text only"):
        Constraint("a", "=", 1, casei=True)


def test_constraints_that_ask_the_same_are_equal():
    assert Constraint("a", "=", 1) == Constraint("a", "=", 1.0) == Constraint("a", "between", (1, 1))
    assert Constraint("a", "in", [1, 2, 2]) == Constraint("a", "in", (2, 1.0))
    assert Constraint("a", "like", "x%") == Constraint("a", "prefix", "x")
    assert Constraint("a", "=", 1) != Constraint("a", "=", True) != Constraint("a", "=", "1")
    assert Constraint("a", "=", "x") != Constraint("a", "=", "x", casei=True)


@given(constraints())
def test_constraints_survive_pickling_and_cannot_be_changed(constraint):
    copy = pickle.loads(pickle.dumps(constraint))
    assert (copy, hash(copy), str(copy)) == (constraint, hash(constraint), str(constraint))
    with pytest.raises(AttributeError):
        constraint.attribute = "other"


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


@pytest.mark.parametrize("value", [10**1001, -(10**5000), np.longdouble("1e-4000"), Decimal("1E+2000")], ids=type)
def test_numbers_out_of_range_are_refused(value):
    with pytest.raises(FilterError, match="exponents can be at most 1000"):
        Constraint("x", "<", value)
