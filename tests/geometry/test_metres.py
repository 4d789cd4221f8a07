"""within_distance in metres against dense sampling with pyproj's Geod, on both sides of the distance."""

import numpy as np
import pytest
import shapely
from pyproj import Geod

import contrada as ct
from effort import COMPILED, examples
from generators.places import CENTRES, shape_at
from oracles.geodesic import metres_apart

NEXT_TO = 0.0015  # metres: answers are right where the true distance differs by more than 0.001
PAIRS = examples(12) if COMPILED else 1


def check(one, other):
    """Ask about two shapes next to their distance, in both orders."""
    distance = metres_apart(one, other)
    for first, second in ((one, other), (other, one)):
        asked = [max(0.0, distance - NEXT_TO), distance + NEXT_TO] if distance else [0.0]
        found = [ct.within_distance(first, second, d, "m") for d in asked]
        if distance > NEXT_TO:
            assert found == [False, True], (first.wkt, second.wkt, distance)
        else:
            assert found[-1], (first.wkt, second.wkt, distance)
    return distance


@pytest.mark.effort
@pytest.mark.parametrize("size", [1.0, 300.0, 20_000.0, 5_000_000.0])
@pytest.mark.parametrize("centre", CENTRES)
def test_shapes_next_to_their_distance(centre, size):
    rng = np.random.default_rng(5)
    seen = set()
    for _ in range(PAIRS):
        one, other = (shape_at(rng, centre, size) for _ in range(2))
        seen.add(check(one, other) > 0)
    assert True in seen or PAIRS < 5


@pytest.mark.jitless
def test_points_everywhere():
    rng = np.random.default_rng(6)
    n = 2000 if COMPILED else 100
    a, b = (np.column_stack([rng.uniform(-190, 190, n), np.degrees(np.arcsin(rng.uniform(-1, 1, n)))]) for _ in "ab")
    near = n // 2
    b[:near] = np.clip(a[:near] + rng.normal(0, 1, (near, 2)) * 10.0 ** rng.uniform(-6, 0, (near, 1)), -190, 190)
    b[:near, 1] = np.clip(b[:near, 1], -90, 90)
    opposite = slice(near, near + n // 4)
    b[opposite] = np.clip(-a[opposite] + [180, 0] + rng.normal(0, 0.3, (n // 4, 2)), [-540, -90], [540, 90])
    metres = Geod(ellps="WGS84").inv(a[:, 0], a[:, 1], b[:, 0], b[:, 1])[2]
    first, second = ct.PointArray(a), ct.PointArray(b)
    assert ct.within_distance(first, second, metres + 1e-6, "m").all()
    some = metres > 1e-5
    assert not ct.within_distance(first, second, np.maximum(metres - 1e-6, 0), "m")[some].any()


@pytest.mark.jitless
@pytest.mark.parametrize(
    ("one", "other", "metres"),
    [
        (ct.Point(179.999, 0), ct.Point(-179.999, 0), 222.639),
        (ct.Point(0, 89.999), ct.Point(180, 89.999), 223.388),
        (ct.Point(10, 90), ct.Point(-120, 90), 0.0),
        (ct.Point(-180, 5), ct.Point(180, 5), 0.0),
        (ct.Region.box(170, 0, 180, 10), ct.Region.box(-180, 5, -170, 15), 0.0),
        (ct.Region.box(170, 0, 190, 10), ct.Point(-175, 5), 0.0),
        (ct.Region.box(350, 0, 370, 10), ct.Point(5, 5), 0.0),
        (ct.Region.box(0, 80, 10, 90), ct.Point(185, 89), 111693.9),
        (ct.Point(0, 0), ct.Point(180, 0), 20003931.5),
    ],
)
def test_the_date_line_and_poles(one, other, metres):
    assert ct.within_distance(one, other, metres + 0.1, "m")
    assert metres == 0 or not ct.within_distance(one, other, metres - 0.1, "m")
    assert ct.within_distance(one, other, 0, "m") == (metres == 0)


def test_edges_are_straight_in_degrees():
    parallel = ct.Region([(0, 60), (60, 60), (30, 59)])
    above = ct.Point(30, 60.5)  # of the geodesic from (0, 60) to (60, 60), it lies south
    assert not ct.within_distance(parallel, above, 55_700, "m")
    assert ct.within_distance(parallel, above, 55_720, "m")


def test_large_regions_take_their_edge_index():
    angles = np.linspace(0, 2 * np.pi, 2000, endpoint=False)
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    discs = [shapely.Polygon(ring * [3, 2] + centre) for centre in ((179, 70), (-174, 70), (90, 87.5), (-80, 86))]
    for one in discs:
        for other in (*discs, shapely.Point(-179.5, 75)):
            if one is other:
                assert ct.within_distance(one, other, 0, "m")
                continue
            distance = coarse(one, other)
            assert ct.within_distance(one, other, distance + 60, "m")
            assert not ct.within_distance(one, other, distance - 60, "m")


def coarse(one, other):
    """Return the least metres between vertices, which lie close together."""
    a, b = (shapely.get_coordinates(shape) for shape in (one, other))
    i, j = np.unravel_index(np.argmin(((axes(a)[:, None] - axes(b)) ** 2).sum(axis=2)), (len(a), len(b)))
    return Geod(ellps="WGS84").inv(*a[i], *b[j])[2]


def axes(xy):
    """Return points of longitude and latitude on a sphere."""
    x, y = np.radians(xy).T
    return np.column_stack([np.cos(y) * np.cos(x), np.cos(y) * np.sin(x), np.sin(y)])


@pytest.mark.jitless
def test_smaller_distances_imply_larger_ones_to_the_last_bit():
    rng = np.random.default_rng(8)
    one, other = (ct.Region.from_shapely(shape_at(rng, (10, 60), 300.0, "Polygon")) for _ in range(2))
    low, high = 0.0, 1e7
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if ct.within_distance(one, other, middle, "m") else (middle, high)
    asked = np.sort(high + rng.uniform(-0.001, 0.001, 40))
    asked = asked[asked >= 0]
    found = ct.within_distance(one, other, asked, "m")
    assert (np.diff(found.astype(int)) >= 0).all()


@pytest.mark.jitless
def test_errors_name_units_systems_and_rows():
    here = ct.Point(0, 0)
    with pytest.raises(ct.ArgumentError, match=r"unit: need 'm'.*got 'km'"):
        ct.within_distance(here, here, 5, "km")
    with pytest.raises(ct.CrsError, match=r"metres need longitude and latitude in degrees, not EPSG:25832"):
        ct.within_distance(here, ct.Point(0, 0, crs="EPSG:25832"), 5, "m")
    with pytest.raises(ct.ArgumentError, match=r"in row 1 got POINT \(0 91\)"):
        ct.within_distance(ct.PointArray([(0, 0), (0, 91)]), here, 5, "m")
    with pytest.raises(ct.ArgumentError, match=r"got POINT \(600 0\)"):
        ct.within_distance(ct.Point(600, 0), here, 5, "m")
    with pytest.raises(ct.ArgumentError, match="take no circles"):
        ct.within_distance(ct.Circle(here, 5), here, 5, "m")
    assert ct.within_distance(ct.Point(0, 0, crs="EPSG:4326"), ct.Point(0, 0, crs="OGC:CRS84"), 0, "m")
