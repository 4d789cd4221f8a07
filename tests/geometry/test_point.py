"""Points and columns of points: formats, rejected rows, values."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
import shapely

import contrada as ct

POINTS = [(1.0, 2.0), (0.1, -7e99), (0.0, 3.0)]


def test_every_way_out_leads_back():
    column = ct.PointArray(POINTS, crs="EPSG:25832")
    for copy in (
        ct.PointArray.from_wkb(column.to_wkb()),
        ct.PointArray.from_shapely(column.to_shapely()),
        ct.PointArray.from_arrow(column.to_arrow()),
        ct.PointArray.from_arrow(column.to_wkb()),
        pickle.loads(pickle.dumps(column)),
    ):
        assert copy == column
    assert ct.PointArray.from_arrow(column.to_arrow()[1:]) == column[1:]
    assert column.xy.tolist() == [list(point) for point in POINTS]
    point, ways = column[1], ("wkt", "wkb", "geojson", "shapely")
    copies = [getattr(ct.Point, f"from_{way}")(getattr(point, f"to_{way}")()) for way in ways]
    for copy in [*copies, pickle.loads(pickle.dumps(point))]:
        assert copy == point
        assert hash(copy) == hash(point)
    assert shapely.geometry.shape(point) == point.to_shapely()


def test_separated_geoarrow_with_nulls():
    made = ct.read_points(pa.array([{"x": 1.0, "y": 2.0}, None, {"x": float("inf"), "y": 0.0}]))
    assert made.points.xy.tolist() == [[1.0, 2.0]]
    assert [bad.row for bad in made.rejected] == [1, 2]


def test_bad_rows_are_set_aside_with_reasons():
    rows = [b"\x01", None, *shapely.to_wkb([shapely.Point(1, 2), shapely.Point(), shapely.box(0, 0, 1, 1)])]
    rows.append(shapely.to_wkb(shapely.Point(1e200, 0)))
    made = ct.read_points(rows)
    assert made.rows.tolist() == [2]
    assert made.points[0] == ct.Point(1, 2)
    assert [(bad.row, bad.reason.split(";")[0]) for bad in made.rejected] == [
        (0, "malformed or truncated geometry"),
        (1, "no geometry (null)"),
        (3, "empty geometry"),
        (4, "wrong geometry type Polygon"),
        (5, "[1e+200, 0.0]: need finite coordinates within 1e-120..1e120 in magnitude"),
    ]
    with pytest.raises(ct.RegionError, match="row 0: malformed") as caught:
        ct.PointArray.from_wkb(rows)
    assert caught.value.row == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ct.Point(float("nan"), 0), r"point 0 is \[nan, 0.0\]"),
        (lambda: ct.Point(1e-200, 0), "need finite coordinates within"),
        (lambda: ct.PointArray([(1, 2, 3)]), r"shape \(n, 2\), got \(1, 3\)"),
        (lambda: ct.Point.from_wkt("nonsense"), "malformed or truncated geometry"),
        (lambda: ct.Point.from_geojson({"type": "Polygon"}), "need a GeoJSON Point, got Polygon"),
        (lambda: ct.PointArray.from_arrow(pa.array([1.0])), "need GeoArrow points or WKB"),
    ],
)
def test_bad_points_are_region_errors(make, message):
    with pytest.raises(ct.RegionError, match=message):
        make()


def test_columns_are_values():
    column = ct.PointArray(POINTS)
    assert column == ct.PointArray(np.array(POINTS))
    assert hash(column) == hash(ct.PointArray(POINTS))
    assert [point.x for point in column] == [1.0, 0.1, 0.0]
    assert column[[2, 0]][0] == ct.Point(0, 3)
    assert column[np.array([True, False, False])] == ct.PointArray(POINTS[:1])
    assert len(ct.PointArray([])) == 0
    assert repr(ct.Point(-0.0, 1)) == "Point(0.0, 1.0)"
    assert repr(column) == "<PointArray of 3 points>"
    for frozen in (column, column[0]):
        with pytest.raises(AttributeError, match="cannot be changed"):
            frozen.crs = None
