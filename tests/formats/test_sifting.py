"""Whole columns sifted as single values are: the same regions, the same reasons."""

import numpy as np
import pyarrow as pa
import pytest
import shapely

from contrada.formats.spatial import Spatial, sift_column
from contrada.geometry import Crs, Rejection
from contrada.geometry.arrow.geoarrow import with_crs

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
    assert {bad.row for bad in kept.rejected} == set(range(len(SHAPES))) - good.keys()
    for bad in kept.rejected:
        assert bad.reason.startswith(singly[bad.row].reason)


def test_rows_are_in_order_and_each_is_somewhere():
    kept = sift_column(column_of(SHAPES), Spatial())
    assert kept.rows.tolist() == sorted(kept.rows.tolist())
    assert sorted([*kept.rows.tolist(), *(bad.row for bad in kept.rejected)]) == list(range(len(SHAPES)))


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
