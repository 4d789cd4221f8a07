"""Level: an immutable, packed part of a table. Small levels take updates and are merged into larger ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.codes import DISJOINT_BIT, FILTER, TEXT
from contrada.geometry import Line, RegionArray
from contrada.geometry.arrays import frozen
from contrada.index.items import boxes_of
from contrada.index.lines import LineTree, line_matched
from contrada.index.near import DistanceTree
from contrada.index.packed import PackedTree
from contrada.index.raw import RawRecords, joined_raw
from contrada.index.scalar_packing import Regions, pack_scalars, raw_of
from contrada.index.scalars import (
    EVERYWHERE,
    NO_PLACES,
    NO_TABLE,
    NOTHING_BESIDE,
    Beside,
    EncodedMessages,
    ScalarIndex,
    beside_of,
)
from contrada.index.scanned import RecordView
from contrada.matching.encoding import MessageEncoder, Seen
from contrada.matching.line_constraints import LINE_KINDS, LineConstraints
from contrada.matching.metre_constraints import NEAR_KINDS, constraints_in, unit_of
from contrada.matching.near_constraints import NearConstraints
from contrada.matching.residual import Constraints, Residual
from contrada.matching.store.custom_types import CustomConstraints, CustomIndex, CustomResidual

# An attribute, and "region", "point", one of NEAR_KINDS or LINE_KINDS, or the name of an added type. A message has its
# region or point at "region" and "point", and its line at "line".
Slot = tuple[str, str]
Spatial = Constraints | NearConstraints | LineConstraints
Part = Spatial | CustomConstraints
Tree = PackedTree | DistanceTree | LineTree | CustomIndex
Indexed = Tree | Residual | CustomResidual
_AT_REGION = frozenset(("region", "point", *NEAR_KINDS, *LINE_KINDS))
Alive = Callable[[NDArray[np.int32]], NDArray[np.bool_]]


NO_SCALARS = EncodedMessages(
    frozen(np.zeros(2, np.int64)), frozen(np.empty((0, 3), np.int64)), frozen(np.empty(0, np.uint8))
)


class Message(NamedTuple):
    """A message: regions, points and values of added types by slot; encoded scalars, None if no slot needs any."""

    objects: Mapping[Slot, Any]
    scalars: EncodedMessages | None


class Added(NamedTuple):
    """Constraints to be packed: those through which filters are reached, residual ones, and scalar ones."""

    reached: Mapping[Slot, list[Spatial]]
    further: Mapping[Slot, list[Spatial]]
    raw: list[RawRecords]


class Level(NamedTuple):
    """Filters indexed by the constraint through which messages reach them, and their residual constraints (`checks`).

    Within a level filters have local numbers, and `filters_at` translates them: with packed scalar constraints they are
    the places in the scalar index (index/scalars.py), where filters that one message reaches lie close together;
    without, they are the numbers of the filters.
    """

    trees: Mapping[Slot, Tree]
    checks: Mapping[Slot, Residual | CustomResidual]
    scalars: ScalarIndex | RecordView | None
    filters: int

    def match(self, message: Message) -> NDArray[np.int64]:
        """Return the filters that `message` satisfies, each once, sorted."""
        found = []
        for slot, tree in self.trees.items():
            value = value_at(message.objects, slot)
            if value is not None:
                found.append(tree.match(value) if type(value) is not Line else line_reached(tree, value))
        local = (found[0] if len(found) == 1 else merged(found)) if found else NO_PLACES
        index, done = self.scalars, None
        if index is None and not len(local):
            return local
        if isinstance(index, ScalarIndex):
            beside = self.beside(message)
            local = index.match(message.scalars or NO_SCALARS, local, beside)
            done = index.region_slot if len(beside.table) else None
        elif index is not None and message.scalars is not None:
            local = index.match(message.scalars, local)
        for slot, checks in self.checks.items():
            if slot != done and len(local):
                local = checks.passing(local, value_at(message.objects, slot))
        return np.sort(index.filters_at(local)) if isinstance(index, ScalarIndex) and len(local) else local

    def filters_at(self, local: NDArray[Any]) -> NDArray[Any]:
        """Return the filters with the given numbers within this level."""
        return self.scalars.filters_at(local) if isinstance(self.scalars, ScalarIndex) and len(local) else local

    def beside(self, message: Message) -> Beside:
        """Return the spatial part of `message` for the scalar index: box, region, and the residual constraints.

        `table` holds the residual constraints on regions at the slot by whose boxes the entries are ordered.
        """
        assert isinstance(self.scalars, ScalarIndex)
        slot = self.scalars.region_slot
        if slot is None:
            return NOTHING_BESIDE
        value = value_at(message.objects, slot)
        checks = None if type(value) is Line else self.checks_beside()  # kernels know no lines
        return beside_of(value, NO_TABLE if checks is None else checks.table)

    def checks_beside(self) -> Residual | None:
        """Return the residual constraints that are tested together with packed scalars, None if there are none."""
        assert isinstance(self.scalars, ScalarIndex)
        checks = None if self.scalars.region_slot is None else self.checks.get(self.scalars.region_slot)
        return checks if isinstance(checks, Residual) and isinstance(checks.column, RegionArray) else None

    def filters_under(self, part: Indexed) -> NDArray[np.int32]:
        """Return the filter of every constraint in a tree or in residual constraints."""
        rows = part.rows if isinstance(part, PackedTree | DistanceTree | LineTree) else part.part.filters
        return self.filters_at(rows).astype(np.int32, copy=False)

    def part_of(self, part: Indexed) -> Part:
        """Return the constraints of a tree, or residual constraints, with filter numbers."""
        filters = self.filters_under(part)
        if isinstance(part, PackedTree):
            return Constraints(filters, part.masks, part.values())
        if isinstance(part, DistanceTree):
            return constraints_in(unit_of(part), filters, part.masks, part.column, part.distances)
        if isinstance(part, LineTree):
            return LineConstraints(filters, part.masks, part.column)
        return part.part._replace(filters=filters)

    def reached(self) -> NDArray[np.int64]:
        """Return all filters, each as often as there are ways to reach it (once, if the level is correct)."""
        parts = [self.filters_under(tree) for tree in self.trees.values()]
        own = [] if self.scalars is None else [self.scalars.reached]
        return np.concatenate([*parts, *own, np.empty(0, np.int64)])


EMPTY = Level({}, {}, None, 0)


def value_at(objects: Mapping[Slot, Any], slot: Slot) -> Any:
    """Return the value of a message that constraints at `slot` are about, None without one.

    >>> value_at({("area", "region"): 5}, ("area", "near point")), value_at({("area", "line"): 6}, ("area", "point"))
    (5, 6)
    """
    attribute, kind = slot
    if kind in _AT_REGION:
        value = objects.get((attribute, "region"))
        return objects.get((attribute, "line")) if value is None else value
    return objects.get(slot)


def line_reached(tree: Tree, value: Line) -> NDArray[np.int64]:
    """Return the filters that a line reaches through a tree."""
    return line_matched(tree, value) if isinstance(tree, PackedTree) else tree.match(value)


def merged(found: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Merge sorted arrays without common elements into one sorted array."""
    whole = np.concatenate([*found, np.empty(0, np.int64)])
    whole.sort(kind="stable")  # a stable sort is fast on sorted runs
    return whole


def merge_levels(
    levels: Iterable[Level], is_alive: Alive, encoder: MessageEncoder, seen: Seen, added: Added | None = None
) -> Level:
    """Merge the live filters of several levels, and `added`, into one level."""
    reached: dict[Slot, list[Any]] = defaultdict(list)
    further: dict[Slot, list[Any]] = defaultdict(list)
    raw: list[RawRecords] = []
    for level in levels:
        for parts, indexed in ((reached, level.trees), (further, level.checks)):
            for slot, one in indexed.items():
                part = level.part_of(one)
                parts[slot].append(part.chosen(is_alive(part.filters)))
        if level.scalars is not None:
            own = level.scalars.raw if isinstance(level.scalars, RecordView) else raw_of(level.scalars)
            raw.append(own._replace(records=own.records[is_alive(own.records[:, FILTER].astype(np.int32))]))
    if added is not None:
        for parts, more in ((reached, added.reached), (further, added.further)):
            for slot, some in more.items():
                parts[slot] += some
        raw += added.raw
    whole = joined_raw(raw, encoder.forms >= TEXT) if raw else None
    if whole is None or not len(whole.records):
        return _packed(_joined(reached), _joined(further), None)
    return _packed_mixed(_joined(reached), _joined(further), whole, encoder, seen)


def _joined(parts: Mapping[Slot, list[Any]]) -> dict[Slot, Part]:
    """Concatenate the constraints at each slot; slots without constraints are left out."""
    whole = {slot: some[0].joined(some[1:]) for slot, some in parts.items()}
    return {slot: part for slot, part in whole.items() if len(part.filters)}


def _packed(reached: Mapping[Slot, Part], further: Mapping[Slot, Part], scalars: ScalarIndex | None) -> Level:
    """Pack constraints into one level; `scalars` is packed already."""
    trees = {slot: _placed(part, scalars).indexed() for slot, part in reached.items()}
    checks = {slot: _placed(part, scalars).checks() for slot, part in further.items()}
    count = sum(len(tree) for tree in trees.values())
    return Level(trees, checks, scalars, count + (0 if scalars is None else scalars.filters))


def _packed_mixed(
    reached: Mapping[Slot, Part], further: Mapping[Slot, Part], raw: RawRecords, encoder: MessageEncoder, seen: Seen
) -> Level:
    """Pack filters with scalar constraints; each is reached through the constraint that the fewest messages satisfy."""
    numbers = [part.filters for group in (reached, further) for part in group.values()]
    whole = np.concatenate([*numbers, raw.records[:, FILTER]])
    first, stop = int(whole.min()), int(whole.max()) + 1
    has_scalars = np.zeros(stop - first, bool)
    has_scalars[raw.records[:, FILTER] - first] = True
    spatial = np.full(stop - first, np.inf)
    parts = [(slot, part) for group in (reached, further) for slot, part in group.items()]
    shares = [part.share(seen.sizes.get(slot[0])) for slot, part in parts]
    for (_, part), share in zip(parts, shares, strict=True):
        np.minimum.at(spatial, part.filters - first, share)
    at, boxes = _boxes(parts, first, stop)
    scalars = pack_scalars(raw, encoder.forms, first, stop, Regions(spatial, boxes), seen.messages, at)
    here = np.zeros(stop - first, bool)
    here[scalars.reached - first] = True
    to_tree: dict[Slot, list[Any]] = defaultdict(list)
    to_check: dict[Slot, list[Any]] = defaultdict(list)
    taken = here  # filters that have a way to reach them
    for k, ((slot, part), share) in enumerate(zip(parts, shares, strict=True)):
        local = part.filters - first
        wants = np.where(has_scalars[local], share <= spatial[local], k < len(reached)) & ~taken[local]
        _, firsts = np.unique(local[wants], return_index=True)  # one constraint per filter
        chosen = np.zeros(len(local), bool)
        chosen[np.flatnonzero(wants)[firsts]] = True
        taken[local[chosen]] = True
        to_tree[slot].append(part.chosen(chosen))
        to_check[slot].append(part.chosen(~chosen))
    return _packed(_joined(to_tree), _joined(to_check), scalars)


def _boxes(parts: list[tuple[Slot, Part]], first: int, stop: int) -> tuple[Slot | None, NDArray[np.float64] | None]:
    """Return the slot at which most filters have a region or point, and per filter the box a message must meet."""
    counts: dict[Slot, int] = defaultdict(int)
    for slot, part in parts:
        if isinstance(part, Constraints):
            counts[slot] += len(part.filters)
    if not counts:
        return None, None
    most = max(counts, key=counts.__getitem__)
    boxes = np.tile(EVERYWHERE, (stop - first, 1))
    for slot, part in parts:
        if slot == most and isinstance(part, Constraints):
            bound = part.masks & DISJOINT_BIT == 0
            boxes[part.filters[bound] - first] = boxes_of(part.column)[bound]
    return most, boxes


def _placed(part: Part, scalars: ScalarIndex | None) -> Part:
    """Replace filter numbers by positions in the scalar index, if there is one."""
    return part if scalars is None else part._replace(filters=scalars.arrays.local_of[part.filters - scalars.first])


def renumbered(level: Level, filters: NDArray[np.int64]) -> Level:
    """Return the level with filter filters[k] renumbered to k."""
    if np.array_equal(filters, np.arange(len(filters))):
        return level

    def numbered(part: Part) -> Part:
        return part._replace(filters=np.searchsorted(filters, part.filters).astype(np.int32))

    if isinstance(level.scalars, ScalarIndex):  # positions stay, only the filter numbers change
        return level._replace(scalars=level.scalars.renumbered(filters))
    checks = {slot: numbered(part.part).checks() for slot, part in level.checks.items()}
    trees = {slot: numbered(level.part_of(tree)).indexed() for slot, tree in level.trees.items()}
    return Level(trees, checks, level.scalars, level.filters)
