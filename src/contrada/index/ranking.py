"""Rank the constants of raw records, slot by slot (kernels/match/ranks.py), into the arrays of a scalar index.

All slots are ranked together: a table may have as many slots as constraints, and a Python loop over the slots took 54 s
for 16,000 attributes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada import codes
from contrada.geometry.arrays import frozen, offsets_of, ranges
from contrada.index.constants import distinct_scalars, distinct_texts, grams_of, heads_of
from contrada.index.raw import RawRecords

NO_END = np.iinfo(np.int32).max


class ScalarArrays(NamedTuple):
    """Arrays of a scalar index, as `SCALARS` in kernels/match/tables.py describes them.

    `rank_records` makes those without a default, in which records have the order in which they were given;
    index/scalar_packing.py groups the records by filter and makes the others.
    """

    slot_of: NDArray[np.int32]
    forms: NDArray[np.uint8]
    records: NDArray[np.int32]
    const_base: NDArray[np.int64]
    keys: NDArray[np.int64]
    rests: NDArray[np.int64]
    text_base: NDArray[np.int64]
    text_offsets: NDArray[np.int64]
    blob: NDArray[np.uint8]
    heads: NDArray[np.uint64]
    set_offsets: NDArray[np.int32]
    set_ranks: NDArray[np.int32]
    gram_base: NDArray[np.int64]
    gram_codes: NDArray[np.int64]
    gram_offsets: NDArray[np.int32]
    gram_patterns: NDArray[np.int32]
    offsets: NDArray[np.int32] = frozen(np.zeros(1, np.int32))
    entries: NDArray[np.uint64] = frozen(np.empty((0, 2), np.uint64))
    equal_base: NDArray[np.int64] = frozen(np.zeros(1, np.int64))
    equal_offsets: NDArray[np.int32] = frozen(np.zeros(1, np.int32))
    others: NDArray[np.int64] = frozen(np.zeros(1, np.int64))
    spans: NDArray[np.int32] = frozen(np.empty(0, np.int32))
    blocks: NDArray[np.int32] = frozen(np.empty((0, 4), np.int32))
    boxes: NDArray[np.float32] = frozen(np.empty((0, 4 * codes.BLOCK), np.float32))
    numbers: NDArray[np.int32] = frozen(np.empty(0, np.int32))
    local_of: NDArray[np.int32] = frozen(np.empty(0, np.int32))

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of constants of each slot, scalars or texts."""
        return np.asarray(np.diff(self.const_base) + np.diff(self.text_base))


def rank_records(raw: RawRecords, forms: NDArray[np.uint8]) -> ScalarArrays:
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
    is_text = own_forms[owners] >= codes.TEXT
    (keys, rests), (starts, stops) = operands[~is_text].T, operands[is_text].T
    scalars = distinct_scalars(keys, rests, owners[~is_text])
    texts = distinct_texts(starts, stops, raw.blob, owners[is_text])
    const_base, text_base = _bases(scalars.slots, own_forms), _bases(texts.slots, own_forms)
    numbers = np.empty(len(owners), np.int64)  # of each operand among the constants of its slot
    numbers[~is_text] = scalars.numbers - const_base[owners[~is_text]]
    numbers[is_text] = texts.numbers - text_base[owners[is_text]]
    first, second, third, fourth = np.split(numbers, np.cumsum([len(lows), len(highs), len(members)]))
    low, high = np.zeros(len(given), np.int64), np.full(len(given), NO_END, np.int64)
    low[lows] = 2 * first + np.where(low_end[lows] == codes.OPEN, 2, 1)
    high[highs] = 2 * second + np.where(high_end[highs] == codes.OPEN, 0, 1)
    low[sets] = np.arange(len(sets))
    low[likes] = text_base[slot[likes]] + fourth
    records = np.empty((len(given), 3), np.int32)
    records[order] = np.stack([slot | asks << codes.ASKS_SHIFT, low, high], axis=1)
    kept_rests = scalars.rests if scalars.rests.any() else scalars.rests[:0]
    return ScalarArrays(
        slot_of, own_forms, records, const_base, scalars.keys, kept_rests, text_base, texts.offsets, texts.blob,
        heads_of(texts), offsets_of(sizes).astype(np.int32), (2 * third + 1).astype(np.int32),
        *grams_of(texts, own_forms),
    )  # fmt: skip


def _bases(slots: NDArray[np.int64], forms: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return where the constants of each slot begin; `slots` has the slot of each constant, sorted."""
    return offsets_of(np.bincount(slots, minlength=len(forms)))
