"""Merge filters that differ in one constraint, if one constraint can express the union of the two."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from contrada.model.merging import is_mergeable, united
from contrada.model.pieces import pieces_of
from contrada.simplification.conjunctions import MAX_PAIRWISE_CONSTRAINTS
from contrada.simplification.interning import OTHER, Ground, Term, Terms

Slot = tuple[Terms, Hashable]  # equal for filters that may be merged: all terms but one, and its slot or item


def merged(ground: Ground, filters: Sequence[Terms]) -> tuple[list[Terms], list[Terms]]:
    """Return the unchanged filters, and the merged ones in the order of their first parts.

    Filters with more than MAX_PAIRWISE_CONSTRAINTS constraints are not merged.
    """
    if len(filters) < 2:
        return list(filters), []
    left: dict[int, Terms] = dict(enumerate(filters))
    made: dict[int, Terms] = {}
    buckets: dict[Slot, list[tuple[int, Term]]] = {}
    for number, terms in enumerate(filters):
        if len(terms) > MAX_PAIRWISE_CONSTRAINTS:
            continue
        for slot, term in _slots(ground, terms):
            buckets.setdefault(slot, []).append((number, term))
    for (rest, _), bucket in buckets.items():
        chosen = [(number, term) for number, term in bucket if number in left]
        for numbers, term in _united(ground, chosen):
            for number in numbers:
                del left[number]
            made[numbers[0]] = tuple(sorted({*rest, term}))
    return list(left.values()), [made[number] for number in sorted(made)]


def _slots(ground: Ground, terms: Terms) -> Iterator[tuple[Slot, Term]]:
    """Yield, for each term that can be merged, the slot that other filters must share."""
    for at, term in enumerate(terms):
        rest = terms[:at] + terms[at + 1 :]
        if term.space != OTHER:
            yield (rest, (term.space, term.item)), term
        else:
            constraint = ground.others[term.item]
            if is_mergeable(constraint):
                yield (rest, constraint.place), term


def _united(ground: Ground, bucket: list[tuple[int, Term]]) -> Iterator[tuple[list[int], Term]]:
    """Yield the numbers of filters whose terms can be merged, and the merged term."""
    if len(bucket) < 2:
        return
    first = bucket[0][1]
    if first.space != OTHER:
        mask = 0
        for _, term in bucket:
            mask |= term.mask
        yield [number for number, _ in bucket], Term(first.space, first.item, mask)
        return
    together = united([ground.others[term.item] for _, term in bucket])
    if together is not None:
        yield [number for number, _ in bucket], Term(OTHER, ground.other(together))
        return
    yield from _united_sets(ground, bucket)


def _united_sets(ground: Ground, bucket: list[tuple[int, Term]]) -> Iterator[tuple[list[int], Term]]:
    """Merge constraints that name values (`=`, `in`) into one; then merge pairs of neighbouring ranges."""
    naming = [(number, term) for number, term in bucket if ground.others[term.item].operator in ("=", "in")]
    together = united([ground.others[term.item] for _, term in naming]) if len(naming) > 1 else None
    if together is not None:  # there are no sets of booleans
        yield [number for number, _ in naming], Term(OTHER, ground.other(together))
    ranges = [(number, term) for number, term in bucket if ground.others[term.item].operator not in ("=", "in")]
    tried = MAX_PAIRWISE_CONSTRAINTS
    if len(ranges) > MAX_PAIRWISE_CONSTRAINTS:  # too many for all pairs: sort, and try each with its neighbour
        ranges.sort(key=lambda one: pieces_of(ground.others[one[1].item].test))
        tried = 1
    ranges.reverse()
    while len(ranges) > 1:
        number, term = ranges.pop()
        for at in range(len(ranges) - 1, max(-1, len(ranges) - 1 - tried), -1):
            other, another = ranges[at]
            pair = united([ground.others[term.item], ground.others[another.item]])
            if pair is not None:
                del ranges[at]
                yield [number, other], Term(OTHER, ground.other(pair))
                break
