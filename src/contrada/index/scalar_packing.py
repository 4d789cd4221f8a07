"""Packing: raw records to a ScalarIndex, and back.

Each filter is reached through the constraint that the fewest messages satisfy, estimated from messages that were seen
and, for want of these, from the constants.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.geometry.arrays import frozen
from contrada.index.constants import Texts, distinct_scalars, distinct_texts, grams_of
from contrada.index.raw import (
    ASKED,
    CLOSED,
    FILTER,
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
)  # fmt: skip
from contrada.index.scalars import Arrays, Messages, ScalarIndex
from contrada.model.forms import LIKE, NOT, PATTERN, SET, TEXT

NO_END = np.iinfo(np.int32).max
ASKS_SHIFT, SLOT_MASK = 24, (1 << 24) - 1
BLOCK = 16
BY_CONSTANT, BY_INTERVAL, BY_VALUE = range(3)  # how an entry is found
PRIOR = 2.0  # so many messages are the constants worth, next to those that were seen
ANY_PATTERN, ANY_VALUE = 0.1, 1.0  # the share of messages that is taken to match a pattern, or to have a value


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


def runs(starts: NDArray[Any], stops: NDArray[Any]) -> NDArray[np.int64]:
    """The numbers starts[0]..stops[0], starts[1]..stops[1], ..., one after another."""
    lengths = stops - starts
    ends = np.cumsum(lengths)
    listed: NDArray[np.int64] = np.arange(lengths.sum()) + np.repeat(starts - (ends - lengths), lengths)
    return listed


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


def pack_scalars(
    raw: Raw, forms: NDArray[np.uint8], first: int, stop: int, spatial: NDArray[np.float64], seen: Messages | None
) -> ScalarIndex:
    """Pack the records of filters first..stop; spatial is the share of messages that reach each through a region.

    A filter for which that is the least is reached there, and has no entry here.
    """
    slots = Ranking(raw, forms).slots()
    filters = raw.records[:, FILTER] - first
    share = shares(slots, seen)
    order = np.lexsort((share, filters))
    filters, records, share = filters[order], slots.records[order], share[order]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(filters, minlength=stop - first))]).astype(np.int32)
    heads = offsets[:-1][np.diff(offsets) > 0].astype(np.int64)
    here = heads[share[heads] < spatial[filters[heads]]]
    seconds = np.where(offsets[filters[here] + 1] - offsets[filters[here]] > 1, here + 1, -1)
    made = make_entries(slots._replace(records=records), filters, here, seconds)
    return ScalarIndex(first, arrays_of(slots, offsets, records, made))


class Entries(NamedTuple):
    """Entries in the order in which kernels find them."""

    entries: NDArray[np.int32]
    equal_base: NDArray[np.int64]
    equal_offsets: NDArray[np.int32]
    others: NDArray[np.int64]
    spans: NDArray[np.int32]
    blocks: NDArray[np.int32]


def arrays_of(slots: Slots, offsets: NDArray[np.int32], records: NDArray[np.int32], made: Entries) -> Arrays:
    """What kernels take."""
    return Arrays(
        slots.slot_of, slots.forms, slots.const_base, slots.keys, slots.rests, slots.text_base, slots.text_offsets,
        slots.blob, offsets, np.ascontiguousarray(records), slots.set_offsets, slots.set_ranks, *made,
        slots.gram_base, slots.gram_codes, slots.gram_offsets, slots.gram_patterns,
    )  # fmt: skip


def shares(slots: Slots, seen: Messages | None) -> NDArray[np.float64]:
    """The share of messages that is estimated to satisfy each record."""
    records, counts = slots.records, slots.counts
    slot, asks = records[:, 0] & SLOT_MASK, records[:, 0] >> ASKS_SHIFT
    width = 2.0 * counts[slot] + 1
    low, high = records[:, 1].astype(np.float64), np.minimum(records[:, 2], width - 1)
    is_set = (asks & ~NOT) == SET
    share = np.where(is_set, 0.0, (high - low + 1) / width)
    share[is_set] = 2 * np.diff(slots.set_offsets)[records[is_set, 1]] / width[is_set]
    if seen is not None and seen.size:
        share = (share * PRIOR + seen_counts(slots, seen)) / (PRIOR + seen.size)
    share[asks >= LIKE] = ANY_PATTERN
    share[asks & NOT != 0] = ANY_VALUE
    return share


def seen_counts(slots: Slots, seen: Messages) -> NDArray[np.float64]:
    """How many of the messages that were seen satisfy each interval or set."""
    empty = Entries(
        np.empty((0, 4), np.int32), np.zeros(len(slots.forms) + 1, np.int64), np.zeros(1, np.int32),
        np.zeros(5 * len(slots.forms), np.int64), np.empty(0, np.int32), np.empty((0, 4), np.int32),
    )  # fmt: skip
    ranks = ScalarIndex(0, arrays_of(slots, np.zeros(1, np.int32), slots.records[:0], empty)).ranks(seen)
    slot, asks = slots.records[:, 0] & SLOT_MASK, slots.records[:, 0] >> ASKS_SHIFT
    counts = np.zeros(len(slots.records))
    for k in range(len(slots.forms)):
        ordered = np.sort(ranks[:, k])
        rows = np.flatnonzero((slot == k) & (asks < SET))
        low, high = slots.records[rows, 1], slots.records[rows, 2]
        counts[rows] = np.searchsorted(ordered, high, "right") - np.searchsorted(ordered, low, "left")
        sets = np.flatnonzero((slot == k) & ((asks & ~NOT) == SET))
        if len(sets):
            member = np.searchsorted(ordered, slots.set_ranks, "right") - np.searchsorted(ordered, slots.set_ranks)
            sums = np.concatenate([[0], np.cumsum(member)])[slots.set_offsets]
            counts[sets] = np.diff(sums)[slots.records[sets, 1]]
    return counts


def make_entries(
    slots: Slots, filters: NDArray[np.int64], here: NDArray[np.int64], seconds: NDArray[np.int64]
) -> Entries:
    """Entries for the filters whose first records are `here`; seconds are the records to look at next, or -1."""
    code, low, high = slots.records[here].T
    slot, asks = (code & SLOT_MASK).astype(np.int64), code >> ASKS_SHIFT
    kind = np.full(len(here), BY_INTERVAL)
    kind[(asks == 0) & (low == high) & (low & 1 == 1) | (asks == SET) | (asks == LIKE)] = BY_CONSTANT
    kind[asks & NOT != 0] = BY_VALUE
    number = np.where(asks == LIKE, low - slots.text_base[slot], low >> 1).astype(np.int64)
    sizes = np.where(asks == SET, np.diff(slots.set_offsets, append=0)[np.where(asks == SET, low, 0)], 1)
    whose = np.repeat(np.arange(len(here)), sizes)  # a filter with a set stands under every member
    number = number[whose]
    sets = np.flatnonzero(asks == SET)
    number[asks[whose] == SET] = (
        slots.set_ranks[runs(slots.set_offsets[low[sets]], slots.set_offsets[low[sets] + 1])] >> 1
    )
    spans = np.stack([low, high], axis=1)[whose]
    number[kind[whose] == BY_INTERVAL] = span_order(spans[kind[whose] == BY_INTERVAL])
    order = np.lexsort((number, kind[whose], slot[whose]))
    whose, number, spans = whose[order], number[order], spans[order]
    follow = np.where(kind == BY_VALUE, here, seconds)
    entries = np.full((len(whose), 4), -1, np.int32)
    entries[:, 0] = filters[here[whose]]
    has_next = follow[whose] >= 0
    entries[has_next, 1:] = slots.records[follow[whose][has_next]]
    return _found(slots, entries, slot[whose], kind[whose], number, spans)


def span_order(spans: NDArray[np.int32]) -> NDArray[np.int64]:
    """Keys that put intervals with like ends together."""
    keys = np.empty(len(spans), np.int64)
    kernels.hilbert_keys(frozen(np.ascontiguousarray(np.tile(spans, 2), np.float64)), keys)
    return keys


def _found(
    slots: Slots, entries: NDArray[np.int32], slot: NDArray[np.int64], kind: NDArray[np.int64],
    number: NDArray[np.int64], spans: NDArray[np.int32],
) -> Entries:  # fmt: skip
    """How entries, in order, are found."""
    counts = slots.counts
    equal_base = based((counts + 1).tolist())
    limits = np.searchsorted(3 * slot + kind, np.arange(3 * len(counts) + 1))
    equal_offsets = np.empty(equal_base[-1], np.int32)
    others = np.zeros((len(counts), 5), np.int64)
    blocks: list[NDArray[np.int32]] = []
    first_block = first_span = 0
    for k in range(len(counts)):
        first, middle, last, end = limits[3 * k], limits[3 * k + 1], limits[3 * k + 2], limits[3 * k + 3]
        equal_offsets[equal_base[k] : equal_base[k + 1]] = first + np.searchsorted(
            number[first:middle], np.arange(counts[k] + 1)
        )
        others[k] = middle, last, end, first_block, first_span
        made = span_blocks(spans[middle:last])
        blocks.append(made)
        first_block, first_span = first_block + len(made), first_span + last - middle
    chosen = spans[kind == BY_INTERVAL].astype(np.int32)
    whole = np.concatenate([*blocks, np.empty((0, 4), np.int32)])
    return Entries(entries, equal_base, equal_offsets, others.ravel(), np.ascontiguousarray(chosen).ravel(), whole)


def span_blocks(spans: NDArray[np.int32]) -> NDArray[np.int32]:
    """Least and largest lower ends, least and largest upper ends: of 16 intervals each, then of 16 blocks each."""
    if not len(spans):
        return np.empty((0, 4), np.int32)
    ends = spans[:, [0, 0, 1, 1]].astype(np.int32)
    blocks = _blocks_of(ends)
    return np.concatenate([blocks, _blocks_of(blocks)])


def _blocks_of(ends: NDArray[np.int32]) -> NDArray[np.int32]:
    starts = np.arange(0, len(ends), BLOCK)
    least, largest = np.minimum.reduceat(ends, starts), np.maximum.reduceat(ends, starts)
    return np.stack([least[:, 0], largest[:, 1], least[:, 2], largest[:, 3]], axis=1)


def raw_of(index: ScalarIndex) -> Raw:
    """The raw records of an index, to be packed together with others."""
    a = index.arrays
    slot, asks = a.records[:, 0] & SLOT_MASK, a.records[:, 0] >> ASKS_SHIFT
    low, high = a.records[:, 1].astype(np.int64), a.records[:, 2].astype(np.int64)
    filters = np.repeat(np.arange(len(a.offsets) - 1), np.diff(a.offsets)) + index.first
    is_span, is_set = asks < SET, (asks >= SET) & (asks < LIKE)
    low_end = np.where(is_span & (low > 0), np.where(low & 1 == 1, CLOSED, OPEN), UNBOUNDED)
    high_end = np.where(is_span & (high < NO_END), np.where(high & 1 == 1, CLOSED, OPEN), UNBOUNDED)
    records = np.zeros((len(low), 7), np.int64)
    places = np.empty(len(a.forms), np.int64)
    places[a.slot_of[a.slot_of >= 0]] = np.flatnonzero(a.slot_of >= 0)
    records[:, FILTER], records[:, PLACE] = filters, places[slot]
    records[:, ASKED] = asks | low_end << LOW_SHIFT | high_end << HIGH_SHIFT
    _put_operands(a, records, LOW, low_end != UNBOUNDED, slot, (low - 1) >> 1)
    _put_operands(a, records, HIGH, high_end != UNBOUNDED, slot, high >> 1)
    records[is_set, LOW], records[is_set, LOW_REST] = a.set_offsets[low[is_set]], a.set_offsets[low[is_set] + 1]
    likes = np.flatnonzero(asks >= LIKE)
    records[likes, LOW], records[likes, LOW_REST] = a.text_offsets[low[likes]], a.text_offsets[low[likes] + 1]
    members = np.zeros((len(a.set_ranks), 2), np.int64)
    whose = np.zeros(len(a.set_offsets) - 1, np.int64)
    whose[low[is_set]] = slot[is_set]
    sets = np.repeat(whose, np.diff(a.set_offsets))
    _put_operands(a, members, 0, np.ones(len(sets), bool), sets, (a.set_ranks >> 1).astype(np.int64))
    return Raw(records, members, a.blob)


def _put_operands(
    a: Arrays,
    out: NDArray[np.int64],
    column: int,
    chosen: NDArray[np.bool_],
    slot: NDArray[Any],
    number: NDArray[np.int64],
) -> None:
    """Write the constants of given numbers to two columns: (key, rest), or where text begins and ends."""
    texts = a.forms[slot] >= TEXT
    rows = np.flatnonzero(chosen & ~texts)
    at = a.const_base[slot[rows]] + number[rows]
    out[rows, column] = a.keys[at]
    if len(a.rests):
        out[rows, column + 1] = a.rests[at]
    rows = np.flatnonzero(chosen & texts)
    at = a.text_base[slot[rows]] + number[rows]
    out[rows, column], out[rows, column + 1] = a.text_offsets[at], a.text_offsets[at + 1]
