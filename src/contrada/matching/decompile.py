"""Rebuild the predicate of a subscription from the levels, which store constraints but no predicates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada import codes
from contrada.geometry import Crs, Line, LineArray, Point, PointArray, Region, RegionArray, RelationSet
from contrada.geometry.arrays import offsets_of, ranges
from contrada.geometry.line_relating import ShapeColumn
from contrada.geometry.line_relation import LineRelationSet
from contrada.index.lines import LineTree
from contrada.index.near import DistanceTree
from contrada.index.packed import PackedTree, reordered
from contrada.index.raw import RawRecords
from contrada.index.scalar_packing import raw_of
from contrada.index.scalars import ScalarIndex
from contrada.index.scanned import RecordView
from contrada.matching.encoding import MessageEncoder
from contrada.matching.line_constraints import LineConstraints, LineResidual
from contrada.matching.metre_constraints import unit_of
from contrada.matching.near_constraints import NearConstraints, NearResidual
from contrada.matching.residual import Residual
from contrada.matching.store.custom_types import CustomConstraints, CustomIndex, CustomResidual
from contrada.matching.store.level import Level, Part, Spatial
from contrada.matching.store.snapshot import Snapshot
from contrada.model import Constraint, Filter, Predicate
from contrada.model.constraint import SpatialOperator
from contrada.model.forms import Bound, Operand, Test, is_text
from contrada.model.reach import DistanceOperator, reach_of
from contrada.model.restore import constraint_of

Systems = Mapping[str, Crs | None]


def predicate_of(snapshot: Snapshot, encoder: MessageEncoder, row: int, crs: Systems | None = None) -> Predicate:
    """Return the predicate of a live subscription, equal to the one subscribed; takes O(n) for n filters, in NumPy.

    Constraints are sorted by attribute. `crs` maps attributes to the CRS of their regions and points.
    """
    numbers = filters_of(snapshot, row)
    return Predicate([Filter(_constraints(snapshot, encoder, number, crs or {})) for number in numbers])


class Recollection:
    """Rebuild many filters of one level: the O(n) work that `predicate_of` does per filter is done once.

    Regions are views that keep the columns of the level in memory; equal regions of a tree are one object.
    """

    def __init__(self, level: Level, encoder: MessageEncoder, crs: Systems) -> None:
        self._encoder, self._crs = encoder, crs
        self._parts = [
            (attribute, part, *_by_filter(part.filters))
            for (attribute, _), indexed in (*level.trees.items(), *level.checks.items())
            for part in [level.part_of(indexed)]
        ]
        self._raw = None if level.scalars is None else _sorted_raw(level.scalars)

    def filters(self, numbers: NDArray[np.int64]) -> list[Filter]:
        """Return the filters with the given sorted numbers."""
        found: dict[int, list[Constraint]] = {number: [] for number in numbers.tolist()}
        for attribute, part, sorted_filters, order in self._parts:
            for at, entry in zip(*_hits(sorted_filters, order, numbers), strict=True):
                found[at].append(self._constraint(attribute, part, entry))
        for constraints in found.values():
            if len(constraints) > 1:  # which of them is in a tree depends on how the filter was subscribed
                constraints.sort(key=_order)
        if self._raw is not None:
            owners = self._raw.records[:, codes.FILTER]
            for at, row in zip(*_hits(owners, np.arange(len(owners)), numbers), strict=True):
                record = self._raw.records[row].tolist()
                attribute, form = self._encoder.slot(record[codes.PLACE])
                found[at].append(constraint_of(attribute, _test(self._raw, record, form), self._encoder.exact))
        return [Filter(constraints) for constraints in found.values()]

    def _constraint(self, attribute: str, part: Part, entry: int) -> Constraint:
        if isinstance(part, CustomConstraints):
            return Constraint(attribute, *part.asked[entry])
        relations, crs = _operator(part, entry), self._crs.get(attribute)
        if isinstance(part.column, PointArray):
            return Constraint(attribute, relations, _value(part.column, entry, crs))
        return Constraint(attribute, relations, _only(part.column[entry : entry + 1], crs))


def _by_filter(filters: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the filters sorted, and the original position of each."""
    order = np.argsort(filters, kind="stable")
    return filters[order], order


def _hits(owners: NDArray[Any], order: NDArray[np.int64], numbers: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """Return all occurrences of `numbers` in the sorted `owners`: the number and its entry of `order`, for each."""
    starts, stops = np.searchsorted(owners, numbers), np.searchsorted(owners, numbers, side="right")
    return np.repeat(numbers, stops - starts).tolist(), order[ranges(starts, stops)].tolist()


def _sorted_raw(scalars: ScalarIndex | RecordView) -> RawRecords:
    raw = scalars.raw if isinstance(scalars, RecordView) else raw_of(scalars)
    return raw._replace(records=raw.records[np.argsort(raw.records[:, codes.FILTER], kind="stable")])


def filters_of(snapshot: Snapshot, row: int) -> range:
    """Return the filter numbers of a subscription, which are consecutive."""
    if snapshot.filter_subscription is None:
        return range(row, row + 1)
    owners = snapshot.filter_subscription[: snapshot.filters]
    first, stop = np.searchsorted(owners, np.array([row, row + 1], owners.dtype))
    return range(int(first), int(stop))


def _constraints(snapshot: Snapshot, encoder: MessageEncoder, number: int, crs: Systems) -> list[Constraint]:
    """Return the constraints of filter `number`, which are all in one level."""
    for level in snapshot.levels:
        found = [*_objects(level, number, crs), *_scalars(level, encoder, number)]
        if found:
            return sorted(found, key=_order)
    raise AssertionError(f"filter {number} is in no level")


def _order(constraint: Constraint) -> tuple[str, bool, str]:
    """Return a sort key that does not depend on packing, which reorders constraints."""
    if constraint.kind is None:
        return constraint.attribute, False, repr(constraint._test)
    if isinstance(constraint.operator, str):
        return constraint.attribute, True, f"{constraint.operator} {constraint.value}"
    further = repr(constraint.operator) if isinstance(constraint.operator, DistanceOperator) else ""
    return constraint.attribute, True, f"{constraint.operator.mask:03} {constraint.value.to_wkb().hex()} {further}"


def _objects(level: Level, number: int, crs: Systems) -> Iterator[Constraint]:
    """Yield the constraints of filter `number` on regions, points and values of custom types."""
    for (attribute, _), part in (*level.trees.items(), *level.checks.items()):
        for entry in np.flatnonzero(level.filters_under(part) == number).tolist():
            if isinstance(part, CustomIndex | CustomResidual):
                yield Constraint(attribute, *part.part.asked[entry])
                continue
            item = entry
            if isinstance(part, PackedTree):  # in which several entries may share an item
                item = int(np.searchsorted(part.offsets, entry, side="right")) - 1
            value = _value(part.column, item, crs.get(attribute))
            yield Constraint(attribute, _operator(part, entry), value)


def _operator(part: Spatial | PackedTree | DistanceTree | LineTree | Residual, entry: int) -> SpatialOperator:
    """Return the operator of a constraint on a region, point or line."""
    mask = int(part.masks[entry])
    if isinstance(part, NearConstraints | DistanceTree | NearResidual):
        return reach_of(float(part.distances[entry]), mask, unit_of(part))
    if isinstance(part, LineConstraints | LineTree | LineResidual):
        return LineRelationSet.from_mask(mask)
    return RelationSet.from_mask(mask)


def _value(column: ShapeColumn, item: int, crs: Crs | None) -> Region | Point | Line:
    """Return a copy of an item of a column: a view would keep the whole column in memory."""
    if isinstance(column, PointArray):
        x, y = column.xy[item].tolist()
        return Point(x, y, crs=crs)
    return _only(reordered(column, np.array([item])), crs)


def _only(column: RegionArray | LineArray, crs: Crs | None) -> Region | Line:
    """Return the only region or line of a column."""
    if isinstance(column, LineArray):
        return Line._from_column(LineArray(column._arrays, crs))
    return Region._from_column(RegionArray(column.arrays, crs))


def _scalars(level: Level, encoder: MessageEncoder, number: int) -> Iterator[Constraint]:
    if level.scalars is None:
        return
    raw = _records(level.scalars, number)
    for record in raw.records.tolist():
        attribute, form = encoder.slot(record[codes.PLACE])
        yield constraint_of(attribute, _test(raw, record, form), encoder.exact)


def _records(scalars: ScalarIndex | RecordView, number: int) -> RawRecords:
    """Return the raw records of filter `number`; none if the filter is not in `scalars`."""
    if isinstance(scalars, RecordView):
        raw = scalars.raw
        return raw._replace(records=raw.records[raw.records[:, codes.FILTER] == number])
    arrays, at = scalars.arrays, number - scalars.first
    local = int(arrays.local_of[at]) if 0 <= at < len(arrays.local_of) else -1
    start, stop = arrays.offsets[local : local + 2] if local >= 0 else (0, 0)
    records = arrays.records[start:stop].copy()
    asks = records[:, 0] >> codes.ASKS_SHIFT
    sets = np.flatnonzero((asks & ~codes.NOT) == codes.SET)
    starts, stops = (arrays.set_offsets[records[sets, 1] + k].astype(np.int64) for k in (0, 1))
    records[sets, 1] = np.arange(len(sets))  # only the sets of this filter are copied
    chosen = arrays._replace(
        offsets=np.array([0, len(records)], np.int32),
        records=records,
        set_offsets=offsets_of(stops - starts).astype(np.int32),
        set_ranks=arrays.set_ranks[ranges(starts, stops)],
        numbers=np.zeros(1, np.int32),
        local_of=np.zeros(1, np.int32),
    )
    return raw_of(ScalarIndex(number, chosen))


def _test(raw: RawRecords, record: list[int], form: int) -> Test:
    """Return the test from which a raw record was made."""

    def operand(first: int, second: int) -> Operand:
        return raw.blob[first:second].tobytes() if is_text(form) else (first, second)

    def bound(shift: int, at: int) -> Bound | None:
        end = record[codes.ASKED] >> shift & 3
        return None if end == codes.UNBOUNDED else Bound(operand(*record[at : at + 2]), end == codes.OPEN)

    asks, low = record[codes.ASKED] & 7, record[codes.LOW : codes.LOW_REST + 1]
    if asks & ~codes.NOT == codes.LIKE:
        return Test(form, asks, pattern=raw.blob[low[0] : low[1]].tobytes())
    if asks & ~codes.NOT == codes.SET:
        return Test(form, asks, members=tuple(operand(*pair) for pair in raw.members[low[0] : low[1]].tolist()))
    return Test(form, asks, bound(codes.LOW_SHIFT, codes.LOW), bound(codes.HIGH_SHIFT, codes.HIGH))
