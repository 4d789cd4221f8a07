"""Distance constraints: text and JSON, which cover or exclude which, and what simplification makes of them."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pytest

import contrada as ct
from contrada.covering import CoveringIndex
from contrada.covering.packing import filter_covers
from contrada.cql2 import to_json
from contrada.model.evaluate import truth
from contrada.model.implication import conflicts, covers
from contrada.model.reach import reach_of, read_reach

MASKS = (1, 3, 4, 6)  # S_WITHIN a circle, within, beyond, not S_WITHIN
SHAPES = [ct.Point(0, 0), ct.Point(3, 4), ct.Region.box(0, 0, 2, 2), ct.Region.box(0.5, 0.5, 1, 1)]
SHAPES += [ct.Line([(0, 0), (3, 4)]), ct.Line([(0.5, 0.5), (1, 1)]), ct.Line([(1, 0), (1, 2)], [(0, 1), (2, 1)])]


def constraints() -> list[ct.Constraint]:
    """Return constraints of all masks with few shapes and distances, so that many coincide."""
    return [
        ct.Constraint("area", reach_of(distance, mask), shape)
        for mask, shape, distance in product(MASKS, SHAPES, (0.0, 1.0, 5.0, 10.0))
        if mask in (3, 4) or isinstance(shape, ct.Point)
    ]


def messages() -> list[object]:
    """Return points, boxes, circles and lines around the shapes, near and far."""
    rng = np.random.default_rng(4)
    points = [ct.Point(*xy) for xy in rng.integers(-12, 16, (60, 2)).tolist()]
    boxes = [
        ct.Region.box(x, y, x + w, y + h)
        for x, y, w, h in np.column_stack([rng.integers(-12, 12, (60, 2)), rng.integers(1, 15, (60, 2))]).tolist()
    ]
    radii = rng.choice([0.0, 0.5, 1.0, 2.5, 5.0, 10.0], 120)
    circles = [ct.Circle(xy, r) for xy, r in zip(rng.integers(-12, 16, (120, 2)).tolist(), radii, strict=True)]
    starts, steps = rng.integers(-9, 12, (120, 1, 2)), rng.integers(-9, 10, (120, 3, 2))
    walks = [walk for walk in (starts + steps).tolist() if walk[0] != walk[1]]
    lines = [ct.Line(walk) for walk in walks]
    return [*points, *boxes, *circles, *lines, ct.Point(0, 0), ct.Point(3, 4), ct.Region.box(0.9, 0.9, 1.1, 1.1)]


def test_every_claim_of_covering_and_conflict_holds():
    every, values = constraints(), messages()
    truths = {one: np.array([truth(one, value) for value in values]) for one in every}
    claimed = [0, 0]
    for first, second in product(every, repeat=2):
        if covers(first, second):
            claimed[0] += 1
            assert (truths[first] | ~truths[second]).all(), f"{first} does not cover {second}"
        if conflicts(first, second):
            claimed[1] += 1
            assert not (truths[first] & truths[second]).any(), f"{first} and {second} do not exclude each other"
    assert min(claimed) > 100


def test_distances_of_one_geometry_are_complete():
    for shape, (small, large) in product(SHAPES, ((1, 2), (2, 2))):
        near, nearer = (ct.Constraint("a", ct.WithinDistance(d), shape) for d in (large, small))
        assert covers(near, nearer)
        assert covers(nearer.negated, near.negated)
        assert conflicts(near.negated, nearer)
        assert not conflicts(near, nearer.negated) or small == large
        assert covers(nearer, near) == (small == large)
    assert conflicts(ct.Constraint("a", ct.WithinDistance(1), SHAPES[0]), ct.Constraint("a", "=", "x"))
    assert covers(ct.Constraint("a", "is not null"), ct.Constraint("a", ct.WithinDistance(1), SHAPES[0]))


@pytest.mark.parametrize("one", constraints(), ids=str)
def test_text_json_pickles_and_frames_come_back(one):
    assert ct.parse(str(one)).filters[0].constraints == (one,)
    assert ct.parse(to_json(one)).filters[0].constraints == (one,)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one.negated.negated == one
    assert hash(one.negated.negated) == hash(one)


def test_lines_within_other_shapes_are_nearer():
    within = ct.WithinDistance
    box, part, whole = SHAPES[2], ct.Line([(0.5, 0.5), (1, 1)]), ct.Line([(0, 0), (2, 2)])
    for first, second in ((box, part), (whole, part), (whole, ct.Point(1, 1)), (box, whole)):
        assert covers(ct.Constraint("a", within(2), first), ct.Constraint("a", within(1.5), second))
        assert not covers(ct.Constraint("a", within(1), first), ct.Constraint("a", within(1.5), second))
    turned = ct.Line([(1, 1), (0.5, 0.5)])
    assert covers(ct.Constraint("a", within(2), turned), ct.Constraint("a", within(2), part))
    there = [ct.Line([(0, 0), (1, 1)], crs=crs) for crs in ("EPSG:25832", "EPSG:3035")]
    assert not covers(*(ct.Constraint("a", within(d), one) for d, one in zip((2, 1), there, strict=True)))
    assert not covers(ct.Constraint("a", within(2), part), ct.Constraint("a", within(2), box))


def test_equality_and_columns():
    within = ct.Constraint("area", ct.WithinDistance(5), SHAPES[0])
    assert within == ct.Constraint("area", ct.WithinDistance(5.0), SHAPES[0])
    assert within != ct.Constraint("area", ct.WithinDistance(5), SHAPES[2])
    assert within != within.negated
    template = ct.parse("within_distance(area, $g, $d)").filters[0].constraints[0]
    assert [column.name for column in template.columns] == ["g", "d"]
    assert str(template) == "within_distance(area, $g, $d)"
    assert ct.parse(to_json(template)).filters[0].constraints == (template,)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("within_distance(area, POINT(0 0))", "needs 3 arguments"),
        ("within_distance(area, POINT(0 0), -1)", "finite number of at least 0"),
        ("within_distance(area, POINT(0 0), 1e999)", "finite number of at least 0"),
        ("within_distance(area, POINT(0 0), 'far')", "need a number, got str"),
        ("within_distance(area, other, 5)", "two attributes"),
        ("within_distance(area, 5, 5)", "needs a geometry"),
        ("within_distance(area, POINT(0 0), size)", "needs a distance"),
        ("within_distance(area, CIRCLE(POINT(0 0), 1), 5)", "has a distance already"),
        ("S_TOUCHES(area, CIRCLE(POINT(0 0), 1))", "other relations need a POLYGON"),
        ("S_WITHIN(area, CIRCLE(BBOX(0, 0, 1, 1), 1))", "CIRCLE needs a POINT"),
        ("ST_DWITHIN(area, POINT(0 0), 5)", "unknown function"),
        ("DWITHIN(area, POINT(0 0), 5)", "within_distance"),
    ],
)
def test_what_is_refused(text, says):
    with pytest.raises(ct.LanguageError, match=says):
        ct.parse(text)


@pytest.mark.parametrize("mask", [0, 7, 8, -1, 1.5, None])
def test_bad_outcomes_from_outside_are_refused(mask):
    with pytest.raises(ct.FilterError):
        read_reach(1.0, mask)


@pytest.mark.parametrize("several", [2, 20])
def test_simplification(several):
    near = [f"within_distance(area, POINT({k} 0), {d})" for k in range(several) for d in (5, 3)]
    table = ct.ForwardingTable()
    table.subscribe("s", " OR ".join(near), key="k")
    table.subscribe("s", "within_distance(a, POINT(0 0), 3) AND within_distance(a, POINT(0 0), 5)", key="both")
    table.subscribe(
        "s", "x = 1 OR within_distance(a, POINT(0 0), 3) AND beyond_distance(a, POINT(0 0), 5)", key="never"
    )
    table.simplify()
    left = dict(table.predicates())
    assert left["k"] == ct.parse(" OR ".join(near[::2]))
    assert left["both"] == ct.parse("within_distance(a, POINT(0 0), 3)")
    assert left["never"] == ct.parse("x = 1")


def test_covering_index():
    index = CoveringIndex()
    assert index.subscribe("wide", "within_distance(area, POINT(0 0), 10)").forward
    assert not index.subscribe("narrow", "within_distance(area, POINT(1 0), 5) AND size > 3").forward
    assert index.subscribe("apart", "within_distance(area, POINT(9 0), 5)").forward
    assert index.subscribe("far", "beyond_distance(area, POINT(0 0), 10)").forward
    assert not index.subscribe("farther", "beyond_distance(area, POINT(0 0), 11)").forward
    assert set(index.unsubscribe("wide").forward) == {"narrow"}


def test_tracking_refuses_distances():
    tracker = ct.Tracker(track="id")
    with pytest.raises(ct.FilterError, match="not by a distance"):
        tracker.subscribe("s", "within_distance(at, POINT(0 0), 5)", on="enter")


def test_covering_of_many_circles_is_that_of_all_pairs():
    rng = np.random.default_rng(9)
    index, kept = CoveringIndex(), {}
    for key in range(150):
        (x, y), distance = rng.integers(0, 20, 2).tolist(), int(rng.integers(0, 12))
        text = f"{'within' if rng.random() < 0.7 else 'beyond'}_distance(area, POINT({x} {y}), {distance})"
        query = ct.parse(text if rng.random() < 0.5 else f"{text} AND size > {rng.integers(0, 3)}")
        index.subscribe(key, query)
        kept[key] = query.filters[0]
    for key in range(0, 150, 3):
        index.unsubscribe(key)
        del kept[key]
    for key in range(150, 180):
        (x, y), distance = rng.integers(0, 20, 2).tolist(), int(rng.integers(0, 12))
        part = ct.parse(f"within_distance(area, POINT({x} {y}), {distance}) AND size > 1").filters[0]
        covered = any(filter_covers(other, part) for other in kept.values())
        assert index.subscribe(key, part).forward == (not covered)
        kept[key] = part
