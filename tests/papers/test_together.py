"""Covering by several subscriptions together: unions are judged exactly, and no message is lost."""

import numpy as np
import pyarrow as pa
import pytest
import shapely

import contrada as ct
from contrada.papers.cover.link import COVER, TOGETHER, covered_together, measure_link, simulated, steps_of
from contrada.papers.cover.together import TogetherIndex
from contrada.papers.cover.unions import is_box_within, is_region_within
from contrada.papers.network.workload import workload_of


def region_of(shape):
    return ct.Region.from_wkb(shapely.to_wkb(shape))


def test_a_tiling_holds_its_hull_and_does_not_without_a_tile():
    rng = np.random.default_rng(4)
    points = shapely.multipoints(rng.uniform(0, 10, (9, 2)))
    tiles = [region_of(tile) for tile in shapely.get_parts(shapely.delaunay_triangles(points))]
    corners = shapely.get_coordinates(shapely.convex_hull(points))[:3]
    inner = region_of(shapely.polygons(corners))
    hull = region_of(shapely.convex_hull(points))
    assert is_region_within(hull, tiles)
    assert is_region_within(inner, tiles)
    for gone in range(len(tiles)):
        assert not is_region_within(hull, tiles[:gone] + tiles[gone + 1 :])


@pytest.mark.parametrize("gap", [2.0**-40, 0.0, -(2.0**-40)])
def test_a_gap_that_doubles_hardly_see_is_seen(gap):
    left, right = ct.Region.box(0, 0, 1, 4), ct.Region.box(1 + gap, 0, 3, 4)
    assert is_region_within(ct.Region.box(0.5, 1, 2, 2), [left, right]) == (gap <= 0)


def test_regions_with_holes_hold_no_more_than_they_have():
    ring = ct.Region([(0, 0), (9, 0), (9, 9), (0, 9)], [[(3, 3), (3, 6), (6, 6), (6, 3)]])
    inner = ct.Region.box(2, 2, 7, 7)
    assert not is_region_within(inner, [ring, ct.Region.box(3, 3, 6, 5)])
    assert is_region_within(inner, [ring, ct.Region.box(3, 3, 6, 6)])
    assert is_region_within(ring, [ring, ct.Region.box(0, 0, 1, 1)])


def test_random_unions_agree_with_areas():
    rng = np.random.default_rng(6)
    answers = set()
    for _ in range(60):
        low = rng.integers(0, 5, (5, 2))
        high = low + rng.integers(1, 5, (5, 2))
        shapes = shapely.box(*low.T, *high.T)
        left = shapely.area(shapely.difference(shapes[0], shapely.union_all(shapes[1:])))
        others = np.hstack([low[1:], high[1:]]).astype(float)
        answers.add(left == 0)
        assert is_box_within(low[0].astype(float), high[0].astype(float), others) == (left == 0)
        assert is_region_within(region_of(shapes[0]), [region_of(one) for one in shapes[1:]]) == (left == 0)
    assert answers == {True, False}


def test_large_unions_are_not_tried():
    circle = region_of(shapely.Point(0, 0).buffer(3, quad_segs=60))
    assert not is_region_within(ct.Region.box(0, 0, 1, 1), [circle, circle])


@pytest.mark.parametrize("workload", [COVER, "parcels 25:75", "rectangles 10:90"])
def test_what_is_forwarded_matches_whatever_all_subscriptions_match(workload):
    steps = steps_of(workload, 250, 3, None)
    index, live = TogetherIndex(steps.step), set()
    for command in steps.commands:
        if command >= 0:
            live.add(command)
            index.subscribe(command, steps.filters[command])
        else:
            live.discard(-1 - command)
            index.unsubscribe(-1 - command)
        assert index.forwarded <= live
    everything, forwarded = ct.ForwardingTable(), ct.ForwardingTable()
    for row in sorted(live):
        everything.subscribe(row, steps.filters[row])
    for row in sorted(index.forwarded):
        forwarded.subscribe(row, steps.filters[row])
    messages = messages_of(workload)
    whole, some = (table.match_many(messages, by="subscription") for table in (everything, forwarded))
    matched = [row for row in range(messages.num_rows) if whole.keys(row)]
    assert len(matched) > 10
    assert all(some.keys(row) for row in matched)


def messages_of(workload):
    if workload != COVER:
        return workload_of(workload, 250, 300, 3, None).messages
    columns = np.random.default_rng(8).integers(0, 32, (5, 300))
    return pa.RecordBatch.from_pydict({f"a{axis}": pa.array(values) for axis, values in enumerate(columns)})


def test_a_link_counts_as_the_network_does_and_saves():
    steps = steps_of("parcels 25:75", 300, 1, None)
    flooding, entries = simulated(steps, "flooding", 1)
    assert flooding == len(steps.commands)
    assert entries == 240
    covering, together = (
        measure_link({"workload": "parcels 25:75", "subscriptions": 300, "mode": mode}, 1, None)
        for mode in ("covering", TOGETHER)
    )
    assert together["entries"] <= covering["entries"] < 240
    assert covered_together(steps) == (together["control"], together["entries"])
