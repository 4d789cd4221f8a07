"""DistanceTree: distance constraints under a tree of boxes that are grown by the distances; immutable and packed."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import BEYOND_BIT, ENCLOSED_BIT, FAN
from contrada.geometry.arrays import frozen
from contrada.geometry.distance import message_arrays
from contrada.geometry.line_relating import AnyValue, AnyValues, ShapeColumn
from contrada.geometry.relate import ShapeArrays, shape_arrays
from contrada.index.hugepages import settled
from contrada.index.items import boxes_of
from contrada.index.packed import GATE_VIEW, MAX_STACK_NODES, NO_ROWS, reordered
from contrada.kernels.match.tables import NEAR, NEAR_SCRATCH
from contrada.kernels.runtime.layout import AddressLayout

BOX_SLACK = 4e-15  # relative room for rounding when a box is grown by a distance
SHAPE_PARTS = ("xy", "ring_offsets", "region_offsets", "bounds", "boxes", "chains")
TREE_PARTS = (
    "nodes", "node_masks", "grown", "distances", "masks", "rows",
    "enclosed_before", "enclosed_rows", "beyond_before", "beyond_rows",
)  # fmt: skip
_FIRST = frozen(np.zeros(1, np.int64))


class DistanceTree:
    """Distance constraints on one attribute from regions, points or lines; finds those that a message satisfies.

    Constraint k asks that the message's outcome with value k of `column` and `distances[k]` is in `masks[k]`.
    """

    __slots__ = ("_local", "_shapes", "_table", "column", *TREE_PARTS)
    layout: ClassVar[AddressLayout] = NEAR

    def __init__(
        self, column: ShapeColumn, masks: NDArray[np.uint8], distances: NDArray[np.float64],
        rows: NDArray[np.int32], is_ordered: bool = False,
    ) -> None:  # fmt: skip
        """Pack constraints; rows[k] is reported if constraint k holds. The order stays if `is_ordered`."""
        if not is_ordered:
            keys = np.empty(len(column), np.int64)
            kernels.hilbert_keys(frozen(boxes_of(column)), keys)
            order = np.argsort(keys, kind="stable")
            column, masks, distances, rows = reordered(column, order), masks[order], distances[order], rows[order]
        self.column = column
        self.masks, self.distances = frozen(settled(masks)), frozen(settled(distances))
        self.rows = frozen(settled(rows.astype(np.int32, copy=False)))
        boxes = boxes_of(column)
        self.grown = frozen(settled(self.grown_boxes(boxes, distances)))
        self.nodes, self.node_masks = nodes_over(self.grown, boxes, self.distances, self.masks)
        offsets = frozen(np.arange(len(rows) + 1, dtype=np.int32))
        for name, bit in (("enclosed", ENCLOSED_BIT), ("beyond", BEYOND_BIT)):
            before, listed = kernels.build_lists(offsets, self.masks, np.array(self.rows), np.uint8(bit))
            setattr(self, f"{name}_before", frozen(before))
            setattr(self, f"{name}_rows", frozen(listed))
        self._shapes = shape_arrays(self.column)
        self._table: NDArray[np.int64] | None = None
        self._local = threading.local()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the tree by name (`NEAR` in kernels/match/tables.py), except those of the column."""
        return {name: getattr(self, name) for name in TREE_PARTS}

    @property
    def table(self) -> NDArray[np.int64]:
        """The table of addresses by which kernels know this tree."""
        if self._table is None:
            self._table = self.layout.addresses({**dict(zip(SHAPE_PARTS, self._shapes, strict=True)), **self.arrays()})
        return self._table

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays but the coordinates."""
        return sum(array.nbytes for array in (*self.arrays().values(), *self._shapes[1:]))

    def match(self, value: AnyValue) -> NDArray[np.int64]:
        """Return the rows of the constraints that a message's value satisfies, sorted."""
        try:
            scratch: NearScratch = self._local.scratch
        except AttributeError:
            self._local.scratch = scratch = NearScratch(len(self), 1)
        self._match(message_arrays(value._column), _FIRST, 0, scratch)
        count: int = scratch.ends.item(0)
        if count == 0:
            return NO_ROWS
        answer = scratch.out[:count].astype(np.int64)
        answer.sort()
        return answer

    def match_many(self, column: AnyValues, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Match rows `order` of a column; return the number of rows per message, and the rows message by message."""
        scratch = NearScratch(max(4 * len(self), 1 << 18), len(order))
        out, ends = scratch.out, scratch.ends
        shapes, order = message_arrays(column), frozen(order)
        start, counts, answers = 0, [np.empty(0, np.int64)], [out[:0]]
        while start < len(order):
            done = self._match(shapes, order, start, scratch)
            counts.append(np.diff(ends[start:done], prepend=0))
            answer = out[: ends[done - 1]]
            answers.append(answer if done == len(order) else answer.copy())
            start = done
        return np.concatenate(counts), np.concatenate(answers)

    @staticmethod
    def grown_boxes(boxes: NDArray[np.float64], distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return boxes that surely hold every point within a distance of the given boxes."""
        return grown_boxes(boxes, distances)

    def _match(self, shapes: ShapeArrays, order: NDArray[np.int64], start: int, scratch: NearScratch) -> int:
        """Match rows of a column of messages, with their radii; return how many of them were matched."""
        done: int = kernels.match_near(*shapes, self.table, order, start, scratch.table)
        return done

    def check(self) -> None:
        """Raise AssertionError if an invariant does not hold."""
        sizes = {len(self.column), len(self.masks), len(self.distances), len(self.rows), len(self.grown)}
        assert len(sizes) == 1, "the arrays differ in length"
        assert ((self.distances >= 0) & (self.distances < np.inf)).all(), "a distance is negative or infinite"
        assert ((self.masks > 0) & (self.masks < 7)).all(), "a mask asks for nothing or for everything"
        boxes = boxes_of(self.column)
        assert np.array_equal(self.grown, self.grown_boxes(boxes, self.distances)), "a grown box is wrong"
        nodes, masks = nodes_over(self.grown, boxes, self.distances, self.masks)
        assert np.array_equal(self.nodes, nodes), "a node differs from what is below it"
        assert np.array_equal(self.node_masks, masks), "the mask of a node differs from those below it"
        starts = np.append(np.arange(0, len(self), FAN), len(self))
        for name, bit in (("enclosed", ENCLOSED_BIT), ("beyond", BEYOND_BIT)):
            has_bit = (self.masks & bit) != 0
            before, listed = getattr(self, f"{name}_before"), getattr(self, f"{name}_rows")
            assert np.array_equal(listed, self.rows[has_bit]), "the rows of a list differ from those of its constraints"
            assert np.array_equal(before, np.append(0, np.cumsum(has_bit))[starts]), "the offsets of a list are wrong"

    def values(self) -> ShapeColumn:
        """Return the value of every constraint, for packing again together with others."""
        return self.column


class NearScratch:
    """Arrays that one thread writes to while it matches."""

    __slots__ = ("_stack", "ends", "out", "table")

    def __init__(self, rows: int, messages: int) -> None:
        """Allocate room for `rows` and `messages`."""
        self.out, self.ends = np.empty(rows + 1, np.int32), np.empty(max(1, messages), np.int64)
        self._stack = np.empty((MAX_STACK_NODES, 2), np.int64)  # kept alive: the table knows it by address
        self.table = NEAR_SCRATCH.addresses(
            {"stack": self._stack, "out": self.out, "ends": self.ends, "gate": GATE_VIEW}
        )


def grown_boxes(boxes: NDArray[np.float64], distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return boxes that surely hold every point within a distance of the given boxes.

    >>> low = grown_boxes(np.array([[0.0, 0.0, 1.0, 1.0]]), np.array([0.1]))[0, 0]
    >>> bool(low <= -0.1), bool(low > -0.1000001)
    (True, True)
    """
    slack = BOX_SLACK * (np.abs(boxes).max(axis=1, initial=0.0) + distances)
    with np.errstate(over="ignore"):
        reach = (distances + slack)[:, None]
        return np.concatenate([boxes[:, :2] - reach, boxes[:, 2:] + reach], axis=1)


def nodes_over(
    grown: NDArray[np.float64], boxes: NDArray[np.float64], distances: NDArray[np.float64], masks: NDArray[np.uint8]
) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Return the nodes over items in order, level by level, and the union of the masks below each."""
    below = np.concatenate([grown, boxes, distances[:, None]], axis=1)
    nodes, unions = [np.empty((0, 9))], [np.empty(0, np.uint8)]
    while len(below) > FAN:
        starts = np.arange(0, len(below), FAN)
        low, high = np.minimum.reduceat(below, starts), np.maximum.reduceat(below, starts)
        below = np.concatenate([low[:, :2], high[:, 2:4], low[:, 4:6], high[:, 6:8], low[:, 8:]], axis=1)
        masks = np.bitwise_or.reduceat(masks, starts)
        nodes.append(below)
        unions.append(masks)
    return frozen(np.ascontiguousarray(np.concatenate(nodes))), frozen(np.concatenate(unions))
