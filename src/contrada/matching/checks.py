"""Further spatial constraints: those of filters that are reached in another way, looked at only then."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.geometry import Point, PointArray, Region, RegionArray, relate
from contrada.geometry.arrays import frozen
from contrada.index.packed import reordered


class Constraints(NamedTuple):
    """Constraints in arrays: filter k asks for a relation in masks[k] to value k of the column."""

    filters: NDArray[np.int32]
    masks: NDArray[np.uint8]
    column: RegionArray | PointArray


class Checks(NamedTuple):
    """Constraints sorted by filter; those of filter first + k are offsets[k] to offsets[k + 1]."""

    filters: NDArray[np.int32]
    masks: NDArray[np.uint8]
    column: RegionArray | PointArray
    first: int
    offsets: NDArray[np.int32]

    @classmethod
    def of(cls, part: Constraints) -> Checks:
        """Constraints in any order."""
        order = np.argsort(part.filters, kind="stable")
        return cls.of_sorted(Constraints(part.filters[order], part.masks[order], reordered(part.column, order)))

    @classmethod
    def of_sorted(cls, part: Constraints) -> Checks:
        """Constraints that are sorted by filter, of which there is one."""
        first = int(part.filters[0])
        counts = np.bincount(part.filters - first)
        return cls(*part, first, np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))

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
        ends = np.cumsum(counts)
        at = np.arange(len(asked)) + np.repeat(starts - (ends - counts), counts)
        failed[asked[self.masks[at] >> self._relations(value, at) & 1 == 0]] = True
        return filters[~failed]

    def _relations(self, value: Region | Point, at: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The relation of a value to each of the chosen ones."""
        if isinstance(value, Region) and isinstance(self.column, RegionArray):
            codes = np.empty(len(at), np.uint8)
            kernels.relate_chosen(*value.kernel_arrays, *self.column.kernel_arrays(), frozen(at), codes)
            return codes
        return np.asarray(relate(value.column, reordered(self.column, at), threads=1))
