"""Few boxes in place of many: all is covered, nothing is merged in vain, and a pair is the one that wastes least."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import kernels
from oracles.boxes import NUMBERS, WILD, area, around, common, covers, draw_boxes, margin

pytestmark = pytest.mark.jitless


@st.composite
def box_sets(draw, numbers=NUMBERS):
    return draw_boxes(draw, draw(st.integers(1, 9)), draw(st.integers(1, 3)), numbers), draw(st.integers(1, 9))


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

    def lies_in_another(row, box):
        others = [(at, other) for at, other in enumerate(boxes) if at != row and covers(other, box)]
        return any(not covers(box, other) or at < row for at, other in others)

    kept = [box.tolist() for row, box in enumerate(boxes) if not lies_in_another(row, box)]
    assert found.tolist() == kept


@given(case=box_sets())
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
