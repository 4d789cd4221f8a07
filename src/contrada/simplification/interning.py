"""Number the constraints of many filters (interning) and decide which cover or conflict with each other.

Regions and points on one attribute form a space; equal regions are one item of it, whatever their first vertex.
Relations are computed in bulk and cached, so simplification works on numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.geometry import Point, PointArray, Region, RegionArray, Relation, RelationSet, relate
from contrada.geometry.composition import conflicting_by_kinds, covering_by_kinds, covering_relations
from contrada.geometry.relate import INVERSE_CODES
from contrada.model import Constraint, Filter
from contrada.model.implication import MAX_COMPARED_PAIRS, conflicts, covers

Items = NDArray[np.int64]
OTHER = -1  # space of constraints that are not spatial
Value = Region | Point


class Term(NamedTuple):
    """A constraint as numbers: space, item and mask of relations; or OTHER and a position in `others`."""

    space: int
    item: int
    mask: int = 0


Terms = tuple[Term, ...]  # of one filter: sorted, without repetitions


class RegionPool:
    """The distinct regions and points in constraints on one attribute, in one coordinate reference system."""

    def __init__(self, attribute: str, values: Sequence[Value], groups: Sequence[int]) -> None:
        self.attribute = attribute
        self._groups = np.array(groups, np.float64)
        self.boxes = np.array([_box(value) for value in values]).reshape(-1, 4)
        self._is_point = np.array([isinstance(value, Point) for value in values], bool)
        self.are_points: list[bool] = self._is_point.tolist()
        self._local = np.where(self._is_point, np.cumsum(self._is_point), np.cumsum(~self._is_point)) - 1
        regions = [value for value in values if isinstance(value, Region)]
        self._regions = RegionArray.from_regions(regions) if regions else None
        points = [value._column.xy[0] for value in values if isinstance(value, Point)]
        self._points = PointArray(points or np.empty((0, 2)))
        self.item_of = self._items()  # for each value, the first equal value
        self.values = values
        self._tree: shapely.STRtree | None = None

    def _items(self) -> Items:
        """Return for every value the first equal value of its group; only values with equal boxes are compared."""
        first = np.arange(len(self.boxes))
        _, group = np.unique(np.column_stack([self._groups, self.boxes]), axis=0, return_inverse=True)
        todo = np.argsort(group, kind="stable")
        while True:
            is_head = np.diff(group[todo], prepend=-1) != 0
            heads = todo[is_head][np.cumsum(is_head) - 1]  # the first value of each group
            todo, heads = todo[~is_head], heads[~is_head]
            if not len(todo):
                return first
            same = self.relations(todo, heads) == Relation.EQUALS
            first[todo[same]] = heads[same]
            todo = todo[~same]

    def relations(self, a: Items, b: Items) -> NDArray[np.uint8]:
        """Return the relation of `a[k]` to `b[k]` for every k."""
        codes = np.zeros(len(a), np.uint8)
        first, second = self.boxes[a], self.boxes[b]
        near = (first[:, :2] <= second[:, 2:]).all(axis=1) & (second[:, :2] <= first[:, 2:]).all(axis=1)
        for points_first, points_second in product((False, True), repeat=2):
            are_such = (self._is_point[a] == points_first) & (self._is_point[b] == points_second)
            chosen = np.flatnonzero(near & are_such)
            if len(chosen):
                left, right = self._column(a[chosen], points_first), self._column(b[chosen], points_second)
                codes[chosen] = relate(left, right, threads=1)
        return codes

    def _column(self, items: Items, are_points: bool) -> RegionArray | PointArray:
        if are_points:
            return self._points[self._local[items]]
        assert self._regions is not None
        return self._regions[self._local[items]]

    def near(self, items: Items) -> tuple[Items, Items]:
        """Return pairs of a position in `items` and an item whose boxes meet."""
        if self._tree is None:
            self._tree = shapely.STRtree(shapely.box(*self.boxes.T))
        which, found = self._tree.query(shapely.box(*self.boxes[items].T))
        chosen = self.item_of[found] == found
        return which[chosen].astype(np.int64), found[chosen].astype(np.int64)

    def are_regions(self, items: Items) -> NDArray[np.bool_]:
        """Return which items are regions; points have boxes without area."""
        return ~self._is_point[items]


class PairLimits(NamedTuple):
    """Sizes beyond which simplification compares fewer pairs: it then drops less, and messages get the same answers."""

    constraints: int = 32  # of a filter, or on one attribute of a filter with more
    filter_pairs: int = MAX_COMPARED_PAIRS  # pairs of constraints of two filters
    box_pairs_per_chunk: int = 2_000_000  # about this many pairs in one step
    # Meeting pairs before the search stops: 10,000 regions that all overlap have ten times as many, and take 20 s.
    near_pairs: int = 10_000_000


DEFAULT_LIMITS = PairLimits()


class ConstraintPool:
    """All constraints of groups of filters. Equal constraints are one term within a group; groups share none."""

    def __init__(self, groups: Iterable[Iterable[Filter]], limits: PairLimits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.group = 0  # group of constraints that are added next
        self.others: list[Constraint] = []
        self._other_of: dict[tuple[int, Constraint], int] = {}
        self._known: dict[tuple[int, int, int], int] = {}  # relations by space and two items
        self._covers: dict[tuple[int, int], bool] = {}
        self._conflicts: dict[tuple[int, int], bool] = {}
        self._with_space: dict[tuple[int, int], tuple[bool, bool]] = {}
        self.spaces: list[RegionPool] = []
        self.filters = self._interned(groups)
        self._may_cover = covering_relations().tolist()
        self._covering, self._conflicting = covering_by_kinds().tolist(), conflicting_by_kinds().tolist()

    def _interned(self, groups: Iterable[Iterable[Filter]]) -> list[Terms]:
        """Return the filters as terms; spaces are numbered by name, so that no group depends on others in its chunk."""
        groups = [list(filters) for filters in groups]
        every = (constraint for filters in groups for part in filters for constraint in part)
        spatial = {(one.attribute, one.value.crs) for one in every if isinstance(one.operator, RelationSet)}
        named = sorted(spatial, key=lambda space: (space[0], space[1] or ""))
        space_of = {space: number for number, space in enumerate(named)}
        values: list[list[Value]] = [[] for _ in named]
        whose: list[list[int]] = [[] for _ in named]  # the group of each value
        number_of: dict[tuple[int, int, int], int] = {}  # by space, group and `id` of a value
        drafts: list[list[Term]] = []
        for self.group, filters in enumerate(groups):
            for part in filters:
                drafts.append([])
                for constraint in part:
                    if not isinstance(constraint.operator, RelationSet):
                        drafts[-1].append(Term(OTHER, self.other(constraint)))
                        continue
                    value = constraint.value
                    space = space_of[constraint.attribute, value.crs]
                    number = number_of.setdefault((space, self.group, id(value)), len(values[space]))
                    if number == len(values[space]):
                        values[space].append(value)
                        whose[space].append(self.group)
                    drafts[-1].append(Term(space, number, constraint.operator.mask))
        names = [attribute for attribute, _ in named]
        self.spaces = [RegionPool(*those) for those in zip(names, values, whose, strict=True)]
        items = [space.item_of.tolist() for space in self.spaces]
        return [
            tuple(sorted({t if t.space == OTHER else Term(t.space, items[t.space][t.item], t.mask) for t in draft}))
            for draft in drafts
        ]

    def other(self, constraint: Constraint) -> int:
        """Return the number of a constraint that is not spatial; equal ones of a group share it."""
        number = self._other_of.setdefault((self.group, constraint), len(self.others))
        if number == len(self.others):
            self.others.append(constraint)
        return number

    def attribute(self, term: Term) -> str:
        """Return the attribute of a term."""
        return self.others[term.item].attribute if term.space == OTHER else self.spaces[term.space].attribute

    def constraint(self, term: Term) -> Constraint:
        """Return the constraint of a term."""
        if term.space == OTHER:
            return self.others[term.item]
        space = self.spaces[term.space]
        return Constraint(space.attribute, RelationSet.from_mask(term.mask), space.values[term.item])

    # Relations between terms

    def learn(self, pairs: Iterable[tuple[int, int, int]]) -> None:
        """Compute and cache the relations of many pairs (space, item, item) at once."""
        by_space: dict[int, list[tuple[int, int]]] = {}
        for space, a, b in {(space, min(a, b), max(a, b)) for space, a, b in pairs}:
            if a < b and (space, a, b) not in self._known:
                by_space.setdefault(space, []).append((a, b))
        for number, asked in by_space.items():
            both = np.array(asked, np.int64)
            codes = self.spaces[number].relations(both[:, 0], both[:, 1]).tolist()
            self._known.update(((number, a, b), code) for (a, b), code in zip(asked, codes, strict=True))

    def relation(self, space: int, a: int, b: int) -> int:
        """Return the relation of item `a` to item `b`."""
        if a == b:
            return Relation.EQUALS
        if a > b:
            return int(INVERSE_CODES[self.relation(space, b, a)])
        code = self._known.get((space, a, b))
        if code is None:
            self.learn([(space, a, b)])
            code = self._known[space, a, b]
        return code

    def may_cover(self, first: Term, second: Term) -> bool:
        """Return False if the masks of two terms of one space already rule out that `first` covers `second`."""
        return bool(self._may_cover[first.mask][second.mask])

    def covers(self, first: Term, second: Term) -> bool:
        """Return True if every message that satisfies `second` satisfies `first`, by `model.implication`."""
        if first.space == second.space != OTHER:
            related = self._admitted(self._covering, first, second)
            return bool(related) and bool(related >> self.relation(first.space, second.item, first.item) & 1)
        if first.space == second.space:
            known = self._covers.get((first.item, second.item))
            if known is None:
                known = self._covers[first.item, second.item] = covers(*self._both(first, second))
            return known
        return first.space == OTHER and self._across(first, second)[0]

    def conflicts(self, first: Term, second: Term) -> bool:
        """Return True if no message satisfies both terms."""
        if first.space == second.space != OTHER:
            related = self._admitted(self._conflicting, first, second)
            return bool(related) and bool(related >> self.relation(first.space, second.item, first.item) & 1)
        if first.space == second.space:
            key = (min(first.item, second.item), max(first.item, second.item))
            known = self._conflicts.get(key)
            if known is None:
                known = self._conflicts[key] = conflicts(*self._both(first, second))
            return known
        if OTHER not in (first.space, second.space):
            return False  # different attributes or coordinate reference systems
        return self._across(*sorted((first, second)))[1]

    def _admitted(self, table: list[list[list[list[int]]]], first: Term, second: Term) -> int:
        """Return the relations of the second's item to the first's that a table by kinds and masks admits."""
        are_points = self.spaces[first.space].are_points
        return table[are_points[first.item]][are_points[second.item]][first.mask][second.mask]

    def _both(self, first: Term, second: Term) -> tuple[Constraint, Constraint]:
        return self.others[first.item], self.others[second.item]

    def _across(self, other: Term, spatial: Term) -> tuple[bool, bool]:
        """Return whether `other` covers the constraints of a space, and whether it conflicts with them."""
        known = self._with_space.get((other.item, spatial.space))
        if known is None:
            both = self.others[other.item], self.constraint(spatial)
            known = self._with_space[other.item, spatial.space] = covers(*both), conflicts(*both)
        return known


def _box(value: Value) -> NDArray[np.float64]:
    return np.tile(value._column.xy[0], 2) if isinstance(value, Point) else np.asarray(value._column.bounds[0])
