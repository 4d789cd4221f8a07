"""Distance constraints in arrays: those that filters are reached through, and those that are checked afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.codes import BEYOND_BIT
from contrada.geometry.arrays import frozen, offsets_of
from contrada.geometry.distance import near_outcomes
from contrada.geometry.line_relating import AnyValues, ShapeColumn
from contrada.index.hugepages import settled
from contrada.index.items import boxes_of
from contrada.index.near import DistanceTree, grown_boxes
from contrada.index.packed import joined, reordered
from contrada.matching.residual import Residual, share_of_boxes


class NearConstraints(NamedTuple):
    """Constraints in arrays: filter `filters[k]` asks for an outcome in `masks[k]` with value k and distance k."""

    filters: NDArray[np.int32]
    masks: NDArray[np.uint8]
    column: ShapeColumn
    distances: NDArray[np.float64]

    def chosen(self, kept: NDArray[np.bool_]) -> NearConstraints:
        """Return the constraints where `kept` is True."""
        return self if kept.all() else self._at(np.flatnonzero(kept))

    def _at(self, rows: NDArray[np.int64]) -> NearConstraints:
        return type(self)(self.filters[rows], self.masks[rows], reordered(self.column, rows), self.distances[rows])

    def joined(self, others: Sequence[NearConstraints]) -> NearConstraints:
        """Return these constraints followed by `others`."""
        if not others:
            return self
        parts = [self, *others]
        filters, masks, columns, distances = zip(*parts, strict=True)
        return type(self)(
            np.concatenate(filters), np.concatenate(masks), joined(list(columns)), np.concatenate(distances)
        )

    def indexed(self) -> DistanceTree:
        """Return an index over the constraints."""
        return DistanceTree(self.column, self.masks, self.distances, self.filters)

    def checks(self) -> NearResidual:
        """Return the constraints in a form that tests given filters."""
        part = self._at(np.argsort(self.filters, kind="stable"))
        offsets = offsets_of(np.bincount(part.filters - part.filters[0]))
        return part.residual(settled(offsets.astype(np.int32)))

    def residual(self, offsets: NDArray[np.int32]) -> NearResidual:
        """Return the form that tests given filters; the constraints are sorted by filter."""
        return NearResidual(self, offsets)

    def share(self, size: tuple[float, float] | None) -> NDArray[np.float64]:
        """Estimate per constraint the share of messages, with boxes of size `size`, that meet its grown box."""
        share = share_of_boxes(grown_boxes(boxes_of(self.column), self.distances), size)
        return np.asarray(np.where(self.masks & BEYOND_BIT, 1.0, share))

    def plane_boxes(self) -> NDArray[np.float64]:
        """Return boxes in the plane that surely hold all within reach."""
        return grown_boxes(boxes_of(self.column), self.distances)


class NearResidual(Residual):
    """Distance constraints by filter: those of filter `first + k` are at `offsets[k]:offsets[k + 1]`."""

    __slots__ = ("distances",)

    def __init__(self, part: NearConstraints, offsets: NDArray[np.int32]) -> None:
        """Take at least one constraint, sorted by filter."""
        super().__init__(part, offsets)
        self.distances = frozen(part.distances)

    @property
    def part(self) -> NearConstraints:  # type: ignore[override]
        """The constraints in arrays."""
        return NearConstraints(self.filters, self.masks, self.column, self.distances)

    def are_satisfied(
        self, values: AnyValues, rows: NDArray[np.int64], entries: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return whether the value in each of `rows` satisfies the constraint at the position in `entries`."""
        masks = self.masks[entries]
        outcomes = near_outcomes(values, self.column, rows, entries, self.distances[entries], masks)
        return np.asarray(masks >> outcomes & 1 == 1)
