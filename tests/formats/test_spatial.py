"""Reprojection and buffers."""

import json

import pyproj
import pytest
import shapely

import contrada as ct
from console import feature
from contrada.errors import FormatError
from contrada.formats.messages import message_of

POINT = {"type": "Point", "coordinates": [11.33, 43.32]}
POLE = {"type": "Point", "coordinates": [0, -90]}
LINE = {"type": "LineString", "coordinates": [[0, 0], [10, 0]]}
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}
NORTH = {"type": "Polygon", "coordinates": [[[0, 80], [4, 80], [4, 90], [0, 80]]]}
FAR = {"type": "Polygon", "coordinates": [[[1000, 0], [2000, 0], [2000, 900], [1000, 0]]]}
REGION = ct.Region.box(0, 0, 4, 4, crs="EPSG:4326")


@pytest.mark.parametrize(
    ("value", "options", "crs"),
    [
        (feature(SQUARE), {"to_crs": "EPSG:3857"}, "EPSG:3857"),
        (feature(POINT), {"to_crs": "EPSG:3857"}, "EPSG:3857"),
        ({"geometry": SQUARE}, {"crs": "EPSG:4326", "to_crs": "EPSG:3857"}, "EPSG:3857"),
        ({"geometry": REGION}, {"crs": "EPSG:4326", "to_crs": "EPSG:3857"}, "EPSG:3857"),
        ({"geometry": ct.Point(1, 1)}, {"crs": "EPSG:4326", "to_crs": "EPSG:3857"}, "EPSG:3857"),
        (feature(FAR), {"crs": "none"}, None),
        (feature(FAR), {"crs": "EPSG:27700"}, "EPSG:27700"),
    ],
)
def test_the_crs_is_the_one_asked_for(value, options, crs):
    assert message_of(value, **options)["geometry"].crs == crs


def test_reprojection_moves_vertices_of_holes_and_parts():
    whole = shapely.MultiPolygon([shapely.box(0, 0, 9, 9) - shapely.box(1, 1, 2, 2) - shapely.box(4, 4, 5, 6),
                                  shapely.box(20, 0, 21, 1)])  # fmt: skip
    region = message_of(feature(whole), to_crs="EPSG:3857")["geometry"]
    transformer = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:3857", always_xy=True)
    moved = shapely.transform(whole, transformer.transform, interleaved=False)
    assert region == ct.Region.from_shapely(moved)
    square = message_of(feature(SQUARE), to_crs="EPSG:3857")["geometry"]
    assert square.bounds == pytest.approx((0, 0, 445277.963, 445640.110))


@pytest.mark.parametrize(
    ("value", "options", "error", "reason"),
    [
        ({"area": SQUARE}, {"to_crs": "EPSG:3857"}, ct.CrsError, "the input names no CRS"),
        (feature(POLE), {"to_crs": "EPSG:2154"}, ct.RegionError, r"vertex .* cannot be reprojected to EPSG:2154"),
        (feature(NORTH), {"to_crs": "EPSG:32633+unknown"}, ct.ContradaError, None),
        (feature(SQUARE), {"to_crs": "EPSG:0"}, ct.CrsError, "EPSG:0"),
        (feature(FAR), {}, ct.RegionError, "antimeridian"),
        (feature(POINT), {"buffer": 500}, ct.CrsError, "degrees"),
        ({}, {"to_crs": "EPSG:4326", "buffer": 500}, ct.CrsError, "degrees"),
        *(({}, {"buffer": buffer}, FormatError, "positive") for buffer in (0, -1, float("inf"), float("nan"))),
        *(({"at": {**LINE, "coordinates": few}}, {"buffer": 1}, ct.ContradaError, None) for few in ([], [[0, 0]])),
        *(
            ({"at": {"type": "GeometryCollection", "geometries": parts}}, {"buffer": 1}, ct.ContradaError, None)
            for parts in ([], [{"type": "Circle"}], "x")
        ),
    ],
)
def test_what_is_refused(value, options, error, reason):
    with pytest.raises(error, match=reason):
        message_of(value, **options)


def test_a_buffer_in_metres():
    region = message_of(feature(POINT), to_crs="EPSG:3003", buffer=500)["geometry"]
    assert region.area == pytest.approx(3.14159 * 500**2, rel=0.01)
    assert region.crs == "EPSG:3003"


@pytest.mark.parametrize(
    "geometry",
    [
        LINE,
        {"type": "MultiPoint", "coordinates": [[0, 0], [10, 0]]},
        {"type": "MultiLineString", "coordinates": [[[0, 0], [10, 0]], [[0, 5], [10, 5]]]},
        {"type": "GeometryCollection", "geometries": [LINE, {"type": "GeometryCollection", "geometries": [SQUARE]}]},
    ],
)
def test_what_becomes_a_region_by_a_buffer(geometry):
    region = message_of({"at": geometry}, buffer=1)["at"]
    widened = shapely.from_geojson(json.dumps(geometry)).buffer(0.999)
    assert isinstance(region, ct.Region)
    assert region.bounds[0] == pytest.approx(-1, abs=0.01)
    assert shapely.intersects(region.to_shapely(), widened)


def test_polygons_are_not_buffered():
    assert message_of({"area": SQUARE}, buffer=1)["area"] == REGION
    assert message_of(feature(SQUARE), buffer=500)["geometry"] == REGION
