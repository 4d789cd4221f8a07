"""Pack raw records into a ScalarIndex, and unpack them again.

Each filter is reached through the constraint that the fewest messages satisfy, estimated from messages that were seen
or, without any, from the constants.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada import codes, kernels
from contrada.geometry.arrays import frozen, offsets_of, ranges
from contrada.index.entries import entries_of, filters_of, grouped_boxes
from contrada.index.hugepages import settled
from contrada.index.ranking import NO_END, ScalarArrays, rank_records
from contrada.index.raw import RawRecords
from contrada.index.scalars import EncodedMessages, ScalarIndex

BY_CONSTANT, BY_INTERVAL, BY_VALUE = range(3)  # ways to find an entry
FILTERS_PER_BOX_VISIT = 8  # filters reached by their boxes are adjacent: 8 of them cost as much as one
PRIOR_MESSAGES = 2.0  # messages that the estimate from constants weighs, next to the messages seen
PATTERN_SHARE, VALUE_SHARE = 0.1, 1.0  # assumed share of messages that match a pattern, or have a value


class Regions(NamedTuple):
    """Regions of filters: the share of messages that reach each filter by its region, and boxes around the regions."""

    shares: NDArray[np.float64]  # by filter; infinite without a region
    boxes: NDArray[np.float64] | None  # at one place; the whole plane without a region there; None if there is no place


def pack_scalars(
    raw: RawRecords, forms: NDArray[np.uint8], first: int, stop: int, regions: Regions, seen: EncodedMessages | None,
    region_slot: tuple[str, str] | None,
) -> ScalarIndex:  # fmt: skip
    """Pack the records of filters first..stop; `region_slot` is where the boxes of their regions are.

    A filter that is reached through a constant is found by the constant and its region together. If fewer messages
    reach a filter through its region than through any scalar, it is found by its box if that is known here, else it has
    no entry.
    """
    ranked = rank_records(raw, forms)
    # Filters get places in the order of their regions, so that filters that a message reaches together are adjacent.
    numbers = np.arange(stop - first) if regions.boxes is None else np.argsort(hilbert_of(regions.boxes), kind="stable")
    local_of = np.empty(len(numbers), np.int32)
    local_of[numbers] = np.arange(len(numbers))
    boxes = None if regions.boxes is None else regions.boxes[numbers]
    filters = local_of[raw.records[:, codes.FILTER] - first].astype(np.int64)
    share = shares(ranked, seen)
    order = np.lexsort((share, filters))
    filters, records, share = filters[order], ranked.records[order], share[order]
    offsets = offsets_of(np.bincount(filters, minlength=stop - first)).astype(np.int32)
    heads = offsets[:-1][np.diff(offsets) > 0].astype(np.int64)
    by_constant = is_constant(records[heads]) if regions.boxes is not None else np.zeros(len(heads), bool)
    has_box = np.zeros(len(heads), bool)
    if boxes is not None and region_slot is not None and region_slot[1] == "region":
        has_box = np.isfinite(boxes[filters[heads], 0])
    spatial = regions.shares[numbers[filters[heads]]] / np.where(has_box, FILTERS_PER_BOX_VISIT, 1)
    is_here = (share[heads] < spatial) | by_constant
    here, nearby = heads[is_here], heads[~is_here & has_box]
    grouped = ranked._replace(records=records, offsets=offsets, numbers=numbers.astype(np.int32), local_of=local_of)
    arrays = with_entries(grouped, filters, here, nearby, boxes)
    kept = ScalarArrays(*(settled(array) for array in arrays))
    return ScalarIndex(first, kept, region_slot, float(share[here].sum()))


def is_equality(records: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return whether each record asks for one constant."""
    code, low, high = records.T
    return np.asarray((code >> codes.ASKS_SHIFT == 0) & (low == high) & (low & 1 == 1))


def is_constant(records: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return whether each record asks for one constant, one of several, or a pattern."""
    asks = records[:, 0] >> codes.ASKS_SHIFT
    return np.asarray(is_equality(records) | (asks == codes.SET) | (asks == codes.LIKE))


def shares(ranked: ScalarArrays, seen: EncodedMessages | None) -> NDArray[np.float64]:
    """Return the estimated share of messages that satisfy each record."""
    records, counts = ranked.records, ranked.counts
    slot, asks = records[:, 0] & codes.SLOT_MASK, records[:, 0] >> codes.ASKS_SHIFT
    width = 2.0 * counts[slot] + 1
    low, high = records[:, 1].astype(np.float64), np.minimum(records[:, 2], width - 1)
    is_set = (asks & ~codes.NOT) == codes.SET
    share = np.where(is_set, 0.0, (high - low + 1) / width)
    equal = np.flatnonzero(is_equality(records))
    named = named_shares(counts, slot[equal], records[equal, 1] >> 1)
    bases = np.cumsum(counts) - counts
    share[equal] = named[bases[slot[equal]] + (records[equal, 1] >> 1)]
    sets = np.flatnonzero(is_set)
    starts, stops = ranked.set_offsets[records[sets, 1]], ranked.set_offsets[records[sets, 1] + 1]
    sizes = stops - starts
    members = named[np.repeat(bases[slot[sets]], sizes) + (ranked.set_ranks[ranges(starts, stops)] >> 1)]
    share[sets] = np.bincount(np.repeat(np.arange(len(sets)), sizes), members, len(sets))
    if seen is not None and seen.size:
        share = (share * PRIOR_MESSAGES + seen_counts(ranked, seen)) / (PRIOR_MESSAGES + seen.size)
    share[asks >= codes.LIKE] = PATTERN_SHARE
    share[asks & codes.NOT != 0] = VALUE_SHARE
    return share


def named_shares(counts: NDArray[np.int64], slot: NDArray[Any], number: NDArray[Any]) -> NDArray[np.float64]:
    """Return, for each of counts[k] constants of every slot k, the assumed share of messages that have it.

    Assumes that constants named by many constraints are common in messages: the share of a constant is its share among
    the constraints of the slot that name one constant (`slot`, `number`); a constant named by none counts as half a
    constraint.
    """
    bases = np.cumsum(counts) - counts
    times = np.bincount(bases[slot] + number, minlength=int(counts.sum()))
    whole = np.bincount(slot, minlength=len(counts))
    return np.asarray(np.maximum(times, 0.5) / np.repeat(whole + 1, counts))


def seen_counts(ranked: ScalarArrays, seen: EncodedMessages) -> NDArray[np.float64]:
    """Return how many of the messages seen satisfy each interval or set."""
    ranks = ScalarIndex(0, ranked).ranks(seen)
    slot, asks = ranked.records[:, 0] & codes.SLOT_MASK, ranked.records[:, 0] >> codes.ASKS_SHIFT
    counts = np.zeros(len(ranked.records))
    order = np.argsort(slot, kind="stable")
    ends = np.searchsorted(slot[order], np.arange(len(ranked.forms) + 1))
    for k in range(len(ranked.forms)):
        ordered = np.sort(ranks[:, k])
        own = order[ends[k] : ends[k + 1]]
        rows, sets = own[asks[own] < codes.SET], own[(asks[own] & ~codes.NOT) == codes.SET]
        low, high = ranked.records[rows, 1], ranked.records[rows, 2]
        counts[rows] = np.searchsorted(ordered, high, "right") - np.searchsorted(ordered, low, "left")
        if len(sets):
            numbers = ranked.records[sets, 1]
            starts, stops = ranked.set_offsets[numbers], ranked.set_offsets[numbers + 1]
            members = ranked.set_ranks[ranges(starts, stops)]
            found = np.searchsorted(ordered, members, "right") - np.searchsorted(ordered, members)
            counts[sets] = np.diff(offsets_of(found)[offsets_of(stops - starts)])
    return counts


def with_entries(
    arrays: ScalarArrays, filters: NDArray[np.int64], here: NDArray[np.int64], nearby: NDArray[np.int64],
    boxes: NDArray[np.float64] | None,
) -> ScalarArrays:  # fmt: skip
    """Return the arrays with entries for the filters whose first records are `here`; records are grouped by filter.

    The entries of filters that are reached by their boxes, whose first records are `nearby`, come after them.
    """
    code, low, high = arrays.records[here].T
    slot, asks = (code & codes.SLOT_MASK).astype(np.int64), code >> codes.ASKS_SHIFT
    kind = np.full(len(here), BY_INTERVAL)
    kind[is_constant(arrays.records[here])] = BY_CONSTANT
    kind[asks & codes.NOT != 0] = BY_VALUE
    number = np.where(asks == codes.LIKE, low - arrays.text_base[slot], low >> 1).astype(np.int64)
    sizes = np.where(asks == codes.SET, np.diff(arrays.set_offsets, append=0)[np.where(asks == codes.SET, low, 0)], 1)
    whose = np.repeat(np.arange(len(here)), sizes)  # a filter with a set has an entry under every member
    number = number[whose]
    sets = np.flatnonzero(asks == codes.SET)
    members = ranges(arrays.set_offsets[low[sets]], arrays.set_offsets[low[sets] + 1])
    number[asks[whose] == codes.SET] = arrays.set_ranks[members] >> 1
    spans = np.stack([low, high], axis=1)[whose]
    by_interval = kind[whose] == BY_INTERVAL
    number[by_interval] = span_order(spans[by_interval], arrays.counts[slot[whose][by_interval]])
    order = np.lexsort((filters[here[whose]], number, kind[whose], slot[whose]))  # filters are ordered by region
    whose, number, spans = whose[order], number[order], spans[order]
    entries = entries_of(arrays, filters, here[whose], kind[whose] != BY_VALUE)
    found = _with_search(arrays, slot[whose], kind[whose], number, spans)
    whole = np.concatenate([entries, entries_of(arrays, filters, nearby, np.zeros(len(nearby), bool))])
    around = arrays.boxes if boxes is None else grouped_boxes(boxes[filters_of(whole)])
    return found._replace(entries=whole, boxes=around)


def span_order(spans: NDArray[Any], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return keys that put intervals of ranks with similar ends together; interval k is among counts[k] constants."""
    ends = np.minimum(spans / (2.0 * counts[:, None] + 1), 1.0)  # one scale for all slots; unbounded ends are cut
    return hilbert_of(np.tile(ends, 2))


def hilbert_of(boxes: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return keys that put boxes near each other together; unbounded boxes may be anywhere."""
    keys = np.empty(len(boxes), np.int64)
    finite = np.where(np.isfinite(boxes), boxes, 0.0)
    kernels.hilbert_keys(frozen(np.ascontiguousarray(finite)), keys)
    return keys


def _with_search(
    arrays: ScalarArrays, slot: NDArray[np.int64], kind: NDArray[np.int64], number: NDArray[np.int64],
    spans: NDArray[np.int32],
) -> ScalarArrays:  # fmt: skip
    """Return the arrays with those by which kernels find ordered entries."""
    counts = arrays.counts
    equal_base = offsets_of(counts + 1)
    limits = np.searchsorted(3 * slot + kind, np.arange(3 * len(counts) + 1))
    by_constant = kind == BY_CONSTANT
    times = np.bincount(equal_base[slot[by_constant]] + number[by_constant], minlength=int(equal_base[-1]))
    before = np.cumsum(times) - times  # entries of earlier constants, over all slots
    shift = limits[:-1:3] - before[equal_base[:-1]] if len(counts) else counts
    equal_offsets = (before + np.repeat(shift, counts + 1)).astype(np.int32)
    middle, last, end = limits[1::3], limits[2::3], limits[3::3]
    blocks = {int(k): span_blocks(spans[middle[k] : last[k]]) for k in np.flatnonzero(last > middle)}
    sizes = np.zeros(len(counts), np.int64)
    sizes[list(blocks)] = [len(made) for made in blocks.values()]
    widths = last - middle
    others = np.stack([middle, last, end, np.cumsum(sizes) - sizes, np.cumsum(widths) - widths], axis=1)
    return arrays._replace(
        equal_base=equal_base,
        equal_offsets=equal_offsets,
        others=np.append(others.astype(np.int64), len(slot)),
        spans=np.ascontiguousarray(spans[kind == BY_INTERVAL].astype(np.int32)).ravel(),
        blocks=np.concatenate([*blocks.values(), arrays.blocks]),
    )


def span_blocks(spans: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return least and largest lower ends, then upper ends: of 16 intervals each, then of 16 blocks each."""
    if not len(spans):
        return np.empty((0, 4), np.int32)
    ends = spans[:, [0, 0, 1, 1]].astype(np.int32)
    blocks = _blocks_of(ends)
    return np.concatenate([blocks, _blocks_of(blocks)])


def _blocks_of(ends: NDArray[np.int32]) -> NDArray[np.int32]:
    starts = np.arange(0, len(ends), codes.BLOCK)
    least, largest = np.minimum.reduceat(ends, starts), np.maximum.reduceat(ends, starts)
    return np.stack([least[:, 0], largest[:, 1], least[:, 2], largest[:, 3]], axis=1)


def raw_of(index: ScalarIndex) -> RawRecords:
    """Return the raw records of an index, to be packed together with others."""
    a = index.arrays
    slot, asks = a.records[:, 0] & codes.SLOT_MASK, a.records[:, 0] >> codes.ASKS_SHIFT
    low, high = a.records[:, 1].astype(np.int64), a.records[:, 2].astype(np.int64)
    filters = index.owners()
    is_span, is_set = asks < codes.SET, (asks >= codes.SET) & (asks < codes.LIKE)
    low_end = np.where(is_span & (low > 0), np.where(low & 1 == 1, codes.CLOSED, codes.OPEN), codes.UNBOUNDED)
    high_end = np.where(is_span & (high < NO_END), np.where(high & 1 == 1, codes.CLOSED, codes.OPEN), codes.UNBOUNDED)
    records = np.zeros((len(low), 7), np.int64)
    places = np.empty(len(a.forms), np.int64)
    places[a.slot_of[a.slot_of >= 0]] = np.flatnonzero(a.slot_of >= 0)
    records[:, codes.FILTER], records[:, codes.PLACE] = filters, places[slot]
    records[:, codes.ASKED] = asks | low_end << codes.LOW_SHIFT | high_end << codes.HIGH_SHIFT
    _put_operands(a, records, codes.LOW, low_end != codes.UNBOUNDED, slot, (low - 1) >> 1)
    _put_operands(a, records, codes.HIGH, high_end != codes.UNBOUNDED, slot, high >> 1)
    for rows, offsets in ((is_set, a.set_offsets), (asks >= codes.LIKE, a.text_offsets)):
        records[rows, codes.LOW], records[rows, codes.LOW_REST] = offsets[low[rows]], offsets[low[rows] + 1]
    members = np.zeros((len(a.set_ranks), 2), np.int64)
    whose = np.zeros(len(a.set_offsets) - 1, np.int64)
    whose[low[is_set]] = slot[is_set]
    sets = np.repeat(whose, np.diff(a.set_offsets))
    _put_operands(a, members, 0, np.ones(len(sets), bool), sets, (a.set_ranks >> 1).astype(np.int64))
    return RawRecords(records, members, a.blob)


def _put_operands(
    a: ScalarArrays, out: NDArray[np.int64], column: int, chosen: NDArray[np.bool_], slot: NDArray[Any],
    number: NDArray[np.int64],
) -> None:  # fmt: skip
    """Write the constants number[k] of slot[k] to two columns: (key, rest), or where text begins and ends."""
    texts = a.forms[slot] >= codes.TEXT
    rows = np.flatnonzero(chosen & ~texts)
    at = a.const_base[slot[rows]] + number[rows]
    out[rows, column] = a.keys[at]
    if len(a.rests):
        out[rows, column + 1] = a.rests[at]
    rows = np.flatnonzero(chosen & texts)
    at = a.text_base[slot[rows]] + number[rows]
    out[rows, column], out[rows, column + 1] = a.text_offsets[at], a.text_offsets[at + 1]
