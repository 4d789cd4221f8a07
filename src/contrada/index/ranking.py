"""Ranking: raw records with their constants put in order, slot by slot, and counted in ranks (kernels/ranks.py)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.index.constants import Texts, distinct_scalars, distinct_texts, grams_of, runs
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
    Raw,
)
from contrada.model.forms import LIKE, PATTERN, SET, TEXT

NO_END = np.iinfo(np.int32).max
ASKS_SHIFT, SLOT_MASK = 24, (1 << 24) - 1


class Slots(NamedTuple):
    """Records with their constants ranked, and these by slot."""

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
        """The number of constants of each slot, of either sort."""
        counts: NDArray[np.int64] = np.diff(self.const_base) + np.diff(self.text_base)
        return counts


def based(counts: list[int]) -> NDArray[np.int64]:
    """Where runs of such lengths begin, and the last one ends."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


class Ranking:
    """Ranks the constants of raw records, slot by slot."""

    def __init__(self, raw: Raw, forms: NDArray[np.uint8]) -> None:
        self.raw = raw
        places, slots = np.unique(raw.records[:, PLACE], return_inverse=True)
        self.slot_of = np.full(int(places.max(initial=-1)) + 1, -1, np.int32)
        self.slot_of[places] = np.arange(len(places))
        self.forms = forms[places]
        self.records = np.zeros((len(raw.records), 3), np.int32)
        self.records[:, 0] = slots.ravel() | (raw.records[:, ASKED] & 7) << ASKS_SHIFT
        self.scalars: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self.texts: list[Texts] = []
        self.sets: list[NDArray[np.int64]] = []
        self.set_sizes: list[NDArray[np.int64]] = []
        self.grams: list[Any] = []
        self.set_count = 0
        order = np.argsort(slots.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(slots.ravel(), minlength=len(places)))
        for slot, rows in enumerate(np.split(order, ends[:-1]) if len(places) else []):
            self._rank(int(self.forms[slot]), rows)

    def _rank(self, form: int, rows: NDArray[np.int64]) -> None:
        """Rank the constants of one slot."""
        given = self.raw.records[rows]
        asks = given[:, ASKED] & 7
        low_end, high_end = given[:, ASKED] >> LOW_SHIFT & 3, given[:, ASKED] >> HIGH_SHIFT & 3
        lows, highs = np.flatnonzero(low_end != UNBOUNDED), np.flatnonzero(high_end != UNBOUNDED)
        sets, likes = np.flatnonzero((asks >= SET) & (asks < LIKE)), np.flatnonzero(asks >= LIKE)
        members = self.raw.members[runs(given[sets, LOW], given[sets, LOW_REST])]
        operands = np.concatenate(
            [
                given[lows, LOW : LOW_REST + 1],
                given[highs, HIGH : HIGH_REST + 1],
                members,
                given[likes, LOW : LOW_REST + 1],
            ]
        )
        numbers = self._distinct(form, operands)
        first, second, third = np.split(numbers, np.cumsum([len(lows), len(highs), len(members)]))[:3]
        low, high = np.zeros(len(rows), np.int64), np.full(len(rows), NO_END, np.int64)
        low[lows] = 2 * first + np.where(low_end[lows] == OPEN, 2, 1)
        high[highs] = 2 * second + np.where(high_end[highs] == OPEN, 0, 1)
        low[sets] = self.set_count + np.arange(len(sets))
        low[likes] = self.text_count - len(self.texts[-1].offsets) + 1 + numbers[len(numbers) - len(likes) :]
        self.sets.append(2 * third + 1)
        self.set_sizes.append(given[sets, LOW_REST] - given[sets, LOW])
        self.set_count += len(sets)
        self.records[rows, 1], self.records[rows, 2] = low, high

    @property
    def text_count(self) -> int:
        """The number of constants that are text, so far."""
        return sum(len(text.offsets) - 1 for text in self.texts)

    def _distinct(self, form: int, operands: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keep the constants of a slot; returns which of them each operand is."""
        none = np.empty(0, np.int64)
        if form < TEXT:
            found = distinct_scalars(operands[:, 0], operands[:, 1])
            self.scalars.append((found.keys, found.rests))
            self.texts.append(Texts(np.zeros(1, np.int64), np.empty(0, np.uint8), none))
            numbers = found.numbers
        else:
            texts = distinct_texts(operands[:, 0], operands[:, 1], self.raw.blob)
            self.scalars.append((none, none))
            self.texts.append(texts)
            numbers = texts.numbers
        self.grams.append(grams_of(self.texts[-1]) if form >= PATTERN else None)
        return numbers

    def slots(self) -> Slots:
        """Everything by slot, in arrays."""
        text_base = based([len(text.offsets) - 1 for text in self.texts])
        blob_base = based([len(text.blob) for text in self.texts])
        rests = np.concatenate([rest for _, rest in self.scalars] or [np.empty(0, np.int64)])
        gram_base = based([0 if grams is None else len(grams.codes) for grams in self.grams])
        sizes = np.concatenate([*self.set_sizes, np.empty(0, np.int64)])
        grams = [(grams, base) for grams, base in zip(self.grams, text_base, strict=False) if grams is not None]
        pattern_base = based([len(each.patterns) for each, _ in grams])
        text_ends = [text.offsets[1:] + base for text, base in zip(self.texts, blob_base, strict=False)]
        gram_ends = [each.offsets[1:] + base for (each, _), base in zip(grams, pattern_base, strict=False)]
        empty = np.empty(0, np.int64)
        return Slots(
            self.slot_of, self.forms, self.records,
            based([len(keys) for keys, _ in self.scalars]),
            np.concatenate([*(keys for keys, _ in self.scalars), empty]),
            rests if rests.any() else empty,
            text_base,
            np.concatenate([np.zeros(1, np.int64), *text_ends]),
            np.concatenate([*(text.blob for text in self.texts), np.empty(0, np.uint8)]),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
            np.concatenate([*self.sets, empty]).astype(np.int32),
            gram_base,
            np.concatenate([*(each.codes for each, _ in grams), empty]),
            np.concatenate([[0], *gram_ends]).astype(np.int32),
            np.concatenate([*(each.patterns + base for each, base in grams), empty]).astype(np.int32),
        )  # fmt: skip
