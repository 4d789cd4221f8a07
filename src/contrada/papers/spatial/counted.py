"""Distinct scalar constraints of many filters, for the counting algorithm: find the constraints that a value satisfies.

A search finds leaves. A leaf is a constraint, but a negated interval has two leaves, one below and one above it.
Leaves are numbered by slot (index/scalars.py), then by how they are found, then so that leaves found together have
consecutive numbers: the filters of leaves are stored in that order, and are then read consecutively too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.codes import ASKS_SHIFT, LIKE, NOT, SET, SLOT_MASK
from contrada.geometry.arrays import ranges
from contrada.index.ranking import NO_END, ScalarArrays
from contrada.index.scalar_packing import span_blocks, span_order
from contrada.index.scalars import ScalarIndex

Integers = NDArray[np.int64]
# How leaves are found: by the constant that a value equals or the pattern that it matches; by an interval that contains
# it; unless they name the constant; unless they name a pattern that matches.
BY_CONSTANT, BY_INTERVAL, UNLESS_NAMED, UNLESS_LIKE = range(4)


class LeafSearch(NamedTuple):
    """Arrays to find leaves, in the order of kernel arguments (kernels/match/counting.py)."""

    base: Integers  # by slot: where its constants or patterns begin in the next arrays
    true_offsets: NDArray[np.int32]  # by constant: where the leaves begin that hold if the value equals it
    true: NDArray[np.int32]
    false_offsets: NDArray[np.int32]  # by constant: where the leaves begin that hold unless the value equals it; sorted
    false: NDArray[np.int32]
    # By slot: leaves with intervals from..to, the first of them in `spans`, the first block; leaves UNLESS_NAMED from,
    # UNLESS_LIKE from..to, the first of them in `unlike`.
    parts: Integers
    spans: NDArray[np.int32]  # intervals
    blocks: NDArray[np.int32]  # of `spans` (index/scalar_packing.py)
    unlike: NDArray[np.int32]  # patterns


class Leaves(NamedTuple):
    """Leaves by number: the constraint, how it is found, and its interval or operand."""

    constraint: Integers
    slot: Integers
    kind: Integers
    asks: Integers
    low: Integers
    high: Integers

    def chosen(self, rows: Integers) -> Leaves:
        """Return the leaves `rows`, in that order."""
        return Leaves(*(column[rows] for column in self))


def counted_leaves(index: ScalarIndex) -> tuple[LeafSearch, Leaves, Integers]:
    """Return the arrays to find leaves, the leaves, and the constraint of each record of `index`."""
    arrays = index.arrays
    counts = np.diff(arrays.const_base) + np.diff(arrays.text_base)
    base = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    constraints, numbers = _distinct(arrays)
    leaves = _leaves(constraints, counts)
    true, false = (
        _under_constants(arrays, base, leaves, np.flatnonzero(leaves.kind == kind))
        for kind in (BY_CONSTANT, UNLESS_NAMED)
    )
    spans = np.stack([leaves.low, leaves.high], axis=1)[leaves.kind == BY_INTERVAL].astype(np.int32)
    parts, blocks = _parts(leaves, spans, len(counts))
    unlike = leaves.low[leaves.kind == UNLESS_LIKE].astype(np.int32)
    counted = LeafSearch(base, *true, *false, parts.ravel(), spans.ravel(), blocks, unlike)
    return counted, leaves, numbers


def _distinct(arrays: ScalarArrays) -> tuple[tuple[Integers, ...], Integers]:
    """Return slot, question, low and high of the distinct constraints, and the constraint of each record."""
    records = arrays.records.copy()
    is_set = (records[:, 0] >> ASKS_SHIFT & ~NOT) == SET
    records[is_set, 1] = _first_equal_sets(arrays)[records[is_set, 1]]
    order = np.lexsort(records.T)
    is_first = np.append(True, (records[order[1:]] != records[order[:-1]]).any(axis=1))[: len(order)]
    numbers = np.empty(len(records), np.int64)
    numbers[order] = np.cumsum(is_first) - 1
    code, low, high = records[order[is_first]].T.astype(np.int64)
    return (code & SLOT_MASK, code >> ASKS_SHIFT, low, high), numbers


def _first_equal_sets(arrays: ScalarArrays) -> NDArray[np.int32]:
    """Return for each set the first set with the same members."""
    sizes = np.diff(arrays.set_offsets)
    firsts = np.arange(len(sizes), dtype=np.int32)
    for size in np.unique(sizes):
        sets = np.flatnonzero(sizes == size)
        members = arrays.set_ranks[arrays.set_offsets[sets][:, None] + np.arange(size)]
        _, at, which = np.unique(members, axis=0, return_index=True, return_inverse=True)
        firsts[sets] = sets[at][which.ravel()]
    return firsts


def _leaves(constraints: tuple[Integers, ...], counts: Integers) -> Leaves:
    """Return the leaves of the constraints, in the order of their numbers."""
    slot, asks, low, high = constraints
    is_equal = (asks < SET) & (low == high) & (low & 1 == 1)
    is_denied = asks & NOT != 0
    kind = np.where((asks < SET) & ~is_equal, BY_INTERVAL, np.where(is_denied, UNLESS_NAMED, BY_CONSTANT))
    kind[asks == LIKE + NOT] = UNLESS_LIKE
    whole = Leaves(np.arange(len(slot)), slot, kind, asks, low, high)
    split = (kind == BY_INTERVAL) & is_denied
    pieces = whole.chosen(np.flatnonzero(split))
    below = pieces._replace(low=np.zeros_like(pieces.low), high=pieces.low - 1)
    # An empty interval excludes nothing: the upper leaf begins where the lower leaf ends.
    above = pieces._replace(low=np.maximum(pieces.high, below.high) + 1, high=np.full_like(pieces.high, NO_END))
    plain = whole.chosen(np.flatnonzero(~split))
    leaves = Leaves(*(np.concatenate(columns) for columns in zip(plain, below, above, strict=True)))
    leaves = leaves.chosen(np.flatnonzero((leaves.kind != BY_INTERVAL) | (leaves.low <= leaves.high)))
    # Sort keys bring together leaves of a slot that are found together: intervals with similar ends.
    keys, rows = leaves.low.copy(), np.flatnonzero(leaves.kind == BY_INTERVAL)
    keys[rows] = span_order(np.stack([leaves.low[rows], leaves.high[rows]], axis=1), counts[leaves.slot[rows]])
    return leaves.chosen(np.lexsort((keys, leaves.kind, leaves.slot)))


def _under_constants(
    arrays: ScalarArrays, base: Integers, leaves: Leaves, rows: Integers
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the offsets of the leaves of each constant, and the leaves; a set is listed under every member."""
    _, slot, _, asks, low, _ = leaves.chosen(rows)
    is_set = (asks & ~NOT) == SET
    sets = low[is_set]
    sizes = np.ones(len(rows), np.int64)
    sizes[is_set] = np.diff(arrays.set_offsets)[sets]
    whose = np.repeat(np.arange(len(rows)), sizes)
    number = np.where(asks == LIKE, low - arrays.text_base[slot], low >> 1)[whose]
    number[is_set[whose]] = arrays.set_ranks[ranges(arrays.set_offsets[sets], arrays.set_offsets[sets + 1])] >> 1
    at = base[slot[whose]] + number
    order = np.argsort(at, kind="stable")
    offsets = np.searchsorted(at[order], np.arange(base[-1] + 1)).astype(np.int32)
    return offsets, rows[whose[order]].astype(np.int32)


def _parts(leaves: Leaves, spans: NDArray[np.int32], slots: int) -> tuple[Integers, NDArray[np.int32]]:
    """Return the parts of each slot, and the blocks."""
    limits = np.searchsorted(4 * leaves.slot + leaves.kind, np.arange(4 * slots + 1))
    first, named, unlike, end = (limits[kind : 4 * slots + kind : 4] for kind in range(1, 5))
    first_span, first_unlike = (np.cumsum(sizes) - sizes for sizes in (named - first, end - unlike))
    blocks = [span_blocks(spans[a : a + size]) for a, size in zip(first_span, named - first, strict=True)]
    sizes = np.array([len(some) for some in blocks], np.int64)
    columns = (first, named, first_span, np.cumsum(sizes) - sizes, named, unlike, end, first_unlike)
    return np.stack(columns, axis=1).astype(np.int64), np.concatenate([*blocks, np.empty((0, 4), np.int32)])
