"""Messages with circles through tables: alone, in batches, in columns, saved, simplified; judged by the rationals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

import contrada as ct
from effort import COMPILED, examples
from generators.circles import circles_near, shapes
from oracles.circles import is_circle_within_circle, is_circle_within_distance, relation_of_circle, squares_to
from oracles.distance import doubles_around_root, is_within, square_of_distance

Within, Beyond, Filter, Constraint, Sets = (
    ct.WithinDistance, ct.BeyondDistance, ct.Filter, ct.Constraint, ct.RelationSet,
)  # fmt: skip
MASKS = (Sets.S_INTERSECTS, Sets.S_DISJOINT, Sets.S_WITHIN, ~Sets.S_WITHIN, Sets.S_CONTAINS, Sets.S_TOUCHES)


def of(shape: Any) -> Any:
    """Return a Shapely shape as a value of ours; circles stay."""
    if isinstance(shape, ct.Circle):
        return shape
    return (ct.Point if shape.geom_type == "Point" else ct.Region).from_shapely(shape)


def messages_of(rng: np.random.Generator, near: list[Any], count: int) -> list[Any]:
    """Return circles that touch some shapes, regions and points."""
    chosen = [near[int(k)] for k in rng.integers(0, len(near), count)]
    return [circle for shape in chosen for circle in circles_near(rng, shape, 1)] + shapes(rng, count // 2)


def holds(message: Any, shape: Any, asked: Any) -> bool:
    """Return whether a message satisfies a constraint on a shape: a relation set, or (distance, within, whole)."""
    is_circle = isinstance(message, ct.Circle)
    if isinstance(asked, Sets):
        relation = relation_of_circle(message, shape) if is_circle else ct.relate(of(message), of(shape))
        return relation in asked
    distance, within, whole = asked
    if whole:
        if is_circle:
            return is_circle_within_circle(message, shape.x, shape.y, distance) == within
        return (squares_to(ct.Circle((shape.x, shape.y), 0), message)[1] <= distance**2) == within
    if is_circle:
        return is_circle_within_distance(message, shape, distance) == within
    return is_within(square_of_distance(message, shape), distance) == within


def asked_of(rng: np.random.Generator, near: list[Any], messages: list[Any]) -> list[tuple[Any, Any]]:
    """Return pairs of a shape and what is asked about it; distances are those of a circle, or next to it."""
    found: list[tuple[Any, Any]] = []
    for shape in near:
        if rng.random() < 0.5:
            found.append((shape, MASKS[rng.integers(len(MASKS))]))
            continue
        message = messages[rng.integers(len(messages))]
        distance = float(rng.integers(0, 12)) / 2
        if isinstance(message, ct.Circle):
            root = doubles_around_root(squares_to(message, shape)[0])[0]
            exact = max(0.0, root - message.radius)
            choices = (
                exact,
                math.nextafter(exact, math.inf),
                math.nextafter(exact, 0),
                root + message.radius,
                distance,
            )
            distance = float(choices[rng.integers(len(choices))])
        whole = shape.geom_type == "Point" and rng.random() < 0.5
        found.append((shape, (distance, bool(rng.random() < 0.6), whole)))
    return found


def constraint(shape: Any, asked: Any) -> ct.Constraint:
    """Return a constraint of `asked_of`."""
    if isinstance(asked, Sets):
        return Constraint("area", asked, of(shape))
    distance, within, whole = asked
    if whole:
        text = f"S_WITHIN(area, CIRCLE({of(shape).to_wkt()}, {distance!r}))"
        return ct.parse(text if within else f"NOT {text}").filters[0].constraints[0]
    return Constraint("area", (Within if within else Beyond)(distance), of(shape))


def keys_by_every_way(table: Any, messages: list[dict[str, Any]]) -> list[list[set[Any]]]:
    """Return the keys that match each message: one by one, as a list, and in columns of bytes."""
    answers = [[set(table.match_keys(message)) for message in messages]]
    many = table.match_many(messages, by="subscription")
    answers.append([set(many.keys(k)) for k in range(len(messages))])
    names = [name for name in messages[0] if name != "area"]
    columns = {name: [message[name] for message in messages] for name in names}
    column = pa.array([None if message["area"] is None else message["area"].to_wkb() for message in messages])
    by_column = table.match_many(pa.table({"area": column, **columns}), by="subscription", threads=2)
    assert not by_column.rejected
    return [*answers, [set(by_column.keys(k)) for k in range(len(messages))]]


@pytest.mark.parametrize("seed", range(max(3, examples(6)) if COMPILED else 1))
@pytest.mark.parametrize("packed", [False, True])
def test_every_way_through_a_table_answers_as_the_rationals(seed, packed, tmp_path):
    rng = np.random.default_rng(seed)
    near = shapes(rng, 80)
    messages = messages_of(rng, near, 24)
    asked = asked_of(rng, near, messages)
    table = ct.ForwardingTable()
    for k, one in enumerate(asked):
        table.subscribe("s", constraint(*one), key=k)
    if packed:
        table.pack()
    table.check()
    given = [{"area": of(message)} for message in messages]
    expected = [{k for k, one in enumerate(asked) if holds(message, *one)} for message in messages]
    assert sum(map(len, expected)) > 100
    for found in keys_by_every_way(table, given):
        assert found == expected
    table.save(tmp_path / "table")
    opened = ct.ForwardingTable.open(tmp_path / "table")
    assert keys_by_every_way(opened, given)[0] == expected
    for message, keys in list(zip(given, expected, strict=True))[:6]:
        assert {k for k in range(len(asked)) if table.explain(message, k).truth} == keys


@pytest.mark.parametrize("seed", range(max(2, examples(6)) if COMPILED else 1))
def test_filters_of_several_constraints_simplified_and_not(seed, tmp_path):
    rng = np.random.default_rng(seed)
    near = shapes(rng, 160)
    messages = messages_of(rng, near, 30)
    asked = asked_of(rng, near, messages)
    values = [{"area": of(m), "size": int(rng.integers(0, 4))} for m in messages]
    table, texts = ct.ForwardingTable(), []
    for k in range(0, len(asked), 4):
        one, two, three, four = (str(constraint(*each)) for each in asked[k : k + 4])
        size = int(rng.integers(0, 4))
        choices = (
            f"{one} AND {two} OR {three} AND size >= {size}",
            f"NOT ({one} AND NOT {three}) AND size < {size} OR {four}",
            f"{two} AND {one} AND size >= {size}",
            f"({one} OR {two}) AND ({one} OR {three})",
        )
        texts.append(choices[k // 4 % 4])
        table.subscribe(f"owner {k % 3}", texts[-1], key=k)
    expected = [{k for k in table if table.explain(value, k).truth} for value in values]
    owners = [set(table.match(value)) for value in values]
    assert sum(map(len, expected)) > 60
    for step in range(3):
        for found in keys_by_every_way(table, values):
            assert found == expected
        (table.pack, table.simplify, table.check)[step]()
    merged = table.simplified()
    assert [set(merged.match(value)) for value in values] == owners
    for text in texts:
        one = ct.parse(text)
        simple, _ = ct.simplify(one)[:2] if isinstance(ct.simplify(one), tuple) else (ct.simplify(one), None)
        alone = ct.ForwardingTable()
        alone.subscribe("s", text, key=0)
        alone.subscribe("s", simple, key=1)
        assert all(set(alone.match_keys(value)) in (set(), {0, 1}) for value in values), text


@pytest.mark.parametrize("seed", range(max(2, examples(8)) if COMPILED else 1))
def test_a_filter_that_covers_another_has_its_circles(seed):
    rng = np.random.default_rng(seed)
    near = shapes(rng, 120)
    messages = messages_of(rng, near, 60)
    asked = asked_of(rng, near, messages)
    index, predicates, forwarded = ct.CoveringIndex(), {}, {}
    for k in range(0, len(asked) - 1, 2):
        parts = [constraint(*asked[k])] + ([constraint(*asked[k + 1])] if k % 4 else [])
        predicates[k] = ct.Predicate([Filter(parts)])
        change = index.subscribe(k, predicates[k])
        forwarded[k] = change
    covered = {k: change.covered_by for k, change in forwarded.items() if not change.forward}
    assert covered
    table = ct.ForwardingTable()
    for k, predicate in predicates.items():
        table.subscribe("s", predicate, key=k)
    for message in messages:
        keys = set(table.match_keys({"area": of(message)}))
        for k, others in covered.items():
            assert k not in keys or set(others) <= keys, (message, k, others)


def test_circles_in_columns_of_structs():
    kind = pa.struct({"y": pa.float64(), "radius": pa.float32(), "x": pa.float64()})
    column = pa.array([{"x": 0, "y": 0, "radius": 5}, None, {"x": 20, "y": 0, "radius": 1}], kind)
    table = ct.ForwardingTable()
    table.subscribe("near", "S_INTERSECTS(area, BBOX(3, 4, 9, 9)) AND size > 1")
    table.subscribe("far", "beyond_distance(area, POINT(0 0), 10)")
    table.subscribe("no", "area IS NULL")
    messages = pa.table({"area": column, "size": [2, 2, 2]})
    answer = table.match_many(messages)
    assert [set(answer[k]) for k in range(3)] == [{"near"}, {"no"}, {"far"}]
    bad = pa.array([{"x": 0.0, "y": None, "radius": 1.0}, {"x": 0.0, "y": 0.0, "radius": math.nan},
                    {"x": 0.0, "y": 0.0, "radius": -1.0}, {"x": 0.0, "y": 0.0, "radius": 1.0}])  # fmt: skip
    answer = table.match_many(pa.table({"area": bad, "size": [2] * 4}))
    assert [item.row for item in answer.rejected] == [0, 1, 2]
    assert "radius: need a finite number of at least 0, got nan" in answer.rejected[1].reason
    assert "'area'" in answer.rejected[1].reason


def test_mixed_columns_and_their_coordinate_reference_systems():
    table = ct.ForwardingTable()
    table.subscribe("s", ct.Constraint("area", Sets.S_INTERSECTS, ct.Region.box(0, 0, 1, 1, crs="EPSG:25832")))
    here, there = ct.Circle((2, 0), 1, crs="EPSG:25832"), ct.Circle((2, 0), 1, crs="EPSG:3857")
    values = [here.to_wkb(srid=True), there.to_wkb(srid=True), ct.Circle((2, 0), 1).to_wkb(), ct.Point(1, 1).to_wkb(),
              ct.Region.box(1, 1, 2, 2).to_wkb(), None, here.to_wkb()[:20]]  # fmt: skip
    answer = table.match_many(pa.table({"area": pa.array(values, pa.binary())}))
    assert [set(answer[k]) for k in range(7)] == [{"s"}, set(), {"s"}, {"s"}, {"s"}, set(), set()]
    assert [item.row for item in answer.rejected] == [1, 6]
    answer = table.match_many([{"area": here}, {"area": there}, {"area": here.to_wkb(srid=True)}])
    assert [set(answer[k]) for k in range(3)] == [{"s"}, set(), {"s"}]
    assert "EPSG:3857" in answer.rejected[0].reason


def test_circles_of_other_magnitudes():
    table = ct.ForwardingTable()
    table.subscribe("inside", "S_WITHIN(area, BBOX(-1e100, -1e100, 1e100, 1e100))")
    table.subscribe("meets", "S_INTERSECTS(area, BBOX(1e50, 0, 2e50, 1e50))")
    table.subscribe("whole", "S_CONTAINS(area, BBOX(-1, -1, 1, 1))")
    table.subscribe("size", "S_WITHIN(area, BBOX(-1e100, -1e100, 1e100, 1e100)) AND size > 1")
    every, large, small = {"inside", "meets", "whole", "size"}, {"meets", "whole"}, {"inside", "size"}
    radii = {1e308: large, 1e100: every, 1e50: every, 5e-324: small, 0.0: small, 1.7976931348623157e308: large}
    for pack in (False, True):
        for radius, keys in radii.items():
            message = {"area": ct.Circle((0, 0), radius), "size": 2}
            for found in keys_by_every_way(table, [message]):
                assert found == [{k for k, name in enumerate(("inside", "meets", "whole", "size")) if name in keys}]
        if pack:
            table.pack()


def test_three_valued_logic():
    table = ct.ForwardingTable()
    for text in ("S_INTERSECTS(area, BBOX(0, 0, 1, 1))", "NOT S_INTERSECTS(area, BBOX(0, 0, 1, 1))", "area IS NULL",
                 "area IS NOT NULL", "area = 5", "NOT area = 5", "area LIKE 'C%'"):  # fmt: skip
        table.subscribe(text, text)
    circle = ct.Circle((0, 0), 1)
    assert set(table.match({"area": circle})) == {"S_INTERSECTS(area, BBOX(0, 0, 1, 1))", "area IS NOT NULL"}
    assert set(table.match({"area": str(circle)})) == {"area LIKE 'C%'", "area IS NOT NULL"}
    assert set(table.match({"area": None})) == {"area IS NULL"}


def test_circles_are_constants_in_python():
    circle = ct.Circle((0, 0), 5)
    assert Constraint("area", Sets.S_INTERSECTS, circle) == Constraint("area", Within(5), ct.Point(0, 0))
    assert Constraint("area", Sets.S_DISJOINT, circle) == Constraint("area", Beyond(5), ct.Point(0, 0))
    assert str(Constraint("area", Sets.S_WITHIN, circle)) == "S_WITHIN(area, CIRCLE(POINT (0 0), 5))"
    assert str(Constraint("area", ~Sets.S_WITHIN, circle)) == "NOT S_WITHIN(area, CIRCLE(POINT (0 0), 5))"
    with pytest.raises(
        ct.FilterError, match=r"constraint on 'area': circles take part in .*; other relations need a polygon"
    ):
        Constraint("area", ct.Relation.OVERLAPS, circle)
    with pytest.raises(ct.FilterError, match="a circle has a distance already"):
        Constraint("area", Within(3), circle)
    with pytest.raises(ct.FilterError, match="applies to scalars and text"):
        Constraint("area", "=", circle)


def test_explanations_name_the_circle():
    table = ct.ForwardingTable()
    table.subscribe("s", "S_WITHIN(area, BBOX(0, 0, 9, 9)) AND size > 1", key="k")
    table.subscribe("s", "within_distance(area, POINT(7 0), 1)", key="near")
    table.subscribe("s", "area > 5", key="number")
    why = table.explain({"area": ct.Circle((1, 5), 5), "size": 2}, "k")
    assert "area overlaps it" in str(why)
    value = why.to_dict()["filters"][0]["constraints"][0]["value"]
    assert value == {"type": "Circle", "coordinates": [1.0, 5.0], "radius": 5.0}
    assert "area is 1 away from it" in str(table.explain({"area": ct.Circle((0, 0), 6)}, "near"))
    assert "area is CIRCLE(POINT(0 0), 6), not a number" in str(table.explain({"area": ct.Circle((0, 0), 6)}, "number"))
    assert "svg" in why._repr_html_()


def test_pictures_show_circles():
    assert ct.Circle((0, 0), 1).to_shapely().area == pytest.approx(math.pi, rel=0.01)
    assert ct.Circle((3, 4), 0).to_shapely() == shapely.Point(3, 4)
