"""Rows of Arrow tables as messages."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import contrada as ct
from contrada.errors import FormatError
from contrada.formats.tables.rows import attributes_of, rows_of

SQUARE = ct.Region.box(0, 0, 4, 4)
GEO = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB"}}}


def geo_table(column, **about):
    geo = {**GEO, "columns": {"geometry": {"encoding": "WKB", **about}}}
    return pa.table({"geometry": column}).replace_schema_metadata({"geo": json.dumps(geo)})


def wkb(*shapes):
    return pa.array([None if shape is None else shape.to_wkb() for shape in shapes], pa.binary())


def test_a_plain_table_is_left_alone():
    table = pa.table({"a": [1], "geometry": wkb(SQUARE)})
    assert attributes_of(table) is table


def test_structs_are_flattened():
    table = pa.table({"a": [{"b": {"c": 1, "d": "x"}}, None, {"b": None}], "p": [{"x": 1.0, "y": 2.0}] * 3})
    plain = attributes_of(table)
    assert plain.column_names == ["a.b.c", "a.b.d", "p"]
    rows, bad = rows_of(plain)
    assert rows == [{"a.b.c": 1, "a.b.d": "x", "p": ct.Point(1, 2)}, {"p": ct.Point(1, 2)}, {"p": ct.Point(1, 2)}]
    assert not bad


def test_only_what_is_asked_for_is_looked_at():
    table = pa.table({"a": [{"b": 1, "c": 2}], "d": [1], "ab": [1]})
    assert attributes_of(table, {"a.b", "ab"}).column_names == ["a.b", "a.c", "ab"]
    assert attributes_of(table, set()).num_rows == 1


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(FormatError, match=r"'a\.b'"):
        attributes_of(pa.table({"a": [{"b": 1}], "a.b": [2]}))
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(FormatError, match="'a'"):
        attributes_of(twice)
    assert attributes_of(twice, {"b"}).num_rows == 1


def test_values():
    table = pa.table({
        "text": pa.array(["a", None]).dictionary_encode(),
        "view": pa.array(["b", None], pa.string_view()),
        "runs": pa.RunEndEncodedArray.from_arrays([2], [7]),
        "money": pa.array([Decimal("0.10"), None], pa.decimal128(9, 2)),
        "big": pa.array([2**64 - 1, None], pa.uint64()),
        "day": pa.array([date(2024, 5, 1), None]),
        "at": pa.array([datetime(2024, 5, 1, tzinfo=UTC), None], pa.timestamp("us", "Europe/Rome")),
        "fine": pa.array([1, None], pa.timestamp("ns")),
        "far": pa.array([10**15, None], pa.timestamp("s")),
        "tags": [["a"], None],
        "flag": [True, None],
    })  # fmt: skip
    rows, bad = rows_of(attributes_of(table))
    assert not bad
    assert rows[1] == {"runs": 7}
    assert rows[0] == {
        "text": "a", "view": "b", "runs": 7, "money": Decimal("0.10"), "big": 2**64 - 1, "day": date(2024, 5, 1),
        "at": datetime(2024, 5, 1, tzinfo=UTC), "fine": np.datetime64(1, "ns"), "far": np.datetime64(10**15, "s"),
        "tags": ["a"], "flag": True,
    }  # fmt: skip


def test_bad_text_is_rejected():
    column = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"a\xff"))
    rows, bad = rows_of(pa.table({"name": column}))
    assert rows[0] == {"name": "a"}
    assert list(bad) == [1]
    assert "attribute 'name'" in bad[1].reason


@pytest.mark.parametrize(
    ("about", "crs"),
    [
        ({}, "OGC:CRS84"),
        ({"crs": None}, None),
        ({"crs": {"id": {"authority": "EPSG", "code": 27700}}}, "EPSG:27700"),
        ({"crs": "EPSG:3857"}, "EPSG:3857"),
    ],
)
def test_the_crs_of_geoparquet(about, crs):
    plain = attributes_of(geo_table(wkb(SQUARE, None, ct.Point(1, 2)), **about))
    rows, bad = rows_of(plain)
    assert not bad
    assert rows == [{"geometry": SQUARE}, {}, {"geometry": ct.Point(1, 2)}]
    assert rows[0]["geometry"].crs == rows[2]["geometry"].crs == crs


def test_the_crs_of_plain_points():
    rows, _ = rows_of(attributes_of(geo_table(wkb(ct.Point(1, 2), ct.Point(3, 4)))))
    assert rows[0]["geometry"].crs == "OGC:CRS84"


def test_geography_is_refused():
    with pytest.raises(ct.CrsError, match="spherical"):
        attributes_of(geo_table(wkb(SQUARE), edges="spherical"))


def test_damaged_metadata_is_an_error():
    with pytest.raises(FormatError, match="GeoParquet metadata"):
        attributes_of(pa.table({"geometry": wkb(SQUARE)}).replace_schema_metadata({"geo": b"{"}))


def test_geoarrow_by_the_names_of_fields():
    native = ct.RegionArray.from_regions([SQUARE]).to_arrow().storage
    metadata = {"ARROW:extension:name": "geoarrow.multipolygon", "ARROW:extension:metadata": '{"crs": "EPSG:3857"}'}
    schema = pa.schema([pa.field("geometry", native.type, metadata=metadata)])
    rows, _ = rows_of(attributes_of(pa.Table.from_arrays([native], schema=schema)))
    assert rows[0]["geometry"] == SQUARE
    assert rows[0]["geometry"].crs == "EPSG:3857"


@pytest.mark.parametrize("name", ["geoarrow.multilinestring", "geoarrow.linestring", "geoarrow.wkt", "geoarrow.point"])
def test_other_geoarrow_is_refused(name):
    lines = pa.array([[[[0.0, 0.0], [1.0, 1.0]]]], pa.list_(pa.list_(pa.list_(pa.float64(), 2))))
    column = {"geoarrow.linestring": lines.flatten(), "geoarrow.multilinestring": lines}.get(name, pa.array(["POINT"]))
    schema = pa.schema([pa.field("geometry", column.type, metadata={"ARROW:extension:name": name})])
    with pytest.raises(FormatError, match=f"'geometry': unsupported {name}"):
        attributes_of(pa.Table.from_arrays([column], schema=schema))


def test_bad_geometry_is_rejected_by_row():
    table = pa.table({"geometry": pa.array([SQUARE.to_wkb(), b"\x01", None]), "id": [1, 2, 3]})
    rows, bad = rows_of(attributes_of(table))
    assert list(bad) == [1]
    assert bad[1].reason == "attribute 'geometry': malformed or truncated geometry"
    assert rows[2] == {"id": 3}


def test_nested_columns_are_matched():
    table = ct.ForwardingTable()
    table.subscribe("fast", ct.Constraint("wind.speed", ">", 10))
    near = ct.Constraint("where.at", ct.Relation.INSIDE, SQUARE)
    table.subscribe("near", ct.Filter([near, ct.Constraint("where.name", "=", "Siena")]))
    messages = pa.table({
        "wind": [{"speed": 12}, {"speed": 8}, None],
        "where": [{"at": ct.Point(1, 1).to_wkb(), "name": "Siena"}, {"at": None, "name": "Siena"}, None],
        "unasked": pa.array([b"no geometry"] * 3),
    })  # fmt: skip
    found = table.match_many(messages, by="subscription")
    assert found.offsets.tolist() == [0, 2, 2, 2]
    assert not found.rejected


def test_nested_columns_are_matched_where_there_are_only_regions():
    table = ct.ForwardingTable()
    table.subscribe_many(
        pa.table({"geometry": wkb(SQUARE, SQUARE)}), ct.Constraint("a.area", ct.Relation.EQUALS, ct.Column("geometry"))
    )
    table.pack()
    found = table.match_many(pa.table({"a": [{"area": SQUARE.to_wkb()}, {"area": None}]}), by="subscription")
    assert found.offsets.tolist() == [0, 2, 2]


def test_a_template_takes_nested_columns_and_the_crs_of_its_table():
    rows = geo_table(wkb(SQUARE, SQUARE)).append_column("about", pa.array([{"least": 1}, {"least": 5}]))
    area = ct.Constraint("area", ct.Relation.EQUALS, ct.Column("geometry"))
    template = ct.Filter([area, ct.Constraint("severity", ">=", ct.Column("about.least"))])
    table = ct.ForwardingTable()
    table.subscribe_many(rows, template)
    assert set(table.match({"area": SQUARE, "severity": 3})) == {0}
    with pytest.raises(ct.CrsError, match="EPSG:3857"):
        table.match({"area": ct.Region.box(0, 0, 4, 4, crs="EPSG:3857"), "severity": 3})


def test_lists_are_no_geometry():
    table = ct.ForwardingTable()
    table.subscribe("x", ct.Filter([ct.Constraint("tags", "=", "a")]))
    table.subscribe("y", ct.Constraint("tags", ct.Relation.EQUALS, SQUARE))
    found = table.match_many(pa.table({"tags": [["a"], ["b", "c"], None]}), by="subscription")
    assert found.offsets.tolist() == [0, 0, 0, 0]
    assert not found.rejected


def test_a_crs_of_messages_that_differs_is_noticed():
    table = ct.ForwardingTable()
    table.subscribe("x", ct.Constraint("geometry", ct.Relation.EQUALS, ct.Region.box(0, 0, 4, 4, crs="EPSG:3857")))
    (bad,) = table.match_many(geo_table(wkb(SQUARE)), by="subscription").rejected
    assert "subscriptions and message: coordinate reference systems differ: EPSG:3857 and OGC:CRS84" in bad.reason
