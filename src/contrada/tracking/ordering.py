"""Put the fixes of a batch into the order in which they are taken, and their pairs beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.geometry.arrays import offsets_of
from contrada.matching.batch import Integers

Pairs = tuple[Integers, Integers]  # places of fixes, numbers of subscriptions


class OrderedFixes(NamedTuple):
    """Fixes in the order in which they are taken, by place."""

    rows: Integers
    slots: NDArray[np.int32]
    times: Integers
    ends: NDArray[np.uint8]
    grouped: Integers  # places, those of one object together and in order
    previous: Integers  # row of the fix before of the same object in this batch, or -1

    def places(self, size: int) -> Integers:
        """Return the place of each of `size` rows, -1 for rows that are not taken."""
        found = np.full(size, -1)
        found[self.rows[::-1]] = np.arange(len(self.rows))[::-1]  # a row that ends several parts: the first place
        return found


def ordered_fixes(
    rows: Integers,
    slots: NDArray[np.int32],
    times: Integers,
    is_by_time: bool,
    ended: Sequence[tuple[int, Sequence[int]]] = (),
) -> OrderedFixes:
    """Return fixes in order: those of one object by time, equal times by row, at the places of the object's rows.

    `ended` are places of fixes that end a track, by rising place, with the slots of further parts that end with it.
    """
    grouped = np.argsort(slots, kind="stable")
    is_same = slots[grouped[1:]] == slots[grouped[:-1]]
    if is_by_time and (is_same & (times[grouped[1:]] < times[grouped[:-1]])).any():
        by_time = np.lexsort((times, slots))
        order = np.empty_like(grouped)
        order[grouped] = by_time
        rows, times = rows[order], times[order]
    ends = np.zeros(len(rows), np.uint8)
    if ended:
        rows, slots, times, ends = _with_parts(rows, slots, times, ended)
        grouped = np.argsort(slots, kind="stable")
        is_same = slots[grouped[1:]] == slots[grouped[:-1]]
    previous = np.full(len(rows), -1)
    previous[grouped[1:][is_same]] = rows[grouped[:-1][is_same]]
    return OrderedFixes(rows, slots, times, ends, grouped, previous)


def _with_parts(
    rows: Integers, slots: NDArray[np.int32], times: Integers, ended: Sequence[tuple[int, Sequence[int]]]
) -> tuple[Integers, NDArray[np.int32], Integers, NDArray[np.uint8]]:
    """Return fixes with the further parts of ended tracks after the fix that ends them; `ended` has rows."""
    parts = dict(ended)
    found: list[tuple[int, int, int, int]] = []
    for row, slot, time in zip(rows.tolist(), slots.tolist(), times.tolist(), strict=True):
        found.append((row, slot, time, row in parts))
        found += [(row, part, time, True) for part in parts.get(row, ())]
    columns = np.ascontiguousarray(np.array(found, np.int64).T)
    return columns[0], columns[1].astype(np.int32), columns[2], columns[3].astype(np.uint8)


def rising_pairs(places: Integers, numbers: Integers, size: int) -> tuple[Integers, NDArray[np.int32], Integers]:
    """Return pairs by place and number, each once: offsets by place, numbers, and places."""
    keys = places << 32 | numbers
    if not (keys[1:] > keys[:-1]).all():
        keys = np.unique(keys)
        places, numbers = keys >> 32, keys & 0xFFFFFFFF
    return offsets_of(np.bincount(places, minlength=size)), numbers.astype(np.int32), places
