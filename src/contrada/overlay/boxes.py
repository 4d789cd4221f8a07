"""Boxes of any number of dimensions: the lows of all dimensions, then the highs; sides may be unbounded.

A box is a plain tuple: a peer reads few boxes at a time, and an array costs more to make than to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from contrada import kernels
from contrada.errors import OverlayError

Box = tuple[float, ...]


def box_of(sides: Iterable[tuple[float, float]]) -> Box:
    """Return the box with these sides, each a pair of low and high.

    >>> box_of([(0, 1), (-float("inf"), 5)])
    (0.0, -inf, 1.0, 5.0)
    """
    pairs = [(float(low), float(high)) for low, high in sides]
    for axis, (low, high) in enumerate(pairs):
        if not low <= high:
            raise OverlayError(f"dimension {axis}: need low <= high, got {low} and {high}")
    return (*(low for low, _ in pairs), *(high for _, high in pairs))


def check_box(box: Sequence[float], dimensions: int | None = None) -> Box:
    """Return the box as a tuple of floats; raise OverlayError if it is invalid or has not `dimensions` dimensions.

    >>> check_box([1, 0])
    Traceback (most recent call last):
    contrada.errors.OverlayError: dimension 0: need low <= high, got 1.0 and 0.0
    """
    axes = len(box) // 2
    if not box or len(box) != 2 * axes:
        raise OverlayError(f"box: need a low and a high for every dimension, got {len(box)} numbers")
    if dimensions is not None and axes != dimensions:
        raise OverlayError(f"box: need {dimensions} dimensions, got {axes}")
    return box_of(zip(box[:axes], box[axes:], strict=True))


def point_box(point: Sequence[float]) -> Box:
    """Return the box that contains one point.

    >>> point_box((1.0, 2.0))
    (1.0, 2.0, 1.0, 2.0)
    """
    return check_box((*point, *point))


def bounds(boxes: Sequence[Box]) -> Box:
    """Return the smallest box around several.

    >>> bounds([(0.0, 1.0, 2.0, 3.0), (1.0, 0.0, 5.0, 2.0)])
    (0.0, 0.0, 5.0, 3.0)
    """
    if len(boxes) == 1:
        return boxes[0]
    sides = list(zip(*boxes, strict=True))
    axes = len(sides) // 2
    return (*map(min, sides[:axes]), *map(max, sides[axes:]))


def meets(a: Box, b: Box) -> bool:
    """Return True if two boxes have a point in common; boxes are closed.

    >>> meets((0.0, 1.0), (1.0, 2.0)), meets((0.0, 1.0), (1.5, 2.0))
    (True, False)
    """
    axes = len(a) // 2
    for axis in range(axes):  # noqa: SIM110 - the loop takes half the time of all() here
        if a[axis] > b[axis + axes] or b[axis] > a[axis + axes]:
            return False
    return True


def rows_of(boxes: Sequence[Box]) -> npt.NDArray[np.float64]:
    """Return boxes as the array that kernels take."""
    return np.array(boxes, np.float64)


def nearest(boxes: Sequence[Box], box: Box, by_overlap: bool) -> int:
    """Return the index of the box that fits a new one best: by least growth of overlap (R*) or of area (R).

    >>> nearest([(0.0, 4.0), (5.0, 6.0)], (4.5, 5.0), by_overlap=False)
    1
    """
    choose = kernels.choose_overlap if by_overlap else kernels.choose_enlargement
    return int(choose(rows_of(boxes), np.array(box)))


def largest(boxes: Sequence[Box]) -> int:
    """Return the index of the largest box: by area, then by margin, then the first.

    >>> largest([(0.0, 1.0), (0.0, 3.0), (2.0, 5.0)])
    1
    """
    return int(kernels.largest_box(rows_of(boxes)))
