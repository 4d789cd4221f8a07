"""Entries: what leads to a filter, with coarse bounds of two of its records, in four integers.

These are the filter; the slots of the two, a byte each; and for each of the two the least and the largest rank in 16
bits. Ranks are shifted until they and one more fit, since 0 is a value that is not there. The bounds never rule out a
filter that is satisfied; what they let through is looked at exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contrada.index.ranking import ASKS_SHIFT, SLOT_MASK, Slots

COARSE = 0xFFFE  # shifted ranks are less; as in kernels/scalars.py
MOST = 0xFFFF
SLOTS = 256  # that a byte names; records about others have no bounds


def shifts_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """By how much the ranks among so many constants are shifted.

    >>> shifts_of(np.array([0, 32765, 32766, 65533])).tolist()
    [0, 0, 1, 2]
    """
    width = 2 * (counts + 1)
    shifts = np.zeros(len(counts), np.int64)
    while (large := width >> shifts >= COARSE).any():
        shifts += large
    return shifts


def entries_of(
    slots: Slots, filters: NDArray[np.int64], heads: NDArray[np.int64], is_known: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Entries of filters with these first records, which hold for all that is reached if they are known to.

    `filters` has the filter of every record; those of a filter stand together.
    """
    entries = np.zeros((len(heads), 4), np.int64)
    entries[:, 0] = filters[heads]
    shifts = shifts_of(slots.counts)
    for k in range(2):
        at = heads + is_known + k
        at[at >= len(filters)] = 0  # which is of another filter, or known
        code, low, high = slots.records[at].T.astype(np.int64)
        slot = code & SLOT_MASK
        is_bounded = (filters[at] == filters[heads]) & (at >= heads) & (code >> ASKS_SHIFT == 0) & (slot < SLOTS)
        shift = shifts[slot]
        least = np.where(is_bounded, (low >> shift) + 1, 0)
        largest = np.where(is_bounded, np.minimum((high >> shift) + 1, MOST), MOST)
        entries[:, 1] |= np.where(is_bounded, slot, 0) << 8 * k
        entries[:, 2 + k] = least | largest << 16
    return entries.astype(np.uint32).view(np.int32)
