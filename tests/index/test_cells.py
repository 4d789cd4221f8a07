"""Cells that hold as many boxes each, and few boxes that cover many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.geometry import Region
from contrada.index.cells import covering_boxes, cut_cells, widened
from oracles.boxes import draw_boxes

numbers = st.sampled_from([0.0, 1.0, 1.0, 2.5, -7.0, 1e120, -1e120, 1e-120])


@st.composite
def boxes(draw, least=1):
    return draw_boxes(draw, draw(st.integers(least, 40)), 2, numbers)


@given(boxes(0), st.integers(1, 9))
def test_every_box_has_a_cell(given_boxes, count):
    cells = cut_cells(given_boxes, count)
    found = cells.find(given_boxes, np.arange(len(given_boxes)))
    assert ((found >= 0) & (found < count)).all()
    elsewhere = cells.find(np.array([[1e119, -5, 1e119, 5.0]]), np.array([3]))
    assert 0 <= elsewhere[0] < count


@pytest.mark.parametrize("count", [2, 3, 7, 16])
def test_cells_are_balanced(count):
    rng = np.random.default_rng(count)
    corners = np.concatenate([rng.normal(0, 1, (3000, 2)), rng.uniform(-50, 50, (1000, 2))])
    made = np.concatenate([corners, corners + 0.1], axis=1)
    sizes = np.bincount(cut_cells(made, count).find(made, np.arange(4000)), minlength=count)
    assert sizes.max() < 1.05 * 4000 / count
    weights = np.where(np.arange(4000) < 3000, 1.0, 9.0)
    weighed = np.bincount(cut_cells(made, count, weights).find(made, np.arange(4000)), weights, count)
    assert weighed.max() < 1.05 * 12000 / count


def test_one_point_is_shared_by_turns():
    crowd = np.zeros((900, 4))
    others = np.random.default_rng(1).uniform(-9, 9, (300, 2))
    made = np.concatenate([crowd, np.concatenate([others, others], axis=1)])
    sizes = np.bincount(cut_cells(made, 12).find(made, np.arange(1200)), minlength=12)
    assert sizes.max() < 2 * 100


@given(boxes(), st.integers(1, 6))
def test_covers_cover(given_boxes, count):
    cover = covering_boxes(given_boxes, count)
    assert 1 <= len(cover) <= count
    inside = (cover[None, :, :2] <= given_boxes[:, None, :2]) & (cover[None, :, 2:] >= given_boxes[:, None, 2:])
    assert inside.all(axis=2).any(axis=1).all()


def test_a_large_box_does_not_spoil_the_cover_of_small_ones():
    corners = np.random.default_rng(2).uniform(0, 1, (500, 2))
    made = np.concatenate([np.concatenate([corners, corners + 0.01], axis=1), [[-100, -1, 100, 1]]])
    cover = covering_boxes(made, 2)
    areas = np.sort(np.prod(cover[:, 2:] - cover[:, :2], axis=1))
    assert areas[0] < 1.1
    assert areas[1] == 400


@given(boxes())
def test_widened_boxes_are_regions(given_boxes):
    made = widened(given_boxes)
    assert (made[:, :2] <= given_boxes[:, :2]).all()
    assert (made[:, 2:] >= given_boxes[:, 2:]).all()
    for box in made.tolist():
        Region.box(*box)
