"""Covering and conflict of constraints: what they claim holds for every value, and what they should find they find."""

import itertools
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import Constraint, Point, Region, Relation, RelationSet
from contrada.model.implication import conflicts, covers
from contrada.model.merging import folded, is_mergeable
from effort import examples
from generators import scalars
from generators.strategies import circles, points, regions
from oracles.plain import holds

PAIRS = st.sampled_from(scalars.KINDS).flatmap(
    lambda kind: st.tuples(*[st.one_of(_constraints(kind), _constraints(kind), scalars.constraints(["x"]))] * 2)
)


def _constraints(kind):
    return scalars.spatial_constraints("x") if kind == "spatial" else scalars.scalar_constraints("x", kind)


@settings(max_examples=examples(1500))
@given(PAIRS, st.lists(scalars.values(), max_size=8), st.lists(st.one_of(regions(), points(), circles()), max_size=4))
def test_claims_hold_for_every_value(pair, values, shapes):
    first, second = pair
    operands = [item for one in pair for item in (one.value if type(one.value) is tuple else (one.value,))]
    does_cover, do_conflict = covers(first, second), conflicts(first, second)
    assert conflicts(second, first) == do_conflict
    for value in [None, *values, *shapes, *operands]:
        message = {} if value is None else {"x": value}
        truths = holds(first, message), holds(second, message)
        assert not does_cover or truths[1] is not True or truths[0] is True, value
        assert not do_conflict or truths != (True, True), value


TEXTS = [Constraint("x", operator, value) for operator in ("=", "!=", "<=", ">") for value in ("a", "ab")]
TEXTS += [Constraint("x", operator, value) for operator in ("prefix", "not prefix") for value in ("a", "ab", "b")]


@pytest.mark.parametrize(
    ("constraints", "values"),
    [
        (TEXTS, ["", "a", "a!", "aa", "ab", "aba", "abb", "ac", "b", "ba", "c"]),
        ([Constraint("x", operator, value) for operator in ("=", "!=") for value in (True, False)], [True, False]),
    ],
)
def test_nothing_is_missed_where_values_are_ordered(constraints, values):
    for first, second in itertools.product(constraints, repeat=2):
        truths = [(holds(first, {"x": value}), holds(second, {"x": value})) for value in values]
        assert covers(first, second) == all(a for a, b in truths if b), (first, second)
        assert conflicts(first, second) == (not any(a and b for a, b in truths)), (first, second)


LIKES = ["%", "a%", "%a", "%a%", "ab%", "%ab%", "a%b", "%a%b%", "ab", "%b"]


def test_nothing_is_missed_among_patterns_of_runs():
    texts = ["".join(letters) for size in range(7) for letters in itertools.product("abz", repeat=size)]
    for first, second in itertools.product([Constraint("x", "like", like) for like in LIKES], repeat=2):
        found = [text for text in texts if holds(second, {"x": text})]
        assert covers(first, second) == all(holds(first, {"x": text}) for text in found), (first, second)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (("like", "_%"), ("like", "a_%"), True),
        (("contains", "b"), ("prefix", "abc"), True),
        (("not contains", "b"), ("not like", "%b%"), True),
        (("not prefix", "ab"), ("suffix", "x"), False),
        (("not prefix", "ab"), ("prefix", "b"), True),
        (("is not null", None), ("contains", "b"), True),
        (("not like", "a_"), ("like", "a__%"), True),
    ],
)
def test_patterns(first, second, expected):
    assert covers(Constraint("x", *first), Constraint("x", *second)) == expected


def test_foldings_meet_where_values_are_named():
    assert covers(Constraint("x", "prefix", "STRASS", casei=True), Constraint("x", "in", ("Straße", "strassen")))
    assert conflicts(Constraint("x", "prefix", "via", casei=True), Constraint("x", "=", "Straße"))
    assert not covers(Constraint("x", "prefix", "a", casei=True), Constraint("x", "prefix", "a"))  # cannot be told


def test_kinds_exclude_one_another():
    asked = [
        Constraint("x", "!=", 1),
        Constraint("x", "!=", "a"),
        Constraint("x", "=", True),
        Constraint("x", "<", datetime(2020, 1, 1, tzinfo=UTC)),
        Constraint("x", RelationSet.ALL, Region.box(0, 0, 1, 1)),
        Constraint("x", "is null"),
    ]
    for first, second in itertools.permutations(asked, 2):
        assert conflicts(first, second)
        assert not covers(first, second)
        assert not conflicts(first, Constraint("y", "is null"))


def test_regions():
    inner, outer, apart = Region.box(1, 1, 2, 2), Region.box(0, 0, 3, 3), Region.box(5, 5, 6, 6)
    within = RelationSet.S_WITHIN
    assert covers(Constraint("x", within, outer), Constraint("x", within, inner))
    assert covers(Constraint("x", Relation.INSIDE, outer), Constraint("x", Relation.COVERED_BY, inner))
    assert not covers(Constraint("x", Relation.INSIDE, outer), Constraint("x", within, inner))  # as of lines: unknown
    assert not covers(Constraint("x", within, inner), Constraint("x", Relation.INSIDE, outer))
    assert covers(Constraint("x", Relation.DISJOINT, apart), Constraint("x", within, inner))
    assert conflicts(Constraint("x", RelationSet.S_INTERSECTS, apart), Constraint("x", Relation.MEETS, inner)) is False
    assert conflicts(Constraint("x", Relation.INSIDE, apart), Constraint("x", within, inner))
    assert covers(Constraint("x", RelationSet.S_INTERSECTS, inner), Constraint("x", Relation.CONTAINS, Point(1.5, 1.5)))
    other = Region.box(0, 0, 1, 1, crs="EPSG:25832")
    outer = Region.box(0, 0, 3, 3, crs="EPSG:3035")
    assert not covers(Constraint("x", Relation.INSIDE, outer), Constraint("x", within, other))
    assert not conflicts(Constraint("x", Relation.DISJOINT, outer), Constraint("x", within, other))


HALVES = [value / 2 for value in range(-4, 20)]
numbers = st.integers(0, 7)
several = st.lists(numbers, min_size=2, max_size=5, unique=True).map(tuple)
ends = st.tuples(numbers, numbers).map(sorted).map(tuple)
comparisons = st.one_of(
    st.builds(Constraint, st.just("x"), st.sampled_from(operators), operands)
    for operators, operands in (
        (["<", "<=", ">", ">=", "=", "!="], numbers),
        (["in", "not in"], several),
        (["between", "not between"], ends),
    )
)


def held(constraint):
    """The values, whole and half, that satisfy a constraint, by plain evaluation."""
    return {x for x in HALVES if holds(constraint, {"x": x})}


@settings(max_examples=examples(1500))
@given(comparisons, comparisons)
def test_nothing_is_missed_among_comparisons_of_numbers(first, second):
    one, other = held(first), held(second)
    assert covers(first, second) == (other <= one)
    assert conflicts(first, second) == one.isdisjoint(other)


@given(st.lists(comparisons, min_size=1, max_size=12).filter(lambda many: all(map(is_mergeable, many))))
def test_few_say_what_many_say(many):
    few = folded(many)
    assert set.intersection(*map(held, few)) == set.intersection(*map(held, many))
    assert len(few) <= len(many)
