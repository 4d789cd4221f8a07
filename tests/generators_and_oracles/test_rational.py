"""The judge itself: cases decided by hand, cases decided by cells, and the known errors of others."""

from fractions import Fraction

import numpy as np
import pytest
import shapely

from generators.families.mosaic import Mosaic, partner_masks
from generators.messy import messy_regions
from generators.rings import polygons
from oracles import rational
from oracles.rational import CONTAINS, COVERED_BY, COVERS, DISJOINT, EQUALS, INSIDE, MEETS, OVERLAPS
from oracles.relations import INVERSE, NAMES, judge, judge_validity, matrix_code

SQUARE = "POLYGON((0 0, 10 0, 10 10, 0 10, 0 0))"
RING = "POLYGON((0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 8 2, 8 8, 2 8, 2 2))"
ISLAND = "MULTIPOLYGON(((0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 8 2, 8 8, 2 8, 2 2)), ((4 4, 6 4, 6 6, 4 6, 4 4)))"
TWO = "MULTIPOLYGON(((0 0, 2 0, 2 2, 0 2, 0 0)), ((5 0, 7 0, 7 2, 5 2, 5 0)))"
CORNERS = "MULTIPOLYGON(((0 0, 2 0, 2 2, 0 2, 0 0)), ((2 2, 4 2, 4 4, 2 4, 2 2)))"

FORK = "POLYGON((0 0, 10 0, 10 10, 6 10, 6 4, 4 4, 4 10, 0 10, 0 0))"

CASES = [
    # simple polygons
    (SQUARE, "POLYGON((20 0, 30 0, 30 10, 20 10, 20 0))", DISJOINT),
    (SQUARE, "POLYGON((10 5, 20 5, 20 15, 10 15, 10 5))", MEETS),  # along a piece of an edge
    (SQUARE, "POLYGON((10 10, 20 10, 20 20, 10 20, 10 10))", MEETS),  # at a vertex
    (SQUARE, "POLYGON((10 5, 20 0, 20 10, 10 5))", MEETS),  # a vertex within an edge
    (SQUARE, "POLYGON((5 5, 15 5, 15 15, 5 15, 5 5))", OVERLAPS),
    (SQUARE, "POLYGON((0 0, 10 0, 5 20, 0 0))", OVERLAPS),  # crossing at no vertex but two
    (SQUARE, "POLYGON((-4 5, 5 -4, 14 5, 5 14, -4 5))", OVERLAPS),  # eight crossings, no vertex in the other
    (SQUARE, "POLYGON((-5 5, 5 -5, 15 5, 5 15, -5 5))", COVERED_BY),  # corners on edges
    (SQUARE, "POLYGON((10 0, 10 5, 10 10, 0 10, 0 0, 10 0))", EQUALS),
    (SQUARE, "POLYGON((-1 -1, 11 -1, 11 11, -1 11, -1 -1))", INSIDE),
    (SQUARE, "POLYGON((0 0, 11 0, 11 11, 0 11, 0 0))", COVERED_BY),
    (SQUARE, "POLYGON((0 5, 5 0, 10 5, 5 10, 0 5))", COVERS),
    # holes
    (RING, "POLYGON((3 3, 7 3, 7 7, 3 7, 3 3))", DISJOINT),
    (RING, "POLYGON((2 2, 8 2, 8 8, 2 8, 2 2))", MEETS),  # fills the hole
    (RING, "POLYGON((2 2, 5 3, 3 5, 2 2))", MEETS),  # at a vertex of the hole
    (RING, "POLYGON((3 3, 9 3, 9 7, 3 7, 3 3))", OVERLAPS),
    (RING, "POLYGON((1 1, 9 1, 9 9, 1 9, 1 1))", OVERLAPS),
    (RING, SQUARE, COVERED_BY),
    (RING, "POLYGON((-1 -1, 11 -1, 11 11, -1 11, -1 -1))", INSIDE),
    (RING, "POLYGON((-1 -1, 11 -1, 11 11, -1 11, -1 -1), (3 3, 7 3, 7 7, 3 7, 3 3))", INSIDE),
    (RING, "POLYGON((-1 -1, 11 -1, 11 11, -1 11, -1 -1), (2 2, 8 2, 8 8, 2 8, 2 2))", COVERED_BY),
    (RING, "POLYGON((-1 -1, 11 -1, 11 11, -1 11, -1 -1), (1 1, 7 1, 7 7, 1 7, 1 1))", OVERLAPS),
    (RING, "POLYGON((0.5 0.5, 1.5 0.5, 1.5 1.5, 0.5 1.5, 0.5 0.5))", CONTAINS),
    (RING, "POLYGON((0.5 0.5, 9.5 0.5, 9.5 9.5, 0.5 9.5, 0.5 0.5), (1 1, 9 1, 9 9, 1 9, 1 1))", CONTAINS),
    (RING, "POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))", COVERS),
    (RING, "POLYGON((2 2, 2 8, 8 8, 8 2, 2 2), (4 4, 6 4, 6 6, 4 6, 4 4))", MEETS),
    # parts
    (ISLAND, "POLYGON((2 2, 8 2, 8 8, 2 8, 2 2), (4 4, 4 6, 6 6, 6 4, 4 4))", MEETS),  # the gap
    (ISLAND, "POLYGON((2.5 2.5, 7 2.5, 7 3, 2.5 3, 2.5 2.5))", DISJOINT),
    (ISLAND, SQUARE, COVERED_BY),
    (ISLAND, RING, COVERS),
    (ISLAND, "POLYGON((4 4, 6 4, 6 6, 4 6, 4 4))", COVERS),
    (ISLAND, "POLYGON((4.5 4.5, 5 4.5, 5 5, 4.5 5, 4.5 4.5))", CONTAINS),
    (TWO, "POLYGON((2 0, 5 0, 5 2, 2 2, 2 0))", MEETS),
    (TWO, "POLYGON((3 0, 4 0, 4 2, 3 2, 3 0))", DISJOINT),
    (TWO, "POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))", COVERS),
    (TWO, "POLYGON((0 0, 7 0, 7 2, 0 2, 0 0))", COVERED_BY),
    (TWO, "MULTIPOLYGON(((5 0, 7 0, 7 2, 5 2, 5 0)), ((0 2, 0 0, 2 0, 2 2, 0 2)))", EQUALS),
    (TWO, "MULTIPOLYGON(((0 0, 2 0, 2 2, 0 2, 0 0)), ((5 5, 7 5, 7 7, 5 7, 5 5)))", OVERLAPS),
    (CORNERS, "MULTIPOLYGON(((2 0, 4 0, 4 2, 2 2, 2 0)), ((0 2, 2 2, 2 4, 0 4, 0 2)))", MEETS),
    (CORNERS, "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))", COVERED_BY),
    (CORNERS, "POLYGON((1 1, 3 1, 3 3, 1 3, 1 1))", OVERLAPS),
]

ERRATA = [
    # Table 2 of [SPATIAL]: covered-by, though the box of a lies inside the box of b.
    ("POLYGON((2 1, 8 1, 8 2, 5 4, 2 2, 2 1))", FORK, COVERED_BY),
    # Section 4.2: covered-by A and disjoint from B, though A overlaps B.
    ("POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))", "POLYGON((2 0, 6 0, 6 4, 2 4, 2 0))", OVERLAPS),
    ("POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))", "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))", COVERED_BY),
    ("POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))", "POLYGON((2 0, 6 0, 6 4, 2 4, 2 0))", DISJOINT),
    # Algorithm 1, discretised, answers contains, disjoint, covers or meets, by where the ring starts.
    (SQUARE, "POLYGON((5 5.5, 40 5.3, 40 5.7, 5 5.5))", OVERLAPS),
    (SQUARE, "POLYGON((40 5.3, 40 5.7, 5 5.5, 40 5.3))", OVERLAPS),
    # Algorithm 1 says equals even with exact intersections.
    ("POLYGON((2 2, 8 2, 8 8, 2 8, 2 2))", RING, MEETS),
]

# A hole touches its shell within an edge that the other polygon shares: GEOS 3.14 says overlaps.
GEOS_ERROR = ("POLYGON((0 0, 0 10, 10 10, 10 0, 0 0), (5 5, 10 5, 5 6, 5 5))", SQUARE, COVERED_BY)


def read(text):
    return polygons(shapely.from_wkt(text))


@pytest.mark.parametrize(("a", "b", "relation"), [*CASES, *ERRATA, GEOS_ERROR])
def test_relation_decided_by_hand(a, b, relation):
    assert NAMES[rational.relate_rational(read(a), read(b))] == NAMES[relation]
    assert NAMES[rational.relate_rational(read(b), read(a))] == NAMES[INVERSE[relation]]
    if (a, b, relation) != GEOS_ERROR:
        assert matrix_code(shapely.relate(shapely.from_wkt(a), shapely.from_wkt(b))) == relation


def test_the_cases_show_all_eight():
    assert {relation for _, _, relation in CASES} == set(range(8))


def test_nothing_is_rounded():
    left = [([(0, 0), (0.3, 0), (0.3, 1), (0, 1)], [])]
    at = [([(0.3, 0), (1, 0), (1, 1), (0.3, 1)], [])]
    beyond = [([(0.1 + 0.2, 0), (1, 0), (1, 1), (0.1 + 0.2, 1)], [])]
    assert rational.relate_rational(left, at) == MEETS
    assert rational.relate_rational(left, beyond) == DISJOINT
    third = [([(0, 0), (Fraction(1, 3), 0), (0, 1)], [])]
    assert rational.relate_rational(third, [([(0, 0), (1 / 3, 0), (0, 1)], [])]) == COVERS  # 1 / 3 is rounded down
    tiny = [([(0, 0), (1e-100, 0), (0, 1e-100)], [])]
    huge = [([(-1e100, -1e100), (1e100, -1e100), (0, 1e100)], [])]
    assert rational.relate_rational(tiny, huge) == INSIDE
    assert rational.relate_rational(tiny, left) == COVERED_BY


def test_a_nearly_collinear_vertex_counts():
    line = [([(0, 0), (3, 1), (0, 1)], [])]
    above = [([(0, 0), (3, -1), (3, 1), (1.5, np.nextafter(0.5, 1))], [])]
    below = [([(0, 0), (3, -1), (3, 1), (1.5, np.nextafter(0.5, 0))], [])]
    assert rational.relate_rational(line, above) == OVERLAPS
    assert rational.relate_rational(line, below) == MEETS


@pytest.mark.parametrize(
    ("point", "region", "relation"),
    [
        ((5, 5), SQUARE, INSIDE),
        ((10, 5), SQUARE, MEETS),
        ((10, 10), SQUARE, MEETS),
        ((11, 5), SQUARE, DISJOINT),
        ((5, 10.000000000000002), SQUARE, DISJOINT),
        ((5, 5), RING, DISJOINT),
        ((2, 5), RING, MEETS),
        ((1, 5), RING, INSIDE),
        ((5, 5), ISLAND, INSIDE),
        ((3, 3), ISLAND, DISJOINT),
        ((2, 2), CORNERS, MEETS),
        ((3, 1), CORNERS, DISJOINT),
        ((3, 2), TWO, DISJOINT),
    ],
)
def test_point_decided_by_hand(point, region, relation):
    assert NAMES[rational.point_rational(point, read(region))] == NAMES[relation]


VALID = [
    SQUARE,
    RING,
    ISLAND,
    TWO,
    CORNERS,
    GEOS_ERROR[0],
    "POLYGON((0 0, 5 0, 5 0, 10 0, 10 10, 0 10, 0 0))",  # a vertex twice, a vertex in a straight edge
    "POLYGON((0 0, 10 0, 10 10, 0 10, 0 0), (0 0, 5 2, 2 5, 0 0))",  # hole at a vertex of the shell
    "POLYGON((0 0, 10 0, 10 10, 0 10, 0 0), (1 1, 4 1, 4 4, 1 1), (4 4, 6 4, 6 6, 4 4))",  # holes touch
    "POLYGON((0 0, 10 0, 10 10, 0 10, 0 0), (0 5, 4 4, 4 6, 0 5), (4 5, 8 4, 8 6, 4 5))",  # a chain, open
]
INVALID = [
    ("POLYGON((0 0, 10 0, 0 0, 10 0, 0 0))", "fewer than three"),
    ("POLYGON((0 0, 5 0, 10 0, 0 0))", "edges"),  # no area
    ("POLYGON((0 0, 10 10, 10 0, 0 10, 0 0))", "edges"),  # bow tie
    ("POLYGON((0 0, 10 0, 10 10, 10 15, 10 10, 0 10, 0 0))", "edges"),  # spike outwards
    ("POLYGON((0 0, 10 0, 10 10, 5 10, 5 5, 5 10, 0 10, 0 0))", "edges"),  # spike inwards
    ("POLYGON((0 0, 4 0, 2 2, 4 4, 0 4, 2 2, 0 0))", "edges"),  # touches itself at a vertex
    ("POLYGON((0 0, 10 0, 10 10, 5 0, 0 10, 0 0))", "edges"),  # touches itself within an edge
    ("POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (6 6, 7 6, 7 7, 6 6))", "leaves the shell"),
    ("POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (3 3, 7 3, 7 7, 3 3))", "leaves the shell"),
    ("POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (0 1, 2 1, 2 3, 0 3, 0 1))", "share a segment"),
    ("POLYGON((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 8 1, 8 8, 1 1), (3 2, 6 2, 6 5, 3 2))", "overlap"),
    ("POLYGON((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 4 1, 4 4, 1 4, 1 1), (4 2, 6 2, 6 3, 4 3, 4 2))", "segment"),
    ("POLYGON((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 4 1, 4 4, 1 4, 1 1), (1 1, 4 1, 4 4, 1 4, 1 1))", "overlap"),
    ("POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (0 0, 4 4, 1 2, 0 0))", "not connected"),
    ("POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (0 2, 2 1, 2 3, 0 2), (2 2, 4 2, 3 3, 2 2))", "not connected"),
    ("MULTIPOLYGON(((0 0, 4 0, 4 4, 0 4, 0 0)), ((2 2, 6 2, 6 6, 2 6, 2 2)))", "parts overlap"),
    ("MULTIPOLYGON(((0 0, 4 0, 4 4, 0 4, 0 0)), ((4 1, 6 1, 6 3, 4 3, 4 1)))", "parts share a segment"),
    ("MULTIPOLYGON(((0 0, 4 0, 4 4, 0 4, 0 0)), ((0 0, 4 0, 4 4, 0 4, 0 0)))", "parts overlap"),
    ("MULTIPOLYGON(((0 0, 4 0, 4 4, 0 4, 0 0)), ((1 1, 2 1, 2 2, 1 1)))", "parts overlap"),
]


@pytest.mark.parametrize(("text", "reason"), [*((text, "None") for text in VALID), *INVALID])
def test_validity_decided_by_hand(text, reason):
    assert reason in str(rational.valid_rational(read(text)))
    assert shapely.is_valid(shapely.from_wkt(text)) == (text in VALID)


def test_validity_agrees_with_shapely_on_coarse_grids():
    regions = messy_regions(np.random.default_rng(3), 2000)
    verdicts = np.array([judge_validity(region) is None for region in regions])
    assert 200 < verdicts.sum() < 1800
    assert (verdicts == shapely.is_valid(regions)).all()


@pytest.mark.parametrize("seed", range(6))
def test_relation_agrees_with_cells(seed):
    rng = np.random.default_rng(seed)
    mosaic = Mosaic.squares(5) if seed % 2 else Mosaic.triangles(rng, 4)
    masks = mosaic.random_masks(rng, 60)
    partners = partner_masks(rng, mosaic, masks)
    some = masks.any(axis=1) & partners.any(axis=1)
    for a, b in zip(masks[some], partners[some], strict=True):
        region_a, region_b = mosaic.regions(np.stack([a, b]))
        vertices_a, vertices_b = (set(map(tuple, shapely.get_coordinates(r))) for r in (region_a, region_b))
        touch = bool(vertices_a & vertices_b)  # edges of cells meet at their ends
        cells = (a & b).any(), (a & ~b).any(), (b & ~a).any()
        assert judge(region_a, region_b) == rational.relation_code(*cells, touch)
