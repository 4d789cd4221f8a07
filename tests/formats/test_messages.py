"""One message at a time: dicts, GeoJSON features, CloudEvents."""

import base64
import contextlib
import json
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import contrada as ct
from contrada.errors import FormatError
from contrada.formats.json import decode
from contrada.formats.messages import message_of

SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}
HIGH = {"type": "Polygon", "coordinates": [[[0, 0, 9], [4, 0], [4, 4, 1], [0, 4], [0, 0]]]}
REGION = ct.Region.box(0, 0, 4, 4)
FEATURE = {"type": "Feature", "properties": {}, "geometry": SQUARE}
EVENT = {"specversion": "1.0", "id": "7", "source": "/buoy", "type": "wave"}
CONTEXT = {f"ce.{name}": value for name, value in EVENT.items()}
ENCODED = base64.b64encode(json.dumps({"a": 1}).encode()).decode()
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.one_of(st.integers(-(10**60), 10**60), finite))
def test_numbers_are_read_exactly(number):
    found = decode(json.dumps(number))
    assert found == number
    assert type(found) is type(number)
    assert not isinstance(number, float) or math.copysign(1, found) == math.copysign(1, number)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data):
    with contextlib.suppress(ct.ContradaError):
        assert isinstance(message_of(data), dict)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('{"a": 1, "a": {"b": 2}}', {"a.b": 2}),  # the last of equal names wins
        ({"a": {"b": {"c": 1}, "d": None}, "e": [1, 2], "f": {}}, {"a.b.c": 1, "e": [1, 2]}),
        (
            {"area": SQUARE, "at": {"type": "Point", "coordinates": [1e6, 2, 30]}, "type": "Point"},
            {"area": REGION, "at": ct.Point(1e6, 2), "type": "Point"},
        ),
        (
            {**FEATURE, "id": "x", "bbox": [0, 0, 1, 1], "properties": {"a": {"b": True}, "hole": SQUARE}},
            {"a.b": True, "hole": REGION, "geometry": REGION, "id": "x"},
        ),
        ({**FEATURE, "id": 1, "properties": {"id": 2}}, {"id": 2, "geometry": REGION}),  # the property wins
        ({"type": "Feature", "properties": {"a": 1}, "geometry": None}, {"a": 1}),
        ({"type": "Feature", "properties": {"a": 1}}, {"a": 1}),
        ({**FEATURE, "geometry": HIGH}, {"geometry": REGION}),  # heights are dropped
        (
            {**EVENT, "time": "2024-05-01T12:00:00Z", "subject": None, "trace": 3, "data": {"a": {"b": 1}}},
            {**CONTEXT, "ce.trace": 3, "ce.time": NOON, "a.b": 1},
        ),
        ({**EVENT, "data": {**FEATURE, "id": 3}}, {**CONTEXT, "geometry": REGION, "id": 3}),
        ({**EVENT, "data_base64": ENCODED}, {**CONTEXT, "a": 1}),
        (
            {**EVENT, "data_base64": ENCODED, "datacontenttype": "application/geo+json; x=y"},
            {**CONTEXT, "ce.datacontenttype": "application/geo+json; x=y", "a": 1},
        ),
        *(({**EVENT, "data": data}, {**CONTEXT, "data": data}) for data in ("text", 7, [1, 2])),
    ],
)
def test_what_messages_hold(value, message):
    assert message_of(value) == message


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        *((text, None) for text in ("", "{", '{"a": NaN}', '{"a": Infinity}', "{'a': 1}", '{"a": 1,}', '{"a": 1} x')),
        *((text, None) for text in ('{"a": 01}', '{"a": 1e400}', '{"a": ' + "9" * 5000 + "}", '{"a": "\\ud800"}')),
        *((text, None) for text in (b'{"a": "\xff"}', b"\x00", "[" * 100_000 + "]" * 100_000)),
        *((value, "message: need an object, got") for value in ([], 1, "[1]", "null", b'"text"', None)),
        ({"a": {"b": 1}, "a.b": 2}, r"'a\.b'"),
        *(({**FEATURE, "properties": properties}, None) for properties in ([1], {"geometry": 1})),
        *(({**FEATURE, "id": key}, None) for key in (True, {})),
        ({"type": "FeatureCollection", "features": []}, "FeatureCollection"),
        ({"specversion": "1.0"}, "needs id, source, type"),
        *(({**EVENT, **part}, None) for part in ({"specversion": "0.3"}, {"id": ""}, {"id": 7}, {"time": "now"})),
        *(({**EVENT, "extension": value}, None) for value in ({"a": 1}, 1.5)),
        ({**EVENT, "data": {"ce": {"id": 1}}}, None),
        *(({**EVENT, "data_base64": data}, None) for data in ("%%", 7, "AAAA")),
        ({**EVENT, "data_base64": ENCODED, "datacontenttype": "image/png"}, None),
        ({**EVENT, "data_base64": ENCODED, "data": {}}, None),
    ],
)
def test_messages_that_are_refused(value, reason):
    with pytest.raises(FormatError, match=reason):
        message_of(value)


@pytest.mark.parametrize("depth", [100, 500])
def test_deep_objects_are_refused(depth):
    with pytest.raises(ct.ContradaError, match="nest"):
        message_of('{"a":' * depth + "1" + "}" * depth)


def test_geometry_of_features_has_a_crs_and_geometry_of_dicts_has_none():
    message = message_of({**FEATURE, "properties": {"hole": SQUARE}})
    assert message["geometry"].crs == message["hole"].crs == "OGC:CRS84"
    assert message_of({"area": SQUARE})["area"].crs is None
    assert message_of({**EVENT, "data": FEATURE}, to_crs="EPSG:3857")["geometry"].crs == "EPSG:3857"


def test_text_is_a_timestamp_only_if_asked():
    value = {"onset": "2024-05-01T12:00:00Z", "valid": {"until": "2024-05-02"}}
    assert message_of(value)["onset"] == value["onset"]
    message = message_of(value, times=("onset", "valid.until"))
    assert message == {"onset": NOON, "valid.until": datetime(2024, 5, 2, tzinfo=UTC)}
    assert message_of({"at": NOON, "area": REGION}, times=("at",))["at"] is NOON
    for bad in ("soon", 17, True, [1]):
        with pytest.raises(FormatError, match="attribute 'onset'"):
            message_of({"onset": bad}, times=("onset",))


@pytest.mark.parametrize(
    ("geometry", "reason"),
    [
        ({"type": "LineString", "coordinates": [[0, 0], [0, 0]]}, "fewer than two distinct vertices"),
        ({"type": "MultiPoint", "coordinates": [[0, 0], [1, 1]]}, "need a region, point or line, got MultiPoint"),
        ({"type": "GeometryCollection", "geometries": []}, "need a region, point or line, got GeometryCollection"),
        ({"type": "Polygon", "coordinates": []}, "empty"),
        ({"type": "MultiPolygon", "coordinates": []}, "empty"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, 0]]]}, "fewer than three"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]}, "self-intersection"),
        ({"type": "Polygon", "coordinates": [[[0, 0], ["1", 1], [1, 0]]]}, r"got `str` - at `\$\[0\]\[1\]\[0\]`"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1], [1, 0]]]}, r"\$\[0\]\[1\]"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [10**400, 1], [1, 0]]]}, "out of range"),
        ({"type": "Polygon", "coordinates": None}, "Expected `array`"),
        ({"type": "Polygon", "coordinates": [[[170, 0], [190, 0], [180, 9], [170, 0]]]}, "antimeridian"),
        ({"type": "Point", "coordinates": [200, 0]}, "outside longitude"),
        ({"type": "Point", "coordinates": []}, "length"),
        ({"type": "Circle", "coordinates": [0, 0]}, "Circle: need a radius beside the coordinates"),
        ({"type": "Sphere", "coordinates": [0, 0]}, "need a GeoJSON geometry"),
        ("POINT (0 0)", "need a GeoJSON geometry"),
    ],
)
def test_geometry_that_is_refused(geometry, reason):
    with pytest.raises(ct.ContradaError, match=reason):
        message_of({**FEATURE, "geometry": geometry})


def named(name):
    """The member `crs` of the first GeoJSON."""
    return {"type": "name", "properties": {"name": name}}


@pytest.mark.parametrize("name", ["EPSG:4326", "urn:ogc:def:crs:OGC:1.3:CRS84", "urn:ogc:def:crs:EPSG::4326"])
def test_the_old_member_crs(name):
    assert message_of({**FEATURE, "crs": named(name)})["geometry"].crs == "OGC:CRS84"
    with pytest.raises(ct.CrsError, match=name):
        message_of({**FEATURE, "crs": named(name)}, crs="EPSG:3857")


@pytest.mark.parametrize(
    "member", [named("urn:ogc:def:crs:EPSG::3857"), {"type": "link"}, 7, {"properties": 7}, named("EPSG:0")]
)
def test_another_crs_is_refused(member):
    with pytest.raises(ct.ContradaError, match=r"crs|coordinate reference"):
        message_of({**FEATURE, "crs": member})


def test_messages_match():
    table = ct.ForwardingTable()
    wanted = [
        ct.Constraint("geometry", ct.RelationSet.S_INTERSECTS, ct.Region.box(3, 3, 9, 9, crs="EPSG:4326")),
        ct.Constraint("wind.speed", ">", 12),
    ]
    table.subscribe("ops", ct.Filter(wanted))
    assert set(table.match(message_of({**FEATURE, "properties": {"wind": {"speed": 12.5}}}))) == {"ops"}
    assert set(table.match(message_of({**FEATURE, "properties": {"wind": {"speed": 12}}}))) == set()
