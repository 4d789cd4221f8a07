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
FEATURE = {"type": "Feature", "properties": {}, "geometry": SQUARE}
EVENT = {"specversion": "1.0", "id": "7", "source": "/buoy", "type": "wave"}

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.one_of(st.integers(-(10**60), 10**60), finite))
def test_numbers_are_read_exactly(number):
    found = decode(json.dumps(number))
    assert found == number
    assert type(found) is type(number)
    assert not isinstance(number, float) or math.copysign(1, found) == math.copysign(1, number)


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"a": NaN}', '{"a": Infinity}', "{'a': 1}", '{"a": 1,}', '{"a": 1} x', '{"a": 01}', '{"a": 1e400}',
     '{"a": ' + "9" * 5000 + "}", b'{"a": "\xff"}', b"\x00", '{"a": "\\ud800"}', "[" * 100_000 + "]" * 100_000],
)  # fmt: skip
def test_bad_json_is_refused(text):
    with pytest.raises(FormatError):
        message_of(text)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data):
    with contextlib.suppress(ct.ContradaError):
        assert isinstance(message_of(data), dict)


def test_the_last_of_equal_names_wins():
    assert message_of('{"a": 1, "a": {"b": 2}}') == {"a.b": 2}


def test_nested_names_are_dotted_and_nulls_are_absent():
    assert message_of({"a": {"b": {"c": 1}, "d": None}, "e": [1, 2], "f": {}}) == {"a.b.c": 1, "e": [1, 2]}


def test_two_values_of_one_name_are_refused():
    with pytest.raises(FormatError, match=r"'a\.b'"):
        message_of({"a": {"b": 1}, "a.b": 2})


@pytest.mark.parametrize("depth", [100, 500])
def test_deep_objects_are_refused(depth):
    with pytest.raises(ct.ContradaError, match="nest"):
        message_of('{"a":' * depth + "1" + "}" * depth)


@pytest.mark.parametrize("value", [[], 1, "[1]", "null", b'"text"', None])
def test_what_is_no_object_is_refused(value):
    with pytest.raises(FormatError, match="message: need an object, got"):
        message_of(value)


def test_geometry_objects_in_dicts_are_values_without_a_crs():
    message = message_of({"area": SQUARE, "at": {"type": "Point", "coordinates": [1e6, 2, 30]}, "type": "Point"})
    assert message == {"area": ct.Region.box(0, 0, 4, 4), "at": ct.Point(1e6, 2), "type": "Point"}
    assert message["area"].crs is None


def test_text_is_a_timestamp_only_if_asked():
    value = {"onset": "2024-05-01T12:00:00Z", "valid": {"until": "2024-05-02"}}
    assert message_of(value)["onset"] == value["onset"]
    message = message_of(value, times=("onset", "valid.until"))
    assert message == {"onset": datetime(2024, 5, 1, 12, tzinfo=UTC), "valid.until": datetime(2024, 5, 2, tzinfo=UTC)}
    for bad in ("soon", 17, True, [1]):
        with pytest.raises(FormatError, match="attribute 'onset'"):
            message_of({"onset": bad}, times=("onset",))


def test_python_values_pass():
    now = datetime.now(UTC)
    assert message_of({"at": now, "area": ct.Region.box(0, 0, 1, 1)}, times=("at",))["at"] is now


# GeoJSON


def test_features():
    message = message_of({**FEATURE, "id": "x", "bbox": [0, 0, 1, 1], "properties": {"a": {"b": True}, "hole": SQUARE}})
    assert message == {"a.b": True, "hole": ct.Region.box(0, 0, 4, 4), "geometry": ct.Region.box(0, 0, 4, 4), "id": "x"}
    assert message["geometry"].crs == message["hole"].crs == "OGC:CRS84"


def test_a_property_id_wins():
    assert message_of({**FEATURE, "id": 1, "properties": {"id": 2}})["id"] == 2


@pytest.mark.parametrize("geometry", [None, "absent"])
def test_a_feature_without_geometry(geometry):
    feature = {"type": "Feature", "properties": {"a": 1}, "geometry": geometry}
    if geometry == "absent":
        del feature["geometry"]
    assert message_of(feature) == {"a": 1}


@pytest.mark.parametrize(
    ("geometry", "reason"),
    [
        ({"type": "LineString", "coordinates": [[0, 0], [1, 1]]}, "need a region or point, got LineString"),
        ({"type": "MultiPoint", "coordinates": [[0, 0], [1, 1]]}, "need a region or point, got MultiPoint"),
        ({"type": "GeometryCollection", "geometries": []}, "need a region or point, got GeometryCollection"),
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
        ({"type": "Circle", "coordinates": [0, 0]}, "need a GeoJSON geometry"),
        ("POINT (0 0)", "need a GeoJSON geometry"),
    ],
)
def test_geometry_that_is_refused(geometry, reason):
    with pytest.raises(ct.ContradaError, match=reason):
        message_of({**FEATURE, "geometry": geometry})


def test_heights_are_dropped_even_if_only_some_vertices_have_them():
    ring = [[0, 0, 9], [4, 0], [4, 4, 1], [0, 4], [0, 0]]
    assert message_of({**FEATURE, "geometry": {"type": "Polygon", "coordinates": [ring]}})["geometry"].area == 16


@pytest.mark.parametrize("name", ["EPSG:4326", "urn:ogc:def:crs:OGC:1.3:CRS84", "urn:ogc:def:crs:EPSG::4326"])
def test_the_old_member_crs(name):
    member = {"type": "name", "properties": {"name": name}}
    assert message_of({**FEATURE, "crs": member})["geometry"].crs == "OGC:CRS84"
    with pytest.raises(ct.CrsError, match=name):
        message_of({**FEATURE, "crs": member}, crs="EPSG:3857")


@pytest.mark.parametrize(
    "member",
    [{"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3857"}}, {"type": "link"}, 7, {"properties": 7},
     {"type": "name", "properties": {"name": "EPSG:0"}}],
)  # fmt: skip
def test_another_crs_is_refused(member):
    with pytest.raises(ct.ContradaError, match=r"crs|coordinate reference"):
        message_of({**FEATURE, "crs": member})


@pytest.mark.parametrize("part", [{"properties": [1]}, {"id": True}, {"id": {}}, {"properties": {"geometry": 1}}])
def test_features_that_are_refused(part):
    with pytest.raises(FormatError):
        message_of({**FEATURE, **part})


def test_a_collection_is_no_message():
    with pytest.raises(FormatError, match="FeatureCollection"):
        message_of({"type": "FeatureCollection", "features": []})


# CloudEvents


def test_cloudevents():
    extended = {**EVENT, "time": "2024-05-01T12:00:00Z", "subject": None, "trace": 3, "data": {"a": {"b": 1}}}
    assert message_of(extended) == {
        "ce.id": "7", "ce.source": "/buoy", "ce.specversion": "1.0", "ce.type": "wave", "ce.trace": 3,
        "ce.time": datetime(2024, 5, 1, 12, tzinfo=UTC), "a.b": 1,
    }  # fmt: skip


def test_the_data_of_a_cloudevent_may_be_a_feature():
    message = message_of({**EVENT, "data": {**FEATURE, "id": 3}}, to_crs="EPSG:3857")
    assert message["geometry"].crs == "EPSG:3857"
    assert message["id"] == 3
    assert message["ce.id"] == "7"


def test_data_in_base64():
    encoded = base64.b64encode(json.dumps({"a": 1}).encode()).decode()
    assert message_of({**EVENT, "data_base64": encoded})["a"] == 1
    assert message_of({**EVENT, "data_base64": encoded, "datacontenttype": "application/geo+json; x=y"})["a"] == 1
    for bad in ("%%", 7, "AAAA"):
        with pytest.raises(FormatError):
            message_of({**EVENT, "data_base64": bad})
    for part in ({"datacontenttype": "image/png"}, {"data": {}}):
        with pytest.raises(FormatError):
            message_of({**EVENT, "data_base64": encoded, **part})


@pytest.mark.parametrize("data", ["text", 7, [1, 2]])
def test_data_that_is_no_object(data):
    assert message_of({**EVENT, "data": data})["data"] == data


def test_missing_context_is_named():
    with pytest.raises(FormatError, match="needs id, source, type"):
        message_of({"specversion": "1.0"})


@pytest.mark.parametrize(
    "part",
    [{"specversion": "0.3"}, {"id": ""}, {"id": 7}, {"time": "now"}, {"extension": {"a": 1}}, {"extension": 1.5},
     {"data": {"ce": {"id": 1}}}],
)  # fmt: skip
def test_cloudevents_that_are_refused(part):
    with pytest.raises(FormatError):
        message_of({**EVENT, **part})


def test_messages_match():
    table = ct.ForwardingTable()
    wanted = [
        ct.Constraint("geometry", ct.RelationSet.S_INTERSECTS, ct.Region.box(3, 3, 9, 9, crs="EPSG:4326")),
        ct.Constraint("wind.speed", ">", 12),
    ]
    table.subscribe("ops", ct.Filter(wanted))
    assert set(table.match(message_of({**FEATURE, "properties": {"wind": {"speed": 12.5}}}))) == {"ops"}
    assert set(table.match(message_of({**FEATURE, "properties": {"wind": {"speed": 12}}}))) == set()
