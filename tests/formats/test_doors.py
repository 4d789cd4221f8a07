"""One bad record never stops a run: every door gives a rejection with its place, or a ContradaError."""

import io
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import contrada as ct
from contrada.cql2 import parse
from contrada.doors import door, input_errors
from contrada.formats.messages import message_of
from contrada.formats.reading import read_messages, read_zones
from contrada.formats.records import Rejected
from contrada.formats.subscriptions import Subscription, read_subscriptions
from generators.columnar import arrow_bytes, parquet_bytes

BIG = "9" * 400
LISTS = "[" * 900 + "]" * 900
GEOMETRIES = [
    '{"type":"Point","coordinates":[BIG,1]}'.replace("BIG", BIG),
    '{"type":"Polygon","coordinates":[[[0,0],[1,0],[BIG,1],[0,0]]]}'.replace("BIG", BIG),
    '{"type":"Point","coordinates":[1e999,1]}',
    '{"type":"Point","coordinates":[]}',
    '{"type":"CircularString","coordinates":[[0,0],[1,1],[2,0]]}',
    '{"type":"Polygon","coordinates":' + LISTS + "}",
    '{"type":"LineString","coordinates":[[0,0],[BIG,0]]}'.replace("BIG", BIG),
    '{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[BIG,2]}]}'.replace("BIG", BIG),
]
MEMBERS = [  # of a collection or a feature, as `crs`
    LISTS,
    '{"a":' * 900 + "1" + "}" * 900,
    '{"type":"name","properties":{"name":"urn:ogc:def:crs:EPSG::99999999999999999999"}}',
    '{"type":"name","properties":{"name":"\\ud800"}}',
    '{"type":"name","properties":{"name":"EPSG:4326\\u0000"}}',
    '{"type":"name","properties":{"name":"' + "(" * 50_000 + '"}}',
]
VALUES = [
    BIG, "1" * 4500, "1e400", '"\\ud800"', '"9999-12-31T23:59:59-12:00"', '"0001-01-01T00:00:00+14:00"',
    '"99999-01-01"', LISTS, '"\\u0000"', '"2024-13-45T99:99:99Z"',
]  # fmt: skip
TEXTS = [
    "CIRCULARSTRING(0 0,1 1,2 0)", "CURVEPOLYGON((0 0,1 0,1 1,0 0))", "SRID=99999999999999999999;POINT(1 2)",
    "SRID=" + "9" * 5000 + ";POINT(1 2)", "SRID=4294967296;POLYGON((0 0,1 0,1 1,0 0))", f"POINT({BIG} 1)",
    "POLYGON((\ud800))", "POINT(1 \ud800)", "TIN(((0 0,1 0,1 1,0 0)))", "POINT(nan 1)",
]  # fmt: skip
RECORDS = [
    *(f'{{"id":1,"at":{value}}}' for value in VALUES),
    *(f'{{"id":{value}}}' for value in VALUES),
    *(f'{{"type":"Feature","id":{value},"properties":{{"at":{value}}},"geometry":null}}' for value in VALUES),
    *(f'{{"specversion":"1.0","id":"1","source":"a","type":"t","time":{value},"data":{value}}}' for value in VALUES),
    *(f'{{"area":{geometry}}}' for geometry in GEOMETRIES),
    *(f'{{"type":"Feature","properties":{{}},"geometry":{geometry}}}' for geometry in GEOMETRIES),
    *(f'{{"type":"Feature","crs":{member},"properties":{{}},"geometry":null}}' for member in MEMBERS),
    '{"\\ud800":1}', '{"a":' * 30_000, "[" * 100_000, '{"":1}', "\ud800",
]  # fmt: skip
WAYS = [{}, {"buffer": 1.0, "crs": "EPSG:25832"}, {"crs": "none"}, {"to_crs": "EPSG:25832"}]
short = {"ids": lambda value: str(value)[:30].encode("ascii", "replace").decode()}


def given_and_rejected(found):
    items = list(found)
    assert all(item.reason and item.number >= 0 for item in items if isinstance(item, Rejected))
    return sum(not isinstance(item, Rejected) for item in items), sum(isinstance(item, Rejected) for item in items)


@pytest.mark.parametrize("way", WAYS, **short)
def test_each_line_of_json_is_given_or_rejected(way):
    for record in RECORDS:
        data = b'{"a":1}\n' + record.encode("utf-8", "surrogatepass") + b'\n{"a":2}\n'
        given, rejected = given_and_rejected(read_messages(io.BytesIO(data), "ndjson", times=("at",), **way))
        assert given + rejected == 3, record[:60]
        assert given >= 2, record[:60]
        try:
            assert isinstance(message_of(record, times=("at",), **way), dict)
        except ct.ContradaError:
            assert rejected == 1, record[:60]


@pytest.mark.parametrize("member", MEMBERS, **short)
def test_the_crs_of_a_collection_stops_nothing_else(member):
    features = '{"type":"Feature","properties":{},"geometry":null}'
    data = f'{{"type":"FeatureCollection","crs":{member},"features":[{features},{features}]}}'.encode()
    given, rejected = given_and_rejected(read_messages(io.BytesIO(data), "json"))
    assert given + rejected in (1, 2)  # JSON that is nested too deeply is no collection at all


@pytest.mark.parametrize("way", WAYS[:3], **short)
def test_each_line_of_csv_is_given_or_rejected(way):
    for text in TEXTS:
        data = b'geometry,at\n"' + text.encode("utf-8", "surrogatepass") + b'",1\nPOINT(1 2),' + BIG.encode() + b"\n"
        given, rejected = given_and_rejected(read_messages(io.BytesIO(data), "csv", **way))
        assert (given, rejected) == (1, 1), text[:60]


@pytest.mark.parametrize("text", TEXTS, **short)
def test_text_of_geometry_is_refused(text):
    for read in (ct.Region.from_wkt, ct.Point.from_wkt, lambda text: parse(f"inside(area, {text})")):
        with pytest.raises(ct.ContradaError):
            read(text)
    sifted = ct.read_regions([text, "POLYGON((0 0,1 0,1 1,0 0))"])
    assert [item.row for item in sifted.rejected] == [0]


@pytest.mark.parametrize("value", [*VALUES, *GEOMETRIES, *MEMBERS], **short)
def test_filters_are_taken_or_refused(value):
    table = ct.ForwardingTable()
    for form in (
        '{"op":"=","args":[{"property":"x"},%s]}', '{"op":"in","args":[{"property":"x"},[%s]]}',
        '{"op":"s_intersects","args":[{"property":"x"},%s]}', '{"op":"=","args":[{"property":%s},1]}',
        '{"op":"=","args":[{"property":"x"},{"timestamp":%s}]}', '{"op":"not","args":%s}',
        '{"op":"s_intersects","args":[{"property":"x"},{"bbox":[1,2,3,%s]}]}',
    ):  # fmt: skip
        try:
            table.subscribe("s", form % value)
        except ct.ContradaError as error:
            assert str(error)  # noqa: PT017
        asked = form % value
        data = f'{{"key":1,"filter":"a=1"}}\n{{"key":2,"filter":{asked}}}\n{{"key":{value},"filter":"a=1"}}'
        found = list(read_subscriptions(io.BytesIO(data.encode()), "ndjson"))
        assert len(found) == 3
        assert isinstance(found[0], Subscription)
    table.pack()
    table.match({"x": 1})


@pytest.mark.parametrize(
    "value",
    [10**400, 10**5000, Decimal("1e999999"), Decimal("sNaN"), np.datetime64(2**62, "Y"), "\ud800", [10**5000], object(),
     datetime.max.replace(tzinfo=UTC)],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
@pytest.mark.parametrize("operator", ["=", "<", "in", "between", "like", "is null"])
def test_constraints_are_made_or_refused(operator, value):
    for operand in (value, [value, value]):
        try:
            asked = ct.Constraint("x", operator, operand)
        except ct.ContradaError:
            continue
        table = ct.ForwardingTable()
        table.subscribe("s", asked)
        assert isinstance(hash(asked), int)
        assert len(table.match({"x": 1})) in (0, 1)


BAD_METADATA = [
    b'{"columns":' + b"[" * 100_000, b"\xff", b'{"columns":{"geometry":{"encoding":"WKB","crs":' + b'{"a":' * 5_000,
    b'{"columns":{"geometry":{"encoding":"WKB","crs":{"id":{"authority":"EPSG","code":' + b"9" * 400 + b"}}}}}", b"[]",
]  # fmt: skip


@pytest.mark.parametrize("metadata", BAD_METADATA, **short)
def test_metadata_of_geoparquet_are_refused_once(metadata):
    table = pa.table({"geometry": [ct.Point(1, 2).to_shapely().wkb] * 3})
    file = io.BytesIO(parquet_bytes(table.replace_schema_metadata({b"geo": metadata})))
    given, rejected = given_and_rejected(read_messages(file, "parquet"))
    assert (given, rejected) in ((0, 1), (0, 3), (3, 0))  # a code that no CRS has is one that is not asked about


def test_times_beyond_the_year_9999_and_columns_without_a_name_in_utf8():
    far = pa.array([2**60, 0, None], pa.timestamp("s"))
    table = pa.table({"at": far.cast(pa.timestamp("us"), safe=False)})
    assert given_and_rejected(read_messages(io.BytesIO(parquet_bytes(table)), "parquet")) == (3, 0)
    data = arrow_bytes(pa.table({"name?": [1, 2]}), new=pa.ipc.new_file).replace(b"name?", b"nam\xff\xfe")
    given, rejected = given_and_rejected(read_messages(io.BytesIO(data), "arrow"))
    assert given + rejected in (1, 2)
    assert rejected >= 1 or given == 2


def test_zones_are_refused_with_a_reason():
    for geometry in GEOMETRIES:
        with pytest.raises(ct.ContradaError):
            read_zones(io.BytesIO(b'{"valueName":"a","value":"b","geometry":' + geometry.encode() + b"}"))


def test_a_door_lets_mistakes_of_this_package_pass():
    @door()
    def wrong(kind):
        raise kind("a mistake")

    for kind in (TypeError, KeyError, IndexError, AttributeError, AssertionError):
        with pytest.raises(kind):
            wrong(kind)
        assert not issubclass(kind, input_errors())
    for kind in (OverflowError, RecursionError, NotImplementedError, SystemError, MemoryError, pa.ArrowInvalid):
        with pytest.raises(ct.ContradaError, match=kind.__name__):
            wrong(kind)
