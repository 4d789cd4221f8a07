"""Where a new box goes: against the rules written out in NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import kernels
from oracles.boxes import NUMBERS, WILD, area, around, common, draw_boxes, margin

pytestmark = pytest.mark.jitless


@st.composite
def choices(draw, numbers=NUMBERS):
    boxes = draw_boxes(draw, draw(st.integers(2, 7)), draw(st.integers(1, 3)), numbers)
    return boxes[:-1].copy(), boxes[-1].copy()


@given(case=choices())
def test_least_enlargement_then_the_smallest(case):
    boxes, box = case
    keys = [(area(around(one, box)) - area(one), area(one)) for one in boxes]
    assert kernels.choose_enlargement(boxes, box) == keys.index(min(keys))


@given(case=choices())
def test_least_growth_of_overlap_then_of_area(case):
    boxes, box = case
    keys = []
    for i, one in enumerate(boxes):
        grown = around(one, box)
        overlap = sum(common(grown, other) - common(one, other) for j, other in enumerate(boxes) if j != i)
        keys.append((overlap, area(grown) - area(one), area(one)))
    assert kernels.choose_overlap(boxes, box) == keys.index(min(keys))


@given(case=choices())
def test_the_largest_by_area_then_by_margin(case):
    boxes, _ = case
    keys = [(area(one), margin(one)) for one in boxes]
    assert kernels.largest_box(boxes) == keys.index(max(keys))


@given(case=choices())
def test_the_order_by_distance_from_the_centre(case):
    boxes, _ = case
    d, whole = boxes.shape[1] // 2, around(*boxes)
    distances = [((one[:d] + one[d:] - whole[:d] - whole[d:]) ** 2).sum() for one in boxes]
    assert kernels.order_by_distance(boxes).tolist() == np.argsort(distances, kind="stable").tolist()


@given(case=choices(numbers=WILD))
def test_unbounded_and_huge_boxes_have_an_answer(case):
    boxes, box = case
    for name in ("choose_enlargement", "choose_overlap"):
        assert 0 <= getattr(kernels, name)(boxes, box) < len(boxes)
    assert 0 <= kernels.largest_box(boxes) < len(boxes)
    assert sorted(kernels.order_by_distance(boxes)) == list(range(len(boxes)))
