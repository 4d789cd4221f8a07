"""FilterIndex: find, in a live set of filters, those that cover a given filter and those that it covers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.covering import slots
from contrada.covering.slots import Box
from contrada.geometry.composition import covering_relations
from contrada.geometry.relate import BOX_MASKS
from contrada.kernels.cover.arrays import CandidateArrays
from contrada.model import Filter
from contrada.model.implication import covers, each_covers

LEAF_ROWS = 32
FIRST_CANDIDATES = 8  # in the first search; each further search asks for eight times as many
ANY_VALUE = np.inf


def filter_covers(first: Filter, second: Filter) -> bool:
    """Return True if every message that satisfies `second` satisfies `first`: each constraint covers one of `second`.

    Filters with very many constraints are compared by equality of constraints only.

    >>> from contrada import Constraint
    >>> few = Filter([Constraint("x", ">", 3), Constraint("kind", "=", "flood")])
    >>> filter_covers(Filter([Constraint("x", ">", 2)]), few), filter_covers(few, few)
    (True, True)
    """
    return each_covers(first.constraints, second.constraints, covers)


class CandidateTree:
    """The filters of one signature as points in a tree, in arrays that grow.

    A full leaf is split. With `leaf_rows` for all filters the tree is a compiled scan, row by row, which skips a row at
    its first coordinate that fails; benchmarks compare with it.
    """

    def __init__(self, signature: slots.Signature, leaf_rows: int = LEAF_ROWS) -> None:
        self.signature = signature
        self._leaf_rows = leaf_rows
        kinds = Counter(kind for kind, _, _ in signature)
        self._equal = 2 * kinds[slots.EQUAL]
        self.dimensions = self._equal + 2 * kinds[slots.RANGE] + 4 * bool(kinds[slots.NEAR])
        self.has_region = bool(kinds[slots.NEAR] or kinds[slots.FAR])
        self.live = 0
        self._arrays = self._empty(1, 1)
        self._stack = np.empty(2, np.int32)
        self._scratch = np.empty(leaf_rows)

    def _empty(self, nodes: int, leaves: int) -> CandidateArrays:
        d, rows = self.dimensions, self._leaf_rows
        state = np.array([0, 0, -1, self._equal, 0], np.int64)
        return CandidateArrays(
            dimensions=np.zeros(nodes, np.int32), splits=np.zeros(nodes), children=np.zeros((nodes, 2), np.int32),
            depths=np.zeros(nodes, np.int32), tops=np.zeros((nodes, d)), bottoms=np.zeros((nodes, d)),
            counts=np.zeros(leaves, np.int32), nexts=np.zeros(leaves, np.int32), points=np.zeros((leaves, rows, d)),
            ids=np.zeros((leaves, rows), np.int64), masks=np.zeros((leaves, rows), np.uint8),
            boxes=np.zeros((leaves, rows, 4 if self.has_region else 0)), state=state,
        )  # fmt: skip

    def add(self, number: int, what: slots.FiledFilter) -> None:
        """Add a filter under `number`."""
        box = np.array(what.box, np.float64)
        for point in what.points:
            place = np.array(point, np.float64)
            while not kernels.add_candidate(self._arrays, place, number, what.mask, box, self._scratch):
                self._grow()
        self.live += 1

    def remove(self, number: int, what: slots.FiledFilter) -> None:
        """Remove a filter."""
        for point in what.points:
            found = kernels.drop_candidate(self._arrays, np.array(point, np.float64), number)
            assert found, "a filter is not in its slot"
        self.live -= 1

    def _grow(self) -> None:
        old = self._arrays
        self._arrays = self._empty(2 * len(old.splits), 2 * len(old.counts))
        for kept, array in zip(old[:-1], self._arrays[:-1], strict=True):
            array[: len(kept)] = kept
        self._arrays.state[:] = old.state
        self._stack = np.empty(2 * len(self._arrays.splits), np.int32)

    def find(
        self, query: list[float], admitted: NDArray[np.uint8], box: Box, reverse: bool, counters: NDArray[np.int64]
    ) -> Iterator[int]:
        """Yield the numbers of filters that may cover, or be covered by, the query; numbers may repeat."""
        wanted, said = FIRST_CANDIDATES, 0
        point, corners = np.array(query, np.float64), np.array(box, np.float64)
        while True:
            out = np.empty(wanted, np.int64)
            count = kernels.find_candidates(
                self._arrays, point, reverse, self.has_region, admitted, corners, BOX_MASKS, self._stack, out, counters
            )
            yield from out[said:count].tolist()  # a repeated search finds the same candidates first
            if count < wanted:
                return
            wanted, said = 8 * wanted, count


class FilterIndex:
    """A live set of filters by number; with `leaf_rows` for all filters it is a scan (see CandidateTree)."""

    def __init__(self, leaf_rows: int = LEAF_ROWS) -> None:
        self._leaf_rows = leaf_rows
        self._filters: dict[int, Filter] = {}
        self._trees: dict[slots.Signature, CandidateTree] = {}
        self._led_by: dict[str, list[CandidateTree]] = {}  # by the attribute of the first slot
        self._counters = np.zeros(2, np.int64)

    def __len__(self) -> int:
        return len(self._filters)

    @property
    def work(self) -> tuple[int, int]:
        """Nodes visited and points compared by all searches so far."""
        visited, compared = self._counters.tolist()
        return visited, compared

    def add(self, number: int, profile: slots.Profile) -> None:
        """Add a filter under `number`."""
        what = profile.described
        tree = self._trees.get(what.signature)
        if tree is None:
            tree = self._trees[what.signature] = CandidateTree(what.signature, self._leaf_rows)
            self._led_by.setdefault(what.signature[0][1], []).append(tree)
        tree.add(number, what)
        self._filters[number] = profile.part

    def remove(self, number: int) -> None:
        """Remove the filter with `number`."""
        what = slots.Profile(self._filters.pop(number)).described
        tree = self._trees[what.signature]
        tree.remove(number, what)
        if not tree.live:
            del self._trees[what.signature]
            self._led_by[what.signature[0][1]].remove(tree)

    def covering(self, profile: slots.Profile) -> Iterator[int]:
        """Yield the numbers of the filters that cover the filter of `profile`."""
        seen = set[int]()
        for attribute in sorted(profile.attributes):
            for tree in list(self._led_by.get(attribute, ())):
                for number in self._may_cover(tree, profile):
                    if number not in seen and filter_covers(self._filters[number], profile.part):
                        seen.add(number)
                        yield number

    def _may_cover(self, tree: CandidateTree, profile: slots.Profile) -> Iterator[int]:
        query: list[float] = []
        regions: list[tuple[int, Box]] = [(0, slots.NO_BOX)]
        is_near = False
        for slot in tree.signature:
            kind, attribute, _ = slot
            if attribute not in profile.attributes:
                return
            if kind in (slots.EQUAL, slots.RANGE):
                pair = profile.pair(slot)
                if pair is None:
                    return
                query += pair
            elif kind != slots.OTHER:
                regions, is_near = profile.regions.get(attribute, []), kind == slots.NEAR
        for mask, box in regions:
            corners = (-box[2], -box[3], box[0], box[1]) if is_near else ()
            yield from tree.find([*query, *corners], COVERING_BY_MASK[mask], box, False, self._counters)

    def covered(self, profile: slots.Profile) -> Iterator[int]:
        """Yield the numbers of the filters that the filter of `profile` covers."""
        what, seen = profile.described, set[int]()
        needed = {attribute for _, attribute, _ in what.signature}
        for tree in list(self._trees.values()):
            if needed <= {attribute for _, attribute, _ in tree.signature}:
                for number in self._may_be_covered(tree, what):
                    if number not in seen and filter_covers(profile.part, self._filters[number]):
                        seen.add(number)
                        yield number

    def _may_be_covered(self, tree: CandidateTree, what: slots.FiledFilter) -> Iterator[int]:
        """Yield filters of a tree below a point of `what`; slots that `what` does not have may hold anything."""
        ordered = [slot for slot in what.signature if slot[0] in (slots.EQUAL, slots.RANGE)]
        asked = {slot: 2 * k for k, slot in enumerate(ordered)}  # where the pair of a slot is in a point
        region = next((slot[1] for slot in what.signature if slot[0] in (slots.NEAR, slots.FAR)), None)
        theirs = next((slot[1] for slot in tree.signature if slot[0] in (slots.NEAR, slots.FAR)), None)
        several = slots.OTHER, theirs, slots.SEVERAL_REGIONS
        is_same = region is not None and region == theirs and several not in tree.signature
        admitted = COVERED_BY_MASK[what.mask] if is_same else ALL_RELATIONS
        named = Counter(attribute for _, attribute, _ in tree.signature)
        for point in what.points:
            query: list[float] = []
            for slot in tree.signature:
                if slot[0] in (slots.EQUAL, slots.RANGE):
                    # Further constraints on the attribute may be the covered ones: then this slot may be wider.
                    is_asked = slot in asked and named[slot[1]] == 1
                    query += point[asked[slot] : asked[slot] + 2] if is_asked else (ANY_VALUE, ANY_VALUE)
            query += [ANY_VALUE] * (tree.dimensions - len(query))
            box = what.box if is_same else slots.NO_BOX
            yield from tree.find(query, admitted, box, True, self._counters)


# Relations of two regions under which one constraint covers the other, by the mask of one and of the other.
COVERING_BY_MASK = [covering_relations()[:, mask].copy() for mask in range(256)]
COVERED_BY_MASK = [covering_relations()[mask].copy() for mask in range(256)]
ALL_RELATIONS = np.full(256, 255, np.uint8)
