"""Reprojection and buffers."""

import json

import pyproj
import pytest
import shapely

import contrada as ct
from contrada.errors import FormatError
from contrada.formats.messages import message_of
from contrada.formats.spatial import Spatial

POINT = {"type": "Point", "coordinates": [11.33, 43.32]}
LINE = {"type": "LineString", "coordinates": [[0, 0], [10, 0]]}
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}
GAUSS_BOAGA = "EPSG:3003"


def feature(geometry):
    return {"type": "Feature", "properties": {}, "geometry": geometry}


def test_reprojection_moves_vertices_and_names_the_crs():
    region = message_of(feature(SQUARE), to_crs="EPSG:3857")["geometry"]
    assert region.crs == "EPSG:3857"
    assert region.bounds == pytest.approx((0, 0, 445277.963, 445640.110))
    assert message_of(feature(POINT), to_crs="EPSG:3857")["geometry"].crs == "EPSG:3857"


def test_reprojection_of_holes_and_parts():
    whole = shapely.MultiPolygon([shapely.box(0, 0, 9, 9) - shapely.box(1, 1, 2, 2) - shapely.box(4, 4, 5, 6),
                                  shapely.box(20, 0, 21, 1)])  # fmt: skip
    region = message_of(feature(shapely.geometry.mapping(whole)), to_crs="EPSG:3857")["geometry"]
    transformer = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:3857", always_xy=True)
    moved = shapely.transform(whole, transformer.transform, interleaved=False)
    assert region == ct.Region.from_shapely(moved)


def test_reprojection_needs_to_know_where_from():
    with pytest.raises(ct.CrsError, match="the input names no CRS"):
        message_of({"area": SQUARE}, to_crs="EPSG:3857")
    assert message_of({"area": SQUARE}, crs="EPSG:4326", to_crs="EPSG:3857")["area"].crs == "EPSG:3857"


def test_what_has_no_place_is_refused():
    north = {"type": "Polygon", "coordinates": [[[0, 80], [4, 80], [4, 90], [0, 80]]]}
    with pytest.raises(ct.RegionError, match=r"vertex .* cannot be reprojected to EPSG:2154"):
        message_of(feature({"type": "Point", "coordinates": [0, -90]}), to_crs="EPSG:2154")
    with pytest.raises(ct.ContradaError):
        message_of(feature(north), to_crs="EPSG:32633+unknown")


def test_unknown_systems_are_refused():
    with pytest.raises(ct.CrsError, match="EPSG:0"):
        message_of(feature(SQUARE), to_crs="EPSG:0")


def test_a_buffer_in_metres():
    region = message_of(feature(POINT), to_crs=GAUSS_BOAGA, buffer=500)["geometry"]
    assert region.area == pytest.approx(3.14159 * 500**2, rel=0.01)
    assert region.crs == GAUSS_BOAGA


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
    assert message_of({"area": SQUARE}, buffer=1)["area"] == ct.Region.box(0, 0, 4, 4)


def test_a_buffer_in_degrees_is_refused():
    with pytest.raises(ct.CrsError, match="degrees"):
        message_of(feature(POINT), buffer=500)
    with pytest.raises(ct.CrsError, match="degrees"):
        Spatial(to_crs="EPSG:4326", buffer=500)
    assert message_of(feature(SQUARE), buffer=500)["geometry"].area == 16


@pytest.mark.parametrize("buffer", [0, -1, float("inf"), float("nan")])
def test_buffers_are_positive(buffer):
    with pytest.raises(FormatError, match="positive"):
        Spatial(buffer=buffer)


@pytest.mark.parametrize(
    "geometry",
    [
        {"type": "LineString", "coordinates": []},
        {"type": "LineString", "coordinates": [[0, 0]]},
        {"type": "GeometryCollection", "geometries": []},
        {"type": "GeometryCollection", "geometries": [{"type": "Circle"}]},
        {"type": "GeometryCollection", "geometries": "x"},
    ],
)
def test_bad_lines_are_refused_with_a_buffer_too(geometry):
    with pytest.raises(ct.ContradaError):
        message_of({"at": geometry}, buffer=1)


def test_planar_geojson():
    far = {"type": "Polygon", "coordinates": [[[1000, 0], [2000, 0], [2000, 900], [1000, 0]]]}
    with pytest.raises(ct.RegionError, match="antimeridian"):
        message_of(feature(far))
    assert message_of(feature(far), crs="none")["geometry"].crs is None
    assert message_of(feature(far), crs="EPSG:27700")["geometry"].crs == "EPSG:27700"


def test_regions_of_python_are_reprojected_too():
    message = message_of({"area": ct.Region.box(0, 0, 4, 4, crs="EPSG:4326"), "at": ct.Point(1, 1)}, crs="EPSG:4326",
                         to_crs="EPSG:3857")  # fmt: skip
    assert message["area"].crs == message["at"].crs == "EPSG:3857"
