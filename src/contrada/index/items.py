"""Items of a packed tree: the regions or points of a column, as arrays for match kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.codes import NO_INDEX
from contrada.geometry import PointArray, RegionArray
from contrada.geometry.arrays import Arrays, frozen
from contrada.geometry.line_relating import AnyValues

_NO_RINGS = (frozen(np.zeros(1, np.int64)), frozen(np.zeros(2, np.int32)), frozen(np.empty(0, np.uint8)))
_NO_LARGE = frozen(np.empty(0, np.int32)), frozen(np.empty(0, np.int64))


class Items(NamedTuple):
    """Items, as `ITEMS` in kernels/match/tables.py describes them: points have boxes without rings."""

    xy: NDArray[np.float64]
    ring_offsets: NDArray[np.int64]
    region_offsets: NDArray[np.int32]
    ring_flags: NDArray[np.uint8]
    bounds: NDArray[np.float64]
    boxes: NDArray[np.float64]
    large: NDArray[np.int32]
    bases: NDArray[np.int64]
    ring_count: int


def items_of(column: RegionArray | PointArray) -> Items:
    """Return the items of a column; the edge indexes of large regions are built if they are not there yet."""
    if isinstance(column, PointArray):
        return Items(column.xy, *_NO_RINGS, frozen(boxes_of(column)), np.empty((0, 4)), *_NO_LARGE, 1)
    *arrays, boxes, chains = column._kernel_arrays()
    large = np.flatnonzero(chains != NO_INDEX)
    return region_items(Arrays(*arrays), boxes, frozen(large.astype(np.int32)), frozen(chains[large]))


def region_items(
    arrays: Arrays, boxes: NDArray[np.float64], large: NDArray[np.int32], bases: NDArray[np.int64]
) -> Items:
    """Return regions with the edge indexes of the `large` ones as items."""
    return Items(*arrays, boxes, large, bases, int(np.diff(arrays.region_offsets).max(initial=1)))


def boxes_of(column: AnyValues) -> NDArray[np.float64]:
    """Return the boxes of regions, points or lines, and boxes that hold circles."""
    if not isinstance(column, PointArray):
        return column.bounds
    return np.ascontiguousarray(np.concatenate([column.xy, column.xy], axis=1))
