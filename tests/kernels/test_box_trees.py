"""Boxes in trees: where a new one goes, how a node is split, and how many become few, by rules in NumPy."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import kernels
from oracles.boxes import NUMBERS, WILD, area, around, common, covers, draw_boxes, margin

pytestmark = pytest.mark.jitless


@st.composite
def choices(draw, numbers=NUMBERS):
    boxes = draw_boxes(draw, draw(st.integers(2, 7)), draw(st.integers(1, 3)), numbers)
    return boxes[:-1].copy(), boxes[-1].copy()


@given(case=choices())
def test_rules_of_choice(case):
    """The least enlargement, or growth of overlaps, goes first, the smallest area decides among equals."""
    boxes, box = case
    grown = [around(one, box) for one in boxes]
    gains = [(area(large) - area(one), area(one)) for one, large in zip(boxes, grown, strict=True)]
    assert kernels.choose_enlargement(boxes, box) == gains.index(min(gains))
    overlaps = [
        sum(common(grown[i], other) - common(one, other) for j, other in enumerate(boxes) if j != i)
        for i, one in enumerate(boxes)
    ]
    keys = [(overlap, *gain) for overlap, gain in zip(overlaps, gains, strict=True)]
    assert kernels.choose_overlap(boxes, box) == keys.index(min(keys))


@given(case=choices())
def test_orders_of_boxes(case):
    """The largest by area and then by margin, and all by the distance from their common centre."""
    boxes, _ = case
    d, whole = boxes.shape[1] // 2, around(*boxes)
    sizes = [(area(one), margin(one)) for one in boxes]
    assert kernels.largest_box(boxes) == sizes.index(max(sizes))
    distances = [((one[:d] + one[d:] - whole[:d] - whole[d:]) ** 2).sum() for one in boxes]
    assert kernels.order_by_distance(boxes).tolist() == np.argsort(distances, kind="stable").tolist()


@given(case=choices(numbers=WILD))
def test_unbounded_and_huge_boxes_have_an_answer(case):
    boxes, box = case
    for name in ("choose_enlargement", "choose_overlap"):
        assert 0 <= getattr(kernels, name)(boxes, box) < len(boxes)
    assert 0 <= kernels.largest_box(boxes) < len(boxes)
    assert sorted(kernels.order_by_distance(boxes)) == list(range(len(boxes)))


SPLITS = ["split_quadratic", "split_linear", "split_rstar"]
every_split = pytest.mark.parametrize("name", SPLITS)


def split(name, boxes, minimum):
    boxes = np.ascontiguousarray(boxes, float)
    boxes.setflags(write=False)
    return getattr(kernels, name)(boxes, minimum)


@st.composite
def box_sets(draw, numbers=NUMBERS):
    minimum = draw(st.integers(1, 4))
    count = draw(st.integers(2 * minimum, 2 * minimum + 6))
    return draw_boxes(draw, count, draw(st.integers(1, 4)), numbers), minimum


@every_split
@given(case=box_sets() | box_sets(numbers=WILD))
def test_every_box_gets_one_of_two_large_enough_groups(name, case):
    boxes, minimum = case
    groups = split(name, boxes, minimum)
    assert groups.dtype == np.uint8
    assert set(groups.tolist()) == {0, 1}
    assert np.bincount(groups).min() >= minimum
    whole = around(*(around(*boxes[groups == group]) for group in (0, 1)))
    assert (whole == around(*boxes)).all()
    assert (split(name, boxes, minimum) == groups).all()


@every_split
@given(case=box_sets(), exponent=st.integers(-900, 900))
def test_a_power_of_two_changes_nothing(name, case, exponent):
    boxes, minimum = case
    assert (split(name, boxes * 2.0**exponent, minimum) == split(name, boxes, minimum)).all()


@every_split
@pytest.mark.parametrize("unbounded", [False, True])
def test_two_clusters_are_found(name, unbounded):
    left = [[k, 0, k + 1, 1] for k in range(4)]
    right = [[k, 0, k + 1, 1] for k in range(100, 104)]
    boxes = np.array([box for pair in zip(left, right, strict=True) for box in pair], float)
    if unbounded:  # one cluster reaches to infinity on the left, the other on the right
        boxes[::2, 0], boxes[1::2, 2] = -np.inf, np.inf
    groups = split(name, boxes, 2)
    assert groups.tolist() in ([0, 1] * 4, [1, 0] * 4)


@every_split
def test_equal_and_boundless_boxes_are_split_too(name):
    for box in ([0, 0, 0, 0], [1, 2, 3, 4], [-np.inf, -np.inf, np.inf, np.inf]):
        assert np.bincount(split(name, [box] * 11, 4)).min() >= 4


def quadratic_seeds(boxes):
    waste = {
        (i, j): area(around(boxes[i], boxes[j])) - area(boxes[i]) - area(boxes[j])
        for i, j in combinations(range(len(boxes)), 2)
    }
    return max(waste, key=waste.__getitem__)


def linear_seeds(boxes):
    d = boxes.shape[1] // 2
    best, seeds = -np.inf, (0, 1)
    for axis in range(d):
        low, high = boxes[:, axis], boxes[:, axis + d]
        second = int(low.argmax())
        first = int(np.where(np.arange(len(boxes)) == second, np.inf, high).argmin())
        width = high.max() - low.min()
        if width > 0 and (low[second] - high[first]) / width > best:
            best, seeds = (low[second] - high[first]) / width, (first, second)
    return seeds


def guttman(boxes, minimum, is_linear):
    """Guttman's splits, word for word."""
    groups = [[seed] for seed in (linear_seeds if is_linear else quadratic_seeds)(boxes)]
    left = [i for i in range(len(boxes)) if [i] not in groups]

    def gain(group, i):
        return area(around(*boxes[[*groups[group], i]])) - area(around(*boxes[groups[group]]))

    while left:
        short = [group for group in groups if len(group) + len(left) == minimum]
        if short:
            short[0] += left
            break
        i = left[0] if is_linear else max(left, key=lambda i: abs(gain(0, i) - gain(1, i)))
        group = min((0, 1), key=lambda g: (gain(g, i), area(around(*boxes[groups[g]])), len(groups[g])))
        groups[group].append(i)
        left.remove(i)
    return [int(i in groups[1]) for i in range(len(boxes))]


@pytest.mark.parametrize("name", ["split_quadratic", "split_linear"])
@given(case=box_sets())
def test_guttman_word_for_word(name, case):
    assert split(name, *case).tolist() == guttman(*case, is_linear=name == "split_linear")


@given(box_sets())
def test_rstar_takes_the_best_distribution_of_the_best_axis(case):
    boxes, minimum = case
    d = boxes.shape[1] // 2
    axes = []
    for axis in range(d):
        orders = [np.lexsort((boxes[:, axis + d], boxes[:, axis])), np.lexsort((boxes[:, axis], boxes[:, axis + d]))]
        cuts = range(minimum, len(boxes) - minimum + 1)
        pairs = [(order[:k], order[k:]) for order in orders for k in cuts]
        margins = sum(margin(around(*boxes[part])) for pair in pairs for part in pair)
        axes.append((margins, pairs))
    _, pairs = min(axes, key=lambda axis: axis[0])

    def cost(pair):
        first, second = (around(*boxes[part]) for part in pair)
        return common(first, second), area(first) + area(second)

    expected = np.ones(len(boxes), int)
    expected[min(pairs, key=cost)[0]] = 0
    assert split("split_rstar", boxes, minimum).tolist() == expected.tolist()


@st.composite
def boxes_and_most(draw, numbers=NUMBERS):
    return draw_boxes(draw, draw(st.integers(1, 9)), draw(st.integers(1, 3)), numbers), draw(st.integers(1, 9))


@given(case=boxes_and_most() | boxes_and_most(numbers=WILD))
def test_all_is_covered_by_few(case):
    boxes, most = case
    found = kernels.merged_boxes(boxes, most)
    assert 1 <= len(found) <= most
    assert all(any(covers(one, box) for one in found) for box in boxes)
    for column in range(boxes.shape[1]):
        assert set(found[:, column]) <= set(boxes[:, column]), "no side is made up"


@given(case=boxes_and_most())
def test_without_need_only_what_lies_in_another_goes(case):
    boxes, _ = case
    found = kernels.merged_boxes(boxes, len(boxes))

    def lies_in_another(row, box):
        others = [(at, other) for at, other in enumerate(boxes) if at != row and covers(other, box)]
        return any(not covers(box, other) or at < row for at, other in others)

    kept = [box.tolist() for row, box in enumerate(boxes) if not lies_in_another(row, box)]
    assert found.tolist() == kept


@given(case=boxes_and_most())
def test_the_first_pair_wastes_least(case):
    outer = kernels.merged_boxes(case[0], len(case[0]))
    if len(outer) < 2:
        return
    pairs = list(combinations(range(len(outer)), 2))
    keys = []
    for i, j in pairs:
        joint = around(outer[i], outer[j])
        keys.append((area(joint) - area(outer[i]) - area(outer[j]) + common(outer[i], outer[j]), margin(joint)))
    i, j = pairs[keys.index(min(keys))]
    expected = [around(outer[i], outer[j]) if k == i else box for k, box in enumerate(outer) if k != j]
    assert kernels.merged_boxes(outer, len(outer) - 1).tolist() == [box.tolist() for box in expected]
