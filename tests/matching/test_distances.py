"""Distance constraints through tables: alone, with others, in batches, saved, in templates; judged by the rationals."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
import shapely

import contrada as ct
from effort import COMPILED, examples
from oracles.distance import doubles_around_root, is_within, square_of_distance

Within, Beyond, Filter, Constraint = ct.WithinDistance, ct.BeyondDistance, ct.Filter, ct.Constraint


def shapes(rng: np.random.Generator, count: int) -> list[object]:
    """Return points, boxes, triangles, regions with holes and of two parts on a coarse grid, many of them equal."""
    made: list[object] = []
    for _ in range(count):
        x, y, w, h = rng.integers(0, 13), rng.integers(0, 13), rng.integers(1, 5), rng.integers(1, 5)
        box = shapely.box(x, y, x + w, y + h)
        kind = rng.integers(0, 5)
        if kind == 0:
            made.append(shapely.Point(x, y))
        elif kind == 1:
            made.append(shapely.Polygon([(x, y), (x + w, y), (x + w, y + h)]))
        elif kind == 2:
            hole = [(x + w / 4, y + h / 4), (x + w / 2, y + h / 4), (x + w / 2, y + h / 2)]
            made.append(shapely.Polygon(box.exterior.coords, [hole]))
        elif kind == 3:
            made.append(shapely.MultiPolygon([box, shapely.box(x + w + 1, y, x + w + 2, y + 1)]))
        else:
            made.append(box)
    return made


def of(shape: object) -> object:
    """Return a Shapely shape as a value of ours."""
    return (ct.Point if shape.geom_type == "Point" else ct.Region).from_shapely(shape)


def constraints_of(rng: np.random.Generator, near: list[object], messages: list[object]) -> list[tuple[object, ...]]:
    """Return constraints as (text or operator, shape, distance, whether it asks for `within`)."""
    found = []
    for shape in near:
        square = square_of_distance(shape, messages[rng.integers(len(messages))])
        choices = (*doubles_around_root(square), float(rng.integers(0, 6)), rng.uniform(0, 4), 1e6)
        found.append((shape, float(choices[rng.integers(len(choices))]), bool(rng.random() < 0.6)))
    return found


def expected_keys(message: object, asked: list[tuple[object, ...]]) -> set[int]:
    """Return the numbers of the constraints that a message satisfies, by rational arithmetic."""
    return {
        k for k, (shape, distance, within) in enumerate(asked)
        if is_within(square_of_distance(message, shape), distance) == within
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(examples(4) if COMPILED else 1))
@pytest.mark.parametrize("packed", [False, True])
def test_every_way_through_a_table_answers_as_the_rationals(seed, packed, tmp_path):
    rng = np.random.default_rng(seed)
    messages, near = shapes(rng, 25), shapes(rng, 60)
    asked = constraints_of(rng, near, messages)
    table = ct.ForwardingTable()
    for k, (shape, distance, within) in enumerate(asked):
        table.subscribe("s", Constraint("area", (Within if within else Beyond)(distance), of(shape)), key=k)
    if packed:
        table.pack()
    table.check()
    given = [{"area": of(message)} for message in messages]
    expected = [expected_keys(message, asked) for message in messages]
    assert [set(table.match_keys(message)) for message in given] == expected
    many = table.match_many(given, by="subscription")
    assert [set(many.keys(k)) for k in range(len(given))] == expected
    for kind in ("Point", "other"):
        chosen = [k for k, message in enumerate(messages) if (message.geom_type == "Point") == (kind == "Point")]
        column = pa.table({"area": pa.array([shapely.to_wkb(messages[k]) for k in chosen], pa.binary())})
        by_column = table.match_many(column, by="subscription")
        assert [set(by_column.keys(k)) for k in range(len(chosen))] == [expected[k] for k in chosen]
    table.save(tmp_path / "table")
    opened = ct.ForwardingTable.open(tmp_path / "table")
    opened.check()
    assert [set(opened.match_keys(message)) for message in given] == expected
    for k, (shape, distance, within) in enumerate(asked):
        assert dict(opened.predicates())[k] == ct.parse(
            f"{'within' if within else 'beyond'}_distance(area, {of(shape).to_wkt()}, {distance!r})"
        )
    for message, keys in list(zip(given, expected, strict=True))[:5]:
        assert {k for k in range(len(asked)) if table.explain(message, k).truth} == keys


@pytest.mark.parametrize("packed", [False, True])
def test_filters_of_several_constraints(packed, tmp_path):
    rng = np.random.default_rng(5)
    messages, near, related = shapes(rng, 40), shapes(rng, 80), shapes(rng, 80)
    asked = constraints_of(rng, near, messages)
    values = [{"area": of(m), "size": int(rng.integers(0, 4))} for m in messages]
    table, filters = ct.ForwardingTable(), []
    for k, ((shape, distance, within), other) in enumerate(zip(asked, related, strict=True)):
        parts = [Constraint("area", (Within if within else Beyond)(distance), of(shape))]
        if k % 2:
            parts.append(
                Constraint("area", [ct.RelationSet.S_INTERSECTS, ct.RelationSet.S_DISJOINT][k // 2 % 2], of(other))
            )
        if k % 3 == 0:
            parts.append(Constraint("size", ">=", int(rng.integers(0, 4))))
        if k % 5 == 0:
            parts.append(Constraint("area", Within(1.5), of(other)))
        filters.append(Filter(parts))
        table.subscribe("s", filters[-1], key=k)
    if packed:
        table.pack()
    table.check()
    table.save(tmp_path / "table")
    expected = []
    for value in values:
        parts = [table.explain(value, k) for k in range(len(filters))]
        expected.append({k for k, part in enumerate(parts) if part.truth})
    for one in (table, ct.ForwardingTable.open(tmp_path / "table")):
        assert [set(one.match_keys(value)) for value in values] == expected
        many = one.match_many(values, by="subscription")
        assert [set(many.keys(k)) for k in range(len(values))] == expected
        assert all(dict(one.predicates())[k].filters[0] == part for k, part in enumerate(filters))
    assert sum(map(len, expected)) > 40


def test_templates_with_distances_from_columns():
    rows = pa.table({
        "key": ["a", "b", "c"],
        "geometry": pa.array([ct.Point(x, 0).to_wkb() for x in (0, 5, 10)], pa.binary()),
        "metres": [1, 4, 2],
    })  # fmt: skip
    for template in (
        "within_distance(area, $geometry, $metres)",
        {"op": "within_distance", "args": [{"property": "area"}, {"column": "geometry"}, {"column": "metres"}]},
        Constraint("area", Within(ct.Column("metres")), ct.Column("geometry")),
        "S_INTERSECTS(area, CIRCLE($geometry, $metres))",
    ):
        table = ct.ForwardingTable()
        table.subscribe_many(rows, template if not isinstance(template, dict) else ct.parse(template))
        assert set(table.match_keys({"area": ct.Point(1, 0)})) == {"a", "b"}
        assert set(table.match_keys({"area": ct.Region.box(8, -1, 9, 1)})) == {"b", "c"}
    far = ct.ForwardingTable()
    far.subscribe_many(rows, "NOT within_distance(area, POINT(0 0), $metres)")
    assert set(far.match_keys({"area": ct.Point(3, 0)})) == {"a", "c"}


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_bad_distances_are_errors(bad):
    with pytest.raises(ct.FilterError, match="distance"):
        Within(bad)
    with pytest.raises(ct.ArgumentError, match="distance"):
        ct.within_distance(ct.Point(0, 0), ct.Point(0, 0), bad)
    rows = pa.table({"geometry": [ct.Point(0, 0).to_wkb()] * 2, "metres": [1.0, bad]})
    table = ct.ForwardingTable()
    with pytest.raises(ct.FilterError, match=r"column 'metres'.*"):
        table.subscribe_many(rows, "within_distance(area, $geometry, $metres)")
    assert len(table) == 0


def test_unknown_values_satisfy_neither():
    table = ct.ForwardingTable()
    table.subscribe("within", "within_distance(area, POINT(0 0), 5)")
    table.subscribe("beyond", "beyond_distance(area, POINT(0 0), 5)")
    table.subscribe("not within", "NOT within_distance(area, POINT(0 0), 5)")
    for value in (None, "POINT (1 1)", 3, float("nan")):
        assert set(table.match({"area": value})) == set()
    assert set(table.match({})) == set()
    assert set(table.match({"area": ct.Point(9, 9)})) == {"beyond", "not within"}


def test_a_distance_of_zero_is_the_intersection():
    rng = np.random.default_rng(3)
    first, second = shapes(rng, 200), shapes(rng, 200)
    for a, b in zip(first, second, strict=True):
        assert ct.within_distance(a, b, 0) == (ct.relate(of(a), of(b)) != ct.Relation.DISJOINT)


def test_circles_of_subscriptions():
    table = ct.ForwardingTable()
    table.subscribe("meets", "S_INTERSECTS(area, CIRCLE(POINT(0 0), 5))")
    table.subscribe("apart", "S_DISJOINT(area, CIRCLE(POINT(0 0), 5))")
    table.subscribe("whole", "S_WITHIN(area, CIRCLE(POINT(0 0), 5))")
    table.subscribe("not whole", "NOT S_CONTAINS(CIRCLE(POINT(0 0), 5), area)")
    for packed in (False, True):
        if packed:
            table.pack()
        assert set(table.match({"area": ct.Region.box(0, 0, 3, 4)})) == {"meets", "whole"}
        assert set(table.match({"area": ct.Region.box(0, 0, 3, 4.5)})) == {"meets", "not whole"}
        assert set(table.match({"area": ct.Point(3, 4)})) == {"meets", "whole"}
        assert set(table.match({"area": ct.Point(3, 4.5)})) == {"apart", "not whole"}
    with pytest.raises(ct.LanguageError, match="need a POLYGON"):
        ct.parse("S_OVERLAPS(area, CIRCLE(POINT(0 0), 5))")


def test_explanations_print_the_distance():
    table = ct.ForwardingTable()
    table.subscribe("s", "within_distance(area, POINT(0 0), 4.5)", key="k")
    why = table.explain({"area": ct.Point(3, 4)}, "k")
    assert "area is 5 away from it" in str(why)
    assert why.to_dict()["filters"][0]["constraints"][0]["distance"] == 5.0
