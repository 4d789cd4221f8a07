"""Arrays that grow: a longer copy of named arrays, the rest filled with a value."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=tuple[Any, ...])
GROWTH = 1.25  # less than 2: state is kept for long, and copying is rare


def longer(array: NDArray[Any], length: int, fill: Any) -> NDArray[Any]:
    """Return a copy of an array with `length` rows; new rows hold `fill`."""
    made = np.full((length, *array.shape[1:]), fill, array.dtype)
    made[: len(array)] = array
    return made


def room_for(length: int, needed: int) -> int:
    """Return the length of an array that has to hold `needed` rows: the same, or more than a quarter longer.

    >>> room_for(100, 100), room_for(100, 101), room_for(0, 5)
    (100, 141, 21)
    """
    return length if needed <= length else max(needed, int(length * GROWTH)) + 16
