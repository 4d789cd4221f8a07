"""Constraints on distances in metres: every index against each pair, updates, saved tables, and all doors."""

from __future__ import annotations

import copy
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import contrada as ct
from console import contrada, read_lines
from contrada.broker.frames import Subscribe
from contrada.broker.wire import decode, digest_of, encode
from contrada.cql2 import parse_json, to_json
from contrada.formats.tables.subscription_rows import RowBlock
from contrada.index.metres import MetricTree
from contrada.matching.building import TableBuilder
from contrada.matching.near_rows import can_prune
from contrada.matching.routing_boxes import heads_of
from contrada.matching.row_scan import RowScan
from contrada.model.implication import conflicts, covers
from contrada.overlay import Space
from effort import COMPILED
from generators.places import CENTRES, shape_at

TEMPLATE = "within_distance(area, $geometry, $metres, 'm') AND severity >= 2"
ITEMS, MESSAGES = (120, 40) if COMPILED else (30, 12)
HERE = ct.Point(0, 0)


def shapes_at(rng: np.random.Generator, count: int, kind: str | None = None) -> list[object]:
    """Return regions and points near poles, the date line and elsewhere, of metres to thousands of kilometres."""
    made = []
    for k in range(count):
        one = shape_at(rng, CENTRES[k % len(CENTRES)], 10.0 ** rng.uniform(0, 6), kind)
        made.append(ct.Point.from_shapely(one) if one.geom_type == "Point" else ct.Region.from_shapely(one))
    return made


def asked(rng: np.random.Generator, count: int) -> list[ct.Constraint]:
    """Return constraints of both kinds on shapes."""
    kinds = [ct.WithinDistance, ct.BeyondDistance]
    distances = 10.0 ** rng.uniform(1, 7.4, count)
    return [
        ct.Constraint("area", kinds[rng.integers(2)](float(distance), "m"), shape)
        for distance, shape in zip(distances, shapes_at(rng, count), strict=True)
    ]


def holds(constraint: ct.Constraint, value: object) -> bool:
    """Return whether a value satisfies a constraint, by the distance of this pair alone."""
    is_near = ct.within_distance(value, constraint.value, constraint.operator.distance, "m")
    return is_near == isinstance(constraint.operator, ct.WithinDistance)


@pytest.mark.jitless
@pytest.mark.parametrize("with_scalars", [False, True])
def test_tables_find_what_pairs_say(tmp_path, with_scalars):
    rng = np.random.default_rng(3)
    constraints = asked(rng, ITEMS)
    scalar = [ct.Constraint("x", ">", 3)] if with_scalars else []
    table = ct.ForwardingTable()
    for k, constraint in enumerate(constraints):
        table.subscribe(k, ct.Filter([constraint, *scalar]))
    values = shapes_at(np.random.default_rng(4), MESSAGES)
    messages = [{"area": value, "x": 4 if k % 5 else 2} for k, value in enumerate(values)]
    expected = [
        {k for k, one in enumerate(constraints) if holds(one, value) and (k_message % 5 or not with_scalars)}
        for k_message, value in enumerate(values)
    ]
    assert any(expected)
    assert [set(table.match(message)) for message in messages] == expected
    table.pack()
    assert [set(table.match(message)) for message in messages] == expected
    many = table.match_many(messages, by="subscription")
    assert [set(many.keys(k)) for k in range(len(many))] == expected
    table.save(tmp_path / "table")
    opened = ct.ForwardingTable.open(tmp_path / "table")
    assert [set(opened.match(message)) for message in messages] == expected
    assert dict(opened.predicates()) == dict(table.predicates())
    assert [set(copy.deepcopy(table).match(message)) for message in messages] == expected
    for k in range(0, ITEMS, 2):
        table.unsubscribe(k)
    assert [set(table.match(message)) for message in messages] == [{k for k in each if k % 2} for each in expected]


@pytest.mark.jitless
@pytest.mark.parametrize("kind", ["Point", "Polygon"])
def test_large_trees_decide_wholesale_what_pairs_say(kind):
    rng = np.random.default_rng(5)
    count = 400 if COMPILED else 40
    shapes = shapes_at(rng, count, kind)
    column = (
        ct.PointArray([(one.x, one.y) for one in shapes])
        if kind == "Point"
        else ct.read_regions([one.to_wkb() for one in shapes]).regions
    )
    distances = 10.0 ** rng.uniform(2, 7.35, count)
    masks = rng.choice(np.array([3, 4], np.uint8), count)
    tree = MetricTree(column, masks, distances, np.arange(count, dtype=np.int32))
    tree.check()
    for value in shapes_at(np.random.default_rng(6), MESSAGES):
        near = ct.within_distance(value, column, distances, "m")
        assert tree.match(value).tolist() == np.flatnonzero(np.where(masks == 3, near, ~near)).tolist()


@pytest.mark.jitless
def test_values_that_are_no_place_are_unknown():
    table = ct.ForwardingTable()
    table.subscribe("near", "within_distance(area, POINT(0 0), 9000000, 'm')")
    table.subscribe("far", "beyond_distance(area, POINT(0 0), 1, 'm')")
    table.subscribe("not near", "NOT within_distance(area, POINT(0 0), 1, 'm')")
    assert set(table.match({"area": ct.Point(1, 0)})) == {"near", "far", "not near"}
    for value in (ct.Point(0, 91), ct.Point(541, 0), ct.Region.box(0, 80, 1, 91), ct.Circle(HERE, 1), None, "text"):
        assert set(table.match({"area": value})) == set()
    (key, *_) = table.match_keys({"area": ct.Point(1, 0)})
    lines = str(table.explain({"area": ct.Point(0, 91)}, key))
    assert "not a region or point of longitude and latitude" in lines


@pytest.mark.jitless
def test_attributes_in_metres_are_longitude_and_latitude():
    projected = ct.Region.box(0, 0, 1, 1, crs="EPSG:25832")
    with pytest.raises(ct.ContradaError, match="metres need longitude and latitude in degrees, not EPSG:25832"):
        ct.Constraint("area", ct.WithinDistance(5, "m"), projected)
    table = ct.ForwardingTable()
    table.subscribe("plane", ct.Constraint("area", ct.Relation.OVERLAPS, projected))
    with pytest.raises(ct.CrsError, match=r"'area': distances in metres need .* not EPSG:25832"):
        table.subscribe("metres", "within_distance(area, POINT(0 0), 5, 'm')")
    with pytest.raises(ct.CrsError, match=r"'area': distances in metres need .* not EPSG:25832"):
        table.subscribe_many(rows_of(), TEMPLATE)
    table = ct.ForwardingTable()
    table.subscribe("metres", "within_distance(area, POINT(0 0), 5, 'm')")
    with pytest.raises(ct.CrsError, match="EPSG:25832"):
        table.subscribe("plane", ct.Constraint("area", ct.Relation.OVERLAPS, projected))
    with pytest.raises(ct.CrsError, match="EPSG:25832"):
        table.match({"area": projected})
    assert table.match({"area": ct.Point(0, 0, crs="EPSG:4326")}) == {"metres"}


@pytest.mark.jitless
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("within_distance(area, POINT(1 2), 5, 'km')", "unit: need 'm' .metres., or none .* got 'km'"),
        ("within_distance(area, POINT(1 2), 5, m)", "unit: need 'm'"),
        ("within_distance(area, POINT(1 2), 5, 'm', 1)", "needs 3 arguments, got 5"),
        ("within_distance(area, POINT(1 92), 5, 'm')", "latitudes of -90..90"),
        ("within_distance(area, POINT(1 2), -5, 'm')", "at least 0"),
    ],
)
def test_errors_of_filters(text, reason):
    with pytest.raises(ct.ContradaError, match=reason):
        ct.parse(text)
    with pytest.raises(ct.FilterError, match="unit: need 'm'"):
        ct.WithinDistance(5, "ft")


@pytest.mark.jitless
def test_text_json_and_frames_have_the_unit():
    for text in ("within_distance(area, POINT (1 2), 500, 'm')", "beyond_distance(area, POINT (1 2), 0.5, 'm')"):
        predicate = ct.parse(text)
        assert str(predicate) == text
        assert to_json(predicate)["args"][2:] == [predicate.filters[0].constraints[0].operator.distance, "m"]
        assert parse_json(to_json(predicate)) == predicate
        assert predicate != ct.parse(text.replace(", 'm'", ""))
        assert decode(encode(Subscribe(1, 2, predicate, digest_of(predicate)))).predicate == predicate
        assert copy.deepcopy(predicate) == predicate
    assert repr(~ct.WithinDistance(5, "m")) == "BeyondDistance(5.0, 'm')"


@pytest.mark.jitless
def test_implication():
    def within(metres: float, value: object = HERE, unit: str | None = "m") -> ct.Constraint:
        return ct.Constraint("area", ct.WithinDistance(metres, unit), value)

    assert covers(within(5), within(4))
    assert covers(within(5), within(5))
    assert not covers(within(4), within(5))
    assert covers(within(4).negated, within(5).negated)
    assert conflicts(within(4), within(5).negated)
    assert not covers(within(5), within(4, unit=None))
    assert not covers(within(5, unit=None), within(4))
    assert not conflicts(within(4), within(5, unit=None).negated)
    assert covers(within(5000), within(1000, ct.Point(0.03, 0)))  # 3,340 m away
    assert not covers(within(5000), within(2000, ct.Point(0.03, 0)))
    assert covers(within(1000, ct.Region.box(0, 0, 2, 2)), within(999, ct.Region.box(0, 0, 1, 1)))
    table = ct.ForwardingTable()
    table.subscribe("a", "within_distance(area, POINT(1 2), 5, 'm') OR within_distance(area, POINT(1 2), 9, 'm')")
    table.subscribe("b", "within_distance(area, POINT(1 2), 5, 'm') AND beyond_distance(area, POINT(1 2), 9, 'm')")
    table.subscribe("c", "within_distance(area, POINT(1 2), 5, 'm') OR within_distance(area, POINT(1 2), 9)")
    table.simplify()
    kept = {str(predicate) for _, predicate in table.predicates()}
    assert "within_distance(area, POINT (1 2), 9, 'm')" in kept
    assert any(text.count("within_distance") == 2 for text in kept)


@pytest.mark.jitless
def test_covering():
    index = ct.CoveringIndex()
    for key, text in (
        ("9", "within_distance(area, POINT(1 2), 9, 'm')"),
        ("5", "within_distance(area, POINT(1 2), 5, 'm')"),
        ("plane", "within_distance(area, POINT(1 2), 7)"),
        ("far", "beyond_distance(area, POINT(1 2), 20, 'm')"),
        ("farther", "beyond_distance(area, POINT(1 2), 30, 'm')"),
    ):
        index.subscribe(key, ct.parse(text))
    assert index.forwarded == {"9", "plane", "far"}


def rows_of(count: int = 40) -> pa.Table:
    """Return rows for the template: points along the date line, with distances."""
    points = ct.PointArray([(179.0 + 0.05 * x if x % 2 else -181.0 + 0.05 * x, 60.0) for x in range(count)])
    return pa.table(
        {"key": list(range(count)), "geometry": points.to_wkb(), "metres": [x % 7 * 2e3 for x in range(count)]}
    )


def messages_of(count: int = 30) -> list[dict[str, object]]:
    """Return points and boxes near the points of the rows."""
    rng = np.random.default_rng(2)
    made: list[dict[str, object]] = []
    for k in range(count):
        x, y = rng.uniform(178.5, 181.5), rng.uniform(59.9, 60.1)
        x -= 360 * (k % 3 == 0)
        area: object = ct.Point(x, y) if k % 2 else ct.Region.box(x, y, x + 0.02, y + 0.01)
        made.append({"area": area, "severity": k % 4})
    return made


def expected_of(messages: list[dict[str, object]]) -> list[set[int]]:
    """Return the keys that match each message, pair by pair."""
    rows = rows_of().to_pylist()
    return [
        {
            row["key"] for row in rows
            if message["severity"] >= 2
            and ct.within_distance(message["area"], ct.Point.from_wkb(row["geometry"]), row["metres"], "m")
        }
        for message in messages
    ]  # fmt: skip


@pytest.mark.jitless
def test_templates_texts_and_scans_of_rows():
    messages, template = messages_of(), ct.parse(TEMPLATE)
    expected = expected_of(messages)
    assert any(expected)
    table = ct.ForwardingTable()
    table.subscribe_many(rows_of(), TEMPLATE)
    assert [table.match_keys(message) for message in messages] == expected
    texts = [
        TEMPLATE.replace("$geometry", ct.Point.from_wkb(row["geometry"]).to_wkt()).replace(
            "$metres", str(row["metres"])
        )
        for row in rows_of().to_pylist()
    ]
    builder = TableBuilder()
    assert builder.add(pa.table({"key": list(range(40)), "filter": texts})) == []
    assert [builder.table.match_keys(message) for message in messages] == expected
    assert can_prune(template)
    scan = RowScan(template, [messages])
    scan.run([RowBlock(rows_of().slice(start, 10), rows_of().slice(start, 10)) for start in range(0, 40, 10)])
    (found,) = scan.matches("subscription")
    assert [set(each.tolist()) for each in np.split(found.rows, np.cumsum(found.counts)[:-1])] == expected


@pytest.mark.jitless
def test_rows_that_are_no_places_are_rejected_one_by_one():
    points = ct.PointArray([(0, 0), (0, 95), (1, 1)])
    rows = pa.table({"key": [0, 1, 2], "geometry": points.to_wkb(), "metres": [1.0, 2.0, 3.0]})
    builder = TableBuilder(ct.parse(TEMPLATE))
    (rejected,) = builder.add(rows)
    assert (rejected.row, rejected.key) == (1, "1")
    assert "latitudes of -90..90" in rejected.reason
    scan = RowScan(ct.parse(TEMPLATE), [messages_of()])
    scan.run([RowBlock(rows, rows)])
    assert [item.row for item in scan.bad] == [1]


def test_routing_boxes_have_all_longitudes():
    heads = heads_of([ct.parse("within_distance(area, POINT(179.999 10), 111000, 'm')")])
    assert heads.boxes[0].round(1).tolist() == [-540.0, 9.0, 540.0, 11.0]
    assert Space.of([ct.parse("within_distance(area, POINT(179.999 10), 111000, 'm')")]).dimensions == 2


def test_the_command_line(tmp_path):
    messages = messages_of()
    lines = [
        json.dumps({"id": str(k), "severity": each["severity"], "area": each["area"].to_geojson()})
        for k, each in enumerate(messages)
    ]
    given, rows = tmp_path / "messages.ndjson", tmp_path / "rows.parquet"
    given.write_text("\n".join(lines) + "\n")
    pq.write_table(rows_of(), rows)
    outputs = []
    for plan in ("scan", "table"):
        output = tmp_path / f"{plan}.ndjson"
        contrada("match", given, rows, "--template", TEMPLATE, "--plan", plan, "--output", output)
        found: dict[str, set[int]] = {str(k): set() for k in range(len(messages))}
        for line in read_lines(output):
            found[str(line["message"])].add(line["key"])
        outputs.append(list(found.values()))
    assert outputs == [expected_of(messages)] * 2


def test_explanations_name_metres():
    table = ct.ForwardingTable()
    key = table.subscribe("a", "within_distance(area, POINT(179.999 0), 100, 'm')")
    explained = table.explain({"area": ct.Point(-179.999, 0)}, key)
    assert "area is 222.639 m away from it" in str(explained)
    assert explained.to_dict()["filters"][0]["constraints"][0]["distance"] == 222.639
    assert "area is 0 m away" in str(table.explain({"area": ct.Region.from_shapely(shapely.box(170, -1, 190, 1))}, key))
