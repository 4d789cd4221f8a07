"""PackedTree: the constraint R-tree (CR-tree) in its production form, immutable and packed.

Constraints on equal regions share one item. Items stand in Hilbert order under a tree of boxes; the rows of constraints
that hold of everything apart from the message (`disjoint`) or within it (`contains`) are listed in the same order, so
that whole subtrees are answered by copying a run of a list.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.geometry import Point, PointArray, Region, RegionArray
from contrada.geometry.arrays import Arrays, concatenate, frozen

DISJOINT_BIT, CONTAINS_BIT = np.uint8(1), np.uint8(32)


class PackedTree:
    """Constraints on one attribute against regions, or against points; answers which a message satisfies."""

    __slots__ = ("_arrays", "_local", "column", "is_points", "lists", "masks", "nodes", "offsets", "rows", "union")

    def __init__(self, column: RegionArray | PointArray, masks: NDArray[np.uint8], rows: NDArray[np.int32]) -> None:
        """Pack constraints: masks[k] against value k of the column; rows[k] is reported when it holds."""
        self.is_points = isinstance(column, PointArray)
        keys = np.empty(len(column), np.int64)
        kernels.hilbert_keys(frozen(boxes_of(column)), keys)
        order = np.argsort(keys, kind="stable")
        column, keys = reordered(column, order), keys[order]
        firsts = first_of_equals(column, keys)
        starts = np.flatnonzero(firsts)
        self.column = column if len(starts) == len(column) else reordered(column, starts)
        self.offsets = frozen(np.append(starts, len(column)).astype(np.int32))
        self.masks = frozen(masks[order])
        ordered = rows[order].astype(np.int32, copy=False)
        self.union = self.masks if len(starts) == len(order) else frozen(np.bitwise_or.reduceat(self.masks, starts))
        self.nodes = frozen(kernels.build_nodes(frozen(boxes_of(self.column))))
        disjoint = kernels.build_lists(self.offsets, self.masks, ordered, DISJOINT_BIT)
        contains = kernels.build_lists(self.offsets, self.masks, ordered, CONTAINS_BIT)
        self.rows = frozen(ordered)
        self.lists = tuple(map(frozen, (*disjoint, *contains)))
        self._arrays = item_arrays(self.column)
        self._local = threading.local()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays but the coordinates; arrays that serve twice count once."""
        arrays = [self.nodes, self.union, self.offsets, self.masks, self.rows, *self.lists]
        arrays += [array for array in self._arrays[1:] if isinstance(array, np.ndarray)]
        return sum({array.ctypes.data: array.nbytes for array in arrays}.values())

    def match(self, value: Region | Point) -> NDArray[np.int32]:
        """Rows of the constraints that a message's value satisfies, in no order."""
        candidates, out, ends = self._scratch()
        self._call(kernel_arrays(value.column), isinstance(value, Point), 0, 1, candidates, out, ends)
        answer: NDArray[np.int32] = out[: ends[0]].copy()
        return answer

    def match_many(
        self, column: RegionArray | PointArray, start: int, stop: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The same for rows start..stop of a column: how many rows each satisfies, and these one after another."""
        message = kernel_arrays(column)
        candidates = np.empty(len(self.column), np.int32)
        out = np.empty(max(4 * len(self), 1 << 18), np.int32)
        ends = np.zeros(len(column), np.int64)
        counts, answers = [], []
        while start < stop:
            done = self._call(message, isinstance(column, PointArray), start, stop, candidates, out, ends)
            counts.append(np.diff(ends[start:done], prepend=0))
            answers.append(out[: ends[done - 1]].copy())
            start = done
        return np.concatenate([*counts, np.empty(0, np.int64)]), np.concatenate([*answers, np.empty(0, np.int32)])

    def _call(self, message: tuple[Any, ...], is_point: bool, start: int, stop: int, *scratch: Any) -> int:
        done: int = kernels.match_packed(
            *message, *self._arrays, self.nodes, self.union, self.offsets, self.masks, self.rows,
            *self.lists, is_point, self.is_points, start, stop, *scratch,
        )  # fmt: skip
        return done

    def _scratch(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """Room for every item, every entry and one end, one per thread."""
        made: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]] | None
        made = getattr(self._local, "arrays", None)
        if made is None:
            made = np.empty(len(self.column), np.int32), np.empty(len(self), np.int32), np.empty(1, np.int64)
            self._local.arrays = made
        return made

    def with_rows(self, number: Callable[[NDArray[np.int32]], NDArray[np.int32]]) -> PackedTree:
        """The same constraints with other rows."""
        return PackedTree(self.values(), self.masks, number(self.rows))

    def values(self) -> RegionArray | PointArray:
        """The value of every entry, for packing again together with others."""
        if len(self.column) == len(self):
            return self.column
        return reordered(self.column, np.repeat(np.arange(len(self.column)), np.diff(self.offsets)))


_NO_RINGS = (frozen(np.zeros(1, np.int64)), frozen(np.zeros(2, np.int32)), frozen(np.empty(0, np.uint8)))
_NO_CHAINS = frozen(np.full(1, -1, np.int64))
_NO_NODES = frozen(np.empty((0, 4)))
_NO_LISTS = (frozen(np.zeros(1, np.int32)), frozen(np.empty(0, np.int32))) * 2


def boxes_of(column: RegionArray | PointArray) -> NDArray[np.float64]:
    """The boxes of regions or points."""
    if isinstance(column, RegionArray):
        return column.bounds
    return np.ascontiguousarray(np.concatenate([column.xy, column.xy], axis=1))


def reordered(column: RegionArray | PointArray, order: NDArray[np.int64]) -> RegionArray | PointArray:
    """The rows of a column in another order."""
    if isinstance(column, PointArray):
        return column[order]
    chosen = np.ascontiguousarray(order, np.int64)
    return RegionArray(Arrays(*kernels.gather_regions(*column.arrays, frozen(chosen))), column.crs)


def joined(columns: list[RegionArray | PointArray]) -> RegionArray | PointArray:
    """The rows of several columns of one kind."""
    if isinstance(columns[0], PointArray):
        return PointArray(np.concatenate([c.xy for c in columns if isinstance(c, PointArray)]), crs=columns[0].crs)
    return RegionArray(concatenate([c.arrays for c in columns if isinstance(c, RegionArray)]), columns[0].crs)


def first_of_equals(column: RegionArray | PointArray, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows differ from the row before them; equal values have equal Hilbert keys, so most differ there."""
    firsts = np.ones(len(column), bool)
    if isinstance(column, PointArray):
        same_key = np.flatnonzero(keys[1:] == keys[:-1]) + 1
        firsts[same_key] = (column.xy[same_key] != column.xy[same_key - 1]).any(axis=1)
    else:
        kernels.mark_firsts(*column.arrays[:3], frozen(keys), firsts)
    return firsts


def kernel_arrays(column: RegionArray | PointArray) -> tuple[NDArray[Any], ...]:
    """The seven arrays that match kernels take for a column; points have boxes without rings."""
    if isinstance(column, RegionArray):
        return column.kernel_arrays()
    boxes = np.concatenate([column.xy, column.xy], axis=1)
    boxes.setflags(write=False)
    return column.xy, *_NO_RINGS, boxes, np.empty((0, 4)), _NO_CHAINS


def item_arrays(column: RegionArray | PointArray) -> tuple[Any, ...]:
    """The arrays of the items as match kernels take them: edge indexes by a list of the items that have one."""
    *arrays, chains = kernel_arrays(column)
    large = np.flatnonzero(chains >= 0)  # points have none
    most = 1 if isinstance(column, PointArray) else int(np.diff(column.arrays.region_offsets).max(initial=1))
    return (*arrays, frozen(large.astype(np.int32)), frozen(chains[large]), most)


TREE_PARTS = ("nodes", "union", "offsets", "masks", "rows")
LIST_PARTS = ("disjoint_before", "disjoint_rows", "contains_before", "contains_rows")


def tree_arrays(tree: PackedTree) -> dict[str, NDArray[Any]]:
    """All arrays of a tree by name, the edge indexes of its large items included."""
    made = {name: getattr(tree, name) for name in TREE_PARTS} | dict(zip(LIST_PARTS, tree.lists, strict=True))
    if isinstance(tree.column, PointArray):
        return made | {"xy": tree.column.xy}
    boxes, large, bases, _ = tree._arrays[5:]
    return made | dict(tree.column.arrays._asdict()) | {"boxes": boxes, "large": large, "bases": bases}


def tree_from_arrays(arrays: dict[str, NDArray[Any]], is_points: bool) -> PackedTree:
    """A tree over arrays that `tree_arrays` gave, wherever they are now; nothing is computed anew."""
    tree = PackedTree.__new__(PackedTree)
    tree.is_points = is_points
    for name in TREE_PARTS:
        setattr(tree, name, arrays[name])
    tree.lists = tuple(arrays[name] for name in LIST_PARTS)
    tree._local = threading.local()
    if is_points:
        tree.column = PointArray(arrays["xy"])
        tree._arrays = item_arrays(tree.column)
        return tree
    own = Arrays(*(arrays[name] for name in Arrays._fields))
    tree.column = RegionArray(own)
    most = int(np.diff(own.region_offsets).max(initial=1))
    # Kernels take the boxes as an array that could be written to; these are few, so they are copied.
    tree._arrays = (*own, arrays["boxes"].copy(), arrays["large"], arrays["bases"], most)
    return tree


def flat_tree(
    column: RegionArray | PointArray,
    items: tuple[Any, ...],
    offsets: NDArray[np.int32],
    masks: NDArray[np.uint8],
    rows: NDArray[np.int32],
) -> PackedTree:
    """A tree without nodes over items in any order, each with one entry: a match looks at all of them.

    `items` are what `item_arrays` gives for the column, `offsets` 0, 1, 2, ...; nothing is computed or copied.
    """
    tree = PackedTree.__new__(PackedTree)
    tree.is_points = isinstance(column, PointArray)
    tree.column, tree.offsets, tree.masks, tree.union, tree.rows = column, offsets, masks, masks, rows
    tree.nodes, tree.lists, tree._arrays = _NO_NODES, _NO_LISTS, items
    tree._local = threading.local()
    return tree
