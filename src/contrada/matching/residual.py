"""Further spatial constraints: those of filters that are reached in another way, looked at only then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.geometry import Point, PointArray, Region, RegionArray, relate
from contrada.geometry.arrays import frozen
from contrada.index.constants import runs
from contrada.index.hugepages import settled
from contrada.index.packed import DISJOINT_BIT, PackedTree, boxes_of, item_arrays, joined, reordered

DEFAULT_REGION_SIDE = 0.05  # of the extent, the size of a message's region while none was seen


class Constraints(NamedTuple):
    """Constraints in arrays: filter k asks for a relation in masks[k] to value k of the column."""

    filters: NDArray[np.int32]
    masks: NDArray[np.uint8]
    column: RegionArray | PointArray

    def chosen(self, kept: NDArray[np.bool_]) -> Constraints:
        """Some of them."""
        if kept.all():
            return self
        rows = np.flatnonzero(kept)
        return Constraints(self.filters[rows], self.masks[rows], reordered(self.column, rows))

    def joined(self, others: Sequence[Constraints]) -> Constraints:
        """These and others, one after another."""
        if not others:
            return self
        parts = [self, *others]
        return Constraints(
            np.concatenate([part.filters for part in parts]),
            np.concatenate([part.masks for part in parts]),
            joined([part.column for part in parts]),
        )

    def indexed(self) -> PackedTree:
        """An index over them."""
        return PackedTree(self.column, self.masks, self.filters)

    def checks(self) -> Residual:
        """Return these constraints in a form that is tested filter by filter."""
        order = np.argsort(self.filters, kind="stable")
        masks, column = settled(self.masks[order]), reordered(self.column, order)
        return Residual.of(Constraints(self.filters[order], masks, column))

    def share(self, size: tuple[float, float] | None) -> NDArray[np.float64]:
        """The share of messages that is estimated to reach each: those whose boxes, of such a size, meet its own."""
        boxes = boxes_of(self.column)
        extent = boxes[:, 2:].max(axis=0) - boxes[:, :2].min(axis=0)
        reach = boxes[:, 2:] - boxes[:, :2] + (DEFAULT_REGION_SIDE * extent if size is None else np.asarray(size))
        sides = np.divide(reach, extent, out=np.ones_like(reach), where=reach < extent)
        share: NDArray[np.float64] = np.where(self.masks & DISJOINT_BIT, 1.0, sides[:, 0] * sides[:, 1])
        return share


class Residual:
    """Constraints by filter: those of filter first + k stand from offsets[k] to offsets[k + 1]."""

    __slots__ = ("_items", "_table", "column", "filters", "first", "masks", "offsets")

    def __init__(self, part: Constraints, offsets: NDArray[np.int32]) -> None:
        """Constraints in the order of their filters, one at least."""
        self.filters, self.masks, self.column = part.filters, frozen(part.masks), part.column
        self.first = int(part.filters[0])
        self.offsets = frozen(offsets)
        self._table: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, part: Constraints) -> Residual:
        """Constraints in the order of their filters, one at least."""
        counts = np.bincount(part.filters - part.filters[0])
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return cls(part, settled(offsets))

    @property
    def table(self) -> NDArray[np.int64]:
        """The table of addresses by which kernels know these constraints on regions (kernels/match/residual.py)."""
        if self._table is None:
            *arrays, most = self._items = item_arrays(self.column)
            arrays += [self.masks, self.offsets]
            numbers = [number for array in arrays for number in (array.ctypes.data, len(array))]
            self._table = frozen(np.array([*numbers, most, self.first], np.int64))
        return self._table

    @property
    def part(self) -> Constraints:
        """The constraints."""
        return Constraints(self.filters, self.masks, self.column)

    def passing(self, filters: NDArray[np.int64], value: Region | Point | None) -> NDArray[np.int64]:
        """Of the filters, sorted, those whose constraints here a message's value satisfies; None satisfies none."""
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
        at = runs(starts, stops)
        masks = self.masks[at]
        failed[asked[masks >> self._relations(value, at, masks) & 1 == 0]] = True
        return filters[~failed]

    def _relations(self, value: Region | Point, at: NDArray[np.int64], masks: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The relation of a value to each of the chosen ones, as far as the masks ask for it."""
        if isinstance(value, Region) and isinstance(self.column, RegionArray):
            codes = np.empty(len(at), np.uint8)
            arrays = (*value.kernel_arrays, *self.column.kernel_arrays())
            kernels.relate_chosen(*arrays, frozen(at), frozen(masks), codes)
            return codes
        return np.asarray(relate(value.column, reordered(self.column, at), threads=1))
