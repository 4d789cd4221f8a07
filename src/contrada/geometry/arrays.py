"""Flat arrays behind a column of regions: choose rows and concatenate columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Arrays(NamedTuple):
    """Flat arrays of a column, as `RegionArray` describes them; all read-only."""

    xy: NDArray[np.float64]
    ring_offsets: NDArray[np.int64]
    region_offsets: NDArray[np.int32]
    ring_flags: NDArray[np.uint8]
    bounds: NDArray[np.float64]


def take(arrays: Arrays, rows: NDArray[Any]) -> Arrays:
    """Return a copy of chosen rows; negative rows count from the end."""
    rows = np.asarray(rows, np.int64)
    n = len(arrays.bounds)
    if rows.size and (rows.min() < -n or rows.max() >= n):
        raise IndexError(f"row {int(rows.min() if rows.min() < -n else rows.max())} is outside a column of {n} regions")
    rows = np.where(rows < 0, rows + n, rows)
    rings = ranges(arrays.region_offsets[rows], arrays.region_offsets[rows + 1])
    vertices = ranges(arrays.ring_offsets[rings], arrays.ring_offsets[rings + 1])
    return Arrays(
        arrays.xy[vertices],
        # Read the offsets of these rows only: a slice of one row shares the offsets of its whole column.
        offsets_of(arrays.ring_offsets[rings + 1] - arrays.ring_offsets[rings]),
        offsets_of(arrays.region_offsets[rows + 1] - arrays.region_offsets[rows]).astype(np.int32),
        arrays.ring_flags[rings],
        arrays.bounds[rows],
    )


def compact(arrays: Arrays) -> Arrays:
    """Return arrays that hold only these regions (a slice shares its parent's); vertices are shared, not copied."""
    first, last = arrays.region_offsets[0], arrays.region_offsets[-1]
    if first == 0 and last == len(arrays.ring_offsets) - 1:
        return arrays
    start, stop = arrays.ring_offsets[first], arrays.ring_offsets[last]
    return Arrays(
        arrays.xy[start:stop],
        arrays.ring_offsets[first : last + 1] - start,
        arrays.region_offsets - first,
        arrays.ring_flags[first:last],
        arrays.bounds,
    )


def concatenate(parts: Sequence[Arrays]) -> Arrays:
    """Return the rows of several columns, one after another; fast even for many short columns."""
    xy, ring_ends, region_ends, flags = [np.empty((0, 2))], [], [], [np.empty(0, np.uint8)]
    ring_shifts, region_shifts = [], []
    vertices = rings = 0
    for part in parts:
        first, last = int(part.region_offsets[0]), int(part.region_offsets[-1])
        start, stop = int(part.ring_offsets[first]), int(part.ring_offsets[last])
        xy.append(part.xy[start:stop])
        flags.append(part.ring_flags[first:last])
        ring_ends.append(part.ring_offsets[first + 1 : last + 1])
        region_ends.append(part.region_offsets[1:])
        ring_shifts.append(vertices - start)
        region_shifts.append(rings - first)
        vertices += stop - start
        rings += last - first
    return Arrays(
        np.concatenate(xy),
        _shifted(ring_ends, ring_shifts),
        _shifted(region_ends, region_shifts).astype(np.int32),
        np.concatenate(flags),
        np.concatenate([np.empty((0, 4)), *(part.bounds for part in parts)]),
    )


def _shifted(ends: list[NDArray[Any]], shifts: list[int]) -> NDArray[np.int64]:
    """Merge the offsets of several columns into one that begins with 0: each column's ends are shifted as a whole."""
    counts = list(map(len, ends))
    made = np.zeros(sum(counts) + 1, np.int64)
    if ends:
        np.add(np.concatenate(ends), np.repeat(shifts, counts), out=made[1:])
    return made


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view."""
    view = array.view()
    view.setflags(write=False)
    return view


def offsets_of(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Return the offsets of runs of the given lengths: 0, c0, c0 + c1, ..."""
    made = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=made[1:])
    return made


def ranges(starts: NDArray[Any], stops: NDArray[Any]) -> NDArray[np.int64]:
    """Return starts[0]..stops[0], starts[1]..stops[1], ... one after another."""
    counts = np.asarray(stops, np.int64) - starts
    ends = np.cumsum(counts)
    if len(ends) == 0:
        return np.empty(0, np.int64)
    shifts: NDArray[np.int64] = np.repeat(np.asarray(starts, np.int64) - (ends - counts), counts)
    return shifts + np.arange(ends[-1])
