"""Boxes and points of any number of dimensions, from coarse numbers, so that they touch and are equal often."""

from __future__ import annotations

import math
import random


def draw_box(rng: random.Random, dimensions: int = 2, unbounded: float = 0.1) -> tuple[float, ...]:
    """A box, the lows and then the highs; such a share of its sides is unbounded on one end or both.

    >>> draw_box(random.Random(1), unbounded=0)
    (4.0, 15.0, 5.0, 22.0)
    """
    lows, highs = [], []
    for _ in range(dimensions):
        low = float(rng.randrange(20))
        high = low + rng.randrange(8)
        if rng.random() < unbounded:
            low, high = rng.choice([(-math.inf, high), (low, math.inf), (-math.inf, math.inf)])
        lows.append(low)
        highs.append(high)
    return (*lows, *highs)


def draw_point(rng: random.Random, dimensions: int = 2) -> tuple[float, ...]:
    """A point, as a box without extent."""
    point = [float(rng.randrange(28)) for _ in range(dimensions)]
    return (*point, *point)
