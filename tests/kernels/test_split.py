"""Splits: two groups, large enough, the same every time, and the textbooks' choices on boxes small enough to follow."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import kernels
from oracles.boxes import NUMBERS, WILD, area, around, common, draw_boxes, margin

pytestmark = pytest.mark.jitless

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


def bounds(boxes):
    return around(*boxes)


@every_split
@given(case=box_sets() | box_sets(numbers=WILD))
def test_every_box_gets_one_of_two_large_enough_groups(name, case):
    boxes, minimum = case
    groups = split(name, boxes, minimum)
    assert groups.dtype == np.uint8
    assert set(groups.tolist()) == {0, 1}
    assert np.bincount(groups).min() >= minimum
    whole = bounds(np.array([bounds(boxes[groups == group]) for group in (0, 1)]))
    assert (whole == bounds(boxes)).all()
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
        (i, j): area(bounds(boxes[[i, j]])) - area(boxes[i]) - area(boxes[j])
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
        return area(bounds(boxes[[*groups[group], i]])) - area(bounds(boxes[groups[group]]))

    while left:
        short = [group for group in groups if len(group) + len(left) == minimum]
        if short:
            short[0] += left
            break
        i = left[0] if is_linear else max(left, key=lambda i: abs(gain(0, i) - gain(1, i)))
        group = min((0, 1), key=lambda g: (gain(g, i), area(bounds(boxes[groups[g]])), len(groups[g])))
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
        margins = sum(margin(bounds(boxes[part])) for pair in pairs for part in pair)
        axes.append((margins, pairs))
    _, pairs = min(axes, key=lambda axis: axis[0])

    def cost(pair):
        first, second = (bounds(boxes[part]) for part in pair)
        return common(first, second), area(first) + area(second)

    expected = np.ones(len(boxes), int)
    expected[min(pairs, key=cost)[0]] = 0
    assert split("split_rstar", boxes, minimum).tolist() == expected.tolist()
