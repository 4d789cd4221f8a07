"""Residual spatial constraints: tested after a message has reached their filter through another constraint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import DISJOINT_BIT
from contrada.geometry import Point, PointArray, Region, RegionArray, relate
from contrada.geometry.arrays import frozen, offsets_of, ranges
from contrada.index.hugepages import settled
from contrada.index.items import boxes_of, items_of
from contrada.index.packed import PackedTree, joined, reordered
from contrada.kernels.match.tables import RESIDUAL

DEFAULT_REGION_SIDE = 0.05  # share of the extent, assumed for messages' regions before any was seen


class Constraints(NamedTuple):
    """Constraints in arrays: filter `filters[k]` asks for a relation in `masks[k]` to value k of `column`."""

    filters: NDArray[np.int32]
    masks: NDArray[np.uint8]
    column: RegionArray | PointArray

    def chosen(self, kept: NDArray[np.bool_]) -> Constraints:
        """Return the constraints where `kept` is True."""
        if kept.all():
            return self
        rows = np.flatnonzero(kept)
        return Constraints(self.filters[rows], self.masks[rows], reordered(self.column, rows))

    def joined(self, others: Sequence[Constraints]) -> Constraints:
        """Return these constraints followed by `others`."""
        if not others:
            return self
        parts = [self, *others]
        return Constraints(
            np.concatenate([part.filters for part in parts]),
            np.concatenate([part.masks for part in parts]),
            joined([part.column for part in parts]),
        )

    def indexed(self) -> PackedTree:
        """Return an index over the constraints."""
        return PackedTree(self.column, self.masks, self.filters)

    def checks(self) -> Residual:
        """Return the constraints in a form that tests given filters."""
        order = np.argsort(self.filters, kind="stable")
        masks, column = settled(self.masks[order]), reordered(self.column, order)
        return Residual.of(Constraints(self.filters[order], masks, column))

    def share(self, size: tuple[float, float] | None) -> NDArray[np.float64]:
        """Estimate per constraint the share of messages, with boxes of size `size`, that meet its box."""
        boxes = boxes_of(self.column)
        extent = boxes[:, 2:].max(axis=0) - boxes[:, :2].min(axis=0)
        reach = boxes[:, 2:] - boxes[:, :2] + (DEFAULT_REGION_SIDE * extent if size is None else np.asarray(size))
        sides = np.divide(reach, extent, out=np.ones_like(reach), where=reach < extent)
        return np.asarray(np.where(self.masks & DISJOINT_BIT, 1.0, sides[:, 0] * sides[:, 1]))


class Residual:
    """Constraints by filter: those of filter `first + k` are at `offsets[k]:offsets[k + 1]`."""

    __slots__ = ("_items", "_table", "column", "filters", "first", "masks", "offsets")

    def __init__(self, part: Constraints, offsets: NDArray[np.int32]) -> None:
        """Take at least one constraint, sorted by filter."""
        self.filters, self.masks, self.column = part.filters, frozen(part.masks), part.column
        self.first = int(part.filters[0])
        self.offsets = frozen(offsets)
        self._table: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, part: Constraints) -> Residual:
        """Return the residual form of `part`: at least one constraint, sorted by filter."""
        offsets = offsets_of(np.bincount(part.filters - part.filters[0]))
        return cls(part, settled(offsets.astype(np.int32)))

    @property
    def table(self) -> NDArray[np.int64]:
        """Addresses of the arrays, by which kernels read constraints on regions (`RESIDUAL` in match/tables.py)."""
        if self._table is None:
            self._items = items_of(self.column)
            own = {"masks": self.masks, "offsets": self.offsets, "first": self.first}
            self._table = RESIDUAL.addresses(self._items._asdict() | own)
        return self._table

    @property
    def part(self) -> Constraints:
        """The constraints in arrays."""
        return Constraints(self.filters, self.masks, self.column)

    def passing(self, filters: NDArray[np.int64], value: Region | Point | None) -> NDArray[np.int64]:
        """Return those of the sorted `filters` whose constraints here `value` satisfies; None satisfies none."""
        low, high = np.searchsorted(filters, (self.first, self.first + len(self.offsets) - 1))
        local = filters[low:high] - self.first
        starts, stops = self.offsets[local], self.offsets[local + 1]
        counts = stops - starts
        failed = np.zeros(len(filters), bool)
        if value is None:
            failed[low:high] = counts > 0
            return filters[~failed]
        asked = np.repeat(np.arange(low, high), counts)
        if not len(asked):
            return filters
        at = ranges(starts, stops)
        masks = self.masks[at]
        failed[asked[masks >> self._relations(value, at, masks) & 1 == 0]] = True
        return filters[~failed]

    def _relations(self, value: Region | Point, at: NDArray[np.int64], masks: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the relation of `value` to the entries `at`, computed as far as `masks` need it."""
        if isinstance(value, Region) and isinstance(self.column, RegionArray):
            codes = np.empty(len(at), np.uint8)
            arrays = (*value._kernel_arrays, *self.column._kernel_arrays())
            kernels.relate_chosen(*arrays, frozen(at), frozen(masks), codes)
            return codes
        return np.asarray(relate(value._column, reordered(self.column, at), threads=1))
