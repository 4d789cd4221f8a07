"""Rank the constants of raw records, slot by slot (kernels/match/ranks.py).

All slots are ranked together: a table may have as many slots as constraints, and a Python loop over the slots took 54 s
for 16,000 attributes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.index.constants import distinct_scalars, distinct_texts, gathered, grams_of, runs
from contrada.index.raw import (
    ASKED,
    HIGH,
    HIGH_REST,
    HIGH_SHIFT,
    LOW,
    LOW_REST,
    LOW_SHIFT,
    OPEN,
    PLACE,
    UNBOUNDED,
    RawRecords,
)
from contrada.model.forms import LIKE, PATTERN, SET, TEXT

NO_END = np.iinfo(np.int32).max
ASKS_SHIFT, SLOT_MASK = 24, (1 << 24) - 1


class Slots(NamedTuple):
    """Records with ranked constants, and the constants by slot."""

    slot_of: NDArray[np.int32]
    forms: NDArray[np.uint8]
    records: NDArray[np.int32]
    const_base: NDArray[np.int64]
    keys: NDArray[np.int64]
    rests: NDArray[np.int64]
    text_base: NDArray[np.int64]
    text_offsets: NDArray[np.int64]
    blob: NDArray[np.uint8]
    set_offsets: NDArray[np.int32]
    set_ranks: NDArray[np.int32]
    gram_base: NDArray[np.int64]
    gram_codes: NDArray[np.int64]
    gram_offsets: NDArray[np.int32]
    gram_patterns: NDArray[np.int32]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of constants of each slot, scalars or texts."""
        counts: NDArray[np.int64] = np.diff(self.const_base) + np.diff(self.text_base)
        return counts


def based(counts: list[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where runs of the given lengths begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


class RecordOperands(NamedTuple):
    """Operands of records in one row: lower ends, upper ends, members of sets, patterns."""

    slots: NDArray[np.int64]
    values: NDArray[np.int64]
    counts: tuple[int, int, int, int]


class Constants(NamedTuple):
    """Distinct constants of all slots, in order within each slot, and for each operand its number in its slot."""

    const_base: NDArray[np.int64]
    keys: NDArray[np.int64]
    rests: NDArray[np.int64]
    text_base: NDArray[np.int64]
    text_offsets: NDArray[np.int64]
    blob: NDArray[np.uint8]
    numbers: NDArray[np.int64]


def rank_records(raw: RawRecords, forms: NDArray[np.uint8]) -> Slots:
    """Rank the constants of raw records slot by slot; `forms` is indexed by place. O(n log n) for n operands."""
    places, slots = np.unique(raw.records[:, PLACE], return_inverse=True)
    slot_of = np.full(int(places.max(initial=-1)) + 1, -1, np.int32)
    slot_of[places] = np.arange(len(places))
    own_forms = forms[places]
    order = np.argsort(slots.ravel(), kind="stable")
    given, slot = raw.records[order], slots.ravel()[order].astype(np.int64)
    asks = given[:, ASKED] & 7
    low_end, high_end = given[:, ASKED] >> LOW_SHIFT & 3, given[:, ASKED] >> HIGH_SHIFT & 3
    lows, highs = np.flatnonzero(low_end != UNBOUNDED), np.flatnonzero(high_end != UNBOUNDED)
    sets, likes = np.flatnonzero((asks >= SET) & (asks < LIKE)), np.flatnonzero(asks >= LIKE)
    sizes = given[sets, LOW_REST] - given[sets, LOW]
    members = raw.members[runs(given[sets, LOW], given[sets, LOW_REST])]
    operands = RecordOperands(
        np.concatenate([slot[lows], slot[highs], np.repeat(slot[sets], sizes), slot[likes]]),
        np.concatenate(
            [given[lows, LOW : LOW_REST + 1], given[highs, HIGH : HIGH_REST + 1], members,
             given[likes, LOW : LOW_REST + 1]]
        ),
        (len(lows), len(highs), len(members), len(likes)),
    )  # fmt: skip
    found = _constants(operands, own_forms, raw.blob)
    first, second, third, fourth = np.split(found.numbers, np.cumsum(operands.counts[:3]))
    low, high = np.zeros(len(given), np.int64), np.full(len(given), NO_END, np.int64)
    low[lows] = 2 * first + np.where(low_end[lows] == OPEN, 2, 1)
    high[highs] = 2 * second + np.where(high_end[highs] == OPEN, 0, 1)
    low[sets] = np.arange(len(sets))
    low[likes] = found.text_base[slot[likes]] + fourth
    records = np.empty((len(given), 3), np.int32)
    records[order] = np.stack([slot | asks << ASKS_SHIFT, low, high], axis=1)
    return Slots(
        slot_of, own_forms, records, found.const_base, found.keys,
        found.rests if found.rests.any() else found.rests[:0],
        found.text_base, found.text_offsets, found.blob,
        based(sizes).astype(np.int32), (2 * third + 1).astype(np.int32), *_grams(found, own_forms),
    )  # fmt: skip


def _constants(operands: RecordOperands, forms: NDArray[np.uint8], blob: NDArray[np.uint8]) -> Constants:
    """Sort the distinct constants of every slot."""
    is_text = forms[operands.slots] >= TEXT
    numbers = np.empty(len(is_text), np.int64)
    slots, values = operands.slots[~is_text], operands.values[~is_text]
    scalars = distinct_scalars(values[:, 0], values[:, 1], slots)
    const_base = based(np.bincount(scalars.slots, minlength=len(forms)))
    numbers[~is_text] = scalars.numbers - const_base[slots]
    slots, values = operands.slots[is_text], operands.values[is_text]
    texts = distinct_texts(values[:, 0], values[:, 1], blob, slots)
    text_base = based(np.bincount(texts.slots, minlength=len(forms)))
    numbers[is_text] = texts.numbers - text_base[slots]
    return Constants(const_base, scalars.keys, scalars.rests, text_base, texts.offsets, texts.blob, numbers)


def _grams(
    found: Constants, forms: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Return patterns by a gram that each needs: base by slot, codes, offsets and patterns, as in `Slots`."""
    slots = np.repeat(np.arange(len(forms)), np.diff(found.text_base))
    patterns = np.flatnonzero(forms[slots] >= PATTERN)
    offsets, blob = gathered(found.text_offsets[patterns], found.text_offsets[patterns + 1], found.blob)
    grams = grams_of(offsets, blob, slots[patterns])
    base = based(np.bincount(grams.slots, minlength=len(forms)))
    return base, grams.codes, grams.offsets.astype(np.int32), patterns[grams.patterns].astype(np.int32)
