"""Merge filters that differ in one constraint, if one constraint can express the union of the two."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from contrada.geometry.composition import masks_agree_on_lines
from contrada.model.merging import is_mergeable, united
from contrada.model.pieces import pieces_of
from contrada.simplification.interning import OTHER, ConstraintPool, Term, Terms

Slot = tuple[Terms, Hashable]  # equal for filters that may be merged: all terms but one, and its slot or item


def merged(pool: ConstraintPool, filters: Sequence[Terms]) -> tuple[list[Terms], list[Terms]]:
    """Return the unchanged filters, and the merged ones in the order of their first parts.

    Filters with more than `pool.limits.constraints` constraints are not merged.
    """
    if len(filters) < 2:
        return list(filters), []
    left: dict[int, Terms] = dict(enumerate(filters))
    made: dict[int, Terms] = {}
    buckets: dict[Slot, list[tuple[int, Term]]] = {}
    for number, terms in enumerate(filters):
        if len(terms) > pool.limits.constraints:
            continue
        for slot, term in _slots(pool, terms):
            buckets.setdefault(slot, []).append((number, term))
    for (rest, _), bucket in buckets.items():
        chosen = [(number, term) for number, term in bucket if number in left]
        for numbers, term in _united(pool, chosen):
            for number in numbers:
                del left[number]
            made[numbers[0]] = tuple(sorted({*rest, term}))
    return list(left.values()), [made[number] for number in sorted(made)]


def _slots(pool: ConstraintPool, terms: Terms) -> Iterator[tuple[Slot, Term]]:
    """Yield, for each term that can be merged, the slot that other filters must share."""
    for at, term in enumerate(terms):
        rest = terms[:at] + terms[at + 1 :]
        if term.space != OTHER:
            yield (rest, (term.space, term.item)), term
        else:
            constraint = pool.others[term.item]
            if is_mergeable(constraint):
                yield (rest, constraint.slot), term


def _united(pool: ConstraintPool, bucket: list[tuple[int, Term]]) -> Iterator[tuple[list[int], Term]]:
    """Yield the numbers of filters whose terms can be merged, and the merged term."""
    if len(bucket) < 2:
        return
    first = bucket[0][1]
    if first.space != OTHER:
        yield from _united_masks(bucket)
        return
    together = united([pool.others[term.item] for _, term in bucket])
    if together is not None:
        yield [number for number, _ in bucket], Term(OTHER, pool.other(together))
        return
    yield from _united_sets(pool, bucket)


def _united_masks(bucket: list[tuple[int, Term]]) -> Iterator[tuple[list[int], Term]]:
    """Merge masks of one region as far as lines satisfy the union just where they satisfy one of them."""
    left = list(bucket)
    while left:
        number, one = left.pop(0)
        numbers, mask, others = [number], one.mask, []
        for number, term in left:
            if masks_agree_on_lines(mask | term.mask, mask, term.mask, True):
                mask |= term.mask
                numbers.append(number)
            else:
                others.append((number, term))
        if len(numbers) > 1:
            yield numbers, Term(one.space, one.item, mask)
        left = others


def _united_sets(pool: ConstraintPool, bucket: list[tuple[int, Term]]) -> Iterator[tuple[list[int], Term]]:
    """Merge constraints that name values (`=`, `in`) into one; then merge pairs of neighbouring ranges."""
    naming = [(number, term) for number, term in bucket if pool.others[term.item].operator in ("=", "in")]
    together = united([pool.others[term.item] for _, term in naming]) if len(naming) > 1 else None
    if together is not None:  # there are no sets of booleans
        yield [number for number, _ in naming], Term(OTHER, pool.other(together))
    ranges = [(number, term) for number, term in bucket if pool.others[term.item].operator not in ("=", "in")]
    tried = pool.limits.constraints
    if len(ranges) > tried:  # too many for all pairs: sort, and try each with its neighbour
        ranges.sort(key=lambda one: pieces_of(pool.others[one[1].item]._test))
        tried = 1
    ranges.reverse()
    while len(ranges) > 1:
        number, term = ranges.pop()
        for at in range(len(ranges) - 1, max(-1, len(ranges) - 1 - tried), -1):
            other, another = ranges[at]
            pair = united([pool.others[term.item], pool.others[another.item]])
            if pair is not None:
                del ranges[at]
                yield [number, other], Term(OTHER, pool.other(pair))
                break
