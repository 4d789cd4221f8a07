"""CRTree: the constraint R-tree of [SPATIAL], section 4.1, as printed except for the corrected Table 2.

An R-tree after Guttman that stores constraints: every node holds the box of all regions below it and a list of the
`disjoint` constraints below it. Tables use `PackedTree`; this tree is for comparison.
"""

from __future__ import annotations

from operator import index
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import CR_FREE, CR_ROOT, CR_USED, LINEAR, MAX_CR_HEIGHT, QUADRATIC, RSTAR
from contrada.errors import KeyInUseError, UnknownKeyError
from contrada.geometry import Point, Region, RegionArray, Relation, RelationSet, relate
from contrada.geometry.arrays import Arrays, compact, concatenate, frozen, take
from contrada.geometry.crs import Crs, common_crs
from contrada.geometry.relate import ALL_ROWS, BOX_RELATIONS, NO_MASKS
from contrada.index.raw import with_room
from contrada.papers.cover.point_index import NOBODY, nobody
from contrada.papers.spatial.sampled import relate_sampled

Split = Literal["quadratic", "linear", "rstar"]
METHODS: dict[str, int] = {"quadratic": QUADRATIC, "linear": LINEAR, "rstar": RSTAR}
INITIAL_SLOTS = 16

# For every mask, the relations of boxes for which a constraint must be evaluated.
ADMITTED: NDArray[np.uint8] = np.array(
    [np.bitwise_or.reduce(BOX_RELATIONS[[bool(mask >> k & 1) for k in range(8)]]) for mask in range(256)], np.uint8
)
ADMITTED.setflags(write=False)


class TreeArrays(NamedTuple):
    """The arrays of a tree in the order of kernel arguments; constraints are numbered by slot, nodes by number."""

    boxes: NDArray[np.float64]
    parents: NDArray[np.int32]
    heads: NDArray[np.int32]
    tails: NDArray[np.int32]
    children: NDArray[np.int32]
    counts: NDArray[np.int32]
    levels: NDArray[np.int32]
    slot_boxes: NDArray[np.float64]
    slot_parents: NDArray[np.int32]
    slot_heads: NDArray[np.int32]
    nexts: NDArray[np.int32]
    prevs: NDArray[np.int32]
    state: NDArray[np.int64]


def empty_arrays(slots: int, minimum: int, maximum: int) -> TreeArrays:
    """Return arrays for `slots` constraints and all nodes that they may need, including nodes in transit."""
    nodes = slots // (minimum - 1) + 2 * MAX_CR_HEIGHT
    return TreeArrays(
        boxes=np.empty((nodes, 4)),
        parents=nobody(nodes),
        heads=nobody(nodes),
        tails=nobody(nodes),
        children=nobody(nodes, maximum + 1),
        counts=np.zeros(nodes, np.int32),
        levels=nobody(nodes),
        slot_boxes=np.empty((slots, 4)),
        slot_parents=nobody(slots),
        slot_heads=nobody(slots),
        nexts=nobody(slots),
        prevs=nobody(slots),
        state=np.array([NOBODY, 0, NOBODY], np.int64),
    )


class CRTree:
    """Constraints on one attribute against regions; matches a message's region or point against all of them.

    >>> tree = CRTree()
    >>> tree.insert(7, Relation.OVERLAPS, Region.box(0, 0, 4, 4))
    >>> tree.insert(8, Relation.DISJOINT, Region.box(8, 8, 9, 9))
    >>> tree.match(Region.box(2, 2, 6, 6)).tolist()
    [7, 8]
    """

    def __init__(self, split: Split = "quadratic", minimum: int = 4, maximum: int = 10) -> None:
        """Make an empty tree whose nodes, except the root, have `minimum` to `maximum` children."""
        if split not in METHODS:
            raise ValueError(f"split: need one of {', '.join(METHODS)}, got {split!r:.60}")
        if not 2 <= minimum <= (maximum + 1) // 2:
            raise ValueError(f"need 2 <= minimum <= (maximum + 1) / 2; got {minimum} and {maximum}")
        self.split, self.minimum, self.maximum = split, minimum, maximum
        self.is_within = False  # True if every constraint asks that the message lies in its region
        self.work = np.zeros(2, np.int64)  # nodes visited and boxes of constraints compared, by all searches
        self.crs: Crs | None = None
        self.arrays = empty_arrays(INITIAL_SLOTS, minimum, maximum)  # replaced when the tree grows
        self._masks = np.zeros(INITIAL_SLOTS, np.uint8)
        self._rows = np.zeros(INITIAL_SLOTS, np.int64)
        self._places = np.full(INITIAL_SLOTS, NOBODY, np.int64)  # position of each slot's region in the store
        self._slots: dict[int, int] = {}
        self._free = list(range(INITIAL_SLOTS))[::-1]
        self._regions = RegionStore()

    def __len__(self) -> int:
        return len(self._slots)

    def insert(self, row: int, relations: RelationSet | Relation | int, region: Region) -> None:
        """Add a constraint: a set of relations (or its mask) to a region; `match` reports it as `row`.

        Takes O(log n), and copies the region's coordinates.
        """
        row, mask = index(row), mask_of(relations)
        if row in self._slots:
            raise KeyInUseError(f"row {row} is already in the tree")
        if not isinstance(region, Region):
            raise TypeError(f"insert: need a Region, got {type(region).__name__}")
        self.crs = common_crs(self.crs, region.crs)
        if not self._free:
            self._grow()
        slot = self._free.pop()
        self._slots[row] = slot
        self._rows[slot], self._masks[slot] = row, mask
        self._places[slot] = self._regions.append(region)
        self.arrays.slot_boxes[slot] = region.bounds
        self.arrays.slot_heads[slot] = slot if mask & 1 else NOBODY
        kernels.insert_constraint(*self.arrays, slot, self.minimum, METHODS[self.split])

    def delete(self, row: int) -> None:
        """Remove a constraint; takes O(log n), plus the reinsertion of nodes that become too small."""
        slot = self._slots.pop(row, None)
        if slot is None:
            raise UnknownKeyError(f"row {row} is not in the tree")
        kernels.delete_constraint(*self.arrays, slot, self.minimum, METHODS[self.split])
        self.arrays.slot_heads[slot] = NOBODY
        self._places[slot] = NOBODY
        self._free.append(slot)
        if len(self._regions) > 2 * len(self) + INITIAL_SLOTS:
            slots = np.fromiter(self._slots.values(), np.int64, len(self))
            self._regions.keep(self._places[slots])
            self._places[slots] = np.arange(len(slots))

    def match(self, value: Region | Point, *, density: float | None = None, extra: bool = False) -> NDArray[np.int64]:
        """Return the rows of the constraints that a message's value satisfies, sorted.

        With a `density`, constraints that boxes do not decide are evaluated by Algorithm 1, which does not support
        points; `relate_sampled` explains `extra`.
        """
        if not isinstance(value, (Region, Point)):
            raise TypeError(f"match: need a Region or Point, got {type(value).__name__}")
        if density is not None and isinstance(value, Point):
            raise TypeError("density: Algorithm 1 needs a Region, got Point")
        common_crs(self.crs, value.crs)
        decided, candidates = self.search(value)
        if len(candidates):
            codes = self._relations(value, candidates, density, extra)
            candidates = candidates[(self._masks[candidates] >> codes & 1).astype(bool)]
        rows: NDArray[np.int64] = np.sort(self._rows[np.concatenate([decided, candidates])])
        return rows

    def _relations(
        self, value: Region | Point, slots: NDArray[np.int32], density: float | None, extra: bool
    ) -> NDArray[np.uint8]:
        """Return the relation codes of `value` to the regions of the constraints `slots`."""
        places = self._places[slots]
        if isinstance(value, Region) and density is None:
            codes, regions = np.empty(len(places), np.uint8), self._regions._kernel_arrays()
            rows = ALL_ROWS, frozen(places), NO_MASKS
            kernels.relate_rows(*value._kernel_arrays, *regions, *rows, 0, len(places), codes)
            return codes
        column = RegionArray(take(self._regions.arrays, places), self.crs)
        if isinstance(value, Region) and density is not None:
            return relate_sampled(value, column, density, extra=extra)
        return relate(value, column, threads=1)

    def search(self, value: Region | Point) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the slots of the constraints that boxes show to hold, and of those that must be evaluated."""
        t = self.arrays
        if not self._slots:
            return np.empty(0, np.int32), np.empty(0, np.int32)
        decided, candidates = np.empty(len(self), np.int32), np.empty(len(self), np.int32)
        # A point is outside a box, on its boundary or inside, so the relations of Table 2 apply to it too.
        box = value._column.bounds if isinstance(value, Region) else frozen(np.array([[value.x, value.y] * 2]))
        count, found = kernels.search_constraints(
            box, t.children, t.counts, t.levels, t.heads, t.tails, t.boxes, t.slot_boxes,
            t.nexts, self._masks, ADMITTED, int(t.state[CR_ROOT]), self.is_within, decided, candidates, self.work,
        )  # fmt: skip
        return decided[:count], candidates[:found]

    def count_evaluated(self, value: Region | Point) -> int:
        """Return how many constraints boxes leave to evaluation."""
        return len(self.search(value)[1])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays without coordinates; they have room for up to twice the constraints."""
        arrays = [*plain(self.arrays), self._masks, self._rows, self._places, *self._regions._kernel_arrays()[1:]]
        return sum(array.nbytes for array in arrays)

    def _grow(self) -> None:
        """Double the room; called when every slot is taken."""
        slots = len(self._masks)
        larger = empty_arrays(2 * slots, self.minimum, self.maximum)
        for old, new in zip(plain(self.arrays), plain(larger), strict=True):
            new[: len(old)] = old
        self.arrays = larger
        columns = (self._masks, self._rows, self._places)
        self._masks, self._rows, self._places = (with_room(array, slots, slots) for array in columns)
        self._free = list(range(slots, 2 * slots))[::-1]

    # Invariants

    def check(self) -> None:
        """Raise AssertionError if an invariant does not hold."""
        t, root = self.arrays, int(self.arrays.state[CR_ROOT])
        nodes, slots = np.flatnonzero(t.levels >= 0).tolist(), []
        assert root in nodes or not self._slots, "constraints without a root"
        reached = [root] if nodes else []
        for node in reached:
            below = t.children[node, : t.counts[node]].tolist()
            self._check_node(node, root, below)
            if t.levels[node] > 0:
                reached += below
            else:
                slots += below
        assert sorted(reached) == nodes, "a node is reached in two ways or not at all"
        assert sorted(slots) == sorted(self._slots.values()), "a constraint stands in two leaves or in none"
        assert sorted(self._free + slots) == list(range(len(self._masks))), "a slot is lost"
        assert self._free_nodes() == int(t.state[CR_USED]) - len(nodes), "a node is lost"
        assert all(self._rows[slot] == row for row, slot in self._slots.items()), "a row has lost its slot"
        bounds = self._regions.arrays.bounds[self._places[slots]]
        assert (bounds == t.slot_boxes[slots]).all(), "a constraint's box is not that of its region"

    def _check_node(self, node: int, root: int, below: list[int]) -> None:
        t = self.arrays
        least = self.minimum if node != root else 2 if t.levels[node] else 0
        assert least <= len(below) <= self.maximum, f"node {node} has {len(below)} children"
        is_leaf = t.levels[node] == 0
        boxes, parents = (t.slot_boxes, t.slot_parents) if is_leaf else (t.boxes, t.parents)
        assert node != root or t.parents[node] == NOBODY, "the root has a parent"
        assert (parents[below] == node).all(), f"a child of node {node} has another parent"
        assert is_leaf or (t.levels[below] == t.levels[node] - 1).all(), "leaves at different depths"
        if below:
            tight = [*boxes[below, :2].min(axis=0), *boxes[below, 2:].max(axis=0)]
            assert (t.boxes[node] == tight).all(), f"the box of node {node} is not tight"
        lists = [[k] for k in below if self._masks[k] & 1] if is_leaf else [self._listed(k) for k in below]
        listed = self._listed(node)
        assert len(set(listed)) == len(listed), f"the list of node {node} names a constraint twice"
        assert sorted(listed) == sorted(slot for part in lists for slot in part), f"the list of node {node} is wrong"

    def _listed(self, node: int) -> list[int]:
        """Return the `disjoint` constraints of a node, in the order of its list."""
        t = self.arrays
        listed, tail = [int(t.heads[node])], int(t.tails[node])
        if listed[0] == NOBODY:
            assert tail == NOBODY, f"the list of node {node} has a tail and no head"
            return []
        while listed[-1] != tail:
            following = int(t.nexts[listed[-1]])
            assert following != NOBODY, f"the list of node {node} does not reach its tail"
            assert t.prevs[following] == listed[-1], "the list differs backwards"
            assert len(listed) < len(self._masks), f"the list of node {node} runs in a circle"
            listed.append(following)
        return listed

    def _free_nodes(self) -> int:
        node, count = int(self.arrays.state[CR_FREE]), 0
        while node != NOBODY:
            node, count = int(self.arrays.parents[node]), count + 1
        return count


class RegionStore:
    """Regions in flat arrays that grow at the end, with the edge indexes of large regions."""

    def __init__(self) -> None:
        self._fill(concatenate([]))

    def _fill(self, arrays: Arrays) -> None:
        self._arrays = [array.copy() for array in RegionArray(arrays)._kernel_arrays()]
        self._sizes = [len(array) for array in self._arrays]

    def __len__(self) -> int:
        return self._sizes[-1]

    @property
    def arrays(self) -> Arrays:
        """The regions as the arrays of a column: views, valid until the store changes."""
        return Arrays(*self._views()[:5])

    def _kernel_arrays(self) -> tuple[NDArray[Any], ...]:
        """Return the regions as relation kernels take them, with edge indexes."""
        *arrays, boxes, chains = self._views()
        return (*map(frozen, arrays), boxes, frozen(chains))

    def _views(self) -> list[NDArray[Any]]:
        return [array[:size] for array, size in zip(self._arrays, self._sizes, strict=True)]

    def append(self, region: Region) -> int:
        """Add a region; return its position."""
        new = list(RegionArray(compact(region._column.arrays))._kernel_arrays())
        old = self.arrays
        new[1], new[2] = new[1][1:] + old.ring_offsets[-1], new[2][1:] + old.region_offsets[-1]
        new[6] = np.where(new[6] < 0, new[6], new[6] + self._sizes[5])
        for k, added in enumerate(new):
            start = self._sizes[k]
            self._sizes[k] += len(added)
            self._arrays[k] = with_room(self._arrays[k], start, len(added))
            self._arrays[k][start : self._sizes[k]] = added
        return len(self) - 1

    def keep(self, places: NDArray[np.int64]) -> None:
        """Keep only the regions at `places`, in that order."""
        self._fill(take(self.arrays, places))


def plain(arrays: tuple[NDArray[Any], ...]) -> list[NDArray[Any]]:
    """Return the arrays as a list, without names."""
    return list(arrays)


def mask_of(relations: RelationSet | Relation | int) -> int:
    """Return the mask of a relation or a set; an integer is already a mask."""
    if isinstance(relations, (Relation, RelationSet)):
        return RelationSet(relations).mask
    return RelationSet.from_mask(index(relations)).mask
