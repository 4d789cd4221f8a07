"""Levels: immutable packed pieces of a table. Small ones take updates, and are packed into larger ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import Point, Region
from contrada.index.packed import PackedTree, boxes_of, joined, reordered
from contrada.index.raw import FILTER, Raw, joined_raw
from contrada.index.scalar_packing import pack_scalars, raw_of
from contrada.index.scalars import Messages, ScalarIndex
from contrada.index.scanned import Scanned
from contrada.matching.checks import Checks, Constraints
from contrada.matching.message import Places, Seen
from contrada.model.forms import TEXT

Place = tuple[str, bool]  # an attribute, and whether its constraints are against points
Value = Region | Point
Alive = Callable[[NDArray[np.int32]], NDArray[np.bool_]]
ANYWHERE = 1.0  # the share of messages that an unknown or far relation lets through
UNSEEN = 0.05  # of the extent, the size of a message's region while none was seen


class Message(NamedTuple):
    """A message: its regions and points, and the rest as kernels take it, if anybody asks about it."""

    spatial: Mapping[str, Value]
    scalars: Messages | None


class Added(NamedTuple):
    """Constraints that are not packed yet: those that filters are reached through, further and scalar ones."""

    reached: Mapping[Place, Constraints]
    further: Mapping[Place, Constraints]
    raw: Raw | None = None


class Level(NamedTuple):
    """Filters by the constraint that they are reached through, and their further constraints."""

    trees: Mapping[Place, PackedTree]
    checks: Mapping[Place, Checks]
    scalars: ScalarIndex | Scanned | None
    filters: int

    def match(self, message: Message) -> NDArray[np.int64]:
        """The filters that a message satisfies, each once, sorted."""
        found = []
        for (name, _), tree in self.trees.items():
            if name in message.spatial:
                found.append(tree.match(message.spatial[name]))
        filters = found[0] if len(found) == 1 else merged(found)
        if self.scalars is not None and message.scalars is not None:
            filters = self.scalars.match(message.scalars, filters)
        for (name, _), checks in self.checks.items():
            if not len(filters):
                break
            filters = checks.passing(filters, message.spatial.get(name))
        return filters


EMPTY = Level({}, {}, None, 0)


def merged(found: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Several sorted arrays without common elements as one."""
    whole = np.concatenate([*found, np.empty(0, np.int64)])
    whole.sort(kind="stable")  # which makes use of sorted pieces
    return whole


def merge_levels(
    levels: Iterable[Level], is_alive: Alive, places: Places, seen: Seen, added: Added | None = None
) -> Level:
    """One level of the filters of several that are alive, and of further constraints."""
    reached: dict[Place, list[Constraints]] = defaultdict(list)
    further: dict[Place, list[Constraints]] = defaultdict(list)
    raw: list[Raw] = []
    for level in levels:
        for place, tree in level.trees.items():
            reached[place].append(_alive(Constraints(tree.rows, tree.masks, tree.values()), is_alive))
        for place, checks in level.checks.items():
            further[place].append(_alive(Constraints(*checks[:3]), is_alive))
        if level.scalars is not None:
            own = level.scalars.raw() if isinstance(level.scalars, Scanned) else raw_of(level.scalars)
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


def _joined(parts: Mapping[Place, list[Constraints]]) -> dict[Place, Constraints]:
    """The constraints at each place, where there are any."""
    whole = {place: joined_constraints(some) for place, some in parts.items()}
    return {place: part for place, part in whole.items() if len(part.filters)}


def _packed(
    reached: Mapping[Place, Constraints], further: Mapping[Place, Constraints], scalars: ScalarIndex | None
) -> Level:
    """Pack constraints into one level; the scalar ones are packed already."""
    trees = {place: PackedTree(part.column, part.masks, part.filters) for place, part in reached.items()}
    checks = {place: Checks.of(part) for place, part in further.items()}
    count = sum(len(tree) for tree in trees.values())
    return Level(trees, checks, scalars, count + (0 if scalars is None else scalars.filters))


def _packed_mixed(
    reached: Mapping[Place, Constraints], further: Mapping[Place, Constraints], raw: Raw, places: Places, seen: Seen
) -> Level:
    """The same with scalar constraints: each filter is reached through whatever fewest messages satisfy."""
    numbers = [part.filters for group in (reached, further) for part in group.values()]
    whole = np.concatenate([*numbers, raw.records[:, FILTER]])
    first, stop = int(whole.min()), int(whole.max()) + 1
    has_scalars = np.zeros(stop - first, bool)
    has_scalars[raw.records[:, FILTER] - first] = True
    spatial = np.full(stop - first, np.inf)
    parts = [(place, part) for group in (reached, further) for place, part in group.items()]
    shares = [_share(place, part, seen) for place, part in parts]
    for (_, part), share in zip(parts, shares, strict=True):
        np.minimum.at(spatial, part.filters - first, share)
    scalars = pack_scalars(raw, places.forms, first, stop, spatial, seen.messages)
    here = np.zeros(stop - first, bool)
    here[scalars.arrays.entries[:, 0]] = True
    to_tree: dict[Place, list[Constraints]] = defaultdict(list)
    to_check: dict[Place, list[Constraints]] = defaultdict(list)
    taken = here  # filters that are reached already
    for k, ((place, part), share) in enumerate(zip(parts, shares, strict=True)):
        local = part.filters - first
        wants = np.where(has_scalars[local], share <= spatial[local], k < len(reached)) & ~taken[local]
        _, firsts = np.unique(local[wants], return_index=True)  # one constraint of each filter
        chosen = np.zeros(len(local), bool)
        chosen[np.flatnonzero(wants)[firsts]] = True
        taken[local[chosen]] = True
        to_tree[place].append(_chosen(part, chosen))
        to_check[place].append(_chosen(part, ~chosen))
    return _packed(_joined(to_tree), _joined(to_check), scalars)


def _chosen(part: Constraints, chosen: NDArray[np.bool_]) -> Constraints:
    if chosen.all():
        return part
    kept = np.flatnonzero(chosen)
    return Constraints(part.filters[kept], part.masks[kept], reordered(part.column, kept))


def _share(place: Place, part: Constraints, seen: Seen) -> NDArray[np.float64]:
    """The share of messages that is estimated to reach each constraint: those whose boxes meet its own."""
    boxes = boxes_of(part.column)
    low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    extent = high - low
    size = np.asarray(seen.sizes.get(place[0], UNSEEN * extent))
    reach = boxes[:, 2:] - boxes[:, :2] + size
    sides = np.divide(reach, extent, out=np.ones_like(reach), where=reach < extent)
    share: NDArray[np.float64] = np.where(part.masks & 1, ANYWHERE, sides[:, 0] * sides[:, 1])
    return share


def _alive(constraints: Constraints, is_alive: Alive) -> Constraints:
    return _chosen(constraints, is_alive(constraints.filters))


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
    checks = {
        place: Checks.of_sorted(Constraints(number(part.filters), part.masks, part.column))
        for place, part in level.checks.items()
    }
    scalars = level.scalars
    if isinstance(scalars, ScalarIndex):
        scalars = scalars.renumbered(filters)
    return Level(trees, checks, scalars, level.filters)
