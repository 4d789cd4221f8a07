"""Subscriptions and messages of the overlay paper's evaluation: rectangles and points of integers in 0..1,000.

A range has an origin, uniform or by Zipf's law with exponent 1, and a size that is uniform among those that fit,
including 0. By Zipf's law small numbers are frequent; `scattered` is the other reading, in which any number may be a
frequent one. With containment X:Y the first X % are drawn this way, and each other one lies uniformly within a random
earlier one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from contrada import kernels
from contrada.errors import OverlayError

MAX_COORDINATE = 1000
DISTRIBUTIONS = ("uniform", "uniform-25:75", "uniform-10:90", "zipf", "zipf-25:75", "zipf-10:90")
_FORM = re.compile(r"(uniform|zipf|scattered)(?:-(\d{1,2}):(\d{1,2}))?\Z")
Boxes = npt.NDArray[np.float64]


class Distribution(NamedTuple):
    """How subscriptions are drawn: the law of origins, and the share that need not lie within another."""

    law: str
    free: float


def distribution_of(name: str) -> Distribution:
    """Parse the name of a distribution, such as zipf-25:75.

    >>> distribution_of("zipf-25:75")
    Distribution(law='zipf', free=0.25)
    """
    found = _FORM.match(name.lower())
    if not found:
        raise OverlayError(f"unknown distribution {name!r:.60}; distributions: {', '.join(DISTRIBUTIONS)}")
    law, free, rest = found.groups()
    if free is not None and int(free) + int(rest) != 100:
        raise OverlayError(f"{name!r}: the two shares must add up to 100 %, got {int(free) + int(rest)} %")
    return Distribution(law, 1.0 if free is None else int(free) / 100)


def draw_subscriptions(count: int, dimensions: int, distribution: str, rng: np.random.Generator) -> Boxes:
    """Draw `count` boxes, lows then highs, in random order.

    >>> draw_subscriptions(1000, 4, "zipf-25:75", np.random.default_rng(1)).shape
    (1000, 8)
    """
    law, share = distribution_of(distribution)
    free = max(1, round(count * share))
    lows = np.empty((count, dimensions), np.int64)
    highs = np.empty((count, dimensions), np.int64)
    lows[:free] = _origins(free, dimensions, law, rng)
    highs[:free] = rng.integers(lows[:free], MAX_COORDINATE, endpoint=True)
    for row in range(free, count):
        around = rng.integers(row)
        lows[row] = rng.integers(lows[around], highs[around], endpoint=True)
        highs[row] = rng.integers(lows[row], highs[around], endpoint=True)
    boxes = np.hstack([lows, highs]).astype(np.float64)
    return boxes[rng.permutation(count)]  # so that contained ones do not join last


def _origins(count: int, dimensions: int, law: str, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    if law == "uniform":
        return rng.integers(0, MAX_COORDINATE, (count, dimensions), endpoint=True)
    weights = 1 / np.arange(1, MAX_COORDINATE + 2)
    ranks = rng.choice(MAX_COORDINATE + 1, (count, dimensions), p=weights / weights.sum())
    if law == "zipf":
        return ranks
    values = rng.permuted(np.tile(np.arange(MAX_COORDINATE + 1), (dimensions, 1)), axis=1)
    return values[np.arange(dimensions), ranks]


def draw_messages(count: int, dimensions: int, rng: np.random.Generator) -> Boxes:
    """Draw `count` uniform points."""
    return rng.integers(0, MAX_COORDINATE, (count, dimensions), endpoint=True).astype(np.float64)


def holding(boxes: Boxes, points: Boxes) -> npt.NDArray[np.bool_]:
    """Return which boxes (columns) contain which points (rows).

    >>> holding(np.array([[0.0, 2.0], [1.0, 5.0]]), np.array([[1.0], [4.0]])).tolist()
    [[True, True], [False, True]]
    """
    axes = points.shape[1]
    held = np.ones((len(points), len(boxes)), np.bool_)
    for axis in range(axes):
        place = points[:, axis, None]
        held &= (boxes[:, axis] <= place) & (place <= boxes[:, axis + axes])
    return held


def count_uncontained(boxes: Boxes) -> int:
    """Return how many boxes lie in no other box; of equal boxes the first counts.

    >>> count_uncontained(np.array([[0.0, 5.0], [1.0, 2.0], [0.0, 5.0], [4.0, 6.0]]))
    2
    """
    return len(kernels.merged_boxes(boxes, len(boxes)))
