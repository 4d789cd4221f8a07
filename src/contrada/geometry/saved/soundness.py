"""Check arrays from files before kernels index with them: ascending offsets, numbers and coordinates in range."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada.codes import HOLE, LINE, MAX_MAGNITUDE
from contrada.geometry.arrays import Arrays


def require(holds: bool | np.bool_, what: str) -> None:
    """Raise ValueError if a condition does not hold."""
    if not holds:
        raise ValueError(what)


def check_offsets(name: str, offsets: NDArray[Any], runs: int, end: int, least: int = 0) -> None:
    """Raise ValueError unless `offsets` cut 0..end into `runs` runs, each of `least` or more.

    >>> check_offsets("ring_offsets", np.array([0, 4, 2]), 2, 2)
    Traceback (most recent call last):
    ValueError: ring_offsets is not in ascending order
    """
    require(len(offsets) == runs + 1, f"{name} has {len(offsets)} numbers; expected {runs + 1}")
    first, last = offsets[0], offsets[-1]
    require(first == 0 and last == end, f"{name} runs from {first} to {last}; expected 0 to {end}")
    require(bool((offsets[1:] >= offsets[:-1]).all()), f"{name} is not in ascending order")
    require(least == 0 or bool((offsets[1:] - offsets[:-1] >= least).all()), f"{name}: a step is smaller than {least}")


def check_numbers(name: str, numbers: NDArray[Any], low: int, stop: int) -> None:
    """Raise ValueError unless every number is at least `low` and less than `stop`.

    >>> check_numbers("rows", np.array([0, 7]), 0, 7)
    Traceback (most recent call last):
    ValueError: rows: 7 is outside 0..6
    """
    if len(numbers):
        least, most = int(numbers.min()), int(numbers.max())
        require(low <= least and most < stop, f"{name}: {least if least < low else most} is outside {low}..{stop - 1}")


def check_regions(arrays: Arrays, regions: int) -> None:
    """Raise ValueError unless the arrays of a column of `regions` regions are consistent."""
    rings, vertices = len(arrays.ring_flags), len(arrays.xy)
    is_shaped = arrays.xy.shape == (vertices, 2) and arrays.bounds.shape == (regions, 4)
    require(is_shaped, "coordinates or bounds have a wrong shape")
    check_offsets("ring_offsets", arrays.ring_offsets, rings, vertices, least=4)
    check_offsets("region_offsets", arrays.region_offsets, regions, rings, least=1)
    require(not (arrays.ring_flags[arrays.region_offsets[:-1]] & HOLE).any(), "the first ring of a region is a hole")


def check_lines(arrays: Arrays, lines: int) -> None:
    """Raise ValueError unless the arrays of a column of `lines` lines, with parts in place of rings, are consistent."""
    parts, vertices = len(arrays.ring_flags), len(arrays.xy)
    is_shaped = arrays.xy.shape == (vertices, 2) and arrays.bounds.shape == (lines, 4)
    require(is_shaped, "coordinates or bounds have a wrong shape")
    check_offsets("ring_offsets", arrays.ring_offsets, parts, vertices, least=2)
    check_offsets("region_offsets", arrays.region_offsets, lines, parts, least=1)
    require(bool((arrays.ring_flags == LINE).all()), "a part of a line is marked as a ring")


def check_coordinates(name: str, xy: NDArray[np.float64]) -> None:
    """Raise ValueError if a coordinate is not finite or too large: kernels turn coordinates into cells of grids."""
    if xy.size:
        largest = max(-float(xy.min()), float(xy.max()))
        require(largest <= MAX_MAGNITUDE, f"{name}: a coordinate is not finite, or larger than 1e120")
