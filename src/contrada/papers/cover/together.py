"""Covering by several subscriptions together: a subscription that a union of others holds is not forwarded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.covering import CoveringIndex
from contrada.geometry import Region, RelationSet
from contrada.model import Filter
from contrada.papers.cover.unions import is_box_within, is_region_within

Key = str | int
MAX_HOLDERS = 12  # forwarded subscriptions that are tried together, those that share most with the new one


class FilterExtent(NamedTuple):
    """A filter as equal texts, ranges of numbers, and at most one region that a message's meets."""

    texts: tuple[tuple[str, str], ...]
    names: tuple[str, ...]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    region: Region | None

    @property
    def group(self) -> tuple[object, ...]:
        """Return what filters must share to hold one together."""
        return self.texts, self.names, self.region is None


def extent_of(filter_: Filter, step: float = 0.0) -> FilterExtent | None:
    """Return the extent of a filter, or None if it has other constraints: then only one subscription may cover it.

    Where values are multiples of `step`, ranges reach up to the next one, so that 0..5 and 6..9 have no gap.
    """
    texts, ranges, regions = [], {}, []
    for constraint in filter_:
        name, operator, value = constraint.attribute, constraint.operator, constraint.value
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if operator == "=" and isinstance(value, str):
            texts.append((name, value))
        elif operator == "between" and name not in ranges and all(isinstance(end, (int, float)) for end in value):
            ranges[name] = (float(value[0]), float(value[1]) + step)
        elif operator == ">=" and name not in ranges and is_number:
            ranges[name] = (float(value), np.inf)
        elif operator == RelationSet.S_INTERSECTS and isinstance(value, Region):
            regions.append(value)
        else:
            return None
    if len(regions) > 1:
        return None
    names = tuple(sorted(ranges))
    low, high = (np.array([ranges[name][end] for name in names]) for end in (0, 1))
    return FilterExtent(tuple(sorted(texts)), names, low, high, regions[0] if regions else None)


class Holders(NamedTuple):
    """The forwarded subscriptions of one group, as arrays: extents and boxes of regions."""

    keys: list[Key]
    extents: list[FilterExtent]

    def that_share(self, own: FilterExtent) -> Iterator[tuple[Key, FilterExtent]]:
        """Yield the holders that may help to hold an extent, those that share most with it first."""
        lows, highs = np.array([one.low for one in self.extents]), np.array([one.high for one in self.extents])
        if own.region is None:
            shared = np.minimum(highs, own.high) - np.maximum(lows, own.low)
            is_near, weight = (shared > 0).all(axis=1), np.prod(np.maximum(shared, 0), axis=1)
            if weight.sum() < np.prod(own.high - own.low):  # too little, even if no two of them shared anything
                return
        else:
            boxes, (xmin, ymin, xmax, ymax) = (
                np.array([one.region.bounds for one in self.extents if one.region]),
                own.region.bounds,
            )
            wide = np.minimum(boxes[:, 2], xmax) - np.maximum(boxes[:, 0], xmin)
            tall = np.minimum(boxes[:, 3], ymax) - np.maximum(boxes[:, 1], ymin)
            is_around = (lows <= own.low).all(axis=1) & (highs >= own.high).all(axis=1)
            is_near, weight = is_around & (wide > 0) & (tall > 0), wide * tall
        rows = np.flatnonzero(is_near)
        for row in rows[np.argsort(-weight[rows], kind="stable")][:MAX_HOLDERS].tolist():
            yield self.keys[row], self.extents[row]


class TogetherIndex:
    """A `CoveringIndex`, and beyond it subscriptions that several forwarded ones hold together.

    Sound: what the forwarded subscriptions match holds everything that all subscriptions match. Bounded: at most
    MAX_HOLDERS are tried together, and unions of many edges or pieces are not.

    >>> from contrada import Constraint, Filter
    >>> index = TogetherIndex()
    >>> for key, low, high in ("low", 0, 6), ("high", 5, 9), ("middle", 4, 8):
    ...     index.subscribe(key, Filter([Constraint("size", "between", (low, high))]))
    True
    True
    False
    >>> index.unsubscribe("high")
    (True, ['middle'])
    """

    def __init__(self, step: float = 0.0) -> None:
        """Make an empty index; `step` is the least difference of numbers: 1 for whole ones, 0 for reals."""
        self._step = step
        self._index = CoveringIndex()
        self._extents: dict[Key, FilterExtent | None] = {}
        self._holders: dict[tuple[object, ...], dict[Key, FilterExtent]] = {}  # forwarded subscriptions by group
        self._held: dict[Key, tuple[Key, ...]] = {}  # held by these together
        self._holding: dict[Key, set[Key]] = {}
        self.forwarded: set[Key] = set()

    def subscribe(self, key: Key, filter_: Filter) -> bool:
        """Add a subscription; return whether it is to be forwarded."""
        self._extents[key] = extent_of(filter_, self._step)
        return self._index.subscribe(key, filter_).forward and self._place(key)

    def unsubscribe(self, key: Key) -> tuple[bool, list[Key]]:
        """Remove a subscription; return whether it is to be withdrawn, and which others are to be forwarded first."""
        uncovered = [one for one in self._index.unsubscribe(key).forward if isinstance(one, (str, int))]
        is_forwarded = key in self.forwarded
        self._release(key)
        extent = self._extents.pop(key)
        if is_forwarded:
            self.forwarded.discard(key)
            if extent is not None:
                del self._holders[extent.group][key]
        orphans = sorted(self._holding.pop(key, ()), key=str)
        for orphan in orphans:
            self._release(orphan)
        return is_forwarded, [one for one in (*orphans, *uncovered) if self._place(one)]

    def _place(self, key: Key) -> bool:
        """Forward a subscription that no single one covers, unless forwarded ones hold it together."""
        extent = self._extents[key]
        if extent is not None:
            holders = self._together(extent)
            if holders:
                self._held[key] = holders
                for holder in holders:
                    self._holding.setdefault(holder, set()).add(key)
                return False
            self._holders.setdefault(extent.group, {})[key] = extent
        self.forwarded.add(key)
        return True

    def _together(self, own: FilterExtent) -> tuple[Key, ...]:
        """Return forwarded subscriptions that together hold an extent, or none."""
        group = self._holders.get(own.group)
        if not group:
            return ()
        found = list(Holders(list(group), list(group.values())).that_share(own))
        if len(found) < 2:
            return ()
        keys, extents = zip(*found, strict=True)
        if own.region is not None:
            is_held = is_region_within(own.region, [one.region for one in extents])
        else:
            is_held = is_box_within(own.low, own.high, np.array([[*one.low, *one.high] for one in extents]))
        return tuple(keys) if is_held else ()

    def _release(self, key: Key) -> None:
        for holder in self._held.pop(key, ()):
            self._holding.get(holder, set()).discard(key)
