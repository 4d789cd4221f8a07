"""Entries that lead to filters, each with coarse bounds of two of the filter's records, in two 64-bit words.

The first word has the filter in its lower half, and above it the slots of the two records, one byte each. The second
word has four lanes of 15 bits and a free bit: for each record the least rank, and the distance of the largest rank to
MAX_LANE. A message's ranks have the same form, so one subtraction compares all four (kernels/match/scalars.py). Ranks
are shifted until they, plus one, fit, since 0 means that there is no value. The bounds never rule out a filter that is
satisfied; filters that pass are checked exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contrada.codes import ASKS_SHIFT, BLOCK, FILTER_MASK, MAX_LANE, SHIFTED_RANK_LIMIT, SLOT_MASK
from contrada.index.ranking import ScalarArrays

BOX_LEVELS = 3  # of boxes: of entries, of 16 entries, of 256 entries
MAX_BOUNDED_SLOTS = 256  # slots that fit into a byte; records about other slots have no bounds


def shifts_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the shift for ranks among `counts` constants.

    >>> shifts_of(np.array([0, 16381, 16382, 32765])).tolist()
    [0, 0, 1, 2]
    """
    width = 2 * (counts + 1)
    shifts = np.zeros(len(counts), np.int64)
    while (large := width >> shifts >= SHIFTED_RANK_LIMIT).any():
        shifts += large
    return shifts


def entries_of(
    arrays: ScalarArrays, filters: NDArray[np.int64], heads: NDArray[np.int64], is_known: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    """Return entries of filters with the first records `heads`; `is_known` marks first records that always hold.

    `filters` has the filter of every record; the records of a filter are adjacent.
    """
    entries = np.zeros((len(heads), 2), np.int64)
    entries[:, 0] = filters[heads]
    shifts = shifts_of(arrays.counts)
    for k in range(2):
        at = heads + is_known + k
        at[at >= len(filters)] = 0  # belongs to another filter, or is known to hold
        code, low, high = arrays.records[at].T.astype(np.int64)
        slot = code & SLOT_MASK
        is_own = (filters[at] == filters[heads]) & (at >= heads)
        is_bounded = is_own & (code >> ASKS_SHIFT == 0) & (slot < MAX_BOUNDED_SLOTS)
        shift = shifts[slot]
        least = np.where(is_bounded, (low >> shift) + 1, 0)
        largest = np.where(is_bounded, np.minimum((high >> shift) + 1, MAX_LANE), MAX_LANE)
        entries[:, 0] |= np.where(is_bounded, slot, 0) << 32 + 8 * k
        entries[:, 1] |= (least | MAX_LANE - largest << 16) << 32 * k
    return entries.view(np.uint64)


def filters_of(entries: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the filter of each entry."""
    return (entries[:, 0] & FILTER_MASK).view(np.int64)


def grouped_boxes(boxes: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return boxes of entries, then boxes around 16 entries each, then around 256, all in groups of 16.

    A group is a row: 16 times xmin, then ymin, xmax and ymax, so that a kernel compares several boxes at once. Boxes
    grow to the nearest float32 numbers outside: they may exclude fewer entries, never more. The last group of a level
    is filled up with boxes around nothing, which kernels leave out.
    """
    made = [np.empty((0, 4 * BLOCK), np.float32)]
    while len(made) <= BOX_LEVELS and len(boxes):
        groups = -(-len(boxes) // BLOCK)
        whole = np.tile([np.inf, np.inf, -np.inf, -np.inf], (groups * BLOCK, 1))
        whole[: len(boxes)] = boxes
        members = whole.reshape(groups, BLOCK, 4)
        made.append(outwards(members).transpose(0, 2, 1).reshape(groups, 4 * BLOCK))
        boxes = np.concatenate([members[:, :, :2].min(axis=1), members[:, :, 2:].max(axis=1)], axis=1)
    return np.concatenate(made)


def outwards(boxes: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return boxes in float32 that cover the given ones; the last axis has xmin, ymin, xmax, ymax.

    >>> outwards(np.array([0.1, -0.1, 0.1, 1e120])).tolist()
    [0.09999999403953552, -0.10000000149011612, 0.10000000149011612, inf]
    """
    with np.errstate(over="ignore"):
        near = boxes.astype(np.float32)
    low, high = near[..., :2], near[..., 2:]
    low = np.where(low > boxes[..., :2], np.nextafter(low, np.float32(-np.inf)), low)
    high = np.where(high < boxes[..., 2:], np.nextafter(high, np.float32(np.inf)), high)
    return np.concatenate([low, high], axis=-1)


def box_groups(entries: int) -> int:
    """Return the number of rows of `grouped_boxes` for so many entries.

    >>> box_groups(0), box_groups(16), box_groups(4097)
    (0, 3, 276)
    """
    total = 0
    for _ in range(BOX_LEVELS):
        entries = -(-entries // BLOCK)
        total += entries
    return total
