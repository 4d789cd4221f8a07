"""Buffer: the youngest level of a table, not packed yet. New filters go at the end; matching scans all of them."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from contrada.codes import MAX_SCANNED_VERTICES
from contrada.geometry import Line, LineArray, Point, PointArray, Region, RegionArray
from contrada.geometry.arrays import Arrays, compact, frozen
from contrada.geometry.line_relating import ShapeColumn
from contrada.index.items import Items, items_of
from contrada.index.lines import LineTree
from contrada.index.metres import MetricTree
from contrada.index.near import DistanceTree
from contrada.index.packed import PackedTree, flat_tree
from contrada.index.raw import GrowingArray, RawBuffer, with_room
from contrada.index.scanned import RecordView
from contrada.matching.encoding import MessageEncoder
from contrada.matching.line_constraints import LINE_KINDS, LineConstraints, LineResidual
from contrada.matching.metre_constraints import constraints_in
from contrada.matching.residual import Constraints, Residual
from contrada.matching.store.custom_types import CustomConstraints, CustomIndex, CustomResidual
from contrada.matching.store.level import EMPTY, Level, Slot
from contrada.matching.store.tuning import DEFAULT_TUNING, Tuning
from contrada.model import Constraint, Predicate
from contrada.model.reach import DistanceOperator
from contrada.model.types import Asked

METRES_PER_DEGREE = 111_000.0  # of latitude, to compare the sizes of boxes


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
        reached, further = dict[Slot, None](), dict[Slot, None]()  # slots that grow, in order
        for number, part in enumerate(predicate.filters, first):
            objects = [constraint for constraint in part.constraints if constraint.kind is not None]
            others = [constraint for constraint in part.constraints if constraint.kind is None]
            if others:
                self._append_scalars(number, others)
            elif len(objects) > 1:
                objects.sort(key=_breadth)
            for k, constraint in enumerate(objects):
                if k == 0 and not others:
                    reached[self._grow(self._reached, number, constraint)] = None
                else:
                    further[self._grow(self._further, number, constraint)] = None
        # Make the views once, after the last filter: a predicate may have thousands of filters.
        trees |= {slot: self._reached[slot].tree() for slot in reached}
        checks |= {slot: self._further[slot].checks() for slot in further}
        if self._scanned > scanned:
            scalars = RecordView(self._raw.raw(), frozen(self._encoder.forms), self._scanned, self._local)
        self.level = Level(trees, checks, scalars, self.level.filters + len(predicate))
        return self.level

    def _append_scalars(self, number: int, constraints: list[Constraint]) -> None:
        """Add the scalar constraints of filter `number`; messages reach the filter through them."""
        for constraint in sorted(constraints, key=_width):
            self._raw.append(number, self._encoder.number(constraint.slot), constraint._test)
        self._scanned += 1

    def _grow(self, slots: dict[Slot, Growing | GrowingCustom], number: int, constraint: Constraint) -> Slot:
        """Add a constraint of filter `number` to the growing arrays at its slot; return the slot."""
        assert constraint.kind is not None
        slot = (constraint.attribute, constraint.kind)
        if slot not in slots:
            own = None if isinstance(constraint.operator, str) else GROWING[constraint.kind.rpartition(" ")[2]]
            slots[slot] = GrowingCustom(constraint.kind) if own is None else own(self._tuning, constraint.kind)
        slots[slot].append(number, constraint)
        return slot


def _width(constraint: Constraint) -> int:
    """Return a sort key, most selective first: constraints on one value, then intervals, then negations."""
    test = constraint._test
    return 0 if test.asks == 0 and test.low == test.high else 1 + test.asks


def _breadth(constraint: Constraint) -> tuple[bool, float]:
    """Return a sort key that estimates how many messages pass; filters are reached through the smallest key."""
    if isinstance(constraint.operator, str):
        return False, 0.0
    around = 0.0
    if isinstance(constraint.operator, DistanceOperator):
        around = constraint.operator.number / (METRES_PER_DEGREE if constraint.operator.unit else 1.0)
    width = height = 2 * around
    if isinstance(constraint.value, Region | Line):
        xmin, ymin, xmax, ymax = constraint.value.bounds
        width, height = width + xmax - xmin, height + ymax - ymin
    return not constraint.is_local, width * height


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
    """Constraints on regions, points or lines at one slot, in arrays with room. Views made earlier do not change."""

    def __init__(self, tuning: Tuning, kind: str) -> None:
        self._is_of_lines = kind in LINE_KINDS
        capacity = tuning.buffer_capacity
        self._filters = GrowingArray(capacity, np.int32)
        self._masks = GrowingArray(capacity, np.uint8)
        self._distances = GrowingArray(0, np.float64)  # of distance constraints; a slot has them only, or none
        self._unit: str | None = None  # of the distances
        self._first = self._spanned = 0  # first filter number; last filter number - first filter number + 1
        self._offsets = np.zeros(capacity + 1, np.int32)  # by filter number - first filter number
        self._numbers = frozen(np.arange(capacity + 1, dtype=np.int32))

    def append(self, number: int, constraint: Constraint) -> None:
        """Add a constraint of filter `number`; filter numbers must not decrease."""
        self._append_value(constraint.value)
        self._append_offset(number)
        self._filters.append(number)
        operator = constraint.operator
        assert not isinstance(operator, str), "operators of added types grow elsewhere"
        self._masks.append(operator.mask)
        if isinstance(operator, DistanceOperator):
            self._distances.append(operator.number)
            self._unit = operator.unit

    def _append_offset(self, number: int) -> None:
        """Record where the constraints of filter `number` end. Earlier views end before it and do not change."""
        n, before = self._filters.count, self._spanned
        self._first = self._first if n else number
        self._spanned = spanned = number - self._first + 1
        self._offsets = with_room(self._offsets, before + 1, spanned - before)
        self._offsets[before + 1 : spanned] = n
        self._offsets[spanned] = n + 1

    def checks(self) -> Residual:
        """Return a view, sorted by filter, that tests the constraints of given filters."""
        filters, masks = frozen(self._filters.view()), frozen(self._masks.view())
        offsets = frozen(self._offsets[: self._spanned + 1])
        if self._is_of_lines:
            return LineResidual(LineConstraints(filters, masks, self._shapes()), offsets)
        if self._distances.count:
            return constraints_in(self._unit, filters, masks, self._shapes(), self._distances.view()).residual(offsets)
        return Residual(Constraints(filters, masks, self._items()[0]), offsets)

    def tree(self) -> PackedTree | DistanceTree | LineTree:
        """Return a view that matches messages, by a scan or nearly so."""
        n = self._filters.count
        if self._is_of_lines:
            return LineTree(self._shapes(), self._masks.view(), self._filters.view(), is_ordered=True)
        if self._distances.count:
            parts = self._masks.view(), self._distances.view(), self._filters.view()
            kind = DistanceTree if self._unit is None else MetricTree
            return kind(self._shapes(), *parts, is_ordered=True)
        if len(self._numbers) <= n:
            self._numbers = frozen(np.arange(2 * n + 1, dtype=np.int32))
        rest = frozen(self._masks.view()), frozen(self._filters.view())
        return flat_tree(*self._items(), self._numbers[: n + 1], *rest)

    def _append_value(self, value: Any) -> None:
        raise NotImplementedError

    def _items(self) -> tuple[RegionArray | PointArray, Items]:
        """Return the values as a column, and as arrays for the match kernels."""
        raise NotImplementedError

    def _shapes(self) -> ShapeColumn:
        """Return the values as a column."""
        return self._items()[0]


class GrowingPoints(Growing):
    """Constraints on points."""

    def __init__(self, tuning: Tuning, kind: str) -> None:
        super().__init__(tuning, kind)
        self._xy = GrowingArray(tuning.buffer_capacity, np.float64, 2)

    def _append_value(self, value: Point) -> None:
        self._xy.append((value.x, value.y))

    def _items(self) -> tuple[PointArray, Items]:
        column = PointArray(self._xy.view())
        return column, items_of(column)


class GrowingRegions(Growing):
    """Constraints on regions; regions with many vertices are stored with their edge index."""

    def __init__(self, tuning: Tuning, kind: str) -> None:
        super().__init__(tuning, kind)
        capacity = tuning.buffer_capacity
        self._most_rings = 1
        self._xy = GrowingArray(capacity * tuning.buffer_vertices_per_region, np.float64, 2)
        self._ring_offsets = GrowingArray(2 * capacity, np.int64)
        self._region_offsets = GrowingArray(capacity + 1, np.int32)
        self._flags = GrowingArray(2 * capacity, np.uint8)
        self._bounds = GrowingArray(capacity, np.float64, 4)
        self._chain_boxes = GrowingArray(0, np.float64, 4)
        self._large_items, self._large_bases = GrowingArray(0, np.int32), GrowingArray(0, np.int64)
        self._ring_offsets.append(0)
        self._region_offsets.append(0)

    def _append_value(self, value: Region | Line) -> None:
        a = compact(value._column._arrays)
        self._ring_offsets.extend(a.ring_offsets[1:] + self._xy.count)
        self._xy.extend(a.xy)
        self._flags.extend(a.ring_flags)
        self._region_offsets.append(self._flags.count)
        if len(a.xy) > MAX_SCANNED_VERTICES and isinstance(value, Region):
            self._large_items.append(self._bounds.count)
            self._large_bases.append(self._chain_boxes.count)
            self._chain_boxes.extend(RegionArray(a)._kernel_arrays()[5])
        self._bounds.append(a.bounds[0])
        self._most_rings = max(self._most_rings, len(a.ring_flags))

    def _arrays(self) -> Arrays:
        parts = (self._xy, self._ring_offsets, self._region_offsets, self._flags, self._bounds)
        return Arrays(*(part.view() for part in parts))

    def _items(self) -> tuple[RegionArray, Items]:
        arrays = self._arrays()
        large = frozen(self._large_items.view()), frozen(self._large_bases.view())
        return RegionArray(arrays), Items(*arrays, self._chain_boxes.view(), *large, self._most_rings)


class GrowingLines(GrowingRegions):
    """Constraints on lines."""

    def _shapes(self) -> LineArray:
        return LineArray(self._arrays())


GROWING: dict[str, type[Growing]] = {"region": GrowingRegions, "point": GrowingPoints, "line": GrowingLines}
