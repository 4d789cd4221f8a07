"""GeoJSON features as Arrow columns."""

import json

import pyarrow as pa
import pytest
import shapely

import contrada as ct
from contrada.errors import RegionError
from contrada.formats.geojson.columns import describe_features, read_features
from contrada.formats.geojson.shapes import wkb_of_geojson
from contrada.formats.records import Record

SHAPES = [
    "POINT (1 2)", "LINESTRING (0 0, 1 1)", "POLYGON ((0 0, 4 0, 4 4, 0 0), (2 1, 3 1, 3 2, 2 1))",
    "MULTIPOINT (1 2, 3 4)", "MULTILINESTRING ((0 0, 1 1), (2 2, 3 3))", "GEOMETRYCOLLECTION (POINT (1 2))",
    "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",
]  # fmt: skip


def records(*features):
    return [Record("line", k, text.encode()) for k, text in enumerate(features, start=1)]


def feature(geometry=None, **properties):
    return json.dumps({"type": "Feature", "properties": properties, "geometry": geometry})


@pytest.mark.parametrize("text", SHAPES)
def test_geometry_is_what_shapely_reads(text):
    shape = shapely.from_wkt(text)
    made = shapely.from_wkb(wkb_of_geojson(json.loads(shapely.to_geojson(shape))))
    assert made.equals_exact(shape, 0)


def test_heights_are_dropped_and_empty_polygons_are_empty():
    high = {"type": "Polygon", "coordinates": [[[0, 0, 9], [1, 0], [1, 1, 9], [0, 0, 9]]]}
    assert ct.Region.from_wkb(wkb_of_geojson(high)) == ct.Region([(0, 0), (1, 0), (1, 1)])
    with pytest.raises(RegionError, match="empty"):
        ct.Region.from_wkb(wkb_of_geojson({"type": "Polygon", "coordinates": []}))


def test_columns_hold_the_properties_of_all():
    given = records(feature(a=1, b={"c": [1]}), feature(a=2.5, b={"d": None}), feature(a=None, e={}, big=2**64), "torn")
    about = describe_features(given)
    assert about.rows == 4
    assert about.schema == pa.schema(
        [("a", pa.float64()), ("b", pa.struct([("c", pa.list_(pa.int64())), ("d", pa.null())])), ("e", pa.string()),
         ("big", pa.string())]
    )  # fmt: skip
    found = read_features(given, about.schema, None)
    assert found.numbers == [1, 2, 3]
    assert found.properties["a"].to_pylist() == [1.0, 2.5, None]
    assert found.properties["b"].to_pylist() == [{"c": [1], "d": None}, {"c": None, "d": None}, None]
    assert found.properties["e"].to_pylist() == [None, None, "{}"]
    assert found.properties["big"].to_pylist() == [None, None, str(2**64)]
    assert [(number, raw) for number, _, raw in found.rejected] == [(4, "torn")]


def test_a_feature_in_another_crs_is_rejected():
    other = json.loads(feature())
    other["crs"] = {"type": "name", "properties": {"name": "EPSG:3035"}}
    found = read_features(records(json.dumps(other), feature()), pa.schema([]), "OGC:CRS84")
    assert found.numbers == [2]
    assert "EPSG:3035" in found.rejected[0][1]


def test_an_id_is_a_column_unless_a_property_has_its_name():
    named = [{**json.loads(feature()), "id": "x"}, {**json.loads(feature(id=5)), "id": "y"}]
    found = read_features(records(*map(json.dumps, named)), pa.schema([("id", pa.string())]), None)
    assert found.properties["id"].to_pylist() == ["x", "5"]
