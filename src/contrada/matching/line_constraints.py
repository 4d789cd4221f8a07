"""Constraints on OGC's relations in arrays: those that filters are reached through, and those checked afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.codes import LINE_DISJOINT_BIT
from contrada.geometry.arrays import frozen, offsets_of
from contrada.geometry.circle import CircleArray
from contrada.geometry.line_relating import AnyValues, ShapeColumn, line_relations
from contrada.index.hugepages import settled
from contrada.index.items import boxes_of
from contrada.index.lines import LineTree
from contrada.index.packed import joined, reordered
from contrada.matching.residual import Residual, share_of_boxes

LINE_KINDS = ("line", "line region", "line point")  # of slots: what constraints on OGC's relations compare with


class LineConstraints(NamedTuple):
    """Constraints in arrays: filter `filters[k]` asks for a line relation in `masks[k]` to value k of `column`."""

    filters: NDArray[np.int32]
    masks: NDArray[np.uint8]
    column: ShapeColumn

    def chosen(self, kept: NDArray[np.bool_]) -> LineConstraints:
        """Return the constraints where `kept` is True."""
        return self if kept.all() else self._at(np.flatnonzero(kept))

    def _at(self, rows: NDArray[np.int64]) -> LineConstraints:
        return LineConstraints(self.filters[rows], self.masks[rows], reordered(self.column, rows))

    def joined(self, others: Sequence[LineConstraints]) -> LineConstraints:
        """Return these constraints followed by `others`."""
        if not others:
            return self
        filters, masks, columns = zip(self, *others, strict=True)
        return LineConstraints(np.concatenate(filters), np.concatenate(masks), joined(list(columns)))

    def indexed(self) -> LineTree:
        """Return an index over the constraints."""
        return LineTree(self.column, self.masks, self.filters)

    def checks(self) -> LineResidual:
        """Return the constraints in a form that tests given filters."""
        part = self._at(np.argsort(self.filters, kind="stable"))
        offsets = offsets_of(np.bincount(part.filters - part.filters[0]))
        return LineResidual(part, settled(offsets.astype(np.int32)))

    def share(self, size: tuple[float, float] | None) -> NDArray[np.float64]:
        """Estimate per constraint the share of messages, with boxes of size `size`, that meet its box."""
        share = share_of_boxes(boxes_of(self.column), size)
        return np.asarray(np.where(self.masks & LINE_DISJOINT_BIT, 1.0, share))


class LineResidual(Residual):
    """Constraints on OGC's relations by filter, as `Residual` has those on the eight relations."""

    __slots__ = ()

    def __init__(self, part: LineConstraints, offsets: NDArray[np.int32]) -> None:
        """Take at least one constraint, sorted by filter."""
        super().__init__(part, offsets)

    @property
    def part(self) -> LineConstraints:  # type: ignore[override]
        """The constraints in arrays."""
        return LineConstraints(self.filters, self.masks, self.column)

    def are_satisfied(
        self, values: AnyValues, rows: NDArray[np.int64], entries: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return whether the value in each of `rows` satisfies the constraint at the position in `entries`."""
        if isinstance(values, CircleArray):
            return np.zeros(len(entries), bool)
        masks = frozen(self.masks[entries])
        relations = line_relations(values, self.column, rows, entries, masks)
        return np.asarray(masks >> relations & 1 == 1)
