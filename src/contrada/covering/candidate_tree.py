"""CandidateTree: the filters of one signature as points in a tree, in arrays that grow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import inf

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import CONTAINS, COVERS, DISJOINT_BIT, EQUALS
from contrada.covering import slots
from contrada.covering.packing import WITHIN, Box
from contrada.geometry.composition import covering_relations
from contrada.geometry.relate import BOX_MASKS
from contrada.kernels.cover.arrays import CandidateArrays

LEAF_ROWS = 32
FIRST_CANDIDATES = 8  # in the first search; each further search asks for eight times as many
AROUND = 1 << EQUALS | 1 << CONTAINS | 1 << COVERS
ANY_REGION = -1  # in place of a query's mask: the regions of covering and covered filter are not compared
# Relations of the covered region to the covering one under which one constraint covers the other, by the mask of a
# query and of a row: for a query that rows may cover, and (REVERSE) for a query that may cover rows.
FORWARD = [covering_relations()[:, mask].copy() for mask in range(256)]
REVERSE = [covering_relations()[mask].copy() for mask in range(256)]
FORWARD.append(np.full(256, 255, np.uint8))
REVERSE.append(FORWARD[ANY_REGION])
NO_BOX = np.zeros(4)
MAX_PLANS = 64  # that a tree keeps
Plan = tuple[list[int | None], bool]  # the coordinate of a query for each of the tree's, and whether regions compare


class CandidateTree:
    """The filters of one signature as points in a tree, in arrays that grow.

    A full leaf is split. With `leaf_rows` for all filters the tree is a compiled scan, row by row, which skips a row at
    its first coordinate that fails; benchmarks compare with it.
    """

    def __init__(self, signature: slots.Signature, leaf_rows: int = LEAF_ROWS) -> None:
        self.signature = signature
        self.attributes = frozenset(attribute for _, attribute, _ in signature)
        self._leaf_rows = leaf_rows
        kinds = Counter(kind for kind, _, _ in signature)
        self._equal = 2 * kinds[slots.EQUAL]
        self.is_near = bool(kinds[slots.NEAR])
        self.dimensions = self._equal + 2 * kinds[slots.RANGE] + 4 * self.is_near
        self.region = slots.region_in(signature)  # the attribute
        self.has_region = self.region is not None
        self.scalar_slots = tuple(slot for slot in signature if slot[0] <= slots.RANGE)
        self._plans: dict[slots.Signature, Plan] = {}
        self.live = 0
        self._masks: list[int] = []  # of all filters so far
        self._unions: dict[tuple[int, bool], int] = {}  # cache of `_admitted_by_any`
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
            ids=np.zeros((leaves, rows), np.int32), masks=np.zeros((leaves, rows), np.uint8),
            boxes=np.zeros((leaves, rows, 4 if self.has_region and not self.is_near else 0)), state=state,
        )  # fmt: skip

    def add(self, number: int, what: slots.FiledFilter) -> None:
        """Add a filter under `number`."""
        if what.mask not in self._masks:
            self._masks.append(what.mask)
            self._unions.clear()
        box = NO_BOX if self.is_near else np.array(what.box, np.float64)
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
        nodes, leaves = len(old.splits), len(old.counts)
        self._arrays = self._empty(nodes + nodes // 2 + 2, leaves + leaves // 2 + 3)
        for kept, array in zip(old[:-1], self._arrays[:-1], strict=True):
            array[: len(kept)] = kept
        self._arrays.state[:] = old.state
        self._stack = np.empty(2 * len(self._arrays.splits), np.int32)

    def plan_under(self, signature: slots.Signature) -> Plan:
        """Return how to search for filters that filters of another signature cover."""
        if signature not in self._plans:
            if len(self._plans) == MAX_PLANS:
                self._plans.clear()
            self._plans[signature] = self._plan_under(signature)
        return self._plans[signature]

    def _plan_under(self, signature: slots.Signature) -> Plan:
        ordered = [slot for slot in signature if slot[0] <= slots.RANGE]
        asked = {slot: 2 * k for k, slot in enumerate(ordered)}  # where the pair of a slot is in a point
        several = slots.OTHER, self.region, slots.SEVERAL_REGIONS
        is_same = self.has_region and slots.region_in(signature) == self.region and several not in self.signature
        named = Counter(attribute for _, attribute, _ in self.signature)
        positions: list[int | None] = []
        for slot in self.scalar_slots:
            # Further constraints on the attribute may be the covered ones: then this slot may be wider.
            is_asked = slot in asked and named[slot[1]] == 1
            positions += [asked[slot], asked[slot] + 1] if is_asked else [None, None]
        return positions, is_same

    def find(
        self, low: list[float], high: list[float], mask: int, box: Box, reverse: bool, counters: NDArray[np.int64]
    ) -> Iterator[list[int]]:
        """Yield the numbers of filters that may cover the query, or be covered by it (`reverse`); numbers may repeat.

        `low` and `high` bound the coordinates of EQUAL and RANGE slots. The mask, or ANY_REGION, and the box are those
        of the query's region.
        """
        if reverse:  # a dominated value is an equal one, and so is a dominating one
            low[: self._equal] = [value if value < inf else -inf for value in high[: self._equal]]
        else:
            high[: self._equal] = low[: self._equal]
        if self.is_near:
            between = self._corners(mask, box, reverse)
            if between is None:
                return
            low, high = low + between[0], high + between[1]
        admitted = (REVERSE if reverse else FORWARD)[mask]
        query = np.array([*low, *high, *box], np.float64)
        wanted, said = FIRST_CANDIDATES, 0
        while True:
            out = np.empty(wanted, np.int64)
            count = kernels.find_candidates(
                self._arrays, query, reverse, self.has_region, admitted, BOX_MASKS, self._stack, out, counters
            )
            if count > said:
                yield out[said:count].tolist()  # a repeated search finds the same candidates first
            if count < wanted:
                return
            wanted, said = 8 * wanted, count

    def _corners(self, mask: int, box: Box, reverse: bool) -> tuple[list[float], list[float]] | None:
        """Return bounds of the last coordinates, the boxes, of filters that may be found; None if there are none."""
        related = self._admitted_by_any(mask, reverse)
        low, high = [-inf] * 4, [inf] * 4
        if related & ~(AROUND if reverse else WITHIN) == 0:  # boxes of rows contain the query's
            low = slots.corners(box)
        elif not related & DISJOINT_BIT:
            low = slots.corners((box[2], box[3], box[0], box[1]))  # boxes meet
        if related & ~(WITHIN if reverse else AROUND) == 0:
            high = slots.corners(box)
        return (low, high) if related else None

    def _admitted_by_any(self, mask: int, reverse: bool) -> int:
        """Return the relations of the covered region to the covering one that some filter so far admits."""
        found = self._unions.get((mask, reverse))
        if found is None:
            admitted = (REVERSE if reverse else FORWARD)[mask]
            found = self._unions[mask, reverse] = int(np.bitwise_or.reduce(admitted[self._masks]))
        return found
