"""The trees that the overlay paper compares with, against their plain definitions; claims of further exhibits."""

import numpy as np
import pytest

from contrada.errors import OverlayError
from contrada.papers.overlay import baselines, further_exhibits, workload
from contrada.papers.overlay.exhibits import check_method, measure_tree
from contrada.papers.overlay.workload import holding

COUNT, AXES = 120, 2


def drawn(seed):
    boxes = workload.draw_subscriptions(COUNT, AXES, "zipf-25:75", np.random.default_rng(seed)) // 40
    points = workload.draw_messages(30, AXES, np.random.default_rng(seed + 1)) // 40
    return boxes, points


def contains(one, other):
    axes = len(one) // 2
    return (one[:axes] <= other[:axes]).all() and (one[axes:] >= other[axes:]).all()


def points_in(box):
    axes = len(box) // 2
    return np.prod(box[axes:] - box[:axes] + 1)


@pytest.mark.parametrize("is_largest", [False, True])
def test_a_parent_is_the_smallest_or_largest_container(is_largest):
    for seed in range(3):
        boxes, _ = drawn(seed)
        parents = baselines.containers(boxes, is_largest)
        for row, parent in enumerate(parents):
            equal = next(at for at, box in enumerate(boxes) if (box == boxes[row]).all())
            if equal < row:
                assert parent == equal
                continue
            sizes = [points_in(box) for box in boxes if contains(box, boxes[row]) and (box != boxes[row]).any()]
            if not sizes:
                assert parent == baselines.VIRTUAL_ROOT
                continue
            assert contains(boxes[parent], boxes[row])
            assert points_in(boxes[parent]) == (max(sizes) if is_largest else min(sizes))


@pytest.mark.parametrize("method", baselines.BASELINES)
def test_a_message_goes_where_the_definition_says(method):
    boxes, points = drawn(5)
    found = baselines.measure_baseline(method, boxes, points)
    wanted = holding(boxes, points)
    by_axis = [holding(boxes[:, [axis, axis + AXES]], points[:, [axis]]) for axis in range(AXES)]
    got = {baselines.CONTAINMENT: wanted, baselines.ONE_ATTRIBUTE: by_axis[0]}.get(method, by_axis[0] | by_axis[1])
    copies = sum(held.sum() for held in by_axis) if "per" in method else got.sum()
    assert found["receipts"] == got.sum()
    assert found["notes_per_message"] == copies / len(points)
    assert found["false_negatives"] == 0
    assert found["false_positive_ratio"] == pytest.approx((got & ~wanted).mean())
    assert found["hops"]["max"] <= found["height"]
    if method == baselines.CONTAINMENT:
        assert found["root_degree"] == found["degree"]["max"] == workload.count_uncontained(boxes)
    if method == baselines.FLAT:
        assert found["height"] <= 3, "a copy, its first of equals, the largest container"


def test_hops_follow_the_parents():
    boxes, points = drawn(7)
    tree = baselines.containment_tree(boxes)
    for row, parent in enumerate(tree.parents):
        assert tree.hops[row] == (1 if parent < 0 else tree.hops[parent] + 1)
    assert (baselines.passed_on(tree, points) == holding(boxes, points)).all()
    assert tree.degrees.sum() == len(boxes)


def test_rows_of_baselines_have_the_columns_of_trees():
    setting = {"subscriptions": 80, "messages": 10, "dimensions": 2, "distribution": "zipf", "degree": "2:5"}
    rows = [measure_tree(setting | {"method": method}, 1) for method in ("quadratic", *baselines.BASELINES)]
    assert len({tuple(sorted(row)) for row in rows}) == 1
    assert len({row["hits"] for row in rows}) == 1
    with pytest.raises(OverlayError, match="unknown method"):
        check_method("flat")


def rows_of(method, **values):
    return [
        {"method": method, "subscriptions": size, "seed": 1, "degree": "5:10", "false_positive_ratio": 0.0}
        | {name: value[at] for name, value in values.items()}
        for at, size in enumerate((1000, 10_000))
    ]  # fmt: skip


def test_claims_of_further_exhibits_hold_and_fail_as_they_should():
    further = further_exhibits
    good = rows_of("R*", hops_max=(4, 5), height=(4, 5), hops_average=(2.0, 3.0))
    assert further.is_logarithmic(good)
    assert further.grows_slowly(good)
    assert not further.is_logarithmic(rows_of("R*", hops_max=(4, 5), height=(4, 9)))
    assert not further.is_logarithmic(rows_of("R*", hops_max=(4, 6), height=(4, 5)))
    assert not further.grows_slowly(rows_of("R*", hops_average=(2.0, 9.0)))
    assert further.grows_slowly(good[:1]) is None
    tree = rows_of("R*", degree_max=(30, 30))
    wide = rows_of(baselines.CONTAINMENT, degree_max=(400, 900), root_degree=(400, 900))
    assert further.is_unbounded(tree + wide) is True
    assert further.is_unbounded(tree + rows_of(baselines.FLAT, degree_max=(50, 900))) is False
    assert further.has_no_false_positives(wide) is True
    assert further.has_2000_children(wide) is False
    assert further.has_2000_children(tree) is None
    kept = [{"kept": kept, "scenario": "mild", "false_negative_ratio": share} for kept, share in ((0, 0.2), (9, 0.0))]
    assert further.misses_little(kept)
    assert not further.misses_little([kept[0] | {"kept": 9}])
    with pytest.raises(OverlayError, match="unknown scenario"):
        further.check_scenario("calm")
