"""Predicates print as CQL2 text and JSON that parse to the same predicates."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada import Column, Constraint, Filter, Predicate, Region, Relation, RelationSet
from contrada.cql2 import parse, parse_json, parse_text, to_json
from contrada.model.filter import as_predicate
from effort import examples
from generators.scalars import predicates

NAMES = ["x", "sea.depth", "my area", 'in "quotes"', "and", "Date", "contains", "prefix", "_", "é", "a\nb", "$a", "1a",
         "eo:cover", "point", "not", "inside", "relation", "a'b", "null", "div", "\0", "TIMESTAMP"]  # fmt: skip
NUMBERS = [0, -1, 2**53 + 1, -(10**400) - 1, 10**1000, 1.5, -0.0, 5e-324, 1.7976931348623157e308, 0.1, 1e22, 1e-7,
           float("inf"), float("-inf"), Decimal("0.1"), Decimal("-1E+400"), Decimal("1E-400"), Decimal("Infinity"),
           Decimal("0.5"), Decimal("1E+3"), Decimal(2**53 + 1), np.float32(0.1), np.int8(3), np.uint64(2**64 - 1),
           np.longdouble(1) / 3, Decimal("0.1000000000000000000000000000000000000000001")]  # fmt: skip
TIMES = [datetime(2020, 1, 2, 3, 4, 5, 6), datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
         date(1960, 2, 29), np.datetime64("2020-01-02T03:04:05.123456789"), np.datetime64(-1, "ns"),
         np.datetime64("-0044-03-15"), np.datetime64("12020-02-29T01:02:03"), np.datetime64(2**62, "us"),
         np.datetime64(10**18 + 7, "10ns"), np.datetime64(-(2**40), "s"), np.datetime64("2020-05")]  # fmt: skip
TEXTS = ["", "it's", "''", "'", "a\\", "\\'", "\\", "100%", "_", "\n\t\0\x7f", "POLYGON((", '"', "\ud800", "ß é",
         "-- no comment", "$a", "\u2028"]  # fmt: skip
LIKES = ["like", "prefix", "suffix", "contains", "not like", "not prefix", "not suffix", "not contains"]


def same(what):
    predicate = as_predicate(what)
    text = str(predicate)
    assert parse_text(text) == predicate
    assert str(parse_text(text)) == str(parse_text(str(parse_text(text))))
    as_json = to_json(what)
    assert parse_json(as_json) == predicate
    assert parse(json.dumps(as_json, allow_nan=False, ensure_ascii=False)) == predicate
    return text


@pytest.mark.parametrize("name", NAMES)
def test_any_name(name):
    same(Filter([Constraint(name, "=", 1), Constraint(name, Relation.INSIDE, Region.box(0, 0, 1, 1))]))
    same(Constraint(name, "not prefix", Column(name), casei=True))
    same(Constraint(name, "is not null"))


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("value", [*NUMBERS, *TIMES], ids=repr)
def test_numbers_and_times(operator, value):
    same(Constraint("x", operator, value))
    same(Constraint("x", "in" if operator == "=" else "not in", [value, value]))
    same(Constraint("x", "between" if operator == "=" else "not between", (value, value)))


@pytest.mark.parametrize("folded", [{}, {"casei": True}, {"accenti": True}, {"casei": True, "accenti": True}])
@pytest.mark.parametrize("value", TEXTS, ids=repr)
def test_text(value, folded):
    for operator in ("=", "!=", "<", ">="):
        same(Constraint("x", operator, value, **folded))
    for operator in LIKES:
        pattern = value.replace("\\", "\\\\") if operator.endswith("like") else value
        same(Constraint("x", operator, pattern, **folded))
    same(Constraint("x", "not in", [value, "b"], **folded))
    same(Constraint("x", "between", (value, "b"), **folded))


def test_booleans_and_columns():
    for value in (True, False, np.True_):
        same(Filter([Constraint("x", "=", value), Constraint("y", "!=", value), Constraint("z", "in", [value])]))
    for operator in ("=", "!=", "<", *LIKES):
        same(Constraint("x", operator, Column("a b")))
    same(Constraint("x", "not in", [Column("and"), 3]))
    same(Constraint("x", "between", (Column("low"), Column("high"))))
    same(Constraint("x", ~RelationSet.S_TOUCHES, Column("geometry")))


def test_every_mask():
    holes = Region([(0, 0), (9, 0), (9, 9), (0, 9)], [[(1, 1), (2, 1), (2, 2)], [(4, 4), (5, 4), (5, 5)]])
    parts = Region.from_wkt("MULTIPOLYGON(((0 0, .1 0, 0 .1)), ((1e-7 5, 1 5.123456789012345, 1 6)))")
    for mask, value in product(range(256), (holes, parts, ct.Point(0.1, -1e20))):
        text = same(Constraint("area", RelationSet.from_mask(mask), value))
        assert parse(text).filters[0].constraints[0].value == value


def test_coordinates_do_not_change():
    rng = np.random.default_rng(5)
    numbers = rng.uniform(-1, 1, (1000, 2)) * 10.0 ** rng.integers(-100, 100, (1000, 1))
    points = [ct.Point(*xy) for xy in numbers.tolist()]
    text = " OR ".join(str(Constraint("p", Relation.EQUALS, point)) for point in points)
    assert [part.constraints[0].value for part in parse(text)] == points
    ring = np.column_stack([np.cos(np.arange(500) / 80), np.sin(np.arange(500) / 80)]) * (1 / 3)
    region = Region(ring)
    back = parse(str(Constraint("a", Relation.MEETS, region))).filters[0].constraints[0].value
    assert back.to_wkb() == region.to_wkb()


def test_several_filters():
    small, large = Constraint("x", "<", 1), Constraint("x", ">", 9)
    named = Constraint("name", "like", "a_%")
    assert same(Predicate([Filter([small, named]), Filter([large])])) == "(x < 1 AND name LIKE 'a_%') OR x > 9"
    same(Predicate([Filter([small]), Filter([large]), Filter([named, large])]))


@settings(deadline=None, max_examples=examples(300))
@given(predicates())
@example(Predicate([Filter([Constraint("x", "=", Decimal("1E-999"))])]))
def test_any_predicate(predicate):
    same(predicate)


@settings(deadline=None, max_examples=examples(200))
@given(st.text(min_size=1), st.text())
def test_any_text(name, value):
    same(Filter([Constraint(name, "=", value), Constraint(name, "contains", value)]))


@settings(deadline=None, max_examples=examples(300))
@given(st.floats(allow_nan=False), st.integers(-(10**60), 10**60), st.decimals(allow_nan=False, places=30))
def test_any_number(double, integer, decimal):
    same(Constraint("x", "in", [double, integer, decimal]))
