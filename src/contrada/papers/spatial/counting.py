"""CountingMatcher: the counting algorithm of Siena Fast Forwarding, the reference for answers and for speed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.errors import FilterError
from contrada.geometry import Line
from contrada.geometry.arrays import frozen, ranges
from contrada.index.items import boxes_of
from contrada.index.lines import LineTree
from contrada.index.near import DistanceTree
from contrada.index.packed import GATE_VIEW, PackedTree, first_of_equals, reordered
from contrada.index.raw import RawRecords
from contrada.index.scalar_packing import Regions, pack_scalars
from contrada.index.scalars import EVERYWHERE, ScalarIndex, ScalarScratch
from contrada.kernels.match.tables import COUNTED
from contrada.matching.answer import Matches
from contrada.matching.line_constraints import LineConstraints
from contrada.matching.near_constraints import NearConstraints
from contrada.matching.residual import Constraints, Residual
from contrada.matching.store.level import NO_SCALARS, Level, Message, Slot, Spatial, line_reached, merged, value_at
from contrada.matching.table import ForwardingTable
from contrada.papers.spatial.counted import Integers, LeafSearch, counted_leaves

MAX_BYTE_COUNT = 255  # constraints of a filter that one byte can count


class CountingMatcher:
    """Match by counting against the contents of a table at construction: slow, and simple enough to be trusted.

    Identical constraints are one, with a list of the filters that have it. A message is looked up attribute by
    attribute; each constraint that it satisfies is counted for its filters, and a filter is satisfied when all its
    constraints are counted. Time is proportional to these counts, whereas `ForwardingTable` visits few of them.

    >>> from contrada import Constraint, Filter
    >>> table = ForwardingTable()
    >>> small = Constraint("size", "<", 10)
    >>> _ = table.subscribe("ann", Filter([small, Constraint("name", "=", "tin")]), key=1)
    >>> _ = table.subscribe("bob", Filter([small]), key=2)
    >>> matcher = CountingMatcher(table)
    >>> len(matcher), matcher.match_keys({"size": 5, "name": "tin"}), matcher.match({"size": 5})
    (2, {1, 2}, {'bob'})
    """

    def __init__(self, table: ForwardingTable) -> None:
        self._asked = table  # only for names and to read messages; later updates of the table do not change matches
        with table._store.lock:
            snapshot = table._store.snapshot
            level = table._store.merged(snapshot)
        filters = np.flatnonzero(snapshot.is_filter_alive(np.arange(snapshot.filters, dtype=np.int32)))
        # Rows of subscriptions and subscribers, by filter number in this matcher.
        whose = snapshot.filter_subscription
        self._subscription_rows = rows = filters if whose is None else whose[filters].astype(np.int64)
        whose = snapshot.subscription_subscriber
        self._subscriber_rows = rows if whose is None else whose[rows].astype(np.int64)
        self._several_filters = snapshot.several_filters
        self._scalars = _without_entries(level.scalars)
        self._build(level, filters)
        self._local = threading.local()

    def _build(self, level: Level, filters: Integers) -> None:
        """Number the constraints, scalar ones first, and list the filters of each."""
        counted, leaves, numbers = counted_leaves(self._scalars)
        whose = [self._scalars.owners()]
        constraints, count = [numbers], int(numbers.max(initial=-1)) + 1
        shift = len(leaves.slot) - count  # spatial leaves are numbered after all scalar leaves
        self._trees: list[tuple[Slot, PackedTree | DistanceTree | LineTree]] = []
        for slot in sorted(level.trees.keys() | level.checks.keys()):
            part = _spatial(level, slot)
            if isinstance(part, NearConstraints):
                near, numbers, holders = _apart(part, count, shift)
                self._trees.append((slot, near))
            elif isinstance(part, LineConstraints):
                numbers, holders = np.arange(count, count + len(part.filters)), part.filters.astype(np.int64)
                lines = LineTree(part.column, part.masks, (numbers + shift).astype(np.int32))
                self._trees.append((slot, lines))
            else:
                tree, numbers, holders = _shared(part, count, shift)
                self._trees.append((slot, tree))
            constraints.append(numbers)
            whose.append(holders)
            count += len(self._trees[-1][1])
        local = np.searchsorted(filters, np.concatenate(whose))
        # A constraint that occurs twice in a filter counts once.
        pairs = np.unique(np.concatenate(constraints) * len(filters) + local)
        number, local = np.divmod(pairs, max(len(filters), 1))
        needs = np.bincount(local, minlength=len(filters))
        self._needs = frozen(needs.astype(np.uint8 if needs.max(initial=0) <= MAX_BYTE_COUNT else np.int32))
        self._count = kernels.count_bytes if self._needs.dtype == np.uint8 else kernels.count_integers
        self._constraints, self.pairs = count, len(pairs)  # `pairs`: of a constraint and a filter that has it
        of_leaves = np.append(leaves.constraint, np.arange(len(leaves.slot) - shift, count))
        self._list_filters(counted, np.searchsorted(number, np.arange(count + 1)), local, of_leaves)

    def _list_filters(self, counted: LeafSearch, starts: Integers, filters: Integers, of_leaves: Integers) -> None:
        """Store the filters of each leaf's constraint consecutively, with subscribers if these have several filters."""
        filters = filters[ranges(starts[of_leaves], starts[of_leaves + 1])]
        offsets = np.concatenate([[0], np.cumsum(np.diff(starts)[of_leaves])]).astype(np.int32)
        self._subscribers, owners = np.unique(self._subscriber_rows, return_inverse=True)
        self._decided = len(self._subscribers) if len(self._subscribers) < len(self._needs) else 0
        beside = owners.ravel()[filters] if self._decided else np.empty(0, np.int64)
        own = {"offsets": offsets, "filters": filters.astype(np.int32), "subscribers": beside.astype(np.int32)}
        self._arrays = {name: frozen(array) for name, array in (counted._asdict() | own).items()}
        self._table = COUNTED.addresses(self._arrays)
        self._leaves = len(of_leaves)

    def __len__(self) -> int:
        """Return the number of distinct constraints."""
        return self._constraints

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, without the coordinates of regions."""
        trees = sum(tree.nbytes for _, tree in self._trees)
        return sum(array.nbytes for array in self._arrays.values()) + self._needs.nbytes + self._scalars.nbytes + trees

    def match_keys(self, message: Mapping[str, Any]) -> Matches:
        """Return the keys of the subscriptions that a message satisfies; equal to the table's answer."""
        rows = self._subscription_rows[self._counted(message, 0)]
        rows.sort()
        if self._several_filters and len(rows) > 1:
            rows = rows[np.append(True, rows[1:] != rows[:-1])]
        return Matches(rows, self._asked._keys)

    def match(self, message: Mapping[str, Any]) -> Matches:
        """Return the subscribers that a message goes to; equal to the table's answer.

        Once one filter of a subscriber is satisfied, its other filters are no longer counted.
        """
        found = self._counted(message, self._decided)
        rows = self._subscribers[found] if self._decided else self._subscriber_rows[found]
        rows.sort()
        return Matches(rows, self._asked._subscribers)

    def _counted(self, message: Mapping[str, Any], decided: int) -> Integers:
        """Return the satisfied filters, or with `decided` > 0 the decided subscribers; unordered."""
        checked = self._asked._checked(message)
        scratch = self._scratch()
        count = self._count(
            self._scalars._table, self._table, *(checked.scalars or NO_SCALARS), EVERYWHERE, self._regions(checked),
            self._needs, scratch.counters, scratch.decided[:decided], *scratch.room, scratch.listed, scratch.out,
            GATE_VIEW,
        )  # fmt: skip
        return scratch.out[:count]

    def _regions(self, message: Message) -> Integers:
        """Return the spatial constraints that a message satisfies."""
        given = ((value_at(message.objects, slot), tree) for slot, tree in self._trees)
        found = [
            line_reached(tree, value) if isinstance(value, Line) else tree.match(value)
            for value, tree in given
            if value is not None
        ]
        return frozen(found[0] if len(found) == 1 else merged(found))

    def _scratch(self) -> Counters:
        try:
            return self._local.scratch  # type: ignore[no-any-return]
        except AttributeError:
            self._local.scratch = made = Counters(self._scalars, self._needs, self._leaves, self._decided)
            return made


class Counters:
    """Arrays that one thread writes to while it matches."""

    __slots__ = ("counters", "decided", "listed", "out", "room")

    def __init__(self, scalars: ScalarIndex, needs: NDArray[Any], leaves: int, subscribers: int) -> None:
        self.room = ScalarScratch(scalars.arrays).room
        self.counters = needs.copy()
        self.decided = np.zeros(subscribers, np.uint8)
        self.listed = np.empty(2 * leaves + 2, np.int32)
        self.out = np.empty(len(needs), np.int64)


def _without_entries(scalars: Any) -> ScalarIndex:
    """Return the constants and records of an index, without entries to reach filters; an empty index for None."""
    if scalars is None:
        raw = RawRecords(np.empty((0, 7), np.int64), np.empty((0, 2), np.int64), np.empty(0, np.uint8))
        return pack_scalars(raw, np.empty(0, np.uint8), 0, 0, Regions(np.empty(0), None), None, None)
    assert isinstance(scalars, ScalarIndex), "levels are merged into packed ones"
    return ScalarIndex(scalars.first, scalars.arrays._replace(entries=scalars.arrays.entries[:0]))


def _spatial(level: Level, slot: Slot) -> Spatial:
    """Return all constraints of a level at a slot."""
    parts: list[Any] = []
    for found in (level.trees.get(slot), level.checks.get(slot)):
        if isinstance(found, PackedTree | DistanceTree | LineTree | Residual):
            parts.append(level.part_of(found))
    if not parts:
        raise FilterError(f"the counting matcher does not support constraints of type {slot[1]!r}")
    whole: Spatial = parts[0].joined(parts[1:])
    return whole


def _apart(part: NearConstraints, first: int, shift: int) -> tuple[DistanceTree, Integers, Integers]:
    """Return a tree of distance constraints, and the number and filter of each; equal ones are not shared."""
    numbers = np.arange(first, first + len(part.filters))
    tree = part._replace(filters=(numbers + shift).astype(np.int32)).indexed()
    return tree, numbers, part.filters.astype(np.int64)


def _shared(part: Constraints, first: int, shift: int) -> tuple[PackedTree, Integers, Integers]:
    """Return a tree of the distinct constraints, and for each given constraint its number (from `first`) and filter.

    The tree reports leaves, whose numbers are `shift` higher than those of constraints. Regions are equal if they have
    the same vertices in the same order from the same start.
    """
    boxes = boxes_of(part.column)
    order = np.lexsort((part.masks, *boxes.T))
    column, boxes, masks = reordered(part.column, order), boxes[order], part.masks[order]
    differs = np.append(True, (boxes[1:] != boxes[:-1]).any(axis=1) | (masks[1:] != masks[:-1]))[: len(boxes)]
    firsts = np.flatnonzero(first_of_equals(column, np.cumsum(differs)))
    numbers = np.repeat(np.arange(first, first + len(firsts)), np.diff(np.append(firsts, len(order))))
    kept = reordered(column, firsts) if len(firsts) < len(order) else column
    leaves = np.arange(first + shift, first + shift + len(firsts), dtype=np.int32)
    return PackedTree(kept, masks[firsts], leaves), numbers, part.filters[order].astype(np.int64)
