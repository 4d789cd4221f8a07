"""FilterIndex: find, in a live set of filters, those that cover a given filter and those that it covers."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from contrada.covering import slots
from contrada.covering.candidate_tree import ANY_REGION, LEAF_ROWS, CandidateTree
from contrada.covering.packing import Packed, items_cover, unpack


class FilterIndex:
    """A live set of filters by number; with `leaf_rows` for all filters it is a scan (see CandidateTree).

    Filters are kept packed, in a list by number: numbers of removed filters should be used again.
    """

    def __init__(self, leaf_rows: int = LEAF_ROWS) -> None:
        self._leaf_rows = leaf_rows
        self._live = 0
        self._packed: list[Packed | None] = []  # by number
        self._trees: dict[slots.Signature, CandidateTree] = {}
        self._led_by: dict[str, list[CandidateTree]] = {}  # by the attribute of the first slot
        self._counters = np.zeros(2, np.int64)

    def __len__(self) -> int:
        return self._live

    @property
    def work(self) -> tuple[int, int]:
        """Nodes visited and points compared by all searches so far."""
        visited, compared = self._counters.tolist()
        return visited, compared

    def add(self, number: int, profile: slots.Profile) -> None:
        """Add a filter under `number`."""
        what, packed = profile.described, profile.packed
        tree = self._trees.get(what.signature)
        if tree is None:
            tree = self._trees[what.signature] = CandidateTree(what.signature, self._leaf_rows)
            self._led_by.setdefault(what.signature[0][1], []).append(tree)
        tree.add(number, what)
        while len(self._packed) <= number:
            self._packed.append(None)
        self._packed[number] = packed
        self._live += 1

    def remove(self, number: int) -> None:
        """Remove the filter with `number`."""
        what = self.profile(number).described
        self._packed[number] = None
        self._live -= 1
        tree = self._trees[what.signature]
        tree.remove(number, what)
        if not tree.live:
            del self._trees[what.signature]
            self._led_by[what.signature[0][1]].remove(tree)

    def packed(self, number: int) -> Packed:
        """Return the filter with `number`, packed."""
        found = self._packed[number]
        assert found is not None
        return found

    def profile(self, number: int) -> slots.Profile:
        """Return the profile of the filter with `number`."""
        return slots.Profile.of_packed(self.packed(number))

    def is_covering(self, number: int, profile: slots.Profile) -> bool:
        """Return True if the filter with `number` covers the filter of `profile`."""
        packed = self.packed(number)
        return packed == profile.packed or items_cover(unpack(packed), profile.items)

    def is_covered(self, number: int, profile: slots.Profile) -> bool:
        """Return True if the filter of `profile` covers the filter with `number`."""
        packed = self.packed(number)
        return packed == profile.packed or items_cover(profile.items, unpack(packed))

    def covering(self, profile: slots.Profile) -> Iterator[int]:
        """Yield the numbers of the filters that cover the filter of `profile`."""
        return (number for number in _once(self.may_cover(profile)) if self.is_covering(number, profile))

    def covered(self, profile: slots.Profile) -> Iterator[int]:
        """Yield the numbers of the filters that the filter of `profile` covers."""
        return (number for number in _once(self.may_be_covered(profile)) if self.is_covered(number, profile))

    def may_cover(self, profile: slots.Profile) -> Iterator[list[int]]:
        """Yield numbers of filters, among them all that cover the filter of `profile`; numbers may repeat."""
        for attribute in sorted(profile.attributes):
            for tree in list(self._led_by.get(attribute, ())):
                if tree.attributes <= profile.attributes:
                    yield from self._may_cover(tree, profile)

    def _may_cover(self, tree: CandidateTree, profile: slots.Profile) -> Iterator[list[int]]:
        low: list[float] = []
        for slot in tree.scalar_slots:
            pair = profile.pair(slot)
            if pair is None:
                return
            low += pair
        high = [inf] * len(low)
        regions = [(ANY_REGION, slots.NO_BOX)] if tree.region is None else profile.regions.get(tree.region, [])
        for mask, box in regions:
            yield from tree.find(low, high, mask, box, False, self._counters)

    def may_be_covered(self, profile: slots.Profile) -> Iterator[list[int]]:
        """Yield numbers of filters, among them all that the filter of `profile` covers; numbers may repeat."""
        for tree in list(self._trees.values()):
            if profile.attributes <= tree.attributes:
                yield from self._may_be_covered(tree, profile.described)

    def _may_be_covered(self, tree: CandidateTree, what: slots.FiledFilter) -> Iterator[list[int]]:
        """Yield filters of a tree below a point of `what`; slots that `what` does not have may hold anything."""
        positions, is_same = tree.plan_under(what.signature)
        mask, box = (what.mask, what.box) if is_same else (ANY_REGION, slots.NO_BOX)
        for point in what.points:
            high = [inf if at is None else point[at] for at in positions]
            yield from tree.find([-inf] * len(high), high, mask, box, True, self._counters)


def _once(batches: Iterator[list[int]]) -> Iterator[int]:
    """Yield the numbers of all batches, each once."""
    seen = set[int]()
    for numbers in batches:
        for number in numbers:
            if number not in seen:
                seen.add(number)
                yield number
