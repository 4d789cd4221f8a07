"""Covered filters of a group, found through indexes: none of them is compared with all others.

A filter covers another if each of its constraints covers one of the other's. So it is found through one of its
constraints, its head: through boxes that meet if its head does not hold of regions far apart, through sorted ranges and
hashed values otherwise. Only what holds of nearly everything, such as `disjoint`, is tried against whole classes, and
such a filter covers most of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import Relation, relate_boxes
from contrada.geometry.composition import covering_relations
from contrada.geometry.relate import BOX_MASKS
from contrada.model.implication import MAX_COMPARED_PAIRS
from contrada.simplify.interning import OTHER, Ground, Items, RegionPool, Term, Terms
from contrada.simplify.scalar_heads import ScalarHeads, rank_of

FEW = 12  # filters that are compared each with each
AT_ONCE = 2_000_000  # pairs of boxes that are looked at together, about
MOST = 10_000_000  # pairs of boxes that meet, in all: 10,000 regions that all overlap have ten times as many, and 20 s
APART = 1 << Relation.DISJOINT


def learn_few(ground: Ground, groups: Iterable[Sequence[Terms]]) -> None:
    """Find out in bulk how the regions of small groups relate, as far as comparing their filters needs it."""
    ground.learn(
        (one.space, one.item, other.item)
        for group in groups
        for k, first in enumerate(group)
        for j, second in enumerate(group)
        if k != j
        if are_compared(first, second)
        for one in first
        for other in second
        if one.space == other.space != OTHER and ground.may_cover(one, other)
    )


def are_compared(first: Terms, second: Terms) -> bool:
    """True if two filters are so small that each term of one may be compared with each of the other."""
    return len(first) * len(second) <= MAX_COMPARED_PAIRS


def filter_covers(ground: Ground, first: Terms, second: Terms) -> bool:
    """True if every message that satisfies the second filter satisfies the first."""
    if not are_compared(first, second):
        return set(first) <= set(second)
    return all(any(ground.covers(one, other) for other in second) for one in first)


def uncovered(ground: Ground, filters: Sequence[Terms]) -> list[Terms]:
    """The filters that no other one covers, in order; of those that cover each other the first stays."""
    distinct = list(dict.fromkeys(filters))
    if len(distinct) <= FEW:
        return _uncovered_few(ground, distinct)
    return Redundancy(ground, distinct).left()


def _uncovered_few(ground: Ground, filters: list[Terms]) -> list[Terms]:
    left = list(filters)
    for part in reversed(filters):
        if any(filter_covers(ground, other, part) for other in left if other is not part):
            left.remove(part)
    return left


class _Entries:
    """The terms of one space in all filters, by item."""

    def __init__(self, space: RegionPool, terms: list[tuple[int, int, int]]) -> None:
        entries = np.array(sorted(terms), np.int64).reshape(-1, 3)
        self.space = space
        self.items, self.masks, self.filters = (
            entries[:, 0].copy(),
            entries[:, 1].astype(np.uint8),
            entries[:, 2].copy(),
        )
        self.starts = np.searchsorted(self.items, np.arange(len(space.boxes) + 1))

    def under(self, items: Items) -> tuple[Items, Items]:
        """The entries of items: pairs of a place among `items` and an entry."""
        counts = self.starts[items + 1] - self.starts[items]
        which = np.repeat(np.arange(len(items)), counts)
        shift = np.cumsum(counts) - counts
        return which, np.arange(len(which)) + (self.starts[items] - shift)[which]


class Redundancy:
    """The filters of one group, each alive until one that is alive covers it."""

    def __init__(self, ground: Ground, filters: list[Terms]) -> None:
        self._ground, self._filters = ground, filters
        self._alive = np.ones(len(filters), bool)
        self._covering = covering_relations()
        self._left = MOST
        by_space: dict[int, list[tuple[int, int, int]]] = {}
        for number, terms in enumerate(filters):
            for term in terms:
                if term.space != OTHER:
                    by_space.setdefault(term.space, []).append((term.item, term.mask, number))
        self._entries = {space: _Entries(ground.spaces[space], terms) for space, terms in by_space.items()}
        self._scalars = ScalarHeads(ground, filters)

    def left(self) -> list[Terms]:
        """The filters that are left."""
        strong: dict[int, list[tuple[int, Term]]] = {}
        wide: list[tuple[int, Term]] = []
        for number, terms in enumerate(self._filters):
            head = self._head(terms)
            if head.space != OTHER and not head.mask & APART:
                strong.setdefault(head.space, []).append((number, head))
            else:
                wide.append((number, head))
        for number, head in wide:  # these cover most: what they leave is soon done
            if self._alive[number]:
                found = self._through_scalars(head) if head.space == OTHER else self._through_all(self._filters[number])
                self._drop(number, found)
        for space, heads in strong.items():
            self._through_boxes(self._entries[space], heads)
        return [terms for terms, alive in zip(self._filters, self._alive, strict=True) if alive]

    def _head(self, terms: Terms) -> Term:
        """The term through which the fewest others are found, roughly: a small region, a value, a range, the rest."""

        def rank(term: Term) -> tuple[int, float]:
            if term.space == OTHER:
                return rank_of(self._ground.others[term.item]), 0.0
            xmin, ymin, xmax, ymax = self._ground.spaces[term.space].boxes[term.item].tolist()
            return 4 if term.mask & APART else 0, (xmax - xmin) * (ymax - ymin)

        return min(terms, key=rank)

    def _drop(self, number: int, found: Iterable[int]) -> None:
        """Drop those of the filters found that a filter covers."""
        chosen = [other for other in found if other != number and self._alive[other]]
        self._learn((number, other) for other in chosen)
        for other in chosen:
            if filter_covers(self._ground, self._filters[number], self._filters[other]):
                self._alive[other] = False

    def _learn(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Find out in bulk how the regions of pairs of filters relate."""
        self._ground.learn(
            (one.space, one.item, other.item)
            for first, second in pairs
            if are_compared(self._filters[first], self._filters[second])
            for one in self._filters[first]
            for other in self._filters[second]
            if one.space == other.space != OTHER and self._ground.may_cover(one, other)
        )

    def _through_scalars(self, head: Term) -> Iterator[int]:
        return iter(self._scalars.filters_under(head))

    def _through_all(self, terms: Terms) -> Iterator[int]:
        """Filters in which each term of a filter of wide ones alone covers one: by whole classes, boxes apart."""
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
        return iter(np.flatnonzero(passing & self._alive).tolist())

    def _covered_entries(self, entries: _Entries, term: Term) -> Items:
        """The entries of a space that one term covers."""
        admitted = self._covering[term.mask][entries.masks]
        is_covered = (admitted & APART) != 0
        _, near = entries.space.near(np.array([term.item]))
        _, hits = entries.under(near)
        codes = entries.space.relations(entries.items[hits], np.full(len(hits), term.item))
        is_covered[hits] = admitted[hits] >> codes & 1
        return np.flatnonzero(is_covered)

    def _through_boxes(self, entries: _Entries, heads: list[tuple[int, Term]]) -> None:
        """Drop what is covered by filters whose heads hold of nothing apart: boxes must meet."""
        at_once = max(1, min(512, AT_ONCE // max(1, len(entries.items))))
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
                    if len(first) == 1 or filter_covers(self._ground, first, second):
                        self._alive[other] = False

    def _near_pairs(self, entries: _Entries, chunk: list[tuple[int, Term]]) -> list[tuple[int, int]]:
        """Pairs of filters, the head of the first of which covers a term of the second."""
        space = entries.space
        numbers = np.array([number for number, _ in chunk])
        items = np.array([head.item for _, head in chunk])
        masks = np.array([head.mask for _, head in chunk], np.uint8)
        which, near = space.near(items)
        self._left -= len(near)
        at, found = entries.under(near)
        which = which[at]
        admitted = self._covering[masks[which], entries.masks[found]]
        is_open = (admitted != 0) & self._alive[entries.filters[found]] & (entries.filters[found] != numbers[which])
        which, found, admitted = which[is_open], found[is_open], admitted[is_open]
        fits = _boxes_fit(space, entries.items[found], items[which], admitted)
        which, found, admitted = which[fits], found[fits], admitted[fits]
        codes = space.relations(entries.items[found], items[which])
        chosen = (admitted >> codes & 1).astype(bool)
        pairs = np.stack([numbers[which[chosen]], entries.filters[found[chosen]]], axis=1)
        return [(a, b) for a, b in np.unique(pairs, axis=0).tolist()]


def _boxes_fit(space: RegionPool, a: Items, b: Items, admitted: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which pairs have boxes that allow a relation of a to b among those admitted."""
    fits = np.ones(len(a), bool)
    chosen = np.flatnonzero(space.are_regions(a) & space.are_regions(b))
    if len(chosen):
        codes = relate_boxes(space.boxes[a[chosen]], space.boxes[b[chosen]])
        fits[chosen] = BOX_MASKS[admitted[chosen]] >> codes & 1
    return fits
