"""Rectangles as points: [l_1, r_1] x [l_2, r_2] x ... becomes (-l_1, r_1, -l_2, r_2, ...); covering is dominance.

Values are doubles, so an open end equals a closed end at the next double, and every end is exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.errors import CoveringError


class Range(NamedTuple):
    """Values from low to high; an end may be open, or infinite.

    >>> Range(0, 50), Range(high=9, high_open=True), Range(7, 7)     # 0 <= x <= 50, x < 9, x = 7
    (Range(low=0, high=50, ...), Range(low=-inf, high=9, ..., high_open=True), Range(low=7, high=7, ...))
    """

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False


def rectangle_point(ranges: Mapping[str, Range], attributes: Sequence[str]) -> NDArray[np.float64]:
    """Return the point of a rectangle with these ranges; attributes without a range are unbounded.

    Messages are assumed to have all attributes: an unbounded range is no constraint. Raise CoveringError for an empty
    range, an end that is no double, and an attribute that is not in `attributes`.

    >>> rectangle_point({"price": Range(0, 50)}, ["price", "weight"]).tolist()
    [-0.0, 50.0, inf, inf]
    """
    if unknown := [name for name in ranges if name not in attributes]:
        raise CoveringError(f"attribute {unknown[0]!r} is not among {', '.join(map(repr, attributes))}")
    point = np.full(2 * len(attributes), np.inf)
    for i, name in enumerate(attributes):
        if name in ranges:
            low, high = _closed(name, ranges[name])
            point[2 * i], point[2 * i + 1] = -low, high
    return point


def _closed(name: str, given: Range) -> tuple[float, float]:
    """Return the ends of a range as doubles that belong to it."""
    low, high = _double(name, "low", given.low), _double(name, "high", given.high)
    if given.low_open:
        low = math.nextafter(low, math.inf) if low < math.inf else math.nan
    if given.high_open:
        high = math.nextafter(high, -math.inf) if high > -math.inf else math.nan
    if not low <= high:
        raise CoveringError(f"attribute {name!r}: {_shown(given)} is empty")
    return low, high


def _double(name: str, which: str, end: float) -> float:
    """Return an end as the double that equals it; raise CoveringError if none does."""
    if isinstance(end, bool) or not isinstance(end, (int, float, np.integer, np.floating)):
        raise CoveringError(f"attribute {name!r}: the {which} end: need a number, got {type(end).__name__}")
    try:
        double = float(end)
    except OverflowError:
        double = math.nan
    if double != end:  # NaN, or an integer between two doubles
        raise CoveringError(f"attribute {name!r}: the {which} end: need a number that fits a double exactly, got {end}")
    return double


def _shown(given: Range) -> str:
    """Return a range in mathematical notation."""
    return f"{'(' if given.low_open else '['}{given.low}, {given.high}{')' if given.high_open else ']'}"
