"""within_distance of lines against rational arithmetic: along edges, in holes, within regions, at the very distance."""

import math

import numpy as np
import pytest
import shapely
from hypothesis import example, given

import contrada as ct
from effort import COMPILED, examples
from generators.lines import mixed_pairs, random_lines
from oracles.distance import doubles_around_root, is_within, square_of_distance

SAMPLES = examples(60) if COMPILED else 5
HOLED = "POLYGON((0 0, 20 0, 20 20, 0 20, 0 0), (2 2, 18 2, 18 18, 2 18, 2 2))"


def wkt(*texts):
    return tuple(map(shapely.from_wkt, texts))


@given(mixed_pairs())
@example(wkt("LINESTRING(6 10, 14 10)", HOLED))  # in the hole
@example(wkt("LINESTRING(2 2, 14 10)", HOLED))  # from a vertex of the hole
@example(wkt("LINESTRING(0.5 0.5, 1.5 1.5)", HOLED))  # within
@example(wkt("MULTILINESTRING((30 0, 31 0), (1 1, 1 2))", HOLED))  # one part within, the other apart
@example(wkt("MULTILINESTRING((1 1, 1 2), (30 0, 31 0))", HOLED))
@example(wkt("LINESTRING(0 0, 4 0)", "LINESTRING(2 0, 6 0)"))
@example(wkt("LINESTRING(0 0, 4 0)", "LINESTRING(4 0, 6 3)"))
@example(wkt("LINESTRING(0 0, 4 0)", "LINESTRING(7 4, 9 4)"))  # 3-4-5
@example(wkt("LINESTRING(0 0, 4 4)", "LINESTRING(0 4, 4 0)"))
@example(wkt("LINESTRING(-5 -5, 25 -5, 25 25, -5 25, -5 -5)", HOLED))  # around it: a line holds nothing
def test_any_pair_with_a_line(pair):
    a, b = pair
    square = square_of_distance(a, b)
    for distance in (*doubles_around_root(square), 0.0, 1.0, 5.0):
        expected = is_within(square, distance)
        assert ct.within_distance(a, b, distance) == expected
        assert ct.within_distance(b, a, distance) == expected
    assert ct.within_distance(a, b, 0) == ct.intersects(a, b)


@pytest.mark.jitless
def test_places():
    line = ct.Line([(0, 0), (4, 0)])
    assert ct.within_distance(line, ct.Point(7, 4), 5)
    assert not ct.within_distance(line, ct.Point(7, 4), math.nextafter(5, 0))
    assert ct.within_distance(line, ct.Line([(7, 4), (9, 9)]), 5)
    assert ct.within_distance(ct.Region.box(7, 4, 9, 9), line, 5)
    assert not ct.within_distance(ct.Region.box(7, 4, 9, 9), line, math.nextafter(5, 0))
    holed = ct.Region.from_wkt(HOLED)
    assert ct.within_distance(ct.Line([(5, 10), (15, 10)]), holed, 3)
    assert not ct.within_distance(ct.Line([(5, 10), (15, 10)]), holed, math.nextafter(3, 0))
    assert ct.within_distance(ct.Line([(0.5, 0.5), (1, 1)]), holed, 0)
    assert not ct.within_distance(ct.Line([(-1, -1), (9, -1), (9, 9), (-1, 9), (-1, -1)]), ct.Point(4, 4), 4.5)


@pytest.mark.jitless
def test_circles_are_grown_points():
    line, parts = ct.Line([(0, 0), (4, 0)]), ct.LineArray.from_wkt(["LINESTRING(0 0, 4 0)", "LINESTRING(7 9, 8 9)"])
    circle = ct.Circle((7, 4), 2)
    assert ct.within_distance(circle, line, 3)
    assert not ct.within_distance(line, circle, math.nextafter(3, 0))
    assert ct.within_distance(parts, circle, [3, 2.9]).tolist() == [True, False]


@pytest.mark.jitless
def test_columns_and_distances_broadcast():
    lines = ct.LineArray.from_wkt(["LINESTRING(0 0, 4 0)", "LINESTRING(0 3, 4 3)", "LINESTRING(0 9, 4 9)"])
    assert ct.within_distance(lines, ct.Point(2, 1), 2).tolist() == [True, True, False]
    assert ct.within_distance(ct.Point(2, 1), lines, [0.5, 2, 8]).tolist() == [False, True, True]
    assert ct.within_distance(lines[1:], lines[1], 0).tolist() == [True, False]
    assert ct.within_distance(lines[1:], lines[[0, 1]], [3, 6]).tolist() == [True, True]
    regions = ct.RegionArray.from_wkt(["POLYGON((0 1, 4 1, 4 2, 0 1))"] * 3)
    assert ct.within_distance(regions, lines, 1).tolist() == [True, True, False]
    shown = [shapely.LineString([(0, 0), (1, 0)]), shapely.LineString([(0, 5), (1, 5)])]
    assert ct.within_distance(shown, {"type": "LineString", "coordinates": [[3, 0], [3, 1]]}, 2).tolist() == [
        True,
        False,
    ]
    with pytest.raises(ct.ArgumentError, match="3, 2 and 1 rows"):
        ct.within_distance(lines, lines[1:], 1)
    with pytest.raises(ct.CrsError):
        ct.within_distance(ct.Line([(0, 0), (1, 1)], crs="EPSG:4326"), ct.Point(0, 0, crs="EPSG:3857"), 1)


def test_metres_take_no_lines():
    for pair in ((ct.Line([(0, 0), (1, 1)]), ct.Point(0, 0)), (ct.Point(0, 0), ct.LineArray.from_wkt([]))):
        with pytest.raises(ct.ArgumentError, match="distances in metres take no lines"):
            ct.within_distance(*pair, 5, "m")


@pytest.mark.jitless
@pytest.mark.parametrize("scale", [1e-118, 1e-60, 1.0, 1e60, 1e117])
def test_magnitudes(scale):
    rng = np.random.default_rng(12)
    for _ in range(20):
        a, b, c, d = rng.integers(-9, 10, (4, 2)) * scale
        if (a == b).all() or (c == d).all():
            continue
        one, other = shapely.LineString([a, b]), shapely.LineString([c, c + d * 1e-3])
        if not (c + d * 1e-3 == c).all():
            square = square_of_distance(one, other)
            for distance in (*doubles_around_root(square), 0.0, 1e150, 1e-300):
                with np.errstate(over="ignore"):
                    assert ct.within_distance(one, other, distance) == is_within(square, distance)


def test_large_lines_take_their_edge_index():
    """Lines of more vertices than are scanned, in columns of small ones and in slices, and large regions."""
    rng = np.random.default_rng(3)
    large, small = random_lines(rng, 6, 90, 1.0), random_lines(rng, 6, 4, 1.0)
    angles = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    ring = np.column_stack([np.cos(angles), np.sin(angles)]) * 30 + 50
    disc = shapely.Polygon(ring)
    mixed = np.array([shape for pair in zip(large, small, strict=True) for shape in pair], object)
    lines = ct.LineArray.from_shapely(mixed)
    some = range(0, 12, 1 if COMPILED else 5)
    for others, shapes in (
        (lines, mixed),
        (ct.RegionArray.from_shapely([disc]), [disc]),
        (ct.PointArray([(9, 9)]), None),
    ):
        for k in range(min(len(others), 12 if COMPILED else 1)):
            other = shapely.Point(9, 9) if shapes is None else shapes[k]
            squares = {row: square_of_distance(mixed[row], other) for row in some}
            for which in range(3):
                distances = np.zeros(12)
                for row, square in squares.items():
                    distances[row] = doubles_around_root(square)[which]
                found = ct.within_distance(lines, others[k], distances)
                sliced = ct.within_distance(others[k], lines[3:], distances[3:])
                assert (found[3:] == sliced).all()
                for row, square in squares.items():
                    assert found[row] == is_within(square, distances[row])


@pytest.mark.slow
def test_random_walks_near_each_other():
    rng = np.random.default_rng(8)
    for a, b in zip(random_lines(rng, SAMPLES, 8, 3.0), random_lines(rng, SAMPLES, 8, 3.0), strict=True):
        square = square_of_distance(a, b)
        assert [ct.within_distance(a, b, d) for d in doubles_around_root(square)] == [
            is_within(square, d) for d in doubles_around_root(square)
        ]
