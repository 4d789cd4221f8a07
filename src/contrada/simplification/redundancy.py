"""Drop filters that another filter of the group covers; candidates come from indexes, not from all pairs.

A filter covers another if each of its constraints covers one of the other's. So covered filters are found through one
of its constraints, the head: by boxes that meet if the head does not accept `disjoint`, by sorted ranges and hashed
values otherwise. Only heads that nearly everything satisfies, such as `disjoint`, are tried against whole classes; such
a filter covers most of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from contrada.codes import DISJOINT_BIT
from contrada.geometry import relate_boxes
from contrada.geometry.arrays import ranges
from contrada.geometry.composition import covering_by_kinds
from contrada.geometry.relate import BOX_MASKS
from contrada.model.implication import are_compared, each_covers
from contrada.simplification.interning import OTHER, ConstraintPool, Items, RegionPool, Term, Terms
from contrada.simplification.scalar_heads import ScalarHeads, rank_of

MAX_PAIRWISE_FILTERS = 12  # compare all pairs of up to this many filters


def learn_pairs(pool: ConstraintPool, pairs: Iterable[tuple[Terms, Terms]]) -> None:
    """Compute in bulk the relations of regions that deciding whether filters cover others needs, for many pairs."""
    pool.learn(
        (one.space, one.item, other.item)
        for first, second in pairs
        if are_compared(first, second, pool.limits.filter_pairs)
        for one in first
        for other in second
        if one.space == other.space != OTHER and pool.may_cover(one, other)
    )


def filter_covers(pool: ConstraintPool, first: Terms, second: Terms) -> bool:
    """Return True if every message that satisfies `second` satisfies `first`."""
    return each_covers(first, second, pool.covers, pool.limits.filter_pairs)


def uncovered(pool: ConstraintPool, filters: Sequence[Terms]) -> list[Terms]:
    """Return the filters that no other one covers, in order; of filters that cover each other the first stays."""
    distinct = list(dict.fromkeys(filters))
    if len(distinct) > MAX_PAIRWISE_FILTERS:
        return Redundancy(pool, distinct).left()
    left = list(distinct)
    for part in reversed(distinct):
        if any(filter_covers(pool, other, part) for other in left if other is not part):
            left.remove(part)
    return left


class _Entries:
    """The terms of one space in all filters, sorted by item."""

    def __init__(self, space: RegionPool, terms: list[tuple[int, int, int]]) -> None:
        self.space = space
        self.items, masks, self.filters = np.array(sorted(terms), np.int64).reshape(-1, 3).T.copy()
        self.masks = masks.astype(np.uint8)
        self.starts = np.searchsorted(self.items, np.arange(len(space.boxes) + 1))

    def under(self, items: Items) -> tuple[Items, Items]:
        """Return the entries of `items`, as pairs of a position in `items` and an entry."""
        starts, stops = self.starts[items], self.starts[items + 1]
        return np.repeat(np.arange(len(items)), stops - starts), ranges(starts, stops)


class Redundancy:
    """The filters of one group; a filter is alive until another live filter covers it."""

    def __init__(self, pool: ConstraintPool, filters: list[Terms]) -> None:
        self._pool, self._filters = pool, filters
        self._alive = np.ones(len(filters), bool)
        self._covering = covering_by_kinds()
        self._left = pool.limits.near_pairs
        by_space: dict[int, list[tuple[int, int, int]]] = {}
        for number, terms in enumerate(filters):
            for term in terms:
                if term.space != OTHER:
                    by_space.setdefault(term.space, []).append((term.item, term.mask, number))
        self._entries = {space: _Entries(pool.spaces[space], terms) for space, terms in by_space.items()}
        self._scalars = ScalarHeads(pool, filters)

    def left(self) -> list[Terms]:
        """Return the filters that are not covered."""
        strong: dict[int, list[tuple[int, Term]]] = {}
        wide: list[tuple[int, Term]] = []
        for number, terms in enumerate(self._filters):
            head = self._head(terms)
            if head.space != OTHER and not head.mask & DISJOINT_BIT:
                strong.setdefault(head.space, []).append((number, head))
            else:
                wide.append((number, head))
        for number, head in wide:  # first, because they cover most filters and shorten the rest
            if self._alive[number] and head.space == OTHER:
                self._drop(number, self._scalars.filters_under(head))
            elif self._alive[number]:
                self._drop(number, self._through_all(self._filters[number]))
        for space, heads in strong.items():
            self._through_boxes(self._entries[space], heads)
        return [terms for terms, alive in zip(self._filters, self._alive, strict=True) if alive]

    def _head(self, terms: Terms) -> Term:
        """Return the term that finds the fewest candidates, roughly: a small region, a value, a range, the rest."""

        def rank(term: Term) -> tuple[int, float]:
            if term.space == OTHER:
                return rank_of(self._pool.others[term.item]), 0.0
            xmin, ymin, xmax, ymax = self._pool.spaces[term.space].boxes[term.item].tolist()
            return 4 if term.mask & DISJOINT_BIT else 0, (xmax - xmin) * (ymax - ymin)

        return min(terms, key=rank)

    def _drop(self, number: int, found: Iterable[int]) -> None:
        """Drop those of the filters `found` that filter `number` covers."""
        chosen = [other for other in found if other != number and self._alive[other]]
        self._learn((number, other) for other in chosen)
        for other in chosen:
            if filter_covers(self._pool, self._filters[number], self._filters[other]):
                self._alive[other] = False

    def _learn(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Compute in bulk the relations of the regions of pairs of filters."""
        learn_pairs(self._pool, ((self._filters[first], self._filters[second]) for first, second in pairs))

    def _through_all(self, terms: Terms) -> list[int]:
        """Return the filters with a covered term for each spatial term of a filter without a selective head."""
        passing: NDArray[np.bool_] | None = None
        for term in terms:
            if term.space == OTHER:
                continue
            held = np.zeros(len(self._filters), bool)
            entries = self._entries[term.space]
            chosen = self._covered_entries(entries, term)
            held[entries.filters[chosen]] = True
            passing = held if passing is None else passing & held
        assert passing is not None
        return np.flatnonzero(passing & self._alive).tolist()

    def _covered_entries(self, entries: _Entries, term: Term) -> Items:
        """Return the entries of a space that `term` covers."""
        space = entries.space
        is_point = int(space.are_points[term.item])
        admitted = self._covering[is_point, (~space.are_regions(entries.items)).astype(int), term.mask, entries.masks]
        is_covered = (admitted & DISJOINT_BIT) != 0
        _, near = entries.space.near(np.array([term.item]))
        _, hits = entries.under(near)
        codes = entries.space.relations(entries.items[hits], np.full(len(hits), term.item))
        is_covered[hits] = admitted[hits] >> codes & 1
        return np.flatnonzero(is_covered)

    def _through_boxes(self, entries: _Entries, heads: list[tuple[int, Term]]) -> None:
        """Drop filters covered by filters whose heads do not accept `disjoint`, so that boxes must meet."""
        at_once = max(1, min(512, self._pool.limits.box_pairs_per_chunk // max(1, len(entries.items))))
        for start in range(0, len(heads), at_once):
            chunk = [head for head in heads[start : start + at_once] if self._alive[head[0]]]
            if self._left < 0:
                return
            if not chunk:
                continue
            pairs = self._near_pairs(entries, chunk)
            self._learn(pair for pair in pairs if len(self._filters[pair[0]]) > 1)
            for number, other in pairs:
                if self._alive[number] and self._alive[other]:
                    first, second = self._filters[number], self._filters[other]
                    if len(first) == 1 or filter_covers(self._pool, first, second):
                        self._alive[other] = False

    def _near_pairs(self, entries: _Entries, chunk: list[tuple[int, Term]]) -> list[tuple[int, int]]:
        """Return pairs of filters; the head of the first covers a term of the second."""
        space = entries.space
        numbers = np.array([number for number, _ in chunk])
        items = np.array([head.item for _, head in chunk])
        masks = np.array([head.mask for _, head in chunk], np.uint8)
        which, near = space.near(items)
        self._left -= len(near)
        at, found = entries.under(near)
        which = which[at]
        kinds = ((~space.are_regions(some)).astype(int) for some in (items[which], entries.items[found]))
        admitted = self._covering[*kinds, masks[which], entries.masks[found]]
        is_open = (admitted != 0) & self._alive[entries.filters[found]] & (entries.filters[found] != numbers[which])
        which, found, admitted = which[is_open], found[is_open], admitted[is_open]
        fits = _boxes_fit(space, entries.items[found], items[which], admitted)
        which, found, admitted = which[fits], found[fits], admitted[fits]
        codes = space.relations(entries.items[found], items[which])
        chosen = (admitted >> codes & 1).astype(bool)
        pairs = np.stack([numbers[which[chosen]], entries.filters[found[chosen]]], axis=1)
        return [(a, b) for a, b in np.unique(pairs, axis=0).tolist()]


def _boxes_fit(space: RegionPool, a: Items, b: Items, admitted: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which pairs have boxes that allow a relation of `a` to `b` in `admitted`."""
    fits = np.ones(len(a), bool)
    chosen = np.flatnonzero(space.are_regions(a) & space.are_regions(b))
    if len(chosen):
        codes = relate_boxes(space.boxes[a[chosen]], space.boxes[b[chosen]])
        fits[chosen] = BOX_MASKS[admitted[chosen]] >> codes & 1
    return fits
