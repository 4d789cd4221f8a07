"""Packed filters come back as they were, and cover each other as their constraints do."""

from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada import Constraint, Filter, Point, Region, Relation, RelationSet
from contrada.covering.packing import filter_of, items_cover, items_of, pack, unpack
from contrada.model.implication import covers
from effort import examples
from generators import scalars
from generators.strategies import regions, relation_sets, relations

HOLED = "POLYGON((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 2 1, 2 2, 1 1))"
PARTS = "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))"
# Around the edges of what is compared as doubles: no doubles, more than 103 bits, infinite, zero of either sign.
EDGES = (0, -0.0, 1, 1.0, 0.1, 2**53, 2**53 + 1, 2**200, 2.0**200, float("inf"), -float("inf"), Decimal("0.1"))
NUMBERS = st.sampled_from(EDGES) | st.integers(-3, 3)


def circle(count):
    """A region of so many vertices."""
    angles = np.arange(count) * 2 * np.pi / count
    return Region(np.column_stack([np.cos(angles), np.sin(angles)]))


def packed_and_unpacked(part):
    return unpack(pack(items_of(part)))


@pytest.mark.parametrize(
    "constraint",
    [
        Constraint("x", ">=", 3),
        Constraint("x", "<", Decimal("0.1")),
        Constraint("x", "=", np.float64(2.5)),
        Constraint("x", "in", (1, 2.5, 2**200)),
        Constraint("flag", "=", True),
        Constraint("flag", "in", (True, False)),
        Constraint("at", ">", datetime(2026, 1, 2, tzinfo=UTC)),
        Constraint("at", "between", (np.datetime64("2026-01-01"), np.datetime64("2026-01-02T03:04:05.000000006"))),
        Constraint("name", "=", "Straße", casei=True),
        Constraint("name", "not like", "50\\%%", casei=True, accenti=True),
        Constraint("name", "is null"),
        Constraint("name", "is not null"),
        Constraint("area", Relation.MEETS, Point(1, 2, crs="EPSG:3035")),
        Constraint("area", RelationSet.S_WITHIN, Region.box(0, 0, 1, 1, crs="EPSG:25832")),
        Constraint("area", RelationSet.NONE, Region.from_wkt(HOLED)),
        Constraint("area", RelationSet.ALL, Region.from_wkt(PARTS, crs=4326)),
        Constraint("area", RelationSet.S_INTERSECTS, circle(64)),
        Constraint("area", RelationSet.S_INTERSECTS, circle(65)),
        Constraint("area", RelationSet.S_INTERSECTS, circle(5_000)),
        Constraint("area", RelationSet.S_INTERSECTS, ct.RegionArray.from_wkt([PARTS, HOLED])[1]),
    ],
    ids=lambda constraint: str(constraint)[:40],
)
def test_a_constraint_comes_back(constraint):
    both = Filter([constraint, Constraint("other", "=", 1)])
    items = packed_and_unpacked(both)
    back = filter_of(items)
    assert back == both
    assert back.constraints[0] == constraint
    assert back.constraints[0].kind == constraint.kind
    if constraint.kind is not None:
        assert back.constraints[0].value.crs == constraint.value.crs
    assert str(back) == str(both)
    assert items_cover(items, items_of(both))
    assert items_cover(items_of(both), items)
    assert items_cover(packed_and_unpacked(Filter([constraint])), items)


def test_a_time_that_cannot_be_pickled_stays_an_object():
    class Zone(tzinfo):
        def utcoffset(self, _):
            return timedelta(hours=1)

    own = Constraint("at", ">", datetime(2026, 1, 2, 1, tzinfo=Zone()))
    plain = Constraint("at", ">", datetime(2026, 1, 2, tzinfo=UTC))
    index = ct.CoveringIndex()
    assert index.subscribe("own", own).forward
    assert index.subscribe("plain", plain).covered_by == ("own",)
    assert index.predicate("own").filters[0].constraints[0] is own
    assert index.unsubscribe("own").forward == ("plain",)


NUMERIC = st.one_of(
    st.builds(Constraint, st.just("x"), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), NUMBERS),
    st.builds(Constraint, st.just("x"), st.sampled_from(["in", "between", "not between"]), st.tuples(NUMBERS, NUMBERS)),
    st.builds(Constraint, st.just("x"), st.sampled_from(["=", "!="]), st.booleans()),
)
SPATIAL = st.builds(
    Constraint,
    st.just("area"),
    relations() | relation_sets(),
    regions() | st.builds(Point, st.integers(0, 3), st.just(1)),
)
ANY = st.one_of(NUMERIC, SPATIAL, scalars.constraints(("x", "area", "name")))
PARTS_OF_ANY = st.lists(ANY, min_size=1, max_size=3).map(Filter)


@settings(max_examples=examples(2_000))
@given(PARTS_OF_ANY, PARTS_OF_ANY)
def test_packed_filters_cover_as_their_constraints_do(first, second):
    expected = all(any(covers(one, other) for other in second) for one in first)
    assert items_cover(packed_and_unpacked(first), items_of(second)) == expected
    assert items_cover(items_of(first), packed_and_unpacked(second)) == expected


@settings(max_examples=examples(2_000))
@given(NUMERIC, NUMERIC)
def test_packed_numbers_cover_as_their_constraints_do(first, second):
    assert items_cover(packed_and_unpacked(Filter([first])), items_of(Filter([second]))) == covers(first, second)
