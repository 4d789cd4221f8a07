"""Boxes of any number of dimensions, lows before highs: measures in plain NumPy, and strategies for sets of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Box = NDArray[np.float64]
NUMBERS = st.integers(0, 8).map(float)
WILD = NUMBERS | st.sampled_from([-np.inf, np.inf, 1e308, -1e308, 5e-324, 1e-200])


def draw_boxes(draw: st.DrawFn, count: int, dimensions: int, numbers: Any = NUMBERS) -> Box:
    """Boxes (count, 2 * dimensions) with corners of such numbers."""
    size = 2 * dimensions * count
    corners = np.array(draw(st.lists(numbers, min_size=size, max_size=size)))
    return np.sort(corners.reshape(count, 2, dimensions), axis=1).reshape(count, 2 * dimensions).copy()


def around(*boxes: Box) -> Box:
    """The smallest box that covers the boxes."""
    low, high = np.split(np.stack(boxes), 2, axis=1)
    return np.concatenate([low.min(axis=0), high.max(axis=0)])


def covers(a: Box, b: Box) -> bool:
    """True if every point of `b` lies in `a`."""
    return bool((around(a, b) == a).all())


def area(box: Box) -> float:
    """The product of the sides; 0 where a low is above its high."""
    low, high = np.split(box, 2)
    return float(np.prod(np.maximum(0, high - low)))


def margin(box: Box) -> float:
    """The sum of the sides."""
    low, high = np.split(box, 2)
    return float((high - low).sum())


def common(a: Box, b: Box) -> float:
    """The area that two boxes share."""
    (a_low, a_high), (b_low, b_high) = np.split(a, 2), np.split(b, 2)
    return area(np.concatenate([np.maximum(a_low, b_low), np.minimum(a_high, b_high)]))
