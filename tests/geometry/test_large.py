"""Regions of a hundred thousand vertices relate as Shapely says, in time near n log n."""

import time

import numpy as np
import pytest
import shapely

import contrada as ct
from generators.families.curves import comb_outlines, spiral_path
from generators.families.large import coastline_radii, coastlines, outline
from oracles.relations import INVERSE, NAMES, shapely_codes

VERTICES = 100_000
TEETH = VERTICES // 4
CORNERS = 4000


def coastline(seed, vertices=VERTICES, factor=1.0, shift=(0.0, 0.0)):
    angle, radius = coastline_radii(np.random.default_rng(seed), 1, vertices)
    return shapely.Polygon((outline(angle, radius * factor) + shift)[0])


def comb(start=0, width=8, height=24.0, base=(0, 8)):
    heights = np.full((1, TEETH), height)
    (ring,) = comb_outlines(np.array([[start]]), np.array([[width]]), heights, np.array([base]))
    return shapely.Polygon(ring)


def spiral(right=-4, left=4, skip=2, corners=CORNERS):
    """The strip between two curves parallel to a square spiral, from its corner number skip on."""
    path, normals = spiral_path(corners)
    side = np.concatenate([normals[skip : skip + 1], normals[skip:-1] + normals[skip + 1 :], normals[-1:]])
    middle = path[skip:]
    return shapely.Polygon(np.concatenate([middle + right * side, (middle + left * side)[::-1]]))


def test_coastlines_that_share_stretches():
    a, b = coastlines(np.random.default_rng(4), 24, 20_000)
    good = shapely.is_valid(a) & shapely.is_valid(b)
    expected = shapely_codes(a[good], b[good]).tolist()
    assert len(set(expected)) >= 6
    assert ct.relate(*(ct.RegionArray.from_shapely(side[good]) for side in (a, b))).tolist() == expected


def interlocked(start, width):
    """A comb from above, its teeth in the gaps of the one below, over its tips if they are narrow."""
    upper = comb(start=start, width=width, height=23.0)
    lift = 24.0 if width in (7, 8) else 25.0
    return shapely.transform(upper, lambda xy: np.stack([xy[:, 0], lift - xy[:, 1]], axis=-1))


def spikes(factor=1.0):
    """Edges that all run towards the centre: the box of each meets those of hundreds of others."""
    angle = np.arange(8_000) * (2 * np.pi / 8_000)
    return shapely.Polygon(outline(angle, np.where(np.arange(8_000) % 2, factor, 0.8 * factor)))


def dented(coast):
    """The region with one vertex pulled halfway to the centre."""
    ring = shapely.get_coordinates(coast)[:-1]
    ring[1] *= 0.5
    return shapely.Polygon(ring)


def sea_around(coast):
    """A square with a hole in the shape of a coast."""
    return shapely.Polygon(shapely.box(-9, -9, 9, 9).exterior, [coast.exterior])


RELATED = [
    (lambda: coastline(1), lambda: coastline(1), "equals"),
    (lambda: coastline(1), lambda: coastline(1, factor=0.5), "contains"),
    (lambda: coastline(1), lambda: coastline(1, factor=1.5), "inside"),
    (lambda: coastline(1), lambda: coastline(1, shift=(0.01, 0.02)), "overlaps"),
    (lambda: coastline(1), lambda: coastline(1, shift=(40.0, 0.0)), "disjoint"),
    (lambda: coastline(1), lambda: coastline(2), "overlaps"),
    (lambda: coastline(1), lambda: coastline(1, vertices=500), "overlaps"),
    (lambda: coastline(1), lambda: shapely.box(-0.1, -0.1, 0.1, 0.1), "contains"),
    (lambda: coastline(1), lambda: shapely.box(-9, -9, 9, 9), "inside"),
    (lambda: coastline(1), lambda: coastline(1).envelope, "covered-by"),
    (lambda: coastline(3), lambda: sea_around(coastline(3)), "meets"),
    (lambda: coastline(3, factor=0.99), lambda: sea_around(coastline(3)), "disjoint"),
    (spikes, spikes, "equals"),
    (spikes, lambda: spikes(0.999), "contains"),
    (spikes, lambda: sea_around(spikes()), "meets"),
    (comb, comb, "equals"),
    (comb, lambda: comb(height=20.0), "covers"),
    (comb, lambda: comb(start=2, width=4, height=22.0, base=(-2, 6)), "contains"),
    (comb, lambda: comb(start=4), "overlaps"),
    (comb, lambda: shapely.affinity.translate(comb(start=8), yoff=8.0 + 24.0), "meets"),
    (comb, lambda: interlocked(8, 8), "meets"),  # fills all gaps
    (comb, lambda: interlocked(10, 4), "disjoint"),  # reaches into all gaps
    (comb, lambda: interlocked(10, 6), "meets"),
    (comb, lambda: interlocked(10, 7), "overlaps"),
    (spiral, spiral, "equals"),
    (spiral, lambda: spiral(corners=CORNERS - 8), "covers"),
    (spiral, lambda: spiral(-2, 2, skip=4, corners=CORNERS - 8), "contains"),
    (spiral, lambda: spiral(-12, -4, skip=4), "meets"),  # fills the gap between the arms
    (spiral, lambda: spiral(-10, -6, skip=4), "disjoint"),  # winds in the gap
    (spiral, lambda: spiral(-10, 0, skip=4), "overlaps"),
]


@pytest.mark.parametrize(("one", "other", "relation"), RELATED)
def test_large_regions_are_related_as_shapely_says(one, other, relation):
    shapes = np.array([one(), other()], dtype=object)
    regions = ct.RegionArray.from_shapely(shapes)
    assert NAMES[shapely_codes(shapes[:1], shapes[1:])[0]] == relation
    assert NAMES[ct.relate(regions[0], regions[1])] == relation
    assert NAMES[INVERSE[ct.relate(regions[1], regions[0])]] == relation


@pytest.mark.slow
@pytest.mark.parametrize(
    ("other", "relation"),
    [
        (lambda vertices: coastline(6, vertices), "overlaps"),
        (lambda vertices: coastline(5, vertices, 0.999), "contains"),
        (lambda vertices: dented(coastline(5, vertices)), "covers"),
        (lambda vertices: sea_around(coastline(5, vertices)), "meets"),
        (lambda vertices: sea_around(coastline(5, vertices, 1.001)), "disjoint"),
    ],
)
def test_time_grows_little_faster_than_the_regions(other, relation):
    """Eight times the vertices may take twenty-four times the time of the processor, not sixty-four; best of five."""
    times = []
    for vertices in (25_000, 200_000):
        shapes, best = np.array([coastline(5, vertices), other(vertices)], dtype=object), np.inf
        for _ in range(3):
            regions = ct.RegionArray.from_shapely(shapes)
            start = time.perf_counter()
            code = ct.relate(regions[0], regions[1])
            best = min(best, time.perf_counter() - start)
            assert NAMES[code] == relation
        times.append(best)
    assert times[1] < 24 * max(times[0], 1e-3)
