"""Levels: immutable packed pieces of a table. Small ones take updates, and are packed into larger ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import Point, PointArray, Region, RegionArray, relate
from contrada.index.packed import PackedTree, joined, reordered

Place = tuple[str, bool]  # an attribute, and whether its constraints are against points
Value = Region | Point
Alive = Callable[[NDArray[np.int32]], NDArray[np.bool_]]


class Constraints(NamedTuple):
    """Constraints in arrays: filter k asks for a relation in masks[k] to value k of the column."""

    filters: NDArray[np.int32]
    masks: NDArray[np.uint8]
    column: RegionArray | PointArray


class Added(NamedTuple):
    """Constraints that are not packed yet: those that filters are reached through, and the further ones."""

    reached: Mapping[Place, Constraints]
    further: Mapping[Place, Constraints]


class Level(NamedTuple):
    """Filters by the constraint that they are reached through, and their further constraints."""

    trees: Mapping[Place, PackedTree]
    checks: Mapping[Place, Constraints]  # sorted by filter
    filters: int

    def match(self, message: Mapping[str, Value]) -> NDArray[np.int64]:
        """The filters that a message satisfies, each once, sorted."""
        found = []
        for (name, _), tree in self.trees.items():
            if name in message:
                found.append(tree.match(message[name]))
        filters = found[0] if len(found) == 1 else merged(found)
        if not self.checks or not len(filters):
            return filters
        return self._check(filters, message)

    def _check(self, filters: NDArray[np.int64], message: Mapping[str, Value]) -> NDArray[np.int64]:
        """Those of the filters whose further constraints hold."""
        for (attribute, _), checks in self.checks.items():
            if not len(filters):
                break
            first = np.searchsorted(checks.filters, filters, side="left")
            last = np.searchsorted(checks.filters, filters, side="right")
            counts = last - first
            asked = np.repeat(np.arange(len(filters)), counts)
            if not len(asked):
                continue
            if attribute not in message:
                filters = filters[counts == 0]
                continue
            at = np.arange(len(asked)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
            codes = relate(message[attribute].column, reordered(checks.column, at), threads=1)
            failed = np.zeros(len(filters), bool)
            failed[asked[checks.masks[at] >> codes & 1 == 0]] = True
            filters = filters[~failed]
        return filters


EMPTY = Level({}, {}, 0)


def merged(found: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Several sorted arrays without common elements as one."""
    whole = np.concatenate([*found, np.empty(0, np.int64)])
    whole.sort(kind="stable")  # which makes use of sorted pieces
    return whole


def _pack(reached: Mapping[Place, list[Constraints]], further: Mapping[Place, list[Constraints]]) -> Level:
    """Pack constraints into one level."""
    trees = {}
    for place, parts in reached.items():
        whole = joined_constraints(parts)
        if len(whole.filters):
            trees[place] = PackedTree(whole.column, whole.masks, whole.filters)
    checks = {}
    for place, parts in further.items():
        whole = joined_constraints(parts)
        if len(whole.filters):
            order = np.argsort(whole.filters, kind="stable")
            checks[place] = Constraints(whole.filters[order], whole.masks[order], reordered(whole.column, order))
    return Level(trees, checks, sum(len(tree) for tree in trees.values()))


def merge_levels(levels: Iterable[Level], is_alive: Alive, added: Added | None = None) -> Level:
    """One level of the filters of several that are alive, and of further constraints."""
    reached: dict[Place, list[Constraints]] = defaultdict(list)
    further: dict[Place, list[Constraints]] = defaultdict(list)
    for place, part in added.reached.items() if added else ():
        reached[place].append(part)
    for place, part in added.further.items() if added else ():
        further[place].append(part)
    for level in levels:
        for place, tree in level.trees.items():
            reached[place].append(_alive(Constraints(tree.rows, tree.masks, tree.values()), is_alive))
        for place, checks in level.checks.items():
            further[place].append(_alive(checks, is_alive))
    return _pack(reached, further)


def _alive(constraints: Constraints, is_alive: Alive) -> Constraints:
    alive = is_alive(constraints.filters)
    if alive.all():
        return constraints
    kept = np.flatnonzero(alive)
    return Constraints(constraints.filters[kept], constraints.masks[kept], reordered(constraints.column, kept))


def joined_constraints(parts: list[Constraints]) -> Constraints:
    """The constraints of several arrays, one after another."""
    if len(parts) == 1:
        return parts[0]
    return Constraints(
        np.concatenate([part.filters for part in parts]),
        np.concatenate([part.masks for part in parts]),
        joined([part.column for part in parts]),
    )


def renumbered(level: Level, filters: NDArray[np.int64]) -> Level:
    """The same level with filter filters[k] called k."""
    if np.array_equal(filters, np.arange(len(filters))):
        return level

    def number(rows: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.searchsorted(filters, rows).astype(np.int32)

    trees = {place: tree.with_rows(number) for place, tree in level.trees.items()}
    checks = {place: part._replace(filters=number(part.filters)) for place, part in level.checks.items()}
    return Level(trees, checks, level.filters)
