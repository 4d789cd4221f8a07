"""Entries: what leads to a filter, with coarse bounds of two of its records, in two words of 64 bits.

The first word has the filter in its lower half, and above it the slots of the two records, a byte each. The second has
four lanes of 15 bits and a free one: of each record the least rank, and what is left from the largest to MOST. With the
same of a message's ranks one subtraction compares all four (kernels/match/scalars.py). Ranks are shifted until they
and one more fit, since 0 is a value that is not there. The bounds never rule out a filter that is satisfied; what they
let through is looked at exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contrada.index.ranking import ASKS_SHIFT, SLOT_MASK, Slots

COARSE = 0x7FFE  # shifted ranks are less; as in kernels/match/scalars.py
MOST = 0x7FFF
FILTER = 0xFFFFFFFF  # where the first word has it
SLOTS = 256  # that a byte names; records about others have no bounds


def shifts_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """By how much the ranks among so many constants are shifted.

    >>> shifts_of(np.array([0, 16381, 16382, 32765])).tolist()
    [0, 0, 1, 2]
    """
    width = 2 * (counts + 1)
    shifts = np.zeros(len(counts), np.int64)
    while (large := width >> shifts >= COARSE).any():
        shifts += large
    return shifts


def entries_of(
    slots: Slots, filters: NDArray[np.int64], heads: NDArray[np.int64], is_known: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    """Entries of filters with these first records, which hold for all that is reached if they are known to.

    `filters` has the filter of every record; those of a filter stand together.
    """
    entries = np.zeros((len(heads), 2), np.int64)
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
        entries[:, 0] |= np.where(is_bounded, slot, 0) << 32 + 8 * k
        entries[:, 1] |= (least | MOST - largest << 16) << 32 * k
    return entries.view(np.uint64)


def filters_of(entries: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The filter of each entry."""
    return (entries[:, 0] & np.uint64(FILTER)).view(np.int64)
