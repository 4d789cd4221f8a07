"""Filters that differ in one constraint only, and there by masks or ranges that one constraint can say, become one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from contrada.model.merging import is_mergeable, united
from contrada.model.pieces import pieces_of
from contrada.simplify.conjunctions import MOST_COMPARED
from contrada.simplify.interning import OTHER, Ground, Term, Terms

Slot = tuple[Terms, Hashable]  # what two filters must have in common: all terms but one, and what that one is about


def merged(ground: Ground, filters: Sequence[Terms]) -> tuple[list[Terms], list[Terms]]:
    """The filters that stay as they are and those that became of others, in the order of their first parts.

    Filters with very many constraints stay as they are.
    """
    if len(filters) < 2:
        return list(filters), []
    left: dict[int, Terms] = dict(enumerate(filters))
    made: dict[int, Terms] = {}
    buckets: dict[Slot, list[tuple[int, Term]]] = {}
    for number, terms in enumerate(filters):
        if len(terms) > MOST_COMPARED:
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
    """What a filter may share with others, for each of its terms that can be united."""
    for at, term in enumerate(terms):
        rest = terms[:at] + terms[at + 1 :]
        if term.space != OTHER:
            yield (rest, (term.space, term.item)), term
        else:
            constraint = ground.others[term.item]
            if is_mergeable(constraint):
                yield (rest, constraint.place), term


def _united(ground: Ground, bucket: list[tuple[int, Term]]) -> Iterator[tuple[list[int], Term]]:
    """Several terms of a bucket that one can say, and that one."""
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
    """The constraints of a bucket that name values, as one; then pairs of neighbouring ranges."""
    naming = [(number, term) for number, term in bucket if ground.others[term.item].operator in ("=", "in")]
    together = united([ground.others[term.item] for _, term in naming]) if len(naming) > 1 else None
    if together is not None:  # true or false is no set of its own
        yield [number for number, _ in naming], Term(OTHER, ground.other(together))
    ranges = [(number, term) for number, term in bucket if ground.others[term.item].operator not in ("=", "in")]
    tried = MOST_COMPARED
    if len(ranges) > MOST_COMPARED:  # in order, each has a chance with its neighbour alone
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
