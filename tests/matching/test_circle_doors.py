"""Circles through files, the command line, the plans that route by boxes, trackers, the overlay and links."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contrada as ct
from console import contrada, read_lines
from contrada.broker.frames import Publish
from contrada.broker.messages import MessageRows
from contrada.broker.wire import decode, encode, travels
from contrada.formats.spatial import Spatial
from contrada.formats.tables.subscription_rows import RowBlock
from contrada.matching.row_scan import RowScan
from contrada.overlay import Space
from contrada.overlay.space import PeerQueries
from generators.circles import circles_near, shapes

TEMPLATE = "S_INTERSECTS(area, $geometry) AND severity >= 2"


def regions() -> list[ct.Region]:
    """Return boxes on a line."""
    return [ct.Region.box(x, 0, x + 0.75, 2) for x in range(40)]


def rows_of() -> pa.Table:
    """Return rows for the template."""
    return pa.table({"key": list(range(40)), "geometry": [region.to_wkb() for region in regions()]})


def messages_of(count: int = 40) -> list[dict[str, object]]:
    """Return circles that touch boxes of the line, or nearly so."""
    rng = np.random.default_rng(2)
    made = []
    for k in range(count):
        shape = regions()[int(rng.integers(40))].to_shapely()
        (circle,) = circles_near(rng, shape, 1)
        made.append({"area": ct.Circle(circle.center, min(circle.radius, 50.0)), "severity": k % 4})
    return made


def expected_of(messages: list[dict[str, object]]) -> list[set[int]]:
    """Return the keys that match each message, pair by pair."""
    return [
        {
            key for key, region in enumerate(regions())
            if message["severity"] >= 2 and ct.relate(message["area"], region) is not ct.Relation.DISJOINT
        }
        for message in messages
    ]  # fmt: skip


def test_a_scan_of_rows_finds_what_a_table_finds():
    messages = messages_of()
    columns = pa.table({
        "area": pa.array([each["area"].to_wkb() for each in messages]), "severity": [m["severity"] for m in messages]
    })  # fmt: skip
    for given in (messages, columns):
        scan = RowScan(ct.parse(TEMPLATE), [given])
        scan.run([RowBlock(rows_of().slice(start, 10), rows_of().slice(start, 10)) for start in range(0, 40, 10)])
        (found,) = scan.matches("subscription")
        keys = np.split(found.rows, np.cumsum(found.counts)[:-1])
        assert [set(each.tolist()) for each in keys] == expected_of(messages)
    assert sum(map(len, expected_of(messages))) > 40


def files_of(tmp_path, messages):
    """Return files with the messages, in every format that has circles."""
    lines = [{"id": str(k), **each, "area": each["area"].to_geojson()} for k, each in enumerate(messages)]
    (tmp_path / "m.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    own = {"id": [str(k) for k in range(len(messages))], "severity": [each["severity"] for each in messages]}
    structs = [
        {"x": each["area"].center.x, "y": each["area"].center.y, "radius": each["area"].radius} for each in messages
    ]
    pq.write_table(pa.table({**own, "area": pa.array(structs)}), tmp_path / "structs.parquet")
    mixed = pa.table({**own, "area": pa.array([each["area"].to_wkb() for each in messages])})
    pq.write_table(mixed, tmp_path / "bytes.parquet")
    with pa.OSFile(str(tmp_path / "m.arrow"), "wb") as sink, pa.ipc.new_file(sink, mixed.schema) as writer:
        writer.write_table(mixed)
    return [tmp_path / name for name in ("m.ndjson", "structs.parquet", "bytes.parquet", "m.arrow")]


def test_the_command_line(tmp_path):
    messages = messages_of()
    asked = tmp_path / "rows.parquet"
    pq.write_table(rows_of(), asked)
    for number, given in enumerate(files_of(tmp_path, messages)):
        for plan in ("scan", "table"):
            output = tmp_path / f"{plan}{number}.ndjson"
            contrada("match", given, asked, "--template", TEMPLATE, "--plan", plan, "--output", output)
            found: dict[str, set[int]] = {str(k): set() for k in range(len(messages))}
            for line in read_lines(output):
                found[str(line["message"])].add(line["key"])
            assert list(found.values()) == expected_of(messages), (given, plan)


def test_bad_circles_are_rejected_one_by_one(tmp_path):
    given = tmp_path / "m.ndjson"
    circles = [
        {"type": "Circle", "coordinates": [0, 0], "radius": radius} for radius in (1, -1, "1", None)
    ] + [{"type": "Circle", "coordinates": [0], "radius": 1}, {"type": "Circle", "coordinates": [0, 0]}]  # fmt: skip
    given.write_text("".join(json.dumps({"id": str(k), "area": each}) + "\n" for k, each in enumerate(circles)))
    asked = tmp_path / "s.ndjson"
    asked.write_text(
        json.dumps({"key": "k", "subscriber": "s", "filter": "S_INTERSECTS(area, BBOX(0, 0, 1, 1))"}) + "\n"
    )
    output, rejected = tmp_path / "out.ndjson", tmp_path / "bad.ndjson"
    contrada("match", given, asked, "--output", output, "--reject", rejected)
    assert [line["message"] for line in read_lines(output)] == ["0"]
    reasons = [line["reason"] for line in read_lines(rejected)]
    assert len(reasons) == 5
    assert all("'area'" in reason for reason in reasons)
    assert "radius: need a finite number of at least 0, got -1" in reasons[0]


def test_features_and_nested_objects_have_circles():
    circle = {"type": "Circle", "coordinates": [11, 43], "radius": 0.5}
    message = ct.message_of({"type": "Feature", "geometry": circle, "properties": {"depth": 4}})
    assert message["geometry"].crs == "OGC:CRS84"
    table = ct.ForwardingTable()
    table.subscribe("s", "S_INTERSECTS(geometry, POINT(11 43.5)) OR S_INTERSECTS(a.b, POINT(11 43.5))")
    assert table.match(message) == {"s"}
    assert table.match({"a": {"b": circle}}) == {"s"}
    with pytest.raises(ct.RegionError, match="outside longitude"):
        ct.message_of({"type": "Feature", "geometry": circle | {"coordinates": [200, 0]}, "properties": {}})
    with pytest.raises(ct.RegionError, match="a Circle is a value of messages"):
        ct.message_of({"at": {"type": "GeometryCollection", "geometries": [circle]}}, buffer=1.0, crs="none")


def test_circles_are_not_reprojected():
    circle = ct.Circle((11, 43), 0.5, crs="OGC:CRS84")
    with pytest.raises(ct.CrsError, match="a circle cannot be reprojected to EPSG:25832"):
        Spatial(to_crs="EPSG:25832").changed(circle)
    assert Spatial(crs="EPSG:25832").changed(ct.Circle((1, 2), 3)).crs == "EPSG:25832"
    assert Spatial(to_crs="OGC:CRS84", crs="OGC:CRS84").changed(circle) == circle


def test_circles_are_not_wrapped():
    table = ct.ForwardingTable(wrap={"at": "longitude"})
    table.subscribe("s", "S_INTERSECTS(at, BBOX(178, -1, 180, 1))")
    here, over, far = ct.Circle((179, 0), 1), ct.Circle((179, 0), 1.5), ct.Circle((0, 0), 1)
    for messages in (
        [{"at": here}, {"at": over}, {"at": far}],
        pa.table({"at": pa.array([here.to_wkb(), over.to_wkb(), far.to_wkb()])}),
        pa.table({"at": [{"x": each.center.x, "y": 0.0, "radius": each.radius} for each in (here, over, far)]}),
    ):
        answer = table.match_many(messages)
        assert [set(answer[k]) for k in range(3)] == [{"s"}, set(), set()]
        assert [item.row for item in answer.rejected] == [1]
        assert "circles are not wrapped" in answer.rejected[0].reason
    with pytest.raises(ct.RegionError, match="'at': the circle leaves longitude"):
        table.match({"at": over.to_wkb()})


def test_subscriptions_have_no_columns_of_circles():
    table = ct.ForwardingTable()
    rows = pa.table({"geometry": [ct.Circle((0, 0), 1).to_wkb()]})
    with pytest.raises(ct.ContradaError, match="wrong geometry type Circle"):
        table.subscribe_many(rows, "S_INTERSECTS(area, $geometry)")


def test_objects_are_not_tracked_by_circles():
    tracker = ct.Tracker(track="id", time="time")
    tracker.subscribe("s", "S_INTERSECTS(at, BBOX(0, 0, 9, 9))", "enter")
    circle = ct.Circle((1, 1), 1)
    events = tracker.publish([{"id": "a", "at": circle, "time": 0}, {"id": "b", "at": ct.Point(1, 1), "time": 0}])
    assert [event.object for event in events] == ["b"]
    assert [item.row for item in events.rejected] == [0]
    assert "objects are not tracked by circles" in events.rejected[0].reason
    columns = pa.table({"id": ["c"], "at": [circle.to_wkb()], "time": [1]})
    assert "wrong geometry type Circle" in tracker.publish(columns).rejected[0].reason


def test_circles_travel_between_brokers_with_their_crs():
    message = {"area": ct.Circle((1, 2), 0.1, crs="EPSG:25832"), "place": ct.Point(1, 2), "n": 4}
    assert travels([message])
    (arrived,) = decode(encode(Publish(1, ("m",), MessageRows([message])))).messages.batch
    assert arrived == message
    assert arrived["area"].crs == "EPSG:25832"


def test_the_overlay_routes_circles_by_their_boxes():
    rng = np.random.default_rng(5)
    space = Space.parse("area:region")
    for shape in shapes(rng, 40):
        ours = ct.Point.from_shapely(shape) if shape.geom_type == "Point" else ct.Region.from_shapely(shape)
        queries = PeerQueries([ct.parse(f"S_INTERSECTS(area, {ours.to_wkt()})")], space)
        for circle in circles_near(rng, shape, 3):
            x0, y0, x1, y1 = space.where({"area": circle})
            if ct.relate(circle, ours) is not ct.Relation.DISJOINT:
                a0, b0, a1, b1 = queries.box
                assert x0 <= a1
                assert a0 <= x1
                assert y0 <= b1
                assert b0 <= y1
    assert PeerQueries([ct.parse("S_INTERSECTS(area, POINT(3 4))")], space).read(
        '{"area": {"type": "Circle", "coordinates": [0, 0], "radius": 5}}'
    ) == {"area": ct.Circle((0, 0), 5)}
