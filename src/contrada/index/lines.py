"""LineTree: constraints on OGC's relations to lines, regions or points; and how lines meet a tree of other constraints.

Boxes that do not meet decide `disjoint`. The pairs that are left are told by a kernel for many pairs at once, which
stops at the first common point where only that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import LINE_DISJOINT_BIT
from contrada.geometry import Line, LineArray
from contrada.geometry.arrays import frozen, ranges
from contrada.geometry.circle import CircleArray
from contrada.geometry.composition import LINE_MASKS
from contrada.geometry.line_relating import AnyValue, AnyValues, ShapeColumn, line_relations
from contrada.geometry.line_relation import ALL_LINE_RELATIONS
from contrada.index.hugepages import settled
from contrada.index.items import boxes_of
from contrada.index.packed import NO_ROWS, PackedTree, reordered

MAX_MARKS = 1 << 22  # pairs of a message and a constraint that asks for `disjoint` too, marked at once
Integers = NDArray[np.int64]
Answer = tuple[Integers, NDArray[np.int32]]  # number of rows per message; the rows, message by message
_NO_NODES = frozen(np.empty((0, 4)))
_FIRST = frozen(np.zeros(1, np.int64))


class LineTree:
    """Constraints on one attribute from values of one kind; finds those that a region, point or line satisfies.

    Constraint k asks that the relation of a message's value to value k of `column` is in `masks[k]`.
    """

    __slots__ = ("boxes", "column", "masks", "nodes", "rows")

    def __init__(
        self, column: ShapeColumn, masks: NDArray[np.uint8], rows: NDArray[np.int32], is_ordered: bool = False
    ) -> None:
        """Pack constraints; rows[k] is reported if constraint k holds. The order stays if `is_ordered`."""
        if not is_ordered:
            keys = np.empty(len(column), np.int64)
            kernels.hilbert_keys(frozen(boxes_of(column)), keys)
            order = np.argsort(keys, kind="stable")
            column, masks, rows = reordered(column, order), masks[order], rows[order]
        self.column = column
        self.masks = frozen(settled(masks))
        self.rows = frozen(settled(rows.astype(np.int32, copy=False)))
        self.boxes = frozen(boxes_of(column))
        self.nodes = frozen(settled(kernels.build_nodes(self.boxes)))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays but the coordinates."""
        return sum(array.nbytes for array in (self.masks, self.rows, self.boxes, self.nodes))

    def match(self, value: AnyValue) -> Integers:
        """Return the rows of the constraints that a message's value satisfies, sorted."""
        _, found = self.match_many(value._column, _FIRST)
        return np.sort(found.astype(np.int64))

    def match_many(self, column: AnyValues, order: Integers) -> Answer:
        """Match rows `order` of a column; return the number of rows per message, and the rows message by message.

        Circles satisfy nothing: OGC's relations relate points, lines and regions.
        """
        if isinstance(column, CircleArray):
            return np.zeros(len(order), np.int64), np.empty(0, np.int32)
        return _matched(Listed(self.boxes, self.nodes, self.column, self.masks, self.rows), column, order)

    def check(self) -> None:
        """Raise AssertionError if an invariant does not hold."""
        sizes = {len(self.column), len(self.masks), len(self.rows), len(self.boxes)}
        assert len(sizes) == 1, "the arrays differ in length"
        assert (self.masks <= ALL_LINE_RELATIONS).all(), "a mask has an unknown relation"
        assert np.array_equal(self.boxes, boxes_of(self.column)), "a box is wrong"
        assert np.array_equal(self.nodes, kernels.build_nodes(self.boxes)), "a node differs from what is below it"


class Listed:
    """Constraints under boxes, one or several of them on each item, as this module matches them."""

    __slots__ = ("boxes", "column", "item_of", "masks", "nodes", "offsets", "rows")

    def __init__(
        self, boxes: NDArray[np.float64], nodes: NDArray[np.float64], column: ShapeColumn, masks: NDArray[np.uint8],
        rows: NDArray[np.int32], offsets: NDArray[np.int32] | None = None,
    ) -> None:  # fmt: skip
        """Constraint k is on item k, or without `offsets` those of item i are at offsets[i]:offsets[i + 1]."""
        self.boxes, self.nodes, self.column, self.masks, self.rows = boxes, nodes, column, masks, rows
        self.offsets = offsets

    def entries(self, counts: Integers, items: NDArray[np.int32]) -> tuple[Integers, Integers, Integers]:
        """Return message, item and constraint of every constraint on the items that were listed message by message."""
        messages = np.repeat(np.arange(len(counts)), counts)
        own = items.astype(np.int64)
        if self.offsets is None:
            return messages, own, own
        starts, stops = self.offsets[own], self.offsets[own + 1]
        each = stops - starts
        return np.repeat(messages, each), np.repeat(own, each), ranges(starts, stops)


def lines_matched(tree: PackedTree, column: LineArray, order: Integers) -> Answer:
    """Match rows `order` of a column of lines with constraints on the eight relations, by OGC's words in masks."""
    nodes = tree.nodes if len(tree.nodes) else _NO_NODES
    masks = LINE_MASKS[int(tree.is_points)][tree.masks]
    return _matched(
        Listed(frozen(boxes_of(tree.column)), nodes, tree.column, masks, tree.rows, tree.offsets), column, order
    )


def line_matched(tree: PackedTree, value: Line) -> Integers:
    """Return the rows of the constraints on the eight relations that a line satisfies, sorted."""
    _, found = lines_matched(tree, value._column, _FIRST)
    return np.sort(found.astype(np.int64)) if len(found) else NO_ROWS


def _matched(tree: Listed, column: ShapeColumn, order: Integers) -> Answer:
    far = np.flatnonzero(tree.masks & LINE_DISJOINT_BIT)  # hold of all messages whose boxes do not meet theirs
    counts, answers = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    for messages, listed, items in _box_pairs(tree, column, order):
        whose, own, entries = tree.entries(listed, items)
        masks = tree.masks[entries]
        asked = np.flatnonzero(masks) if not masks.all() else slice(None)
        whose, own, entries, masks = whose[asked], own[asked], entries[asked], masks[asked]
        relations = line_relations(column, tree.column, messages[whose], own, masks)
        holds = masks >> relations & 1 == 1
        if len(far):
            found, numbers = _with_far(tree, far, len(messages), whose, entries, holds)
        else:
            found, numbers = whose[holds], entries[holds]
        counts.append(np.bincount(found, minlength=len(messages)))
        answers.append(tree.rows[numbers])
    return np.concatenate(counts), np.concatenate(answers)


def _with_far(
    tree: Listed, far: Integers, messages: int, whose: Integers, entries: Integers, holds: NDArray[np.bool_]
) -> tuple[Integers, Integers]:
    """Return messages and constraints that hold, with those on boxes that do not meet the message's."""
    is_found = np.zeros((messages, len(far)), bool)
    is_found[:] = True
    place = np.full(len(tree.masks), -1)
    place[far] = np.arange(len(far))
    are_far = place[entries] >= 0
    is_found[whose[are_far], place[entries[are_far]]] = holds[are_far]
    owners, places = np.nonzero(is_found)
    near = holds & ~are_far
    found, numbers = np.concatenate([owners, whose[near]]), np.concatenate([far[places], entries[near]])
    by_message = np.argsort(found, kind="stable")
    return found[by_message], numbers[by_message]


def _box_pairs(
    tree: Listed, column: ShapeColumn, order: Integers
) -> Iterator[tuple[Integers, Integers, NDArray[np.int32]]]:
    """Yield messages, how many items each of their boxes meets, and the items, for parts of `order`."""
    boxes = frozen(boxes_of(column))
    size, step = len(tree.boxes), max(1, MAX_MARKS // max(1, len(tree.masks)))
    if not np.any(tree.masks & LINE_DISJOINT_BIT):
        step = max(1, len(order))
    out = np.empty(size + 1 if len(order) == 1 else max(4 * size, 1 << 18) + 1, np.int32)
    for first in range(0, len(order), step):
        part, start = frozen(order[first : first + step]), 0
        ends = np.empty(len(part), np.int64)
        while start < len(part):
            done: Any = kernels.list_box_pairs(boxes, tree.boxes, tree.nodes, part, start, out, ends)
            yield part[start:done], np.diff(ends[start:done], prepend=0), out[: ends[done - 1]]
            start = done
