"""Boxes with unbounded sides: what is a box, what meets, what covers."""

import itertools
import math
import random

import numpy as np
import pytest

from contrada.errors import OverlayError
from contrada.overlay.boxes import bounds, box_of, check_box, largest, meets, nearest, point_box

INF = math.inf


def random_box(rng, d=2):
    sides = [sorted(rng.choices([-INF, *range(6), INF], k=2)) for _ in range(d)]
    return tuple(float(low) for low, _ in sides) + tuple(float(high) for _, high in sides)


def holds(box, point):
    d = len(point)
    return all(box[k] <= point[k] <= box[k + d] for k in range(d))


def test_boxes_meet_where_they_share_a_point():
    rng = random.Random(1)
    points = list(itertools.product([-INF, *np.arange(0, 6, 0.5), INF], repeat=2))
    for _ in range(300):
        a, b = random_box(rng), random_box(rng)
        assert meets(a, b) == meets(b, a) == any(holds(a, p) and holds(b, p) for p in points)
        around = bounds([a, b])
        assert all(holds(around, p) for p in points if holds(a, p) or holds(b, p))
        assert all(side in (a[k], b[k]) for k, side in enumerate(around)), "and no larger than it must be"


@pytest.mark.parametrize(
    "wrong", [(), (1.0,), (2.0, 1.0), (math.nan, 1.0), (0.0, math.nan), (0.0, 0.0, 1.0), (0.0, 3.0, 1.0, 2.0)]
)
def test_what_is_no_box_is_refused(wrong):
    with pytest.raises(OverlayError):
        check_box(wrong)


def test_dimensions_are_checked():
    with pytest.raises(OverlayError, match="need 2 dimensions, got 1"):
        check_box((0.0, 1.0), 2)
    with pytest.raises(OverlayError, match=r"dimension 1: need low <= high, got 3\.0 and 2\.0"):
        box_of([(0, 1), (3, 2)])
    assert check_box([0, 1, 2, 3]) == (0.0, 1.0, 2.0, 3.0)
    assert point_box([1, 2]) == (1.0, 2.0, 1.0, 2.0)


def test_the_largest_and_the_nearest():
    boxes = [(0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 0.0, 9.0), (4.0, 4.0, 6.0, 6.0)]
    assert largest(boxes) == 2
    assert largest([(0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 9.0)]) == 1, "no area: by margin"
    assert largest([*boxes, (0.0, 0.0, INF, INF)]) == 3
    assert nearest(boxes, (5.0, 5.0, 5.0, 5.0), by_overlap=False) == 2
    assert nearest(boxes, (5.0, 5.0, 5.0, 5.0), by_overlap=True) == 2
