"""Where a new box goes: against the rules written out in NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import kernels

pytestmark = pytest.mark.jitless

NUMBERS = st.integers(0, 6).map(float)
WILD = NUMBERS | st.sampled_from([-np.inf, np.inf, 1e308, -1e308, 5e-324])


@st.composite
def choices(draw, numbers=NUMBERS):
    d, count = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    corners = np.array(draw(st.lists(numbers, min_size=2 * d * (count + 1), max_size=2 * d * (count + 1))))
    boxes = np.sort(corners.reshape(count + 1, 2, d), axis=1).reshape(count + 1, 2 * d)
    return boxes[:-1].copy(), boxes[-1].copy()


def area(box):
    d = len(box) // 2
    return np.prod(box[d:] - box[:d])


def joined(a, b):
    d = len(a) // 2
    return np.concatenate([np.minimum(a[:d], b[:d]), np.maximum(a[d:], b[d:])])


def common(a, b):
    d = len(a) // 2
    return np.prod(np.maximum(0, np.minimum(a[d:], b[d:]) - np.maximum(a[:d], b[:d])))


@given(case=choices())
def test_least_enlargement_then_the_smallest(case):
    boxes, box = case
    keys = [(area(joined(one, box)) - area(one), area(one)) for one in boxes]
    assert kernels.choose_enlargement(boxes, box) == keys.index(min(keys))


@given(case=choices())
def test_least_growth_of_overlap_then_of_area(case):
    boxes, box = case
    keys = []
    for i, one in enumerate(boxes):
        grown = joined(one, box)
        overlap = sum(common(grown, other) - common(one, other) for j, other in enumerate(boxes) if j != i)
        keys.append((overlap, area(grown) - area(one), area(one)))
    assert kernels.choose_overlap(boxes, box) == keys.index(min(keys))


@given(case=choices())
def test_the_largest_by_area_then_by_margin(case):
    boxes, _ = case
    d = boxes.shape[1] // 2
    keys = [(area(one), (one[d:] - one[:d]).sum()) for one in boxes]
    assert kernels.largest_box(boxes) == keys.index(max(keys))


@given(case=choices())
def test_the_order_by_distance_from_the_centre(case):
    boxes, _ = case
    d = boxes.shape[1] // 2
    around = np.concatenate([boxes[:, :d].min(axis=0), boxes[:, d:].max(axis=0)])
    distances = [((one[:d] + one[d:] - around[:d] - around[d:]) ** 2).sum() for one in boxes]
    assert kernels.order_by_distance(boxes).tolist() == np.argsort(distances, kind="stable").tolist()


@given(case=choices(numbers=WILD))
def test_unbounded_and_huge_boxes_have_an_answer(case):
    boxes, box = case
    for name in ("choose_enlargement", "choose_overlap"):
        assert 0 <= getattr(kernels, name)(boxes, box) < len(boxes)
    assert 0 <= kernels.largest_box(boxes) < len(boxes)
    assert sorted(kernels.order_by_distance(boxes)) == list(range(len(boxes)))
