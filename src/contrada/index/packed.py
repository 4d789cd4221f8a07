"""PackedTree: the constraint R-tree (CR-tree) in its production form, immutable and packed.

Constraints on equal regions share one item. Items are in Hilbert order under a tree of boxes. The rows of constraints
that hold of everything apart from the message (`disjoint`) or within it (`contains`) are listed in the same order, so
whole subtrees are answered by copying a run of a list.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import CONTAINS_BIT, DISJOINT_BIT, FAN, MAX_LEVELS
from contrada.geometry import LineArray, Point, PointArray, RegionArray
from contrada.geometry.arrays import Arrays, concatenate, frozen
from contrada.geometry.circle import Circle, CircleArray, SpatialValue, SpatialValues
from contrada.geometry.line_relating import AnyValues
from contrada.geometry.relate import NO_MASKS
from contrada.index.circles import match_circles
from contrada.index.edge_trees import EdgeTrees
from contrada.index.hugepages import room, settled
from contrada.index.items import Items, boxes_of, items_of, region_items
from contrada.kernels.match.tables import TREE, TREE_SCRATCH

AnyShapes = TypeVar(
    "AnyShapes", RegionArray, PointArray, LineArray, RegionArray | PointArray, RegionArray | LineArray,
    RegionArray | PointArray | LineArray,
)  # fmt: skip
MAX_STACK_NODES = FAN * MAX_LEVELS  # nodes waiting to be visited: the children of a node on each level
# Writers set the first number to 1 while they hold the interpreter; kernels count themselves in another number: see
# kernels/runtime/gil_gate.py.
GATE = np.zeros(16, np.int64)
GATE_VIEW = frozen(GATE)
BITMAP_MIN_ROWS = 64  # with at least 64 rows, and 1/64 of all rows, answers are marked in a bit map instead of listed


class PackedTree:
    """Constraints on one attribute against regions, or against points; finds those that a message satisfies."""

    __slots__ = (
        "_edge_trees", "_items", "_local", "_table", "column", "disjoint_map", "first_row", "is_points", "lists",
        "masks", "node_masks", "nodes", "offsets", "rows", "union",
    )  # fmt: skip

    def __init__(self, column: RegionArray | PointArray, masks: NDArray[np.uint8], rows: NDArray[np.int32]) -> None:
        """Pack constraints: masks[k] applies to value k of `column`; rows[k] is reported if it holds."""
        self.is_points = isinstance(column, PointArray)
        keys = np.empty(len(column), np.int64)
        kernels.hilbert_keys(frozen(boxes_of(column)), keys)
        order = np.argsort(keys, kind="stable")
        column, keys = reordered(column, order), keys[order]
        firsts = first_of_equals(column, keys)
        starts = np.flatnonzero(firsts)
        self.column = column if len(starts) == len(column) else reordered(column, starts)
        self.offsets = frozen(settled(np.append(starts, len(column)).astype(np.int32)))
        self.masks = frozen(settled(masks[order]))
        ordered = settled(rows[order].astype(np.int32, copy=False))
        self.union = self.masks if len(starts) == len(order) else frozen(np.bitwise_or.reduceat(self.masks, starts))
        self.nodes = frozen(settled(kernels.build_nodes(frozen(boxes_of(self.column)))))
        self.node_masks = frozen(kernels.build_node_masks(self.union, len(self.nodes)))
        disjoint = kernels.build_lists(self.offsets, self.masks, ordered, np.uint8(DISJOINT_BIT))
        contains = kernels.build_lists(self.offsets, self.masks, ordered, np.uint8(CONTAINS_BIT))
        self.rows = frozen(ordered)
        self.lists = tuple(frozen(settled(array)) for array in (*disjoint, *contains))
        self.disjoint_map = frozen(bitmap_of(self.lists[1], self.rows))
        self._finish(items_of(self.column))

    def _finish(self, items: Items) -> None:
        """Prepare the arguments that every kernel call takes."""
        self._items = items
        self.first_row = int(self.rows.min(initial=0)) if len(self.disjoint_map) else 0
        self._table: NDArray[np.int64] | None = None
        self._local = threading.local()
        self._edge_trees = EdgeTrees(items)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays by name (`TREE` in kernels/match/tables.py), except those of edge trees."""
        items: dict[str, Any] = self._items._asdict()
        del items["ring_count"]
        own = {name: getattr(self, name) for name in TREE_PARTS}
        return items | own | dict(zip(LIST_PARTS, self.lists, strict=True))

    def _addresses(self) -> NDArray[np.int64]:
        """Return the table of addresses by which kernels know this tree."""
        table = TREE.addresses({
            **self.arrays(), "ring_count": self._items.ring_count, "is_points": self.is_points,
            "trees": self._edge_trees.tables, "spent": self._edge_trees.spent,
        })  # fmt: skip
        self._table = table
        return table

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays but the coordinates; shared arrays count once."""
        arrays = [array for name, array in self.arrays().items() if name != "xy"]
        own = sum({array.ctypes.data: array.nbytes for array in arrays if array.nbytes}.values())
        return own + self._edge_trees.nbytes

    def match(self, value: SpatialValue) -> NDArray[np.int64]:
        """Return the rows of the constraints that a message's value satisfies, sorted."""
        if isinstance(value, Circle):
            return self.match_many(value._column, _FIRST)[1].astype(np.int64)
        table = self._addresses() if self._table is None else self._table
        if isinstance(value, Point):
            scratch = self._scratch()
            scratch.point[0] = value.x, value.y
            return self._match_one(kernels.match_points, (scratch.point_view,), table, scratch)
        if kernels.finds_nothing(value._leading_box, table, GATE_VIEW):
            return NO_ROWS
        return self._match_one(kernels.match_regions, value._kernel_arrays, table, self._scratch())

    def _match_one(
        self, match: Any, message: tuple[Any, ...], table: NDArray[np.int64], scratch: TreeScratch
    ) -> NDArray[np.int64]:
        """Call a kernel for one message, and sort the rows it finds."""
        match(*message, table, _FIRST, 0, scratch.table)
        if self._edge_trees.spent.item(-1):
            self._edge_trees.build_wanted()
        count: int = scratch.ends.item(0)
        if count == 0:
            return NO_ROWS
        if len(scratch.bitmap):
            marked = np.empty(count + 8, np.int64)
            kernels.list_marks(*scratch.marks, self.first_row, marked)
            return marked[:count]
        answer = scratch.out[:count].astype(np.int64)
        if count > 1:
            answer.sort()
        return answer

    def match_many(
        self, column: SpatialValues, order: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32] | NDArray[np.int64]]:
        """Match rows `order` of a column; return the number of rows per message, and the rows message by message.

        Rows are sorted within each message if there is a disjoint_map, or for circles, otherwise in no order.
        """
        if isinstance(column, CircleArray):
            return match_circles(self, column, order)
        scratch = TreeScratch(self, max(4 * len(self), 1 << 18), len(order))
        message = (column.xy,) if isinstance(column, PointArray) else column._kernel_arrays()
        match = kernels.match_points if isinstance(column, PointArray) else kernels.match_regions
        order, table = frozen(order), self._addresses()
        found = scratch.marked if len(scratch.bitmap) else scratch.out
        start, counts, answers = 0, [], []
        while start < len(order):
            done = match(*message, table, order, start, scratch.table)
            counts.append(np.diff(scratch.ends[start:done], prepend=0))
            answer = found[: scratch.ends[done - 1]]
            answers.append(answer if done == len(order) else answer.copy())
            start = done
            if self._edge_trees.spent.item(-1):
                self._edge_trees.build_wanted()
        return np.concatenate([*counts, np.empty(0, np.int64)]), np.concatenate([*answers, found[:0]])

    def check(self) -> None:
        """Raise AssertionError if an invariant does not hold."""
        items, entries = len(self.column), len(self.rows)
        assert (self.offsets[0], self.offsets[-1]) == (0, entries), "the offsets do not span all entries"
        assert (np.diff(self.offsets) > 0).all(), "an item has no entry"
        union = np.bitwise_or.reduceat(self.masks, self.offsets[:-1])
        assert np.array_equal(self.union, union), "a union differs from the masks of its entries"
        if len(self.nodes) == 0:
            return  # all items are scanned; the lists are not used
        boxes, masks, first = boxes_of(self.column), self.union, 0
        while len(boxes) > FAN:
            starts = np.arange(0, len(boxes), FAN)
            low, high = np.minimum.reduceat(boxes[:, :2], starts), np.maximum.reduceat(boxes[:, 2:], starts)
            boxes, masks = np.concatenate([low, high], axis=1), np.bitwise_or.reduceat(masks, starts)
            level = slice(first, first + len(starts))
            assert np.array_equal(self.nodes[level], boxes), "a node's box is not the union of its children's boxes"
            assert np.array_equal(self.node_masks[level], masks), (
                "a node's mask is not the union of its children's masks"
            )
            first += len(starts)
        assert first == len(self.nodes), "a node has no children"
        runs = self.offsets[np.append(np.arange(0, items, FAN), items)]
        for bit, (before, rows) in ((DISJOINT_BIT, self.lists[:2]), (CONTAINS_BIT, self.lists[2:])):
            has_bit = (self.masks & bit) != 0
            assert np.array_equal(rows, self.rows[has_bit]), "the rows of a list differ from the rows of its entries"
            assert np.array_equal(before, np.append(0, np.cumsum(has_bit))[runs]), (
                "the offsets of a list differ from its runs"
            )
        if len(self.disjoint_map):
            marked = np.flatnonzero(np.unpackbits(self.disjoint_map, bitorder="little")) + self.first_row
            assert np.array_equal(marked, np.sort(self.lists[1])), (
                "the rows of disjoint_map differ from the rows of its list"
            )

    def _scratch(self) -> TreeScratch:
        """Return scratch space for one message, one per thread."""
        try:
            return self._local.scratch  # type: ignore[no-any-return]
        except AttributeError:
            self._local.scratch = made = TreeScratch(self, len(self), 0)
            return made

    def values(self) -> RegionArray | PointArray:
        """Return the value of every entry, for packing again together with others."""
        if len(self.column) == len(self):
            return self.column
        return reordered(self.column, np.repeat(np.arange(len(self.column)), np.diff(self.offsets)))


class TreeScratch:
    """Arrays that one thread writes to while it matches; kernels that only read get read-only views."""

    __slots__ = ("_further", "bitmap", "ends", "marked", "marks", "out", "point", "point_view", "table")

    def __init__(self, tree: PackedTree, rows: int, messages: int) -> None:
        """Allocate room for `rows` and `messages`; 0 means one message, whose rows stay in a bit map if any."""
        has_map = len(tree.disjoint_map) > 0
        self.bitmap = np.empty(len(tree.disjoint_map), np.uint8)
        self.marks = frozen(self.bitmap), frozen(self.bitmap.view(np.uint64))
        self.marked = np.empty(rows + 8 if has_map and messages else 0, np.int64)
        self.point = np.empty((1, 2))
        self.point_view = frozen(self.point)
        self.ends = np.empty(max(1, messages), np.int64)
        self.out = np.empty(0 if has_map else rows, np.int32)
        candidates, stack = np.empty(len(tree.column), np.int32), np.empty((MAX_STACK_NODES, 2), np.int64)
        self._further = candidates, stack  # kept alive: the table knows them by address
        self.table = TREE_SCRATCH.addresses({
            "stack": stack, "candidates": candidates, "out": self.out, "bitmap": self.bitmap, "words": self.marks[1],
            "first_row": tree.first_row, "marked": self.marked, "ends": self.ends, "gate": GATE_VIEW,
        })  # fmt: skip


def bitmap_of(chosen: NDArray[np.int32], rows: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Return a bit for every row from the least of `rows` on, set for `chosen`; empty if these are too few."""
    first, last = int(rows.min(initial=0)), int(rows.max(initial=0))
    if len(chosen) < BITMAP_MIN_ROWS or len(chosen) * BITMAP_MIN_ROWS < last - first:
        return np.empty(0, np.uint8)
    marks = np.zeros((last - first) // 64 * 64 + 64, bool)  # rounded up to whole 64-bit words
    marks[chosen - first] = True
    return np.packbits(marks, bitorder="little")


_FIRST, NO_ROWS = frozen(np.zeros(1, np.int64)), frozen(np.empty(0, np.int64))
_NO_NODES = frozen(np.empty((0, 4)))
_NO_LISTS = (frozen(np.zeros(1, np.int32)), frozen(np.empty(0, np.int32))) * 2


def corners_of(column: AnyValues) -> NDArray[np.float64]:
    """Return a place for each value of a column, in the first two numbers of its row."""
    if isinstance(column, CircleArray):
        return column.centers.xy
    return column.xy if isinstance(column, PointArray) else column.bounds


def z_order(column: AnyValues) -> NDArray[np.int64]:
    """Return the rows of a column in an order that puts neighbours roughly together; fast."""
    order: NDArray[np.int64] = kernels.z_order(corners_of(column))
    return order


def reordered(column: AnyShapes, order: NDArray[np.int64]) -> AnyShapes:
    """Return the rows of a column in another order."""
    if isinstance(column, PointArray):
        return column[order]
    arrays, chosen = column._arrays, np.ascontiguousarray(order, np.int64)
    starts, stops = arrays.region_offsets[chosen], arrays.region_offsets[chosen + 1]
    rings = int((stops - starts).sum())
    vertices = int((arrays.ring_offsets[stops] - arrays.ring_offsets[starts]).sum())
    made = Arrays(
        room((vertices, 2), np.float64),
        room((rings + 1,), np.int64),
        room((len(chosen) + 1,), np.int32),
        room((rings,), np.uint8),
        room((len(chosen), 4), np.float64),
    )
    kernels.gather_regions(*arrays, frozen(chosen), *made)
    return type(column)(made, column.crs)


def joined(columns: list[AnyShapes]) -> AnyShapes:
    """Return the rows of several columns of one kind."""
    first = columns[0]
    if isinstance(first, PointArray):
        return PointArray(np.concatenate([c.xy for c in columns]), crs=first.crs)  # type: ignore[union-attr]
    arrays = [c._arrays for c in columns]  # type: ignore[union-attr]
    return type(first)(concatenate(arrays), first.crs)


def first_of_equals(column: RegionArray | PointArray, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each row differs from the row before it; equal values have equal Hilbert keys."""
    firsts = np.ones(len(column), bool)
    if isinstance(column, PointArray):
        same_key = np.flatnonzero(keys[1:] == keys[:-1]) + 1
        firsts[same_key] = (column.xy[same_key] != column.xy[same_key - 1]).any(axis=1)
    else:
        kernels.mark_firsts(*column.arrays[:3], frozen(keys), firsts)
    return firsts


TREE_PARTS = ("nodes", "node_masks", "union", "offsets", "masks", "rows", "disjoint_map")
LIST_PARTS = ("disjoint_before", "disjoint_rows", "contains_before", "contains_rows")


def tree_arrays(tree: PackedTree) -> dict[str, NDArray[Any]]:
    """Return the arrays of a tree that `tree_from_arrays` takes, by name; points have no rings."""
    unused = set(Items._fields) - {"xy"} if tree.is_points else set()
    return {name: array for name, array in tree.arrays().items() if name not in unused}


def tree_from_arrays(arrays: dict[str, NDArray[Any]], is_points: bool) -> PackedTree:
    """Return a tree over arrays that `tree_arrays` returned, wherever they are now; nothing is recomputed."""
    tree = PackedTree.__new__(PackedTree)
    tree.is_points = is_points
    for name in TREE_PARTS:
        setattr(tree, name, arrays[name])
    tree.lists = tuple(arrays[name] for name in LIST_PARTS)
    if is_points:
        tree.column = PointArray(arrays["xy"])
        tree._finish(items_of(tree.column))
        return tree
    own = Arrays(*(arrays[name] for name in Arrays._fields))
    tree.column = RegionArray(own)
    # Kernels take the boxes as a writable array; there are few, so they are copied.
    tree._finish(region_items(own, arrays["boxes"].copy(), arrays["large"], arrays["bases"]))
    return tree


def flat_tree(
    column: RegionArray | PointArray,
    items: Items,
    offsets: NDArray[np.int32],
    masks: NDArray[np.uint8],
    rows: NDArray[np.int32],
) -> PackedTree:
    """Return a tree without nodes over items in any order, each with one entry: a match tests all of them.

    `items` are those of the column, `offsets` is 0, 1, 2, ...; nothing is computed or copied.
    """
    tree = PackedTree.__new__(PackedTree)
    tree.is_points = isinstance(column, PointArray)
    tree.column, tree.offsets, tree.masks, tree.union, tree.rows = column, offsets, masks, masks, rows
    tree.nodes, tree.node_masks, tree.lists, tree.disjoint_map = _NO_NODES, NO_MASKS, _NO_LISTS, NO_MASKS
    tree._finish(items)
    return tree
