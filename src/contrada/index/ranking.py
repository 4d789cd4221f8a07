"""Rank the constants of raw records, slot by slot (kernels/match/ranks.py).

All slots are ranked together: a table may have as many slots as constraints, and a Python loop over the slots took 54 s
for 16,000 attributes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada import codes
from contrada.geometry.arrays import offsets_of, ranges
from contrada.index.constants import distinct_scalars, distinct_texts, gathered, grams_of
from contrada.index.raw import RawRecords

NO_END = np.iinfo(np.int32).max


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
        return np.asarray(np.diff(self.const_base) + np.diff(self.text_base))


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
    places, slots = np.unique(raw.records[:, codes.PLACE], return_inverse=True)
    slot_of = np.full(int(places.max(initial=-1)) + 1, -1, np.int32)
    slot_of[places] = np.arange(len(places))
    own_forms = forms[places]
    order = np.argsort(slots.ravel(), kind="stable")
    given, slot = raw.records[order], slots.ravel()[order].astype(np.int64)
    asks = given[:, codes.ASKED] & 7
    low_end, high_end = given[:, codes.ASKED] >> codes.LOW_SHIFT & 3, given[:, codes.ASKED] >> codes.HIGH_SHIFT & 3
    lows, highs = np.flatnonzero(low_end != codes.UNBOUNDED), np.flatnonzero(high_end != codes.UNBOUNDED)
    sets, likes = np.flatnonzero((asks >= codes.SET) & (asks < codes.LIKE)), np.flatnonzero(asks >= codes.LIKE)
    sizes = given[sets, codes.LOW_REST] - given[sets, codes.LOW]
    members = raw.members[ranges(given[sets, codes.LOW], given[sets, codes.LOW_REST])]
    low_pair, high_pair = slice(codes.LOW, codes.LOW_REST + 1), slice(codes.HIGH, codes.HIGH_REST + 1)
    # All operands one after another: lower ends, upper ends, members of sets, patterns.
    owners = np.concatenate([slot[lows], slot[highs], np.repeat(slot[sets], sizes), slot[likes]])
    operands = np.concatenate([given[lows, low_pair], given[highs, high_pair], members, given[likes, low_pair]])
    found = _constants(owners, operands, own_forms, raw.blob)
    first, second, third, fourth = np.split(found.numbers, np.cumsum([len(lows), len(highs), len(members)]))
    low, high = np.zeros(len(given), np.int64), np.full(len(given), NO_END, np.int64)
    low[lows] = 2 * first + np.where(low_end[lows] == codes.OPEN, 2, 1)
    high[highs] = 2 * second + np.where(high_end[highs] == codes.OPEN, 0, 1)
    low[sets] = np.arange(len(sets))
    low[likes] = found.text_base[slot[likes]] + fourth
    records = np.empty((len(given), 3), np.int32)
    records[order] = np.stack([slot | asks << codes.ASKS_SHIFT, low, high], axis=1)
    return Slots(
        slot_of, own_forms, records, found.const_base, found.keys,
        found.rests if found.rests.any() else found.rests[:0],
        found.text_base, found.text_offsets, found.blob,
        offsets_of(sizes).astype(np.int32), (2 * third + 1).astype(np.int32), *_grams(found, own_forms),
    )  # fmt: skip


def _constants(
    owners: NDArray[np.int64], operands: NDArray[np.int64], forms: NDArray[np.uint8], blob: NDArray[np.uint8]
) -> Constants:
    """Sort the distinct constants of every slot; operand k belongs to slot owners[k]."""
    is_text = forms[owners] >= codes.TEXT
    numbers = np.empty(len(is_text), np.int64)
    slots, values = owners[~is_text], operands[~is_text]
    scalars = distinct_scalars(values[:, 0], values[:, 1], slots)
    const_base = offsets_of(np.bincount(scalars.slots, minlength=len(forms)))
    numbers[~is_text] = scalars.numbers - const_base[slots]
    slots, values = owners[is_text], operands[is_text]
    texts = distinct_texts(values[:, 0], values[:, 1], blob, slots)
    text_base = offsets_of(np.bincount(texts.slots, minlength=len(forms)))
    numbers[is_text] = texts.numbers - text_base[slots]
    return Constants(const_base, scalars.keys, scalars.rests, text_base, texts.offsets, texts.blob, numbers)


def _grams(
    found: Constants, forms: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Return patterns by a gram that each needs: base by slot, codes, offsets and patterns, as in `Slots`."""
    slots = np.repeat(np.arange(len(forms)), np.diff(found.text_base))
    patterns = np.flatnonzero(forms[slots] >= codes.PATTERN)
    offsets, blob = gathered(found.text_offsets[patterns], found.text_offsets[patterns + 1], found.blob)
    grams = grams_of(offsets, blob, slots[patterns])
    base = offsets_of(np.bincount(grams.slots, minlength=len(forms)))
    return base, grams.codes, grams.offsets.astype(np.int32), patterns[grams.patterns].astype(np.int32)
