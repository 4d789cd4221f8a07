"""Level: an immutable, packed part of a table. Small levels take updates and are merged into larger ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import Region, RegionArray
from contrada.geometry.arrays import frozen
from contrada.index.packed import DISJOINT_BIT, PackedTree, boxes_of
from contrada.index.raw import FILTER, RawRecords, joined_raw
from contrada.index.scalar_packing import Regions, pack_scalars, raw_of
from contrada.index.scalars import (
    A_POINT,
    EVERYWHERE,
    NO_REGIONS,
    NO_TABLE,
    NOTHING,
    NOTHING_BESIDE,
    NOWHERE,
    Beside,
    EncodedMessages,
    ScalarIndex,
)
from contrada.index.scanned import RecordView
from contrada.matching.custom_types import OwnChecks, OwnConstraints, OwnIndex
from contrada.matching.encoding import Places, Seen
from contrada.matching.residual import Constraints, Residual
from contrada.model.forms import TEXT

Place = tuple[str, str]  # a spatial slot: an attribute, and "region", "point" or the name of an added type
Part = Constraints | OwnConstraints
Indexed = PackedTree | OwnIndex | Residual | OwnChecks
Alive = Callable[[NDArray[np.int32]], NDArray[np.bool_]]


_FIRST, _NO_REGION, _POINT = (frozen(np.array([number], np.int64)) for number in (0, NOTHING, A_POINT))
_NO_FILTERS = frozen(np.empty(0, np.int64))
NO_SCALARS = EncodedMessages(
    frozen(np.zeros(2, np.int64)), frozen(np.empty((0, 3), np.int64)), frozen(np.empty(0, np.uint8))
)


class Message(NamedTuple):
    """A message: regions, points and values of added types by slot; encoded scalars, None if no slot needs any."""

    objects: Mapping[Place, Any]
    scalars: EncodedMessages | None


class Added(NamedTuple):
    """Constraints to be packed: those through which filters are reached, residual ones, and scalar ones."""

    reached: Mapping[Place, Part]
    further: Mapping[Place, Part]
    raw: RawRecords | None = None


class Level(NamedTuple):
    """Filters indexed by the constraint through which messages reach them, and their residual constraints (`checks`).

    With packed scalar constraints, `trees` and `checks` hold positions in the scalar index (index/scalars.py) instead
    of filter numbers, because filters that one message reaches lie close together there.
    """

    trees: Mapping[Place, PackedTree | OwnIndex]
    checks: Mapping[Place, Residual | OwnChecks]
    scalars: ScalarIndex | RecordView | None
    filters: int

    def match(self, message: Message) -> NDArray[np.int64]:
        """Return the filters that `message` satisfies, each once, sorted."""
        found = []
        for place, tree in self.trees.items():
            if place in message.objects:
                found.append(tree.match(message.objects[place]))
        filters = (found[0] if len(found) == 1 else merged(found)) if found else _NO_FILTERS
        if isinstance(self.scalars, ScalarIndex):
            return self._match_packed(self.scalars, message, filters)
        if self.scalars is not None and message.scalars is not None:
            filters = self.scalars.match(message.scalars, filters)
        return self._passing(filters, message, None)

    def _match_packed(self, index: ScalarIndex, message: Message, reached: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the filters that `message` satisfies; `reached` holds the positions that the trees found."""
        scalars, beside = message.scalars or NO_SCALARS, self.beside(message)
        if len(self.checks) == (len(beside.table) > 0):  # the kernel tests all residual constraints
            return index.match(scalars, reached, beside)
        places = index.match(scalars, reached, beside, by_place=True)
        done = index.place if len(beside.table) else None
        return np.sort(index.filters_at(self._passing(places, message, done)))

    def _passing(self, filters: NDArray[np.int64], message: Message, done: Place | None) -> NDArray[np.int64]:
        """Return the filters whose residual constraints `message` satisfies; those at slot `done` are not tested."""
        for place, checks in self.checks.items():
            if not len(filters):
                break
            if place != done:
                filters = checks.passing(filters, message.objects.get(place))
        return filters

    def beside(self, message: Message) -> Beside:
        """Return the spatial part of `message` for the scalar index: box, region, and the residual constraints.

        `table` holds the residual constraints on regions at the slot by whose boxes the entries are ordered.
        """
        assert isinstance(self.scalars, ScalarIndex)
        place = self.scalars.place
        if place is None:
            return NOTHING_BESIDE
        checks = self._checks_beside()
        table = NO_TABLE if checks is None else checks.table
        value = message.objects.get(place)
        if isinstance(value, Region):
            arrays = value.kernel_arrays
            return Beside(arrays[4], arrays, _FIRST, table)
        if value is None:
            return Beside(NOWHERE, NO_REGIONS, _NO_REGION, table)
        return Beside(frozen(np.array([[value.x, value.y, value.x, value.y]])), NO_REGIONS, _POINT, table)

    def _checks_beside(self) -> Residual | None:
        """Return the residual constraints that are tested together with packed scalars, None if there are none."""
        assert isinstance(self.scalars, ScalarIndex)
        checks = None if self.scalars.place is None else self.checks.get(self.scalars.place)
        return checks if isinstance(checks, Residual) and isinstance(checks.column, RegionArray) else None

    @property
    def is_checked_beside(self) -> bool:
        """True if all residual constraints are tested together with packed scalars."""
        return not self.checks or (len(self.checks) == 1 and self._checks_beside() is not None)

    def filters_under(self, part: Indexed) -> NDArray[np.int32]:
        """Return the filter of every constraint in a tree or in residual constraints."""
        rows = part.rows if isinstance(part, PackedTree) else part.part.filters
        if isinstance(self.scalars, ScalarIndex):
            return self.scalars.filters_at(rows).astype(np.int32)
        return rows

    def part_of(self, part: Indexed) -> Part:
        """Return the constraints of a tree, or residual constraints, with filter numbers."""
        filters = self.filters_under(part)
        if isinstance(part, PackedTree):
            return Constraints(filters, part.masks, part.values())
        return part.part._replace(filters=filters)

    def reached(self) -> NDArray[np.int64]:
        """Return all filters, each as often as there are ways to reach it (once, if the level is correct)."""
        parts = [self.filters_under(tree) for tree in self.trees.values()]
        own = [] if self.scalars is None else [self.scalars.reached]
        return np.concatenate([*parts, *own, np.empty(0, np.int64)])


EMPTY = Level({}, {}, None, 0)


def merged(found: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Merge sorted arrays without common elements into one sorted array."""
    whole = np.concatenate([*found, np.empty(0, np.int64)])
    whole.sort(kind="stable")  # a stable sort is fast on sorted runs
    return whole


def merge_levels(
    levels: Iterable[Level], is_alive: Alive, places: Places, seen: Seen, added: Added | None = None
) -> Level:
    """Merge the live filters of several levels, and `added`, into one level."""
    reached: dict[Place, list[Any]] = defaultdict(list)
    further: dict[Place, list[Any]] = defaultdict(list)
    raw: list[RawRecords] = []
    for level in levels:
        for place, tree in level.trees.items():
            reached[place].append(_alive(level.part_of(tree), is_alive))
        for place, checks in level.checks.items():
            further[place].append(_alive(level.part_of(checks), is_alive))
        if level.scalars is not None:
            own = level.scalars.raw() if isinstance(level.scalars, RecordView) else raw_of(level.scalars)
            raw.append(own._replace(records=own.records[is_alive(own.records[:, FILTER].astype(np.int32))]))
    if added is not None:
        for place, part in added.reached.items():
            reached[place].append(part)
        for place, part in added.further.items():
            further[place].append(part)
        raw += [added.raw] if added.raw is not None else []
    whole = joined_raw(raw, places.forms >= TEXT) if raw else None
    if whole is None or not len(whole.records):
        return _packed(_joined(reached), _joined(further), None)
    return _packed_mixed(_joined(reached), _joined(further), whole, places, seen)


def _joined(parts: Mapping[Place, list[Any]]) -> dict[Place, Part]:
    """Concatenate the constraints at each slot; slots without constraints are left out."""
    whole = {place: some[0].joined(some[1:]) for place, some in parts.items()}
    return {place: part for place, part in whole.items() if len(part.filters)}


def _packed(reached: Mapping[Place, Part], further: Mapping[Place, Part], scalars: ScalarIndex | None) -> Level:
    """Pack constraints into one level; `scalars` is packed already."""
    trees = {place: _placed(part, scalars).indexed() for place, part in reached.items()}
    checks = {place: _placed(part, scalars).checks() for place, part in further.items()}
    count = sum(len(tree) for tree in trees.values())
    return Level(trees, checks, scalars, count + (0 if scalars is None else scalars.filters))


def _packed_mixed(
    reached: Mapping[Place, Part], further: Mapping[Place, Part], raw: RawRecords, places: Places, seen: Seen
) -> Level:
    """Pack filters with scalar constraints; each is reached through the constraint that the fewest messages satisfy."""
    numbers = [part.filters for group in (reached, further) for part in group.values()]
    whole = np.concatenate([*numbers, raw.records[:, FILTER]])
    first, stop = int(whole.min()), int(whole.max()) + 1
    has_scalars = np.zeros(stop - first, bool)
    has_scalars[raw.records[:, FILTER] - first] = True
    spatial = np.full(stop - first, np.inf)
    parts = [(place, part) for group in (reached, further) for place, part in group.items()]
    shares = [part.share(seen.sizes.get(place[0])) for place, part in parts]
    for (_, part), share in zip(parts, shares, strict=True):
        np.minimum.at(spatial, part.filters - first, share)
    at, boxes = _boxes(parts, first, stop)
    scalars = pack_scalars(raw, places.forms, first, stop, Regions(spatial, boxes), seen.messages, at)
    here = np.zeros(stop - first, bool)
    here[scalars.reached - first] = True
    to_tree: dict[Place, list[Any]] = defaultdict(list)
    to_check: dict[Place, list[Any]] = defaultdict(list)
    taken = here  # filters that have a way to reach them
    for k, ((place, part), share) in enumerate(zip(parts, shares, strict=True)):
        local = part.filters - first
        wants = np.where(has_scalars[local], share <= spatial[local], k < len(reached)) & ~taken[local]
        _, firsts = np.unique(local[wants], return_index=True)  # one constraint per filter
        chosen = np.zeros(len(local), bool)
        chosen[np.flatnonzero(wants)[firsts]] = True
        taken[local[chosen]] = True
        to_tree[place].append(part.chosen(chosen))
        to_check[place].append(part.chosen(~chosen))
    return _packed(_joined(to_tree), _joined(to_check), scalars)


def _boxes(parts: list[tuple[Place, Part]], first: int, stop: int) -> tuple[Place | None, NDArray[np.float64] | None]:
    """Return the slot at which most filters have a region or point, and per filter the box a message must meet."""
    counts: dict[Place, int] = defaultdict(int)
    for place, part in parts:
        if isinstance(part, Constraints):
            counts[place] += len(part.filters)
    if not counts:
        return None, None
    most = max(counts, key=counts.__getitem__)
    boxes = np.tile(EVERYWHERE, (stop - first, 1))
    for place, part in parts:
        if place == most and isinstance(part, Constraints):
            bound = part.masks & DISJOINT_BIT == 0
            boxes[part.filters[bound] - first] = boxes_of(part.column)[bound]
    return most, boxes


def _placed(part: Part, scalars: ScalarIndex | None) -> Part:
    """Replace filter numbers by positions in the scalar index, if there is one."""
    return part if scalars is None else part._replace(filters=scalars.arrays.local_of[part.filters - scalars.first])


def _alive(part: Part, is_alive: Alive) -> Part:
    return part.chosen(is_alive(part.filters))


def renumbered(level: Level, filters: NDArray[np.int64]) -> Level:
    """Return the level with filter filters[k] renumbered to k."""
    if np.array_equal(filters, np.arange(len(filters))):
        return level

    def number(rows: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.searchsorted(filters, rows).astype(np.int32)

    if isinstance(level.scalars, ScalarIndex):  # positions stay, only the filter numbers change
        return level._replace(scalars=level.scalars.renumbered(filters))
    checks = {place: _numbered(part.part, number).checks() for place, part in level.checks.items()}
    trees = {place: _numbered(level.part_of(tree), number).indexed() for place, tree in level.trees.items()}
    return Level(trees, checks, level.scalars, level.filters)


def _numbered(part: Part, number: Callable[[NDArray[np.int32]], NDArray[np.int32]]) -> Part:
    return part._replace(filters=number(part.filters))
