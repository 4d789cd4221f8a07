"""Buffer: the youngest level of a table, not packed yet. New filters go at the end; matching scans all of them."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from contrada.codes import MAX_SCANNED_VERTICES
from contrada.geometry import Point, PointArray, Region, RegionArray
from contrada.geometry.arrays import Arrays, compact, frozen
from contrada.index.items import Items, items_of
from contrada.index.packed import PackedTree, flat_tree
from contrada.index.raw import RawBuffer, with_room
from contrada.index.scanned import RecordView
from contrada.matching.encoding import MessageEncoder
from contrada.matching.residual import Constraints, Residual
from contrada.matching.store.custom_types import CustomConstraints, CustomIndex, CustomResidual
from contrada.matching.store.level import EMPTY, Level, Slot
from contrada.matching.store.tuning import DEFAULT_TUNING, Tuning
from contrada.model import Constraint, Predicate
from contrada.model.types import Asked


class Buffer:
    """Filters that were added one by one. `level` shows the filters added so far and never changes later."""

    def __init__(self, encoder: MessageEncoder, tuning: Tuning = DEFAULT_TUNING) -> None:
        self.level = EMPTY
        self._encoder, self._tuning = encoder, tuning
        self._reached: dict[Slot, Growing | GrowingCustom] = {}
        self._further: dict[Slot, Growing | GrowingCustom] = {}
        self._raw = RawBuffer()
        self._scanned = 0
        self._local = threading.local()

    def append(self, first: int, predicate: Predicate) -> Level:
        """Add the filters of `predicate`, numbered from `first` on; return a new level that includes them."""
        trees, checks = dict(self.level.trees), dict(self.level.checks)
        scalars, scanned = self.level.scalars, self._scanned
        reached: dict[Slot, Growing | GrowingCustom] = {}
        further: dict[Slot, Growing | GrowingCustom] = {}
        for number, part in enumerate(predicate.filters, first):
            objects = [constraint for constraint in part.constraints if constraint.kind is not None]
            others = [constraint for constraint in part.constraints if constraint.kind is None]
            if others:
                self._append_scalars(number, others)
            elif len(objects) > 1:
                objects.sort(key=_breadth)
            for k, constraint in enumerate(objects):
                if k == 0 and not others:
                    reached.update([self._grown(self._reached, number, constraint)])
                else:
                    further.update([self._grown(self._further, number, constraint)])
        # Make the views once, after the last filter: a predicate may have thousands of filters.
        trees |= {slot: grown.tree() for slot, grown in reached.items()}
        checks |= {slot: grown.checks() for slot, grown in further.items()}
        if self._scanned > scanned:
            scalars = RecordView(self._raw.raw(), frozen(self._encoder.forms), self._scanned, self._local)
        self.level = Level(trees, checks, scalars, self.level.filters + len(predicate))
        return self.level

    def _append_scalars(self, number: int, constraints: list[Constraint]) -> None:
        """Add the scalar constraints of filter `number`; messages reach the filter through them."""
        for constraint in sorted(constraints, key=_width):
            self._raw.append(number, self._encoder.number(constraint.slot), constraint._test)
        self._scanned += 1

    def _grown(
        self, slots: dict[Slot, Growing | GrowingCustom], number: int, constraint: Constraint
    ) -> tuple[Slot, Growing | GrowingCustom]:
        """Add a constraint of filter `number` at its slot; return the slot and its growing arrays."""
        assert constraint.kind is not None
        slot = (constraint.attribute, constraint.kind)
        grown = slots.get(slot)
        if grown is None:
            made = {"region": GrowingRegions, "point": GrowingPoints}.get(constraint.kind)
            grown = slots[slot] = GrowingCustom(constraint.kind) if made is None else made(self._tuning)
        grown.append(number, constraint)
        return slot, grown


def _width(constraint: Constraint) -> int:
    """Return a sort key, most selective first: constraints on one value, then intervals, then negations."""
    test = constraint._test
    return 0 if test.asks == 0 and test.low == test.high else 1 + test.asks


def _breadth(constraint: Constraint) -> tuple[bool, float]:
    """Return a sort key that estimates how many messages pass; filters are reached through the smallest key."""
    if isinstance(constraint.operator, str):
        return False, 0.0
    if isinstance(constraint.value, Region):
        xmin, ymin, xmax, ymax = constraint.value.bounds
        return 0 in constraint.relations, (xmax - xmin) * (ymax - ymin)
    return 0 in constraint.relations, 0.0


class GrowingCustom:
    """Constraints of an added type at one slot. Views made earlier do not change."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._filters: list[int] = []
        self._asked: list[Asked] = []

    def append(self, number: int, constraint: Constraint) -> None:
        """Add a constraint of filter `number`."""
        self._filters.append(number)
        self._asked.append((str(constraint.operator), constraint.value))

    def _part(self) -> CustomConstraints:
        return CustomConstraints(np.array(self._filters, np.int32), list(self._asked), self._kind)

    def tree(self) -> CustomIndex:
        """Return a view that matches messages by a scan."""
        return CustomIndex(self._part(), is_scan=True)

    def checks(self) -> CustomResidual:
        """Return a view that tests the constraints of given filters."""
        return self._part().checks()


class Growing:
    """Constraints on regions or points at one slot, in arrays with spare room. Views made earlier do not change."""

    def __init__(self, tuning: Tuning) -> None:
        capacity = tuning.buffer_capacity
        self._count = 0
        self._filters = np.empty(capacity, np.int32)
        self._masks = np.empty(capacity, np.uint8)
        self._spanned = 0  # last filter number - first filter number + 1
        self._offsets = np.zeros(capacity + 1, np.int32)  # by filter number - first filter number
        self._numbers = frozen(np.arange(capacity + 1, dtype=np.int32))

    def append(self, number: int, constraint: Constraint) -> None:
        """Add a constraint of filter `number`; filter numbers must not decrease."""
        mask, value = constraint.relations.mask, constraint.value
        n = self._count
        self._filters = with_room(self._filters, n, 1)
        self._masks = with_room(self._masks, n, 1)
        self._append_value(value)
        self._filters[n], self._masks[n] = number, mask
        self._append_offset(number)
        self._count = n + 1

    def _append_offset(self, number: int) -> None:
        """Record where the constraints of filter `number` end. Earlier views end before it and do not change."""
        n, before = self._count, self._spanned
        self._spanned = spanned = number - self._filters.item(0) + 1
        self._offsets = with_room(self._offsets, before + 1, spanned - before)
        self._offsets[before + 1 : spanned] = n
        self._offsets[spanned] = n + 1

    def checks(self) -> Residual:
        """Return a view, sorted by filter, that tests the constraints of given filters."""
        n = self._count
        part = Constraints(frozen(self._filters[:n]), frozen(self._masks[:n]), self._items()[0])
        return Residual(part, frozen(self._offsets[: self._spanned + 1]))

    def tree(self) -> PackedTree:
        """Return a view that matches messages by a scan."""
        n = self._count
        if len(self._numbers) <= n:
            self._numbers = frozen(np.arange(2 * n + 1, dtype=np.int32))
        column, items = self._items()
        return flat_tree(column, items, self._numbers[: n + 1], frozen(self._masks[:n]), frozen(self._filters[:n]))

    def _append_value(self, value: Any) -> None:
        raise NotImplementedError

    def _items(self) -> tuple[RegionArray | PointArray, Items]:
        """Return the values as a column, and as arrays for the match kernels."""
        raise NotImplementedError


class GrowingPoints(Growing):
    """Constraints on points."""

    def __init__(self, tuning: Tuning) -> None:
        super().__init__(tuning)
        self._xy = np.empty((tuning.buffer_capacity, 2))

    def _append_value(self, value: Point) -> None:
        self._xy = with_room(self._xy, self._count, 1)
        self._xy[self._count] = value.x, value.y

    def _items(self) -> tuple[PointArray, Items]:
        column = PointArray(self._xy[: self._count])
        return column, items_of(column)


class GrowingRegions(Growing):
    """Constraints on regions; regions with many vertices are stored with their edge index."""

    def __init__(self, tuning: Tuning) -> None:
        super().__init__(tuning)
        capacity = tuning.buffer_capacity
        self._rings = self._vertices = self._boxes = self._large = 0  # entries in use
        self._most_rings = 1
        self._xy = np.empty((capacity * tuning.buffer_vertices_per_region, 2))
        self._ring_offsets = np.zeros(2 * capacity, np.int64)
        self._region_offsets = np.zeros(capacity + 1, np.int32)
        self._flags = np.empty(2 * capacity, np.uint8)
        self._bounds = np.empty((capacity, 4))
        self._chain_boxes = np.empty((0, 4))
        self._large_items = np.empty(0, np.int32)
        self._large_bases = np.empty(0, np.int64)

    def _append_value(self, value: Region) -> None:
        a = compact(value._column.arrays)
        n, r, v = self._count, self._rings, self._vertices
        rings, vertices = len(a.ring_flags), len(a.xy)
        self._xy = with_room(self._xy, v, vertices)
        self._ring_offsets = with_room(self._ring_offsets, r + 1, rings)
        self._region_offsets = with_room(self._region_offsets, n + 1, 1)
        self._flags = with_room(self._flags, r, rings)
        self._bounds = with_room(self._bounds, n, 1)
        self._xy[v : v + vertices] = a.xy
        np.add(a.ring_offsets[1:], v, out=self._ring_offsets[r + 1 : r + 1 + rings])
        self._region_offsets[n + 1] = r + rings
        self._flags[r : r + rings] = a.ring_flags
        self._bounds[n] = a.bounds[0]
        if vertices > MAX_SCANNED_VERTICES:
            self._append_chain(n, RegionArray(a))
        self._rings, self._vertices = r + rings, v + vertices
        self._most_rings = max(self._most_rings, rings)

    def _append_chain(self, n: int, column: RegionArray) -> None:
        boxes = column._kernel_arrays()[5]
        b, k = self._boxes, self._large
        self._chain_boxes = with_room(self._chain_boxes, b, len(boxes))
        self._large_items = with_room(self._large_items, k, 1)
        self._large_bases = with_room(self._large_bases, k, 1)
        self._chain_boxes[b : b + len(boxes)] = boxes
        self._large_items[k], self._large_bases[k] = n, b
        self._boxes, self._large = b + len(boxes), k + 1

    def _items(self) -> tuple[RegionArray, Items]:
        n, r = self._count, self._rings
        arrays = Arrays(
            self._xy[: self._vertices],
            self._ring_offsets[: r + 1],
            self._region_offsets[: n + 1],
            self._flags[:r],
            self._bounds[:n],
        )
        column = RegionArray(arrays)
        large = frozen(self._large_items[: self._large]), frozen(self._large_bases[: self._large])
        return column, Items(*arrays, self._chain_boxes[: self._boxes], *large, self._most_rings)
