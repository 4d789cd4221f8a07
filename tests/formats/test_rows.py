"""Rows of Arrow and Parquet tables as messages, with the coordinate reference systems that they name."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from unittest.mock import MagicMock

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import pytest

import contrada as ct
from contrada.errors import FormatError
from contrada.formats.reading import read_messages
from contrada.formats.tables.rows import attributes_of, geometry_columns, parquet_schema, rows_of

SQUARE = ct.Region.box(0, 0, 4, 4)
TWICE = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
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
    assert attributes_of(table, set()).num_rows == attributes_of(TWICE, {"b"}).num_rows == 1


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


@pytest.mark.parametrize(
    ("about", "crs"),
    [
        ({}, "OGC:CRS84"),
        ({"crs": None}, None),
        ({"crs": {"id": {"authority": "EPSG", "code": 27700}}}, "EPSG:27700"),
        ({"crs": "EPSG:3857"}, "EPSG:3857"),
    ],
)
@pytest.mark.parametrize("values", [[SQUARE, None, ct.Point(1, 2)], [ct.Point(1, 2), ct.Point(3, 4)]])
def test_the_crs_of_geoparquet(values, about, crs):
    rows, bad = rows_of(attributes_of(geo_table(wkb(*values), **about)))
    assert not bad
    assert rows == [{} if value is None else {"geometry": value} for value in values]
    assert {row["geometry"].crs for row in rows if row} == {crs}


@pytest.mark.parametrize(
    ("table", "error", "reason"),
    [
        (geo_table(wkb(SQUARE), edges="spherical"), ct.CrsError, "spherical"),
        (pa.table({"geometry": wkb(SQUARE)}, metadata={"geo": b"{"}), FormatError, "GeoParquet metadata"),
        (pa.table({"a": [{"b": 1}], "a.b": [2]}), FormatError, r"'a\.b'"),
        (TWICE, FormatError, "'a'"),
    ],
)
def test_tables_that_are_refused(table, error, reason):
    with pytest.raises(error, match=reason):
        attributes_of(table)


def test_geoarrow_by_the_names_of_fields():
    native = ct.RegionArray.from_regions([SQUARE]).to_arrow().storage
    metadata = {"ARROW:extension:name": "geoarrow.multipolygon", "ARROW:extension:metadata": '{"crs": "EPSG:3857"}'}
    schema = pa.schema([pa.field("geometry", native.type, metadata=metadata)])
    rows, _ = rows_of(attributes_of(pa.Table.from_arrays([native], schema=schema)))
    assert rows[0]["geometry"] == SQUARE
    assert rows[0]["geometry"].crs == "EPSG:3857"


@pytest.mark.parametrize("name", ["geoarrow.multipoint", "geoarrow.linestring", "geoarrow.wkt", "geoarrow.point"])
def test_other_geoarrow_is_refused(name):
    points = pa.array([[[0.0, 0.0], [1.0, 1.0]]], pa.list_(pa.list_(pa.float64(), 2)))
    column = points if name == "geoarrow.multipoint" else pa.array(["POINT"])
    schema = pa.schema([pa.field("geometry", column.type, metadata={"ARROW:extension:name": name})])
    with pytest.raises(FormatError, match=f"'geometry': unsupported {name}"):
        attributes_of(pa.Table.from_arrays([column], schema=schema))


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
    table.subscribe_many(pa.table({"geometry": wkb(SQUARE, SQUARE)}), "S_EQUALS(a.area, $geometry)")
    table.pack()
    found = table.match_many(pa.table({"a": [{"area": SQUARE.to_wkb()}, {"area": None}]}), by="subscription")
    assert found.offsets.tolist() == [0, 2, 2]


def test_a_template_takes_nested_columns_and_the_crs_of_its_table():
    rows = geo_table(wkb(SQUARE, SQUARE)).append_column("about", pa.array([{"least": 1}, {"least": 5}]))
    table = ct.ForwardingTable()
    table.subscribe_many(rows, "S_EQUALS(area, $geometry) AND severity >= $about.least")
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


UTM = pyproj.CRS(25832).to_json().replace("'", "''")


def written(path, crs, version):
    """A file as DuckDB writes it, with GeoParquet metadata or without."""
    column = f"'POINT (1 2)'::GEOMETRY{crs and chr(40) + chr(39) + crs + chr(39) + chr(41)} AS geometry"
    duckdb.sql(f"COPY (SELECT 1 AS id, {column}) TO '{path}' (FORMAT parquet, GEOPARQUET_VERSION '{version}')")
    return path


@pytest.mark.parametrize("version", ["NONE", "V1", "V2"])
@pytest.mark.parametrize(("crs", "expected"), [(UTM, "EPSG:25832"), ("OGC:CRS84", "OGC:CRS84")])
def test_geometry_of_parquet_names_its_crs(tmp_path, crs, expected, version):
    path = written(tmp_path / "a.parquet", crs, version)
    assert geometry_columns(parquet_schema(pq.ParquetFile(path))).crs == {"geometry": expected}
    (read,) = read_messages(path)
    assert read.message["geometry"].crs == expected
    table = ct.ForwardingTable()
    box = ct.Region.box(0, 0, 4, 4, crs="EPSG:25832")
    table.subscribe("x", ct.Constraint("geometry", ct.RelationSet.S_INTERSECTS, box))
    found = table.match_many([read.message], by="subscription")
    is_same = expected == "EPSG:25832"
    assert (np.diff(found.offsets).tolist(), len(found.rejected)) == ([int(is_same)], int(not is_same))


def test_forms_of_names():
    file = MagicMock(schema_arrow=pa.schema([("g", pa.binary())], {b"own": pyproj.CRS(3035).to_json()}))
    file.schema.__len__.return_value = 1
    column = file.schema.column.return_value
    column.name = column.path = "g"

    def system(text):
        column.logical_type.to_json.return_value = json.dumps({"Type": "Geometry", "crs": text})
        return geometry_columns(parquet_schema(file)).crs["g"]

    assert system(None) == "OGC:CRS84"
    assert system("SRID:0") is None
    assert system("srid:25832") == "EPSG:25832"
    assert system("projjson:own") == "EPSG:3035"
    for text in ("srid:x", "srid:-4", "projjson:absent", "bananas", "srid:" + "9" * 30):
        with pytest.raises(ct.CrsError, match="column 'g'"):
            system(text)
