"""Regions made to be slow are read and related as Shapely and the rationals say, and large ones are done in seconds."""

import subprocess
import sys

import numpy as np
import pytest
import shapely

import contrada as ct
from effort import COMPILED, examples
from generators.families.shapes import HOSTILE, RADIUS, circle, sectors, slivers, square
from generators.messy import disturbed
from oracles.relations import judge_validity, wkt

LARGE = """
import sys, shapely, contrada as ct
from generators.families.shapes import HOSTILE
for make in HOSTILE.values():
    shape = make(int(sys.argv[1]))
    region = ct.Region.from_wkb(shapely.to_wkb(shape))
    moved = ct.Region.from_wkb(shapely.to_wkb(shapely.transform(shape, lambda xy: xy + [1.0, 0.0])))
    assert ct.relate(region, region) is ct.Relation.EQUALS
    assert ct.relate(region, moved) in (ct.Relation.OVERLAPS, ct.Relation.MEETS)
"""


@pytest.mark.slow
@pytest.mark.effort
def test_a_hundred_thousand_vertices():
    """Time that grows with the square of the vertices would take many minutes; `make test` takes a quarter of them."""
    subprocess.run([sys.executable, "-c", LARGE, str(examples(100_000))], check=True, timeout=900)


@pytest.mark.parametrize("name", HOSTILE)
def test_every_size(name):
    """Whatever the size at which comparisons become too many, none is read wrongly."""
    shapes = [HOSTILE[name](vertices) for vertices in range(12, 600, 4)]
    regions = ct.RegionArray.from_shapely(shapes)
    assert set(ct.relate(regions, regions).tolist()) == {ct.Relation.EQUALS}


@pytest.mark.parametrize("name", HOSTILE)
def test_disturbed(name):
    """One vertex or ring is moved: regions of hundreds of vertices are valid or not as Shapely says."""
    rng = np.random.default_rng(5)
    shapes = np.array([HOSTILE[name](int(n)) for n in rng.integers(60, 900, 60)], dtype=object)
    shapes = np.concatenate([shapes, disturbed(rng, shapes)])
    sifted = ct.read_regions(shapes)
    found = np.zeros(len(shapes), bool)
    found[sifted.rows] = True
    for row in np.flatnonzero(found != shapely.is_valid(shapes)):
        assert found[row] == (judge_validity(shapes[row]) is None), wkt(shapes[row])


@pytest.mark.jitless
def test_comparisons_run_out_between_two_passes():
    """Nine holes of nine vertices in one point: finding their touches is allowed once, but not twice.

    Memory is filled with large numbers first, so that a row that is read before it is written does harm.
    """
    rim = circle(144).reshape(18, 8, 2)[::2]
    holes = [np.concatenate([[(0.0, 0.0)], points]) for points in rim]
    shape = shapely.Polygon(square(2 * RADIUS), holes)
    for _ in range(100 if COMPILED else 5):
        for size in range(3, 6_000, 3):
            np.full(size, 1e300)
        assert len(ct.RegionArray.from_shapely([shape])) == 1


def test_repair_leaves_tangles_alone():
    """make_valid would take minutes for a ring of some thousand random vertices; the other rows are repaired.

    Many vertices and one crossing are no tangle.
    """
    tangle = shapely.Polygon(np.random.default_rng(1).random((3_000, 2)))
    bow_tie = shapely.Polygon([(0, 0), (4, 4), (4, 0), (0, 4)])
    ring = circle(20_000)
    ring[[5, 4_000]] = ring[[4_000, 5]]
    sifted = ct.read_regions([bow_tie, tangle, shapely.Polygon(ring)], repair=True)
    assert sifted.repaired.tolist() == [0, 2]
    (rejection,) = sifted.rejected
    assert rejection.row == 1
    assert "self-intersection" in rejection.reason
    assert "CONTRADA_MAX_REPAIR_PAIRS" in rejection.reason


def fan(extra):
    """A square with three hundred holes that meet in its centre, and further ones."""
    return shapely.Polygon(square(2 * RADIUS), [*sectors(1_200), *extra])


def sliver_parts(extra):
    return shapely.MultiPolygon([*(shapely.Polygon(ring) for ring in slivers(1_200)), *extra])


rim = circle(600)
FAR = shapely.box(-40, 40, -30, 50)
FAULTS = [
    ("outside its shell", fan([square(10) + 3 * RADIUS])),
    ("crosses or shares an edge with its shell", fan([square(10) + 2 * RADIUS])),
    ("crosses or shares an edge with its shell", fan([[(5, 2 * RADIUS), (14, 2 * RADIUS), (5, 2 * RADIUS - 9)]])),
    ("with another hole", fan([square(RADIUS / 2)])),
    ("with another hole", fan([(rim[0] + rim[1]) / 4 + np.array([(0, 0), (-9, 0), (0, 1)])])),  # in a hole
    ("with another hole", fan([[(0, 0), rim[1], rim[2]]])),  # with an edge in common
    ("interior is not connected", fan([[rim[1], rim[2], (rim[1] + rim[2]) / 2 + rim[1] - rim[0] + rim[1]]])),
    ("overlaps another part", sliver_parts([shapely.box(600, 0, 700, 100)])),
    ("overlaps another part", sliver_parts([FAR, shapely.box(-38, 42, -32, 48)])),
    ("shares an edge with another part", sliver_parts([FAR, shapely.box(-30, 42, -20, 48)])),
]


@pytest.mark.parametrize(("words", "shape"), FAULTS)
def test_faults(words, shape):
    """A fault among three hundred rings is found and named."""
    assert not shapely.is_valid(shape)
    (rejection,) = ct.read_regions([shape]).rejected
    assert words in rejection.reason
    assert rejection.part is not None
