"""The counting matcher: the same answers as the table and as plain evaluation, identical constraints stored once."""

from itertools import starmap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada.papers.spatial.counting import CountingMatcher
from effort import examples
from generators.scalars import messages, predicates
from oracles.plain import filter_holds
from oracles.subscriptions import matching_keys, subscribed, unsubscribe


def check(table, model, asked):
    matcher = CountingMatcher(table)
    for message in [*asked, *asked[:1]]:  # the first once more: nothing stays behind
        right = matching_keys(model, message)
        assert set(matcher.match_keys(message)) == right
        assert set(matcher.match(message)) == {model[key][0] for key in right}
        check_rows(matcher, table, message)


def check_rows(matcher, table, message):
    """The rows of the matcher are those of the table, in their order."""
    assert matcher.match_keys(message).rows.tolist() == table.match_keys(message).rows.tolist()
    assert matcher.match(message).rows.tolist() == table.match(message).rows.tolist()


@settings(max_examples=examples(120))
@given(
    shape=st.sampled_from(["buffered", "packed", "both"]),
    given_predicates=st.lists(predicates(), min_size=1, max_size=25),
    later=st.lists(predicates(), max_size=5),
    asked=st.lists(messages(), min_size=1, max_size=12),
    gone=st.sets(st.integers(0, 24), max_size=8),
)
def test_answers_are_those_of_plain_evaluation(shape, given_predicates, later, asked, gone):
    table = ct.ForwardingTable()
    model = subscribed(table, given_predicates)
    if shape != "buffered":
        table.pack()
    if shape == "both":
        model.update(subscribed(table, later, 100))
    unsubscribe(table, model, gone)
    check(table, model, asked)


def of_filters(*filters):
    """A table of filters, each given by the arguments of its constraints."""
    table = ct.ForwardingTable()
    for key, constraints in enumerate(filters):
        table.subscribe(f"owner {key}", ct.Filter(starmap(ct.Constraint, constraints)), key=key)
    return table


BOX, TOUCHING = ct.Region.box(0, 0, 1, 1), ct.RelationSet.S_INTERSECTS
KINDS = [
    ("size", "=", 1),
    ("size", "<", 3),
    ("size", "!=", 4),
    ("size", "in", (1, 2)),
    ("size", "not in", (5, 6)),
    ("size", "not between", (7, 8)),
    ("name", "like", "%a%b%"),
    ("name", "not like", "%c%d%"),
    ("name", "prefix", "xa"),
    ("area", TOUCHING, BOX),
    ("area", TOUCHING, ct.Point(0.5, 0.5)),
]


def test_identical_constraints_are_stored_once():
    matcher = CountingMatcher(of_filters(*[KINDS] * 3, KINDS[:1], [KINDS[1], KINDS[1]]))
    assert (len(matcher), matcher.pairs) == (len(KINDS), 3 * len(KINDS) + 2)
    assert set(matcher.match_keys({"size": 1, "name": "xab", "area": BOX})) == {0, 1, 2, 3, 4}
    assert set(matcher.match_keys({"size": 2, "area": BOX})) == {4}


@pytest.mark.parametrize(
    ("other", "count"),
    [
        (("size", "in", (2, 1, 1.0)), 11),  # the same set
        (("size", "in", (1, 2, 3)), 12),
        (("size", "not in", (1, 2)), 12),
        (("name", "not like", "%a%b%"), 12),
        (("size", "<=", 3), 12),
        (("other", "<", 3), 12),
        (("area", TOUCHING, ct.Region.box(0, 0, 1, 2)), 12),
        (("area", ct.Relation.DISJOINT, BOX), 12),
        (("place", TOUCHING, BOX), 12),
    ],
)
def test_different_constraints_are_not(other, count):
    assert len(CountingMatcher(of_filters(KINDS, [other]))) == count


@pytest.mark.jitless
def test_every_kind_is_found_or_not():
    matcher = CountingMatcher(of_filters(*([kind] for kind in KINDS)))
    names = [None, "", "xab", "cd", "ab", "xcd"]
    for size in [None, 0, 1, 2, 3, 4, 5, 6, 7, 7.5, 8, 9, "1"]:
        for name, area in zip(names, [BOX, None, ct.Point(0, 0), ct.Point(2, 2), ct.Point(0.5, 0.5), BOX], strict=True):
            message = {"size": size, "name": name, "area": area}
            right = {key for key, kind in enumerate(KINDS) if filter_holds([ct.Constraint(*kind)], message)}
            assert set(matcher.match_keys(message)) == right
            assert set(matcher.match(message)) == {f"owner {key}" for key in right}


def random_filters(rng, count):
    """Filters on the whole numbers up to 60: intervals of every kind in blocks of blocks, constants and negations."""
    for _ in range(count):
        low, high = rng.integers(0, 60, 2).tolist()
        other, third = rng.integers(0, 60, 2).tolist()
        yield [
            ct.Constraint("a", *[("between", (low, high)), ("not between", (low, high)), (">", low)][rng.integers(3)]),
            ct.Constraint("b", *[("!=", other), ("not in", (other, third)), ("<=", other)][rng.integers(3)]),
            ct.Constraint("area", TOUCHING, ct.Region.box(other, third, other + 9, third + 9)),
        ][: rng.integers(1, 4)]


@pytest.mark.parametrize("owners", [5, 700, 3000])
def test_many_filters_have_the_same_answers(owners):
    rng = np.random.default_rng(owners)
    table = ct.ForwardingTable()
    for key, constraints in enumerate(random_filters(rng, 3000)):
        table.subscribe(key % owners, ct.Filter(constraints), key=key)
    matcher = CountingMatcher(table)
    for a, b, x, y in rng.integers(-1, 62, (40, 4)).tolist():
        message = {"a": a, "b": b, "area": ct.Region.box(x, y, x + 7, y + 7)}
        check_rows(matcher, table, message)


@pytest.mark.jitless
def test_filters_of_many_constraints_are_counted_beyond_a_byte():
    long = [("size", "!=", k) for k in range(300)]
    matcher = CountingMatcher(of_filters(long, long[:256], long[:255], long[:1]))
    for size, right in ((-1, {0, 1, 2, 3}), (299, {1, 2, 3}), (255, {2, 3}), (254, {3}), (0, set())):
        assert set(matcher.match_keys({"size": size})) == right


def test_what_is_matched_stays_what_it_was():
    table = of_filters([("size", "<", 3)], [("size", "<", 5)])
    matcher = CountingMatcher(table)
    table.unsubscribe(0)
    table.subscribe("late", ct.Constraint("name", "=", "a"), key="late")
    assert set(matcher.match_keys({"size": 1, "name": "a"})) == {0, 1}


def test_without_subscriptions_nothing_is_found():
    table = ct.ForwardingTable()
    assert set(CountingMatcher(table).match({"size": 1})) == set()
    table.unsubscribe(table.subscribe("ann", ct.Constraint("size", "<", 3)))
    assert set(CountingMatcher(table).match_keys({"size": 1})) == set()


def test_spatial_filters_alone_are_counted():
    matcher = CountingMatcher(of_filters([("area", TOUCHING, BOX), ("place", ct.Relation.DISJOINT, BOX)]))
    assert set(matcher.match_keys({"area": BOX, "place": ct.Point(3, 3)})) == {0}
    assert set(matcher.match_keys({"area": BOX, "place": BOX})) == set()
    assert set(matcher.match({"area": BOX})) == set()
