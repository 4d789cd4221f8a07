"""Outlines for pictures: small, in place, and never a failure."""

import numpy as np
import pyarrow as pa
import pytest
import shapely

from contrada.geometry.outline import common_box, extents, simplified, svg_paths


def wkb(*shapes: object) -> pa.Array:
    written = [shape if isinstance(shape, bytes | None) else shapely.to_wkb(shape) for shape in shapes]
    return pa.array(written, pa.binary())


def coastline(vertices: int) -> shapely.Polygon:
    rng = np.random.default_rng(7)
    angle = np.linspace(0, 2 * np.pi, vertices, endpoint=False)
    radius = 100 + rng.uniform(-5, 5, vertices)
    return shapely.Polygon(np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1))


def test_large_regions_get_few_vertices_and_keep_their_place():
    many_parts = shapely.multipolygons([shapely.box(x, y, x + 0.6, y + 0.6) for x in range(30) for y in range(30)])
    shapes = wkb(coastline(20_000), many_parts, shapely.box(0, 0, 1, 1))
    drawn = shapely.from_wkb(simplified(shapes, vertices=100).to_pylist())
    assert (shapely.get_num_coordinates(drawn) <= 100).all()
    assert shapely.bounds(drawn[:2]) == pytest.approx(shapely.bounds(shapely.from_wkb(shapes.to_pylist()))[:2], abs=11)
    assert drawn[2] == shapely.box(0, 0, 1, 1)


def test_what_cannot_be_drawn_is_null_and_disturbs_nobody():
    with np.errstate(invalid="ignore"):
        hole_in_numbers = shapely.Polygon([(0, 0), (1, np.nan), (1, 1), (0, 0)])
    line, empty = shapely.LineString([(0, 0), (1, 1)]), shapely.Polygon()
    bow_tie = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
    shapes = wkb(b"", b"rubbish", None, hole_in_numbers, line, empty, shapely.Point(3, 4), bow_tie)
    assert simplified(shapes).is_valid().to_pylist() == [False] * 6 + [True, True]
    assert [bool(path) for path in svg_paths(shapes, (0, 0, 4, 4), 100)] == [False] * 6 + [True, True]
    assert common_box(shapes) == (0, 0, 3, 4)
    assert extents(shapes).tolist() == [0] * 7 + [2]


def test_nothing_gives_nothing():
    assert len(simplified(wkb())) == 0
    assert common_box(wkb()) is None
    assert common_box(wkb(None)) is None
    assert svg_paths(wkb(), (0, 0, 1, 1), 10) == []


def test_paths_have_holes_and_parts_and_north_is_up():
    ring = shapely.Polygon(shapely.box(0, 0, 10, 10).exterior, [shapely.box(2, 2, 8, 8).exterior])
    two = shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(5, 5, 6, 6)])
    path, both, speck = svg_paths(wkb(ring, two, shapely.box(1, 1, 1.01, 1.01)), (0, 0, 10, 10), 10)
    assert path.count("z") == both.count("z") == 2
    assert path.startswith("M10 10")  # the lower right corner: y grows downwards in SVG
    assert speck == "M1 9h0"
