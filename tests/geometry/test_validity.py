"""Validation agrees with Shapely and the rationals on regions that are wrong in every way, and says where."""

import re

import numpy as np
import pytest
import shapely
from hypothesis import given

import contrada as ct
from generators.families import family
from generators.messy import KINDS, disturbed, messy_regions
from generators.strategies import any_polygons
from oracles.relations import judge_validity, wkt

COUNT = 700  # of each kind

# What is wrong, and where: part, ring and place.
FAULTS = {
    "POLYGON((0 0, 4 4, 4 0, 0 4, 0 0))": "self-intersection near (2.0, 2.0)",
    "MULTIPOLYGON(((9 9, 10 9, 9 10, 9 9)), ((0 0, 4 4, 4 0, 0 4, 0 0)))": "part 1: self-intersection near (2.0, 2.0)",
    "POLYGON((-9 -9, 9 -9, 9 9, -9 9, -9 -9), (7 7, 8 7, 7 8, 7 7), (0 0, 4 4, 4 0, 0 4, 0 0))":
        "hole 2: self-intersection near (2.0, 2.0)",
    "POLYGON((0 0, 4 0, 2 0, 2 2, 0 0))": "self-intersection near (4.0, 0.0)",
    "POLYGON((0 0, 4 0, 4 4, 4 8, 4 4, 0 4, 0 0))": "self-intersection near (4.0, 4.0)",  # a spike
    "POLYGON((0 0, 4 0, 4 4, 2 4, 2 1, 2 4, 0 4, 0 0))": "self-intersection near (2.0, 4.0)",
    "POLYGON((0 0, 4 0, 2 2, 4 4, 0 4, 2 2, 0 0))": "self-intersection near (2.0, 2.0)",  # touches itself
    "POLYGON((0 0, 8 0, 8 8, 4 0, 0 8, 0 0))": "self-intersection near (4.0, 0.0)",
    "POLYGON((0 0, 1 1, 2 2, 0 0))": "zero area near (0.0, 0.0)",
    "POLYGON((0 0, 1 1, 0 0, 1 1, 0 0))": "zero area near (0.0, 0.0)",
    "POLYGON((0 0, 2 2, 0 0, 0 0))": "fewer than three distinct vertices near (0.0, 0.0)",
    "POLYGON((3 3, 3 3, 3 3, 3 3))": "fewer than three distinct vertices near (3.0, 3.0)",
    "POLYGON((0 0, 4 0, 4 4, 0 0), (9 9, 9 8, 8 8, 9 9))": "hole 1: outside its shell near (9.0, 9.0)",
    "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 7 1, 1 3, 1 1))":
        "hole 1: crosses or shares an edge with its shell near (4.0, 1.0)",
    "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (0 1, 2 1, 2 3, 0 3, 0 1))":
        "hole 1: crosses or shares an edge with its shell near (0.0, 3.0)",
    "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (0 0, 4 0, 4 4, 0 4, 0 0))":
        "hole 1: crosses or shares an edge with its shell near (0.0, 0.0)",
    "POLYGON((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 8 1, 8 8, 1 8, 1 1), (3 3, 4 3, 3 4, 3 3))":
        "hole 2: overlaps or shares an edge with another hole near (3.0, 3.0)",
    "POLYGON((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 4 1, 4 4, 1 1), (3 2, 5 1, 5 4, 3 2))":
        "hole 2: overlaps or shares an edge with another hole near (4.0, 1.5)",
    "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (0 0, 4 4, 1 2, 0 0))": "interior is not connected near (4.0, 4.0)",
    "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (0 2, 2 1, 2 3, 0 2), (2 2, 4 2, 3 3, 2 2))":  # a chain of holes
        "interior is not connected near (2.0, 2.0)",
    "POLYGON((0 0, 9 0, 9 9, 0 9, 0 0),(2 2, 6 2, 4 3, 2 2), (6 2, 6 6, 5 4, 6 2), (6 6, 2 2, 4 5, 6 6))":
        "interior is not connected near (6.0, 6.0)",
    "MULTIPOLYGON(((0 0, 4 0, 4 4, 0 4, 0 0)), ((2 2, 6 2, 6 6, 2 6, 2 2)))":
        "part 1: overlaps another part near (4.0, 2.0)",
    "MULTIPOLYGON(((0 0, 4 0, 4 4, 0 4, 0 0)), ((1 1, 2 1, 2 2, 1 1)))":
        "part 1: overlaps another part near (1.0, 1.0)",
    "MULTIPOLYGON(((0 0, 4 0, 4 4, 0 4, 0 0)), ((0 0, 4 0, 4 4, 0 4, 0 0)))":
        "part 1: overlaps another part near (0.0, 0.0)",
    "MULTIPOLYGON(((0 0, 4 0, 4 4, 0 4, 0 0)), ((4 1, 6 1, 6 3, 4 3, 4 1)))":
        "part 1: shares an edge with another part near (4.0, 3.0)",
    "MULTIPOLYGON(((0 0, 4 0, 4 4, 0 0)), ((9 9, 8 9, 8 8, 9 9), (0 0, 1 0, 1 1, 0 0)))":
        "part 1, hole 1: outside its shell near (0.0, 0.0)",
}  # fmt: skip


def sift(shapes):
    return ct.read_regions(np.asarray(shapes, dtype=object))


def assert_judged_right(shapes):
    """Every region is accepted or rejected as Shapely says, or if the two differ, as the rationals say."""
    sifted = sift(shapes)
    accepted = np.zeros(len(shapes), bool)
    accepted[sifted.rows] = True
    rejected = {rejection.row: rejection for rejection in sifted.rejected}
    assert set(rejected) == set(np.flatnonzero(~accepted).tolist())
    assert len(sifted.regions) == accepted.sum()
    for row in np.flatnonzero(accepted != shapely.is_valid(shapes)):
        fault = judge_validity(shapes[row])
        assert accepted[row] == (fault is None), f"{wkt(shapes[row])}: {fault}; {rejected.get(row)}"
    for row, rejection in rejected.items():
        assert_place_exists(shapes[row], rejection)
    return accepted


def assert_place_exists(shape, rejection):
    assert rejection.reason
    parts = shapely.get_parts(shape)
    assert rejection.part is None or 0 <= rejection.part < len(parts)
    if rejection.ring is not None:
        assert rejection.part is not None
        assert 0 <= rejection.ring <= len(parts[rejection.part].interiors)
    if rejection.place is not None:
        xy = shapely.get_coordinates(shape)  # of the holes too, which may lie outside the shell
        assert (xy.min(axis=0) <= rejection.place).all()
        assert (rejection.place <= xy.max(axis=0)).all()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_messy_regions_are_judged_right(kind):
    rng = np.random.default_rng(1)
    shapes = np.array([kind(rng) for _ in range(COUNT)], dtype=object)
    accepted = assert_judged_right(shapes)
    assert 0.02 * COUNT < accepted.sum() < 0.98 * COUNT


@pytest.mark.parametrize("scale", [1e-119, 1e-100, 1e-9, 0.1, 1e6, 1e100])
def test_scaled_messy_regions_are_judged_right(scale):
    shapes = shapely.transform(messy_regions(np.random.default_rng(3), 700), lambda xy: xy * scale)
    assert_judged_right(shapes)


def test_rotated_messy_regions_are_judged_right():
    """Contacts within edges become near misses or crossings: only the rationals know which."""
    turn = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    shapes = shapely.transform(messy_regions(np.random.default_rng(4), 1400), lambda xy: xy @ turn.T)
    accepted = assert_judged_right(shapes)
    assert accepted.any()
    for row in np.random.default_rng(4).permutation(len(shapes))[:300]:
        assert accepted[row] == (judge_validity(shapes[row]) is None), wkt(shapes[row])


@pytest.mark.parametrize("name", ["hundreds", "nested parts", "fans", "holes at edges", "spirals", "combs"])
def test_regions_with_one_fault_are_judged_right(name):
    rng = np.random.default_rng(8)
    a, b = family(name).pairs(rng, 300)
    accepted = assert_judged_right(disturbed(rng, np.concatenate([a, b])))
    assert accepted.any()
    assert not accepted.all()


def test_a_fold_is_found_at_every_vertex_of_a_ring_that_is_no_star():
    """Rings that begin at each vertex, in both directions: the first and the last edge are neighbours too."""
    corners = [(0, 0), (6, 1), (6, 3), (2, 2), (1, 5), (3, 6), (2, 8), (-1, 7)]
    shapes = []
    for k, (x, y) in enumerate(corners):
        (px, py), (qx, qy) = corners[k - 1], corners[(k + 1) % len(corners)]
        back = ((3 * x + px) / 4, (3 * y + py) / 4)  # on the edge before the corner
        beyond = (x + (x - qx) / 8, y + (y - qy) / 8)  # behind the corner, on the line of the edge after it
        for ring in (corners, [*corners[: k + 1], back, *corners[k + 1 :]], [*corners[:k], beyond, *corners[k:]]):
            for turn in range(len(ring)):
                turned = [*ring[turn:], *ring[:turn]]
                shapes += [shapely.Polygon(turned), shapely.Polygon(turned[::-1])]
    assert_judged_right(np.array(shapes, dtype=object))
    assert 0 < len(sift(shapes).regions) < len(shapes)


@given(any_polygons())
def test_any_polygon_is_judged_right(shape):
    assert_judged_right(np.array([shape], dtype=object))


@pytest.mark.jitless
@pytest.mark.parametrize("text", FAULTS)
def test_errors_name_part_ring_and_place_and_columns_name_the_row_too(text):
    good, bad, reason = shapely.box(0, 0, 1, 1), shapely.from_wkt(text), FAULTS[text]
    assert judge_validity(bad) is not None
    shapes = np.array([good, good, bad, good], dtype=object)
    sifted = sift(shapes)
    assert sifted.rows.tolist() == [0, 1, 3]
    with pytest.raises(ct.RegionError) as alone:
        ct.Region.from_wkt(text)
    with pytest.raises(ct.RegionError, match="row 2") as in_column:
        ct.RegionArray.from_shapely(shapes)
    (rejection,) = sifted.rejected
    assert rejection.row == in_column.value.row == 2
    assert str(alone.value) == rejection.reason.split(";")[0] == reason
    part, ring = (re.search(rf"{name} (\d)", f"{reason}, {name} 0") for name in ("part", "hole"))
    for fault in (rejection, alone.value):
        assert (fault.part, fault.ring) == (int(part[1]), int(ring[1]))
    x, y = alone.value.place
    assert reason.endswith(f"near ({x!r}, {y!r})")


def test_scaling_moves_the_place_along():
    for scale in (1e-100, 1e-9, 1e6, 1e100):
        ring = np.array([(0, 0), (4, 4), (4, 0), (0, 4)]) * scale
        with pytest.raises(ct.RegionError) as caught:
            ct.Region(ring)
        assert np.array(caught.value.place) == pytest.approx([2 * scale, 2 * scale], abs=1e-9 * scale)
