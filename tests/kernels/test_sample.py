"""Algorithm 1 against a slow, literal reading of the paper, and how boundaries are discretised."""

import math
from itertools import pairwise

import numpy as np
import pytest
import shapely
from hypothesis import assume, example, given
from hypothesis import strategies as st

from contrada import kernels
from contrada.kernels.relate import sample
from generators.strategies import simple_shapes
from oracles.rational import CONTAINS, COVERED_BY, COVERS, DISJOINT, EQUALS, INSIDE, MEETS, OVERLAPS, point_rational
from oracles.relations import INVERSE

pytestmark = pytest.mark.jitless


def discretise(ring, density, extra):
    """DISCRETIZE of section 3.3: every sample with the shortest gap to its neighbours on its segments."""
    lengths = [math.dist(p, q) for p, q in pairwise(ring)]
    total = sum(lengths)
    count = int(total * density + 0.5) - (0 if extra else len(lengths))
    count = max(count, 0)
    until = [int(count * (sum(lengths[: k + 1]) / total)) for k in range(len(lengths))]
    until[-1] = count
    pieces = [b - a + 1 for a, b in pairwise([0, *until])]
    gaps = [length / n for length, n in zip(lengths, pieces, strict=True)]
    for k, (ax, ay) in enumerate(ring[:-1]):
        bx, by = ring[k + 1]
        for j in range(pieces[k]):
            t = j / pieces[k]
            yield (ax + (bx - ax) * t, ay + (by - ay) * t), gaps[k] if j else min(gaps[k - 1], gaps[k])


def check(point, ring, radius):
    """POINTCHECK with a halo."""
    distance = shapely.LineString(ring).distance(shapely.Point(point))
    assume(radius == 0 or abs(distance - radius) > 1e-9)  # too close to call in floating point
    if distance < radius:
        return "meet"
    return {INSIDE: "in", MEETS: "meet", DISJOINT: "out"}[point_rational(point, [(ring, [])])]


def find_relation(a, b, density, halo, extra):
    """FINDRELATION line by line."""
    i1 = i2 = i3 = i4 = False
    for p, gap in discretise(a, density, extra):
        answer = check(p, b, gap / 2 if halo else 0.0)
        i1, i2, i4 = i1 or answer == "meet", i2 or answer == "in", i4 or answer == "out"
        if i2 and i4:
            return OVERLAPS
    if i1 and not i2 and not i4:
        return EQUALS
    if not i1 and i2 and not i4:
        return INSIDE
    if i1 and i2 and not i4:
        return COVERED_BY
    for p, gap in discretise(b, density, extra):
        answer = check(p, a, gap / 2 if halo else 0.0)
        if answer == "in":
            i3 = True
            break
        if answer == "out":
            break
    if i3:
        return COVERS if i1 else CONTAINS
    return MEETS if i1 else DISJOINT


def length(ring):
    return sum(math.dist(p, q) for p, q in pairwise(ring))


def literal(a, b, density, halo, extra):
    """The paper's algorithm with the swap of section 3.3."""
    if length(b) < length(a):
        return INVERSE[find_relation(b, a, density, halo, extra)]
    return find_relation(a, b, density, halo, extra)


def column(rings):
    """Flat arrays of simple polygons given by closed rings."""
    xy = np.array([vertex for ring in rings for vertex in ring], np.float64)
    ring_offsets = np.cumsum([0, *map(len, rings)]).astype(np.int64)
    boxes = np.array([[*np.min(ring, axis=0), *np.max(ring, axis=0)] for ring in rings], np.float64)
    return xy, ring_offsets, np.arange(len(rings) + 1, dtype=np.int32), boxes


def compiled(a, b, density, halo=False, extra=False, boxes_first=False):
    """The kernel's codes for columns of closed rings."""
    out = np.full(max(len(a), len(b)), 99, np.uint8)
    assert kernels.relate_sampled_pairs(*column(a), *column(b), density, halo, extra, boxes_first, out)
    return out.tolist()


def plain(kernel):
    """The Python function of a kernel: without reference counting, kernels are for kernels to call."""
    return getattr(kernel, "py_func", kernel)


def closed(*points):
    return [*points, points[0]]


SQUARE = closed((0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (0.0, 10.0))


# Simple rings with coarse integer vertices: shared corners, shared edges and touches are common.
rings = simple_shapes().map(lambda shape: list(shape.exterior.coords))


@given(rings, rings, st.sampled_from([0.0, 0.25, 1.0, 2.0, 7.5]), st.booleans(), st.booleans())
@example(a=SQUARE, b=SQUARE, density=1.0, halo=False, extra=False)
def test_agrees_with_the_paper_line_by_line(a, b, density, halo, extra):
    assert compiled([a], [b], density, halo, extra) == [literal(a, b, density, halo, extra)]


@pytest.mark.parametrize(
    ("density", "extra", "count"),
    [
        (0.0, False, 4),  # below D = n / l the end points alone
        (0.05, False, 4),
        (0.1, False, 4),
        (0.5, False, 20),  # l * D in all
        (1.0, False, 40),
        (0.0, True, 4),  # in addition to the end points
        (0.5, True, 24),
    ],
)
def test_number_of_samples(density, extra, count):
    wanted = plain(sample.extra_samples)(length(SQUARE), 4, density, extra)
    assert 4 + wanted == count == len(list(discretise(SQUARE, density, extra)))


@given(lengths=st.lists(st.floats(0.001, 1000), min_size=3, max_size=30), count=st.integers(0, 10_000))
def test_segments_share_the_samples_by_length(lengths, count):
    total = sum(lengths)
    travelled, placed = 0.0, 0
    for segment in lengths:
        travelled += segment
        until = plain(sample.extra_until)(count, travelled, total)
        assert abs((until - placed) - count * segment / total) < 1 + 1e-6
        placed = until
    assert placed == pytest.approx(count, abs=1)


def test_without_halo_a_region_with_slanted_edges_overlaps_itself():
    # Samples of a slanted segment are rounded off it, to either side.
    triangle = closed((20.0, 0.0), (30.0, 0.0), (25.0, 9.0))
    assert compiled([triangle], [triangle], 1.0) == [OVERLAPS]
    assert compiled([triangle], [triangle], 1.0, halo=True) == [EQUALS]


def test_boxes_first_changes_only_what_is_apart():
    others = [SQUARE, closed((20.0, 0.0), (30.0, 0.0), (25.0, 9.0)), closed((10.0, 3.0), (30.0, 3.0), (30.0, 6.0))]
    assert compiled([SQUARE], others, 1.0, boxes_first=True) == compiled([SQUARE], others, 1.0)
    near = closed((10.2, 3.0), (30.0, 3.0), (30.0, 6.0))  # within the halo, boxes apart
    assert compiled([SQUARE], [near], 1.0, halo=True) == [MEETS]
    assert compiled([SQUARE], [near], 1.0, halo=True, boxes_first=True) == [DISJOINT]


@pytest.mark.parametrize(("gap", "relation"), [(0.49, MEETS), (0.5, DISJOINT), (0.51, DISJOINT)])
def test_the_halo_is_open(gap, relation):
    # At density 1 the samples of the square are 1 apart: they meet what is closer than 0.5.
    beside = closed((10.0 + gap, 0.0), (30.0, 0.0), (30.0, 10.0), (10.0 + gap, 10.0))
    assert compiled([SQUARE], [beside], 1.0, halo=True) == [relation]
