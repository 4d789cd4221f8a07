"""Explanations: what they say is what the table answers, as text and as data, and the filters that it was given."""

import itertools
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import contrada as ct
from contrada import Constraint, Filter, Point, Predicate, Region, Relation, RelationSet
from contrada.matching.explain import ASKED_WIDTH, VALUE_WIDTH, plain_value, shown_constraint, shown_value
from effort import examples
from generators.scalars import messages, predicates
from oracles.plain import holds
from oracles.subscriptions import recalled
from threads import repeating

AREA = Region.box(0, 0, 4, 4)
TWO = Predicate(
    [
        Filter([Constraint("severity", ">=", 3), Constraint("area", Relation.OVERLAPS, AREA)]),
        Filter([Constraint("price", "<", 100), Constraint("name", "prefix", "Via ", casei=True)]),
    ]
)


def explained(what, message, packed=False):
    table = ct.ForwardingTable()
    table.subscribe("ops-team", what, key="k17")
    if packed:
        table.pack()
    return table.explain(message, "k17")


def line(what, message):
    """The only line about the only constraint, single-spaced."""
    return " ".join(str(explained(what, message)).splitlines()[2].split())


@pytest.mark.parametrize("packed", [False, True])
def test_as_text(packed):
    message = {"severity": 4, "area": Region.box(-1, -1, 9, 9), "name": "Corso"}
    assert str(explained(TWO, message, packed)).splitlines() == [
        "'k17' of 'ops-team' does not match: 1 of 2 constraints of its nearest filter fails.",
        "filter 1, nearest",
        "  no       S_OVERLAPS(area, POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0)))  area contains it",
        "  yes      severity >= 3                                          severity is 4",
        "filter 2",
        "  no       CASEI(name) LIKE CASEI('via %')                        name is 'Corso'",
        "  unknown  price < 100                                            price is absent",
    ]


def test_what_matches_as_text():
    text = str(explained(TWO, {"price": 5, "name": "VIA Roma", "severity": 1})).splitlines()
    assert (text[0], text[1], text[4]) == ("'k17' of 'ops-team' matches.", "filter 1", "filter 2, matches")


def test_one_constraint_and_several_failures_as_text():
    one = Constraint("x", "=", 1)
    assert explained(one, {}).verdict.endswith("does not match: 1 of 1 constraint fails.")
    assert explained(Filter([one, Constraint("y", "=", 1)]), {}).verdict.endswith("2 of 2 constraints fail.")


def test_as_data():
    message = {"severity": 4, "area": Point(4, 1), "price": Decimal("99.5"), "name": 7}
    data = explained(TWO, message).to_dict()
    assert data == json.loads(json.dumps(data))
    assert [data[name] for name in ("key", "subscriber", "truth", "nearest")] == ["k17", "ops-team", None, 0]
    first, second = data["filters"]
    assert (first["truth"], second["truth"]) == (False, None)
    assert first["constraints"][0] == {
        "attribute": "area",
        "asked": "S_OVERLAPS(area, POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0)))",
        "value": {"type": "Point", "coordinates": [4.0, 1.0]},
        "truth": False,
        "relation": "meets",
    }
    assert [part["value"] for part in second["constraints"]] == [7, "99.5"]


@pytest.mark.parametrize(
    ("message", "nearest"),
    [
        ({}, 0),  # all fail alike: the first
        ({"severity": 3}, 0),
        ({"price": 1}, 1),
        ({"severity": 3, "price": 1}, 0),
        ({"severity": 3, "price": 1, "name": "via"}, 0),
        ({"severity": 3, "price": 1, "name": "via mala"}, 1),
    ],
)
def test_the_nearest_filter(message, nearest):
    assert explained(TWO, message).nearest == nearest


NUMBER = Constraint("x", "<", 5)


@pytest.mark.parametrize(
    ("constraint", "message", "text"),
    [
        (NUMBER, {"x": 2.5}, "yes x < 5 x is 2.5"),
        (NUMBER, {"x": None}, "unknown x < 5 x is absent"),
        (NUMBER, {"x": "4"}, "unknown x < 5 x is '4', not a number"),
        (NUMBER, {"x": True}, "unknown x < 5 x is TRUE, not a number"),
        (NUMBER, {"x": math.nan}, "unknown x < 5 x is nan, not a number"),
        (NUMBER, {"x": Point(1, 2)}, "unknown x < 5 x is POINT (1 2), not a number"),
        (NUMBER, {"x": [4]}, "unknown x < 5 x is [4], not a number"),
        (NUMBER, {"x": 10**5000}, "no x < 5 x is a very long number"),
        (Constraint("x", "!=", "a"), {"x": 1}, "unknown x <> 'a' x is 1, not text"),
        (Constraint("x", "!=", "a"), {"x": "b\n"}, r"yes x <> 'a' x is 'b\n'"),
        (Constraint("x", "is null"), {}, "yes x IS NULL x is absent"),
        (Constraint("x", "is null"), {"x": 1}, "no x IS NULL x is 1"),
        (Constraint("x", "is not null"), {}, "no x IS NOT NULL x is absent"),
        (Constraint("x", "=", True), {"x": np.False_}, "no x = TRUE x is FALSE"),
        (
            Constraint("x", ">", date(2020, 1, 1)),
            {"x": np.datetime64("NaT")},
            "unknown x > TIMESTAMP('2020-01-01T00:00:00Z') x is NaT, not a timestamp",
        ),
    ],
)
def test_values_as_text(constraint, message, text):
    assert line(constraint, message) == text


@pytest.mark.parametrize(
    ("value", "relation", "text"),
    [
        (Region.box(8, 8, 9, 9), Relation.DISJOINT, "area is disjoint from it"),
        (Region.box(4, 0, 9, 9), Relation.MEETS, "area meets it"),
        (Region.box(1, 1, 9, 9), Relation.OVERLAPS, "area overlaps it"),
        (AREA, Relation.EQUALS, "area equals it"),
        (Region.box(1, 1, 2, 2), Relation.INSIDE, "area is inside it"),
        (Region.box(-1, -1, 9, 9), Relation.CONTAINS, "area contains it"),
        (Region.box(0, 0, 9, 9), Relation.COVERS, "area covers it"),
        (Region.box(0, 0, 2, 2), Relation.COVERED_BY, "area is covered by it"),
        (Point(1, 1), Relation.INSIDE, "area is inside it"),
        (Point(0, 1), Relation.MEETS, "area meets it"),
        ("here", None, "area is 'here', not a region, point or line"),
    ],
)
def test_how_regions_relate(value, relation, text):
    explanation = explained(Constraint("area", RelationSet.S_WITHIN, AREA), {"area": value})
    part = explanation.filters[0].constraints[0]
    assert part.relation is relation
    assert part.reason == text
    assert explanation.truth is (None if relation is None else relation in RelationSet.S_WITHIN)


def test_long_texts_are_shortened():
    ring = [(math.cos(k) * (2 + k), math.sin(k) * (2 + k)) for k in np.linspace(0, 6, 500)]
    large = Region(ring)
    for constraint in (Constraint("area", RelationSet.ALL, large), Constraint("x", "in", range(1000))):
        assert len(shown_constraint(constraint)) <= ASKED_WIDTH
    for value in (large, "a" * 100, np.arange(1000), {"a": "b" * 100}):
        shown = shown_value(value, VALUE_WIDTH)
        assert len(shown) <= VALUE_WIDTH
        assert "\n" not in shown
    assert shown_value(large, VALUE_WIDTH).endswith(", ...))")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        *((None, None), (True, True), (np.True_, True), (3, 3), (np.int8(3), 3), (2.5, 2.5), (math.inf, "inf")),
        *((Decimal("0.10"), "0.10"), (np.str_("a"), "a"), (date(2020, 1, 2), "2020-01-02T00:00:00Z"), (b"a", "b'a'")),
        (np.datetime64("NaT"), "NaT"),
        (Point(1, 2), {"type": "Point", "coordinates": [1.0, 2.0]}),
    ],
)
def test_values_as_data(value, plain):
    made = plain_value(value)
    assert made == plain
    assert type(made) is type(plain)


def test_unknown_keys_are_an_error():
    table = ct.ForwardingTable()
    table.unsubscribe(table.subscribe("a", NUMBER, key="k"))
    for key in ("k", "other", None):
        with pytest.raises(ct.UnknownKeyError, match="no subscription has the key"):
            table.explain({}, key)


def test_explanations_beside_updates():
    table = ct.ForwardingTable()
    table.subscribe("ops-team", TWO, key="k17")
    numbers = itertools.count()

    def update():
        number = next(numbers)
        table.subscribe("other", TWO, key=number)
        table.subscribe("ops-team", TWO, key="k17", replace=True)
        if number > 2:
            table.unsubscribe(number - 2)
        if number % 20 == 0:
            table.pack()

    with repeating(update, threads=1):
        for _ in range(200):
            assert table.explain({"severity": 3}, "k17").filters[0].failing == 1


@settings(deadline=None, max_examples=examples(60))
@given(predicate=predicates(), message=messages())
def test_explanations_agree_with_matches_and_with_plain_evaluation(predicate, message):
    table = ct.ForwardingTable()
    try:
        table.subscribe("someone", predicate, key="k")
    except ct.FilterError:  # two of its own numbers cannot be distinguished
        return
    explanation = table.explain(message, "k")
    assert (explanation.truth is True) == ("k" in set(table.match_keys(message)))
    for part in explanation.filters:
        assert [each.truth for each in part.constraints] == [
            holds(each.constraint, message) for each in part.constraints
        ]
    assert (explanation.filters[explanation.nearest].truth is True) == (explanation.truth is True)
    assert len(str(explanation).splitlines()) == 1 + sum(1 + len(part.constraints) for part in explanation.filters)
    assert json.loads(json.dumps(explanation.to_dict(), allow_nan=False))["truth"] is explanation.truth


def test_values_that_python_cannot_print():
    deep = 1
    for _ in range(50_000):
        deep = [deep]
    for value in (deep, [10**5000]):
        found = explained("size = 1", {"size": value})
        assert "a list that cannot be printed" in str(found)
        assert "a list that cannot be printed" in json.dumps(found.to_dict())


def test_batches_are_recalled():
    parcels = ct.RegionArray.from_regions([Region.box(x, 0, x + 2, 2) for x in range(0, 10, 2)])
    rows = pa.table({"key": list("abcde"), "geometry": parcels.to_wkb()})
    table = ct.ForwardingTable()
    further = Constraint("area", Relation.DISJOINT, AREA), Constraint("at", Relation.INSIDE, ct.Point(1, 1))
    table.subscribe_many(rows, Filter([Constraint("area", Relation.OVERLAPS, ct.Column("geometry")), *further]))
    for key, parcel in zip("abcde", parcels, strict=True):
        asked = Filter([Constraint("area", Relation.OVERLAPS, parcel), *further])
        assert recalled(table, key) == Predicate([asked])


def test_replaced_subscriptions_are_recalled_as_they_are_now():
    table = ct.ForwardingTable()
    for size in (1, 2):
        table.subscribe("a", Constraint("size", "=", size), key="k", replace=True)
    assert str(recalled(table, "k")) == "size = 2"


def test_the_crs_is_recalled():
    table = ct.ForwardingTable()
    asked = Constraint("area", Relation.INSIDE, Region.box(0, 0, 1, 1, crs="EPSG:4326"))
    table.subscribe("a", Filter([asked, Constraint("at", Relation.INSIDE, ct.Point(0, 0, crs="EPSG:4326"))]), key="k")
    assert [constraint.value.crs for constraint in recalled(table, "k").filters[0]] == ["EPSG:4326"] * 2


@pytest.mark.parametrize(
    ("given_constraint", "text"),
    [
        (Constraint("x", "=", 3.0), "x = 3"),
        (Constraint("x", "<>", 2.5), "x <> 2.5"),
        (Constraint("x", ">=", Decimal("0.10")), "x >= DECIMAL('0.1')"),
        (Constraint("x", "<", 2**53 + 1), "x < 9007199254740993"),
        (Constraint("x", ">", Decimal("1E+400")), "x > DECIMAL('1E+400')"),
        (Constraint("x", "=", float("inf")), "x = 1e999"),
        (Constraint("x", "between", (1, 2)), "x BETWEEN 1 AND 2"),
        (Constraint("x", "not in", [3, 1, 2]), "x NOT IN (1, 2, 3)"),
        (Constraint("x", "=", True), "x = TRUE"),
        (Constraint("x", "<=", datetime(2020, 1, 2, tzinfo=UTC)), "x <= TIMESTAMP('2020-01-02T00:00:00Z')"),
        (Constraint("x", "<=", np.datetime64(1, "ns")), "x <= TIMESTAMP('1970-01-01T00:00:00.000000001Z')"),
        (Constraint("x", "<=", np.datetime64("30000")), "x <= TIMESTAMP('30000-01-01T00:00:00Z')"),
        (Constraint("x", "prefix", "50%"), r"x LIKE '50\%%'"),
        (Constraint("x", "not suffix", "é"), "x NOT LIKE '%é'"),
        (Constraint("x", "contains", "Ab", casei=True), "CASEI(x) LIKE CASEI('%ab%')"),
        (Constraint("x", "like", "a_%é"), "x LIKE 'a_%é'"),
        (Constraint("x", "prefix", ""), "x LIKE '%'"),
        (Constraint("x", "=", "É", accenti=True), "ACCENTI(x) = ACCENTI('E')"),
        (Constraint("x", "is null"), "x IS NULL"),
        (Constraint("x", "is not null"), "x IS NOT NULL"),
    ],
)
def test_what_is_recalled_reads_well(given_constraint, text):
    table = ct.ForwardingTable()
    table.subscribe("a", given_constraint, key="k")
    for _ in range(2):
        assert str(recalled(table, "k")) == text
        table.pack()
