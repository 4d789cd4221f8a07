"""Residual spatial constraints: tested after a message has reached their filter through another constraint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from contrada.codes import DISJOINT_BIT
from contrada.geometry import LineArray, PointArray, RegionArray
from contrada.geometry.arrays import frozen, offsets_of, ranges
from contrada.geometry.composition import LINE_MASKS
from contrada.geometry.line_relating import AnyValue, AnyValues, line_relations
from contrada.geometry.relate import ALL_ROWS, relate_rows
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
        share = share_of_boxes(boxes_of(self.column), size)
        return np.asarray(np.where(self.masks & DISJOINT_BIT, 1.0, share))


def share_of_boxes(boxes: NDArray[np.float64], size: tuple[float, float] | None) -> NDArray[np.float64]:
    """Estimate the share of messages, with boxes of size `size`, that meet each of the boxes."""
    extent = boxes[:, 2:].max(axis=0) - boxes[:, :2].min(axis=0)
    reach = boxes[:, 2:] - boxes[:, :2] + (DEFAULT_REGION_SIDE * extent if size is None else np.asarray(size))
    sides = np.divide(reach, extent, out=np.ones_like(reach), where=reach < extent)
    return np.asarray(sides[:, 0] * sides[:, 1])


class ItemPart(Protocol):
    """Constraints in arrays, on regions, points or lines."""

    @property
    def filters(self) -> NDArray[np.int32]:
        """The filter of each constraint."""

    @property
    def masks(self) -> NDArray[np.uint8]:
        """What each constraint asks for."""

    @property
    def column(self) -> Any:
        """The value of each constraint: a RegionArray, PointArray or LineArray."""


class Residual:
    """Constraints by filter: those of filter `first + k` are at `offsets[k]:offsets[k + 1]`."""

    __slots__ = ("_items", "_table", "column", "filters", "first", "masks", "offsets")

    def __init__(self, part: ItemPart, offsets: NDArray[np.int32]) -> None:
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

    def passing(self, filters: NDArray[np.int64], value: AnyValue | None) -> NDArray[np.int64]:
        """Return those of the sorted `filters` whose constraints here `value` satisfies; None satisfies none."""
        asked, entries = self.entries_of(filters)
        if not len(asked):
            return filters
        failed = np.zeros(len(filters), bool)
        if value is None:
            failed[asked] = True
        else:
            failed[asked[~self.are_satisfied(value._column, ALL_ROWS, entries)]] = True
        return filters[~failed]

    def entries_of(self, filters: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the constraints of many filters: which of `filters` each belongs to, and its position here."""
        local = filters - self.first
        known = np.flatnonzero((local >= 0) & (local < len(self.offsets) - 1))
        starts, stops = self.offsets[local[known]], self.offsets[local[known] + 1]
        return np.repeat(known, stops - starts), ranges(starts, stops)

    def are_satisfied(
        self, values: AnyValues, rows: NDArray[np.int64], entries: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return whether the value in each of `rows` satisfies the constraint at the position in `entries`.

        Lines satisfy a mask of the eight relations by OGC's words in it.
        """
        masks = self.masks[entries]
        if isinstance(values, LineArray):
            of_lines = LINE_MASKS[int(isinstance(self.column, PointArray))][masks]
            return np.asarray(of_lines >> line_relations(values, self.column, rows, entries, of_lines) & 1 == 1)
        assert not isinstance(self.column, LineArray), "only line relations are asked of lines"
        codes = relate_rows(values, self.column, rows, entries, masks)
        return np.asarray(masks >> codes & 1 == 1)
