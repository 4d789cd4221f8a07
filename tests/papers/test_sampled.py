"""relate_sampled: its arguments, its answers where it is right, and the errors of the printed algorithm."""

import numpy as np
import pytest

import contrada as ct
from contrada.papers.spatial import drawn_regions as synthetic
from contrada.papers.spatial.sampled import relate_sampled

SQUARE = ct.Region([(0, 0), (10, 0), (10, 10), (0, 10)])
FROM_WITHIN = ct.Region([(5, 5.5), (40, 5.3), (40, 5.7)])
FROM_WITHOUT = ct.Region([(40, 5.3), (40, 5.7), (5, 5.5)])


def test_the_printed_algorithm_depends_on_the_start_of_the_ring():
    assert ct.relate(SQUARE, FROM_WITHIN) is ct.relate(SQUARE, FROM_WITHOUT) is ct.Relation.OVERLAPS
    without = [relate_sampled(SQUARE, b, 1.0, halo=False) for b in (FROM_WITHIN, FROM_WITHOUT)]
    assert without == [ct.Relation.CONTAINS, ct.Relation.DISJOINT]
    halo = [relate_sampled(SQUARE, b, 1.0) for b in (FROM_WITHIN, FROM_WITHOUT)]
    assert halo == [ct.Relation.COVERS, ct.Relation.MEETS]


@pytest.mark.parametrize("halo", [False, True])
def test_the_shorter_boundary_goes_first_whatever_the_order(halo):
    for b in (FROM_WITHIN, FROM_WITHOUT):
        forth, back = relate_sampled(SQUARE, b, 1.0, halo), relate_sampled(b, SQUARE, 1.0, halo)
        assert back is forth.inverse


@pytest.mark.parametrize("halo", [False, True])
@pytest.mark.parametrize(
    ("box", "relation"),
    [
        ((20, 0, 30, 10), "DISJOINT"),
        ((10, 0, 20, 10), "MEETS"),
        ((5, 5, 15, 15), "OVERLAPS"),
        ((0, 0, 10, 10), "EQUALS"),
        ((-5, -5, 15, 15), "INSIDE"),
        ((3, 3, 7, 7), "CONTAINS"),
        ((0, 3, 7, 7), "COVERS"),
        ((0, -5, 15, 15), "COVERED_BY"),
    ],
)
def test_plain_boxes_are_related_rightly(box, relation, halo):
    other = ct.Region.box(*box)
    assert relate_sampled(SQUARE, other, 2.0, halo).name == relation == ct.relate(SQUARE, other).name


def test_density_zero_looks_at_end_points():
    across = ct.Region.box(-1, 4, 11, 6)  # crosses the square, and no end point of either lies in the other
    assert relate_sampled(SQUARE, across, 0.0, halo=False) is ct.Relation.DISJOINT
    assert relate_sampled(SQUARE, across, 0.0, halo=False, extra=True) is ct.Relation.DISJOINT
    assert relate_sampled(SQUARE, across, 1.0, halo=False) is ct.Relation.OVERLAPS


def test_extra_points_come_in_addition():
    # Four samples of the square's side are its corners; eight see the box that reaches its middle.
    side = ct.Region.box(4, -5, 6, 1)
    assert relate_sampled(side, SQUARE, 0.1, halo=False) is ct.Relation.OVERLAPS
    thin = ct.Region.box(4.9, -50, 5.1, 50)
    assert relate_sampled(SQUARE, thin, 0.1, halo=False) is ct.Relation.DISJOINT
    assert relate_sampled(SQUARE, thin, 0.1, halo=False, extra=True) is ct.Relation.OVERLAPS


def test_columns_broadcast_like_relate():
    many, density = synthetic.paper_regions(np.random.default_rng(3), 30), 1.0
    one_by_one = [relate_sampled(many[0], other, density) for other in many]
    assert all(isinstance(relation, ct.Relation) for relation in one_by_one)
    codes = relate_sampled(many[0], many, density)
    assert codes.dtype == np.uint8
    assert codes.tolist() == one_by_one
    assert relate_sampled(many, many[0], density).tolist() == [relation.inverse for relation in one_by_one]
    assert relate_sampled(many, many, density).tolist() == [ct.Relation.EQUALS] * 30
    assert relate_sampled(many[5:9], many[6:10], density).tolist() == [
        relate_sampled(many[k], many[k + 1], density) for k in range(5, 9)
    ]
    assert relate_sampled(many[0], many[:0], density).tolist() == []


FOUR = synthetic.paper_regions(np.random.default_rng(3), 4)


@pytest.mark.parametrize(
    ("a", "b", "density", "error", "message"),
    [
        (FOUR, FOUR[:3], 1.0, ValueError, "4 and 3"),
        (SQUARE, SQUARE, -1.0, ct.ContradaError, "density"),
        (SQUARE, SQUARE, float("nan"), ct.ContradaError, "density"),
        (SQUARE, SQUARE, float("inf"), ct.ContradaError, "density"),
        (SQUARE, SQUARE, 1e12, ct.ContradaError, "samples"),
        (ct.Point(0, 0), SQUARE, 1.0, TypeError, "Point"),
        (ct.Region.box(0, 0, 1, 1, crs="EPSG:4326"), ct.Region.box(0, 0, 1, 1, crs="EPSG:3857"), 1.0,
         ct.ContradaError, "EPSG:3857"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(a, b, density, error, message):
    with pytest.raises(error, match=message):
        relate_sampled(a, b, density)


def test_holes_and_parts_are_refused():
    ring = ct.Region([(0, 0), (9, 0), (9, 9), (0, 9)], holes=[[(3, 3), (6, 3), (6, 6), (3, 6)]])
    parts = ct.Region.from_wkt("MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))")
    column = ct.RegionArray.from_regions([SQUARE, ring])
    for bad in (ring, parts, column):
        for pair in ((SQUARE, bad), (bad, SQUARE)):
            with pytest.raises(ct.RegionError, match="simple polygons"):
                relate_sampled(*pair, 1.0)
    with pytest.raises(ct.RegionError) as caught:
        relate_sampled(SQUARE, column, 1.0)
    assert caught.value.row == 1


def test_errors_shrink_with_density():
    rng = np.random.default_rng(9)
    regions, message = synthetic.paper_regions(rng, 500), synthetic.paper_regions(rng, 1)[0]
    exact = ct.relate(message, regions)
    wrong = [(relate_sampled(message, regions, d / 2000, halo=False) != exact).mean() for d in (20, 200, 4000)]
    assert wrong[0] > wrong[2]
    assert wrong[2] < 0.01
