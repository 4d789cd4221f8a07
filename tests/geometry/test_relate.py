"""relate: broadcasting, points, boxes, threads, errors, and errata that concern it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import contrada as ct
from contrada.geometry.pool import run_sliced
from contrada.geometry.relate import INVERSE_CODES, relate_rows

Relation = ct.Relation
SQUARE = ct.Region.box(0, 0, 4, 4)
EIGHT = {
    Relation.DISJOINT: ct.Region.box(9, 9, 10, 10),
    Relation.MEETS: ct.Region.box(4, 0, 8, 4),
    Relation.OVERLAPS: ct.Region.box(2, 2, 6, 6),
    Relation.EQUALS: ct.Region([(0, 0), (4, 0), (4, 2), (4, 4), (0, 4)]),
    Relation.INSIDE: ct.Region.box(-1, -1, 5, 5),
    Relation.CONTAINS: ct.Region.box(1, 1, 2, 2),
    Relation.COVERS: ct.Region.box(0, 0, 2, 2),
    Relation.COVERED_BY: ct.Region.box(0, 0, 8, 8),
}

pytestmark = pytest.mark.jitless


@pytest.mark.parametrize(("relation", "other"), EIGHT.items())
def test_the_eight(relation, other):
    assert ct.relate(SQUARE, other) is relation
    assert ct.relate(other, SQUARE) is relation.inverse


def test_columns_broadcast_like_numpy():
    column = ct.RegionArray.from_regions(list(EIGHT.values()))
    assert ct.relate(SQUARE, column).tolist() == list(range(8))
    assert ct.relate(column, SQUARE).tolist() == INVERSE_CODES.tolist()
    assert ct.relate(column, column).tolist() == [3] * 8
    assert ct.relate(column[:1], column).tolist() == ct.relate(column[0], column).tolist()
    assert ct.relate(column[:0], SQUARE).tolist() == []
    assert ct.relate(column, SQUARE).dtype == np.uint8
    with pytest.raises(ValueError, match="columns have 8 and 3 rows"):
        ct.relate(column, column[:3])


def test_many_rows_take_the_grid_and_agree_with_single_pairs():
    column = ct.RegionArray.from_regions([*EIGHT.values()] * 8)  # enough for a grid over the one
    for one in (SQUARE, DONUT, PARTS):
        expected = [ct.relate(one, other) for other in EIGHT.values()] * 8
        assert ct.relate(one, column).tolist() == expected


DONUT = ct.Region([(0, 0), (10, 0), (10, 10), (0, 10)], [[(2, 2), (4, 2), (4, 4), (2, 4)]])
PARTS = ct.Region.from_wkt("MULTIPOLYGON(((0 0, 2 0, 2 2, 0 2, 0 0)), ((2 2, 4 2, 4 4, 2 4, 2 2)))")


def test_holes_and_parts():
    assert ct.relate(DONUT, ct.Region.box(2, 2, 4, 4)) is Relation.MEETS  # fills the hole: Algorithm 1 says equals
    assert ct.relate(DONUT, ct.Region.box(2.5, 2.5, 3, 3)) is Relation.DISJOINT
    assert ct.relate(DONUT, ct.Region.box(0, 0, 10, 10)) is Relation.COVERED_BY
    assert ct.relate(DONUT, ct.Region.box(1, 1, 5, 5)) is Relation.OVERLAPS
    assert ct.relate(DONUT, ct.Region.box(5, 5, 9, 9)) is Relation.CONTAINS
    assert ct.relate(PARTS, SQUARE) is Relation.COVERED_BY
    assert ct.relate(PARTS, ct.Region.box(0, 2, 2, 4)) is Relation.MEETS
    assert ct.relate(PARTS, ct.Region.box(0, 0, 2, 2)) is Relation.COVERS


def test_geos_is_wrong_where_a_hole_touches_a_shared_edge_in_its_middle():
    pierced = ct.Region.from_wkt("POLYGON((0 0,0 10,10 10,10 0,0 0),(5 5,10 5,5 6,5 5))")
    assert ct.relate(pierced, ct.Region.box(0, 0, 10, 10)) is Relation.COVERED_BY
    assert ct.relate(ct.Region.box(0, 0, 10, 10), pierced) is Relation.COVERS


def test_points():
    points = ct.PointArray([(1, 1), (3, 3), (2, 3)])
    assert ct.relate(points, DONUT).tolist() == [4, 0, 1]
    assert ct.relate(DONUT, points).tolist() == [5, 0, 1]
    assert ct.relate(points, points).tolist() == [3, 3, 3]
    assert ct.relate(points, points[:1]).tolist() == [3, 0, 0]
    column = ct.RegionArray.from_regions([SQUARE, DONUT, SQUARE])
    assert ct.relate(points, column).tolist() == [4, 0, 4]


def test_a_point_on_a_slanted_edge_is_found_exactly():
    triangle = ct.Region([(0, 0), (3, 1), (0, 1)])
    assert ct.relate(ct.Point(1.5, 0.5), triangle) is Relation.MEETS
    assert ct.relate(ct.Point(1.5, np.nextafter(0.5, 1)), triangle) is Relation.INSIDE
    assert ct.relate(ct.Point(1.5, np.nextafter(0.5, 0)), triangle) is Relation.DISJOINT


@pytest.mark.parametrize("value", ["POLYGON((0 0, 1 0, 1 1, 0 0))", None, [(0, 0), (1, 0), (1, 1)]])
def test_other_types_are_named(value):
    with pytest.raises(TypeError, match=f"got {type(value).__name__}"):
        ct.relate(SQUARE, value)


def test_threads_share_columns():
    column = ct.RegionArray.from_regions([*EIGHT.values()] * 4)
    expected = ct.relate(SQUARE, column).tolist()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: ct.relate(SQUARE, column).tolist(), range(40)))
    assert answers == [expected] * 40


@pytest.mark.parametrize("threads", [None, 1, 2, 3])
def test_slices_make_up_the_whole(threads):
    seen = np.zeros(50_001, int)

    def work(start: int, stop: int) -> None:
        seen[start:stop] += 1

    run_sliced(work, len(seen), threads)
    assert (seen == 1).all()


def test_the_pool_may_be_used_from_its_own_threads_and_says_no_to_no_threads():
    done = []
    run_sliced(lambda start, stop: run_sliced(lambda a, b: done.append(b - a), stop - start, None), 50_000, None)
    assert sum(done) == 50_000
    with pytest.raises(ValueError, match="from 1 to"):
        run_sliced(lambda start, stop: None, 5, 0)


def test_an_error_in_a_slice_reaches_the_caller():
    def work(start: int, stop: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_sliced(work, 50_000, None)


def test_no_pairs_are_related_without_a_look_at_any_row():
    none, rows = ct.RegionArray.from_wkt([]), np.empty(0, np.int64)
    for _ in range(100):  # what lies behind an empty array differs from time to time
        assert relate_rows(none[rows], ct.RegionArray.from_wkt([]), rows, rows).tolist() == []
    points = ct.PointArray(np.empty((0, 2)))
    assert relate_rows(points, none, rows, rows).tolist() == relate_rows(none, points, rows, rows).tolist() == []
