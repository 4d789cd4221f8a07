"""Shapes of a report: close to the geometry, whatever its form, size and place, and null where nothing can be drawn."""

import json

import numpy as np
import pyarrow as pa
import pytest
import shapely

from contrada.report.shapes import MAX_VERTICES, ShapeEncoder
from report_pages import shape_of

RING = shapely.box(11, 43, 12, 44).difference(shapely.box(11.4, 43.4, 11.6, 43.6))
PARTS = shapely.union(RING, shapely.box(13, 43, 13.001, 43.001))


def encode(crs, *shapes):
    texts, boxes = ShapeEncoder(crs).encode(pa.array(shapely.to_wkb(np.array(shapes, object)), pa.binary()))
    return [shape_of(json.loads(text)) for text in texts], boxes


@pytest.mark.parametrize("crs", [None, "OGC:CRS84", "EPSG:4326"])
def test_holes_and_parts_keep_their_form(crs):
    given = [PARTS, None, RING, shapely.Point(11.5, 43.25), shapely.box(0, 0, 1e-5, 1e-5)]
    found, boxes = encode(crs, *given)
    assert found[1] is None
    for shape, drawn, box in zip(given, found, boxes, strict=True):
        if shape is not None:
            assert drawn.geom_type == shape.geom_type
            assert shapely.get_num_coordinates(drawn) == shapely.get_num_coordinates(shape)
            assert shapely.hausdorff_distance(shape, drawn) < 1e-5
            assert drawn.bounds == pytest.approx(box, abs=1e-5)
            assert shapely.get_num_geometries(drawn) == shapely.get_num_geometries(shape)


@pytest.mark.parametrize(("size", "x"), [(1e-9, 0.0), (1.0, 1e6), (1e5, -4e6), (1e100, 1e110)])
def test_plain_coordinates_of_any_size(size, x):
    given = shapely.box(x, x / 2, x + size, x / 2 + 3 * size)
    (drawn,), _ = encode(None, given)
    assert shapely.hausdorff_distance(given, drawn) <= 2e-5 * size + 1e-12 * abs(x)


def test_other_systems_become_longitude_and_latitude():
    (drawn, gone), _ = encode("EPSG:25832", shapely.box(688_000, 4_796_000, 689_000, 4_797_000), shapely.Point(1e30, 0))
    assert drawn.centroid.x == pytest.approx(11.32, abs=0.02)
    assert drawn.centroid.y == pytest.approx(43.3, abs=0.02)
    assert gone is None


def test_what_is_no_place_on_earth_is_not_drawn():
    found, _ = encode("OGC:CRS84", shapely.box(0, 80, 10, 95), shapely.Point(600, 0), shapely.Point(200, -90))
    assert found[:2] == [None, None]
    assert found[2] == shapely.Point(200, -90)  # beyond the antimeridian


def test_round_shapes_stay_round_and_long_outlines_get_short():
    circle = shapely.Point(11.3, 43.3).buffer(0.01, quad_segs=100)
    coast = shapely.Point(11.3, 43.3).buffer(0.01, quad_segs=1000)
    (drawn, shorter), _ = encode("OGC:CRS84", circle, coast)
    assert shapely.get_num_coordinates(drawn) == shapely.get_num_coordinates(circle)
    assert shapely.hausdorff_distance(drawn, circle) < 1e-7
    assert shapely.get_num_coordinates(shorter) <= MAX_VERTICES
    assert shapely.hausdorff_distance(shorter, coast) < 1e-4


def test_nothing_gives_nothing():
    texts, boxes = ShapeEncoder(None).encode(pa.array([], pa.binary()))
    assert (texts, boxes.shape) == ([], (0, 4))
