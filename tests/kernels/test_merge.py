"""Few boxes in place of many: all is covered, nothing is merged in vain, and a pair is the one that wastes least."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import kernels

pytestmark = pytest.mark.jitless

NUMBERS = st.integers(0, 8).map(float)
WILD = NUMBERS | st.sampled_from([-np.inf, np.inf, 1e308, -1e308, 5e-324])


@st.composite
def box_sets(draw, numbers=NUMBERS):
    d, count = draw(st.integers(1, 3)), draw(st.integers(1, 9))
    corners = np.array(draw(st.lists(numbers, min_size=2 * d * count, max_size=2 * d * count)))
    return np.sort(corners.reshape(count, 2, d), axis=1).reshape(count, 2 * d).copy(), draw(st.integers(1, 9))


def covers(a, b):
    d = len(a) // 2
    return (a[:d] <= b[:d]).all() and (a[d:] >= b[d:]).all()


def around(a, b):
    d = len(a) // 2
    return np.concatenate([np.minimum(a[:d], b[:d]), np.maximum(a[d:], b[d:])])


def area(box):
    d = len(box) // 2
    return np.prod(np.maximum(0, box[d:] - box[:d]))


def common(a, b):
    d = len(a) // 2
    return np.prod(np.maximum(0, np.minimum(a[d:], b[d:]) - np.maximum(a[:d], b[:d])))


@given(case=box_sets() | box_sets(numbers=WILD))
def test_all_is_covered_by_few(case):
    boxes, most = case
    found = kernels.merged_boxes(boxes, most)
    assert 1 <= len(found) <= most
    assert all(any(covers(one, box) for one in found) for box in boxes)
    for column in range(boxes.shape[1]):
        assert set(found[:, column]) <= set(boxes[:, column]), "no side is made up"


@given(case=box_sets())
def test_without_need_only_what_lies_in_another_goes(case):
    boxes, _ = case
    found = kernels.merged_boxes(boxes, len(boxes))
    kept = [
        box
        for row, box in enumerate(boxes)
        if not any(
            covers(other, box) and (not covers(box, other) or at < row) for at, other in enumerate(boxes) if at != row
        )
    ]
    assert found.tolist() == [box.tolist() for box in kept]


@given(case=box_sets())
def test_the_first_pair_wastes_least(case):
    outer = kernels.merged_boxes(case[0], len(case[0]))
    if len(outer) < 2:
        return
    pairs = list(combinations(range(len(outer)), 2))
    keys = []
    for i, j in pairs:
        joint = around(outer[i], outer[j])
        d = len(joint) // 2
        waste = area(joint) - area(outer[i]) - area(outer[j]) + common(outer[i], outer[j])
        keys.append((waste, (joint[d:] - joint[:d]).sum()))
    i, j = pairs[keys.index(min(keys))]
    expected = [around(outer[i], outer[j]) if k == i else box for k, box in enumerate(outer) if k != j]
    assert kernels.merged_boxes(outer, len(outer) - 1).tolist() == [box.tolist() for box in expected]
