"""Reprojection and buffers of single values, and of whole columns: the same regions, the same reasons."""

import json

import numpy as np
import pyarrow as pa
import pyproj
import pytest
import shapely

import contrada as ct
from console import feature
from contrada.errors import FormatError
from contrada.formats.messages import message_of
from contrada.formats.spatial import Spatial, sift_column
from contrada.geometry import Crs, Rejection
from contrada.geometry.arrow.geoarrow import with_crs

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


SHAPES = [
    shapely.box(1, 1, 2, 2),
    shapely.Point(3, 4),
    shapely.Point(200, 0),
    shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]),
    shapely.LineString([(0, 0), (1, 1)]),
    shapely.box(98, 0, 99, 1),  # has no place in a system of Central Europe
    shapely.MultiPolygon([shapely.box(10, 0, 11, 1), shapely.box(13, 0, 14, 1)]),
    None,
    shapely.MultiPoint([(7, 7), (9, 9)]),
    shapely.Polygon(),
]
WAYS = [{}, {"to_crs": "EPSG:32632"}, {"to_crs": "EPSG:32632", "buffer": 100.0}]


def column_of(shapes):
    return pa.chunked_array([pa.array(shapely.to_wkb(np.array(shapes, dtype=object)), pa.binary())])


@pytest.mark.parametrize("way", WAYS)
def test_columns_and_single_values_agree(way):
    column, crs, spatial = column_of(SHAPES), "EPSG:4326", Spatial("EPSG:4326", **way)
    singly = dict(spatial.of_column(with_crs(column, crs)))
    kept = sift_column(column, spatial, crs)
    good = {row: value.to_wkb() for row, value in singly.items() if not isinstance(value, Rejection)}
    assert dict(zip(kept.rows.tolist(), kept.wkb.to_pylist(), strict=True)) == good
    assert kept.rows.tolist() == sorted(good)
    assert {bad.row for bad in kept.rejected} == set(range(len(SHAPES))) - good.keys()
    for bad in kept.rejected:
        assert bad.reason.startswith(singly[bad.row].reason)


def test_repaired_rows_are_told():
    kept = sift_column(column_of(SHAPES), Spatial(), repair=True)
    assert kept.repaired.tolist() == [3]
    assert 3 in kept.rows


def test_a_row_that_is_lost_later_was_not_repaired():
    torn = shapely.Polygon([(98, 0), (99, 1), (99, 0), (98, 1)])
    kept = sift_column(column_of([torn]), Spatial(to_crs="EPSG:32632"), "EPSG:4326", repair=True)
    assert (len(kept.rows), kept.repaired.size, len(kept.rejected)) == (0, 0, 1)
    assert "cannot be reprojected to EPSG:32632" in kept.rejected[0].reason


def test_a_row_in_another_crs_is_rejected_unless_all_are_reprojected():
    column = pa.chunked_array([[shapely.to_wkb(shapely.set_srid(SHAPES[0], 3857), include_srid=True)]])
    kept = sift_column(column, Spatial(), Crs.of("EPSG:4326"))
    assert kept.rows.tolist() == []
    assert "EPSG:3857 and EPSG:4326" in kept.rejected[0].reason
    assert sift_column(column, Spatial(to_crs=4326), Crs.of("EPSG:3857")).rows.tolist() == [0]
    assert sift_column(column, Spatial(), "EPSG:3857").rows.tolist() == [0]


def test_an_empty_column():
    kept = sift_column(pa.chunked_array([], pa.binary()), Spatial(buffer=1.0))
    assert (len(kept.wkb), kept.rows.size, kept.rejected) == (0, 0, ())
    assert kept.repaired.dtype == np.int64


@pytest.mark.parametrize(
    ("crs", "to_crs"),
    [("EPSG:4326", "OGC:CRS84"), ("OGC:CRS84", "OGC:CRS84"), ("OGC:CRS83", "EPSG:4269"), ("EPSG:2193", "EPSG:2193")],
)
def test_vertices_stay_as_proj_leaves_them_between_equal_systems(crs, to_crs):
    rng = np.random.default_rng(7)
    xy = np.concatenate([rng.uniform(-400, 400, (500, 2)), [[-0.0, 5e-324], [180.0000001, -90.0]]])
    moved = Spatial(to_crs=to_crs).moved(xy, Crs.of(crs))
    plain = pyproj.Transformer.from_crs(crs, to_crs, always_xy=True).transform(xy[:, 0], xy[:, 1])
    assert moved.tobytes() == np.column_stack(plain).tobytes()
    value = ct.Region.box(10, 20, 11, 21, crs=crs)
    assert Spatial(to_crs=to_crs).changed(value).crs == to_crs
    assert Spatial(to_crs=to_crs).changed(value) == value
