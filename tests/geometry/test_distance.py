"""within_distance against rational arithmetic, at the distance itself and next to it, in every magnitude."""

import numpy as np
import pytest
import shapely

import contrada as ct
from effort import COMPILED, examples
from oracles.distance import doubles_around_root, is_within, square_of_distance
from verification.distances import KINDS, NAMES, check, shapes_of

PAIRS = examples(30) if COMPILED else 4


@pytest.mark.effort
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_every_pair_of_the_family_is_measured_exactly(name, kind):
    rng = np.random.default_rng(7)
    tally = check(*shapes_of(name, kind, rng, PAIRS), rng)
    assert tally.wrong == []
    assert tally.asked >= PAIRS


# Squares of the largest distances are infinite, as the kernel expects; only interpreted code warns of it.
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.jitless
@pytest.mark.parametrize("scale", [1e-118, 1e-60, 1.0, 1e60, 1e117])
def test_magnitudes(scale):
    rng = np.random.default_rng(11)
    for _ in range(20):
        a, b, c, d = rng.integers(-9, 10, (4, 2)) * scale
        if (a == b).all():
            continue
        shape, spot = shapely.Polygon([a, b, b + scale, a + 2 * scale]), shapely.Point(*(c + d * 1e-3))
        if not shape.is_valid or not ct.read_regions(np.array([shape])).rows.size:
            continue
        square = square_of_distance(shape, spot)
        for distance in (*doubles_around_root(square), 0.0, 1e300, 1e-300, 1.7976931348623157e308):
            assert ct.within_distance(shape, spot, distance) == is_within(square, distance)


@pytest.mark.jitless
def test_columns_and_distances_broadcast():
    points = ct.PointArray([(0, 0), (3, 4), (6, 8)])
    assert ct.within_distance(points, ct.Point(0, 0), 5).tolist() == [True, True, False]
    assert ct.within_distance(ct.Point(0, 0), points, [0, 5, 9.99]).tolist() == [True, True, False]
    assert ct.within_distance(ct.Point(0, 0), ct.Point(3, 4), [4, 5]).tolist() == [False, True]
    with pytest.raises(ct.ArgumentError, match="3, 3 and 2 rows"):
        ct.within_distance(points, points, [1, 2])
    with pytest.raises(ct.ArgumentError, match="in row 1: need a finite number"):
        ct.within_distance(points, points, [1, -2, 3])
    with pytest.raises(ct.CrsError):
        ct.within_distance(ct.Point(0, 0, crs="EPSG:4326"), ct.Point(0, 0, crs="EPSG:3857"), 1)


def test_large_regions_take_their_edge_index():
    angles = np.linspace(0, 2 * np.pi, 3000, endpoint=False)
    ring = np.column_stack([np.cos(angles), np.sin(angles)]) * 100
    disc, other = shapely.Polygon(ring), shapely.Polygon(ring + np.array([250, 0]))
    ours = ct.Region.from_shapely(disc), ct.Region.from_shapely(other)
    inner = ct.Region.from_shapely(shapely.Polygon(shapely.box(-300, -300, 300, 300).exterior.coords, [ring * 1.5]))
    assert not ct.within_distance(*ours, 50.0), "the sine of pi is not 0 as a double: the corners are not level"
    assert ct.within_distance(*ours, 50.000001)
    assert not ct.within_distance(*ours, 49.999)
    assert ct.within_distance(inner, ours[0], 50.001)
    assert not ct.within_distance(inner, ours[0], 49.9)
    assert ct.within_distance(ct.Point(130, 0), ours[0], 30)
    assert not ct.within_distance(ct.Point(130, 0), ours[0], 29.999)
    assert ct.within_distance(ct.Point(0, 0), ours[0], 0)
