"""Circles against rational arithmetic: relations and distances where they touch, next to it, and in every magnitude."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
import shapely

import contrada as ct
from effort import COMPILED, examples
from generators.circles import circles_near, shapes
from oracles.circles import (
    is_circle_within_circle,
    is_circle_within_distance,
    relation_of_circle,
    squares_to,
)
from oracles.distance import doubles_around_root

R = ct.Relation
PAIRS = max(240, examples(400)) if COMPILED else 60


@pytest.mark.parametrize("seed", range(3))
def test_every_relation_is_that_of_the_rationals(seed):
    rng = np.random.default_rng(seed)
    found = set()
    for shape in shapes(rng, PAIRS // 4):
        ours = ct.Point.from_shapely(shape) if shape.geom_type == "Point" else ct.Region.from_shapely(shape)
        for circle in circles_near(rng, shape, 4):
            relation = relation_of_circle(circle, shape)
            assert ct.relate(circle, ours) is relation, (circle, shape.wkt)
            assert ct.relate(ours, circle) is relation.inverse
            found.add(relation)
    assert len(found) >= 5


@pytest.mark.parametrize("seed", range(2))
def test_every_distance_is_that_of_the_rationals(seed):
    rng = np.random.default_rng(seed)
    for shape in shapes(rng, PAIRS // 4):
        ours = ct.Point.from_shapely(shape) if shape.geom_type == "Point" else ct.Region.from_shapely(shape)
        for circle in circles_near(rng, shape, 2):
            near, _ = squares_to(circle, shape)
            root = doubles_around_root(near)[0]
            beyond = max(0.0, root - circle.radius)
            for distance in (0.0, beyond, math.nextafter(beyond, math.inf), math.nextafter(beyond, 0.0), 1.0, 1e-300):
                expected = is_circle_within_distance(circle, shape, distance)
                assert ct.within_distance(circle, ours, distance) == expected, (circle, shape.wkt, distance)
                assert ct.within_distance(ours, circle, distance) == expected


def test_tangent_circles_and_edges():
    circle = ct.Circle((0, 0), 5)
    assert ct.relate(circle, ct.Region.box(3, 4, 6, 6)) is R.MEETS  # 3-4-5
    assert ct.relate(circle, ct.Region.box(3, math.nextafter(4, 0), 6, 6)) is R.OVERLAPS
    assert ct.relate(circle, ct.Region.box(-5, -5, 5, 5)) is R.COVERED_BY
    assert ct.relate(circle, ct.Region.box(-5, -5, 5, math.nextafter(5, 9))) is R.COVERED_BY
    assert ct.relate(circle, ct.Region.box(-6, -6, 6, 6)) is R.INSIDE
    assert ct.relate(circle, ct.Region.box(-3, -4, 3, 4)) is R.COVERS
    assert ct.relate(circle, ct.Region.box(-3, -3, 3, 3)) is R.CONTAINS
    slanted = shapely.Polygon([(0, 25 / 4), (25 / 3, 0), (9, 9)])  # its edge from the first to the second touches
    assert ct.relate(circle, slanted) is relation_of_circle(circle, slanted)
    ring = shapely.Polygon(shapely.box(-9, -9, 9, 9).exterior.coords, [shapely.box(-5, -5, 5, 5).exterior.coords])
    assert ct.relate(circle, ring) is R.MEETS  # it lies in the hole
    assert ct.relate(circle, ct.Point(3, 4)) is R.MEETS
    assert ct.relate(circle, ct.Point(0, 0)) is R.CONTAINS
    assert ct.relate(ct.Point(0, 0), circle) is R.INSIDE
    assert ct.relate(circle, ct.Circle((10, 0), 5)) is R.MEETS
    assert ct.relate(circle, ct.Circle((3, 4), 10)) is R.COVERED_BY
    assert ct.relate(ct.Circle((3, 4), 10), circle) is R.COVERS
    assert ct.relate(circle, ct.Circle((3, 4), 5)) is R.OVERLAPS
    assert ct.relate(circle, ct.Circle((0, 0), 5)) is R.EQUALS
    assert ct.relate(circle, ct.Circle((0, 0), 5.5)) is R.INSIDE


def test_a_circle_without_radius_is_a_point():
    rng = np.random.default_rng(4)
    for shape in shapes(rng, 100):
        ours = ct.Point.from_shapely(shape) if shape.geom_type == "Point" else ct.Region.from_shapely(shape)
        x, y = rng.integers(0, 13, 2).tolist()
        point, circle = ct.Point(x, y), ct.Circle((x, y), 0)
        assert ct.relate(circle, ours) is ct.relate(point, ours)
        assert ct.within_distance(circle, ours, 2) == ct.within_distance(point, ours, 2)
        assert ct.relate(circle, ct.Circle((3, 3), 2)) is ct.relate(point, ct.Circle((3, 3), 2))


@pytest.mark.parametrize("scale", [1e-118, 1e-60, 1.0, 1e60, 1e117])
def test_magnitudes(scale):
    rng = np.random.default_rng(11)
    for _ in range(10):
        x, y = (rng.integers(-9, 10, 2) * scale).tolist()
        shape = shapely.Polygon([(0, 0), (4 * scale, 0), (4 * scale, 3 * scale), (0, scale)])
        radii = (0.0, 5e-324, 1e-300, 1e-160, 1e300, 1.7976931348623157e308)
        near, far = squares_to(ct.Circle((x, y), 0), shape)
        for radius in (*radii, *doubles_around_root(near), *doubles_around_root(far)):
            circle = ct.Circle((x, y), radius)
            assert ct.relate(circle, shape) is relation_of_circle(circle, shape), (circle, shape.wkt)
            for distance in (0.0, 1e-300, scale, 1e308):
                assert ct.within_distance(circle, shape, distance) == is_circle_within_distance(circle, shape, distance)


def test_the_sum_of_radius_and_distance_is_not_rounded():
    radius, distance = 1.0, 2.0**-60
    beyond = ct.Point(math.nextafter(1.0, 2.0), 0)
    assert not ct.within_distance(ct.Circle((0, 0), radius), beyond, distance)
    assert ct.within_distance(ct.Circle((0, 0), radius), beyond, 2.0**-52)
    tiny = ct.Circle((2.0**-60, 0), 1)
    assert ct.within_distance(tiny, ct.Point(1, 0), 0)
    assert not ct.within_distance(tiny, ct.Point(-1, 0), 0)
    assert ct.within_distance(tiny, ct.Point(-1, 0), distance)
    assert not ct.within_distance(tiny, ct.Point(-1, 0), math.nextafter(distance, 0))


def test_columns_and_large_regions():
    angles = np.linspace(0, 2 * np.pi, 700, endpoint=False)
    ring = np.column_stack([np.cos(angles), np.sin(angles)]) * 100
    disc = shapely.Polygon(ring)
    large = ct.Region.from_shapely(disc)
    for circle in (
        ct.Circle((0, 0), 99), ct.Circle((0, 0), 101), ct.Circle((150, 0), 50), ct.Circle((150, 0), 49.9),
        ct.Circle((150, 0), 51), *circles_near(np.random.default_rng(1), disc, 10),
    ):  # fmt: skip
        assert ct.relate(circle, large) is relation_of_circle(circle, disc), circle
    points = ct.PointArray([(0, 0), (3, 4), (6, 8)])
    assert [R(code) for code in ct.relate(ct.Circle((0, 0), 5), points)] == [R.CONTAINS, R.MEETS, R.DISJOINT]
    assert [R(code) for code in ct.relate(points, ct.Circle((0, 0), 5))] == [R.INSIDE, R.MEETS, R.DISJOINT]
    assert ct.within_distance(points, ct.Circle((0, 0), 5), [0, 0, 4.9]).tolist() == [True, True, False]
    regions = ct.RegionArray.from_regions([ct.Region.box(0, 0, 9, 1), ct.Region.box(9, 9, 10, 10)])
    assert [R(code) for code in ct.relate(ct.Circle((0, 0), 5), regions)] == [R.OVERLAPS, R.DISJOINT]


@pytest.mark.parametrize("bad", [-1, -5e-324, math.nan, math.inf, 10**400, 2**53 + 1])
def test_bad_radii_are_errors(bad):
    with pytest.raises(ct.RegionError, match="radius"):
        ct.Circle((0, 0), bad)


@pytest.mark.parametrize("bad", ["5", None, True, [1]])
def test_radii_that_are_no_numbers_are_errors(bad):
    with pytest.raises(ct.ArgumentError, match="radius: need a number"):
        ct.Circle((0, 0), bad)


def test_bad_centers_are_errors():
    with pytest.raises(ct.ArgumentError, match="need a center"):
        ct.Circle(5, 1)
    with pytest.raises(ct.RegionError, match="finite coordinates"):
        ct.Circle((math.nan, 0), 1)
    with pytest.raises(ct.CrsError):
        ct.Circle(ct.Point(0, 0, crs="EPSG:4326"), 1, crs="EPSG:3857")
    with pytest.raises(ct.CrsError):
        ct.relate(ct.Circle((0, 0), 1, crs="EPSG:4326"), ct.Point(0, 0, crs="EPSG:3857"))


def test_circles_are_values():
    circle = ct.Circle((1, 2.5), 3, crs="EPSG:25832")
    for other in (pickle.loads(pickle.dumps(circle)), copy.deepcopy(circle), ct.Circle(ct.Point(1, 2.5), 3.0)):
        assert other == circle
        assert hash(other) == hash(circle)
    assert pickle.loads(pickle.dumps(circle)).crs == "EPSG:25832"
    assert circle != ct.Circle((1, 2.5), 4)
    with pytest.raises(AttributeError):
        circle.radius = 4
    assert str(circle) == "CIRCLE(POINT(1 2.5), 3)"
    assert eval(repr(circle), {"Circle": ct.Circle, "Point": ct.Point}) == circle
    xmin, ymin, xmax, ymax = map(Fraction, ct.Circle((0.1, 0.2), 0.3).bounds)
    assert xmin <= Fraction(0.1) - Fraction(0.3)
    assert ymin <= Fraction(0.2) - Fraction(0.3)
    assert xmax >= Fraction(0.1) + Fraction(0.3)
    assert ymax >= Fraction(0.2) + Fraction(0.3)


@pytest.mark.parametrize("circle", [ct.Circle((1, 2), 0), ct.Circle((-1e-7, 1e20), 5e-324), ct.Circle((0, 0), 1e300)])
def test_every_form_reads_back(circle):
    assert ct.Circle.from_text(circle.to_text()) == circle
    assert ct.Circle.from_text(f"  circle ( point ( {circle.center.x!r}  {circle.center.y!r} ) ,{circle.radius!r} ) ")
    assert ct.Circle.from_geojson(circle.to_geojson()) == circle
    assert ct.Circle.from_wkb(circle.to_wkb()) == circle
    named = ct.Circle(circle.center, circle.radius, crs="EPSG:25832")
    assert ct.Circle.from_wkb(named.to_wkb(srid=True)).crs == "EPSG:25832"


def test_bad_forms_are_errors():
    for text in ("", "CIRCLE(POINT(1 2))", "CIRCLE(POINT(12), 3)", "CIRCLE(POINT(1 2), nan)", "POINT(1 2)"):
        with pytest.raises(ct.RegionError, match="need a circle such as"):
            ct.Circle.from_text(text)
    with pytest.raises(ct.RegionError, match="need a radius"):
        ct.Circle.from_geojson({"type": "Circle", "coordinates": [1, 2]})
    with pytest.raises(ct.RegionError, match=r"need coordinates \[x, y\]"):
        ct.Circle.from_geojson({"type": "Circle", "coordinates": [1], "radius": 2})
    with pytest.raises(ct.RegionError, match="radius"):
        ct.Circle.from_geojson({"type": "Circle", "coordinates": [1, 2], "radius": "2"})
    with pytest.raises(ct.RegionError, match="29 bytes of a circle"):
        ct.Circle.from_wkb(ct.Point(1, 2).to_wkb())


def test_two_circles_are_near_by_the_sum_of_three_numbers():
    rng = np.random.default_rng(2)
    for _ in range(200):
        a, b = (ct.Circle(tuple(rng.integers(0, 9, 2).tolist()), float(rng.integers(0, 5)) / 4) for _ in range(2))
        distance = float(rng.integers(0, 20)) / 4
        square = Fraction((a.center.x - b.center.x) ** 2 + (a.center.y - b.center.y) ** 2)
        assert ct.within_distance(a, b, distance) == (square <= Fraction(a.radius + b.radius + distance) ** 2)
        if (relation := ct.relate(a, b)) in ct.RelationSet.S_WITHIN and b.radius:
            assert is_circle_within_circle(a, b.center.x, b.center.y, b.radius)
        assert (relation is R.DISJOINT) == (not ct.within_distance(a, b, 0))


def test_predicates_of_circles():
    circle, box = ct.Circle((0, 0), 5), ct.Region.box(3, 4, 6, 6)
    assert ct.intersects(circle, box)
    assert ct.intersects(box, circle)
    assert not ct.disjoint(circle, box)
    assert ct.within(circle, ct.Region.box(-5, -5, 5, 5))
    assert ct.within(ct.Point(1, 1), circle)
    assert ct.disjoint(circle, ct.PointArray([(3, 4), (3, 5)])).tolist() == [False, True]
    for predicate in (ct.touches, ct.crosses, ct.overlaps, ct.contains, ct.covers, ct.covered_by, ct.equals, ct.de9im):
        with pytest.raises(ct.ArgumentError, match="this needs a polygon"):
            predicate(circle, box)
        with pytest.raises(ct.ArgumentError, match="this needs a polygon"):
            predicate(box, circle)
    assert ct.touches(circle.to_shapely(), ct.Region.box(5, -1, 6, 1))
