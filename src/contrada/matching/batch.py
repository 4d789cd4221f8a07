"""Match batches of messages: one path for lists and Arrow tables, whatever the filters are made of."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import NOTHING
from contrada.geometry import Line, LineArray, Point, PointArray, Region, RegionArray
from contrada.geometry.arrays import concatenate, frozen, offsets_of
from contrada.geometry.arrow.circles import CircleRows
from contrada.geometry.arrow.mixed import SpatialRows, ValueRows
from contrada.geometry.circle import NO_CIRCLES, Circle, CircleArray, SpatialValues, joined_circles
from contrada.geometry.line_relating import AnyValue, AnyValues
from contrada.geometry.pool import check_threads, cores, map_threaded
from contrada.index.items import boxes_of
from contrada.index.lines import LineTree, lines_matched
from contrada.index.near import DistanceTree
from contrada.index.packed import PackedTree, joined, z_order
from contrada.index.scalars import EVERYWHERE, NO_REGIONS, NO_TABLE, Beside, EncodedMessages, ScalarIndex
from contrada.index.scanned import RecordView
from contrada.matching.residual import Residual
from contrada.matching.store.custom_types import CustomIndex, CustomResidual
from contrada.matching.store.level import Level, Slot, Tree
from contrada.matching.store.snapshot import Snapshot

Integers = NDArray[np.int64]
Counted = tuple[Integers, Integers]  # number of rows per message; the rows, message by message
Pairs = tuple[Integers, Integers]  # messages and filters

MIN_MESSAGES_PER_SLICE = 16
# Of one thread. To cut a batch and hand its slices to threads takes about as long: 100 messages with a box each took
# 1.99 ms in six slices and 1.06 ms in one (benchmarks.network --only hop).
SHORT_SECONDS = 0.002
MIN_ROWS_PER_SLICE, MAX_ROWS_PER_SLICE = 4096, 1 << 16  # of a table; larger slices would not stay in the caches
NO_PAIRS: Pairs = (np.empty(0, np.int64), np.empty(0, np.int64))


class SpatialColumn(NamedTuple):
    """The values of one attribute: message k has region `region_of[k]`, point `point_of[k]`, circle or line, or -1.

    If `is_whole`, every message k has region k, or every message k has point k. Without circles there is no
    `circle_of`, and without lines no `line_of`.
    """

    regions: RegionArray
    points: PointArray
    region_of: Integers
    point_of: Integers
    is_whole: bool = False
    circles: CircleArray = NO_CIRCLES
    circle_of: Integers | None = None
    lines: LineArray | None = None
    line_of: Integers | None = None

    @classmethod
    def of_parts(cls, parts: Sequence[SpatialRows], size: int) -> SpatialColumn:
        """Return the values of `size` messages from columns and the messages that their rows belong to."""
        if len(parts) == 1 and len(parts[0].rows) == size > 0 and not isinstance(parts[0].column, LineArray):
            column, rows = parts[0]
            none = np.full(size, -1)
            if isinstance(column, RegionArray):
                return cls(column, _joined_points([]), rows, none, True)
            if isinstance(column, PointArray):
                return cls(_joined_regions([]), column, none, rows, True)
        places = {kind: np.full(size, -1) for kind in (RegionArray, PointArray, CircleArray, LineArray)}
        columns: dict[type, list[Any]] = {kind: [] for kind in places}
        for column, rows in parts:
            kind = type(column)
            places[kind][rows] = np.arange(len(rows)) + sum(map(len, columns[kind]))
            columns[kind].append(column)
        made = cls(
            _joined_regions(columns[RegionArray]), _joined_points(columns[PointArray]),
            places[RegionArray], places[PointArray],
        )  # fmt: skip
        if circles := columns[CircleArray]:
            made = made._replace(circles=joined_circles(circles), circle_of=places[CircleArray])
        if lines := columns[LineArray]:
            made = made._replace(lines=joined(lines), line_of=places[LineArray])
        return made

    @property
    def presence(self) -> NDArray[np.bool_]:
        """Whether each message has a value."""
        return np.asarray(np.logical_or.reduce([place >= 0 for _, place in self.kinds]))

    @property
    def regions_and_points(self) -> tuple[tuple[RegionArray | PointArray, Integers], ...]:
        """The regions and the points, each with the row of every message there."""
        return (self.regions, self.region_of), (self.points, self.point_of)

    @property
    def kinds(self) -> tuple[tuple[AnyValues, Integers], ...]:
        """The regions, the points, and circles and lines if any, each with the row of every message there."""
        found: tuple[tuple[AnyValues, Integers], ...] = self.regions_and_points
        if self.circle_of is not None:
            found = (*found, (self.circles, self.circle_of))
        if self.lines is not None and self.line_of is not None:
            found = (*found, (self.lines, self.line_of))
        return found

    def chosen(self, rows: Integers | slice) -> SpatialColumn:
        """Return the values of the messages `rows`."""
        if self.is_whole and not isinstance(rows, slice):
            none = self.region_of if len(self.points) else self.point_of
            places = (none[: len(rows)], rows) if len(self.points) else (rows, none[: len(rows)])
            return self._replace(region_of=places[0], point_of=places[1], is_whole=False)
        circle_of = None if self.circle_of is None else self.circle_of[rows]
        line_of = None if self.line_of is None else self.line_of[rows]
        places = self.region_of[rows], self.point_of[rows]
        return self._replace(
            region_of=places[0], point_of=places[1], is_whole=False, circle_of=circle_of, line_of=line_of
        )

    def order(self) -> Integers:
        """Return all messages; those with values that lie close together are close together."""
        if self.is_whole:
            return z_order(self.points if len(self.points) else self.regions)
        found = []
        has_none = np.ones(len(self.region_of), bool)
        for column, messages, rows in self.parts():
            owner = np.full(len(column), -1)
            owner[rows] = messages
            ordered = owner[z_order(column)]
            found.append(ordered[ordered >= 0])
            has_none[messages] = False
        return np.concatenate([*found, np.flatnonzero(has_none)])

    def parts(self) -> list[tuple[AnyValues, Integers, Integers]]:
        """Return the values of each kind, if any: column, messages that have one, and their rows in the column."""
        found: list[tuple[AnyValues, Integers, Integers]] = []
        for column, place in self.kinds:
            messages = np.flatnonzero(place >= 0)
            if len(messages):
                found.append((column, messages, place[messages]))
        return found

    def beside(self, table: NDArray[np.int64]) -> Beside:
        """Return boxes and regions for the scalar index, with a table of constraints on the regions and points."""
        boxes, region_of = np.empty((len(self.region_of), 4)), np.empty(len(self.region_of), np.int64)
        given = frozen(self.point_of), frozen(self.region_of)
        kernels.fill_boxes(self.points.xy, self.regions.bounds, *given, boxes, region_of)
        for column, place in self.kinds[2:]:  # only the boxes of circles and lines
            rows = np.flatnonzero(place >= 0)
            boxes[rows] = boxes_of(column)[place[rows]]
        regions = self.regions._kernel_arrays() if len(self.regions) else NO_REGIONS
        return Beside(frozen(boxes), regions, frozen(region_of), table)


class Batch(NamedTuple):
    """Messages by columns, in an order in which regions and points that lie close together are close together.

    `custom` has the values of added types by slot, by the number of the message in `rows`.
    """

    rows: Integers  # numbers of the messages
    spatial: Mapping[str, SpatialColumn]
    custom: Mapping[Slot, Mapping[int, Any]]
    scalars: EncodedMessages | None

    def part(self, start: int, stop: int) -> Batch:
        """Return the messages at places `start` to `stop`, without a copy."""
        spatial = {name: column.chosen(slice(start, stop)) for name, column in self.spatial.items()}
        scalars = self.scalars and self.scalars._replace(offsets=frozen(self.scalars.offsets[start : stop + 1]))
        return Batch(self.rows[start:stop], spatial, self.custom, scalars)

    def objects(self, place: int) -> dict[Slot, Any]:
        """Return the regions, points and lines of one message, by slot."""
        found: dict[Slot, Any] = {}
        for name, column in self.spatial.items():
            for values, places in column.kinds:
                if places[place] < 0:
                    continue
                value = values[int(places[place])]
                if isinstance(value, Line):
                    found[name, "line"] = value
                else:
                    found[name, "region"] = found[name, "point"] = value
        return found


class BatchPace:
    """How long one thread takes for a message, as in the last batch; it decides how batches are cut, not answers."""

    def __init__(self) -> None:
        self._seconds_per_message: float | None = None  # unknown before the first batch

    def is_short(self, messages: int) -> bool:
        """Return True if one thread is expected to match so many messages within SHORT_SECONDS."""
        return self._seconds_per_message is not None and self._seconds_per_message * messages < SHORT_SECONDS

    def note(self, messages: int, seconds: float) -> None:
        """Take the seconds that threads together spent on a batch."""
        if messages:
            self._seconds_per_message = seconds / messages


def _joined_regions(columns: list[RegionArray]) -> RegionArray:
    return columns[0] if len(columns) == 1 else RegionArray(concatenate([column.arrays for column in columns]))


def _joined_points(columns: list[PointArray]) -> PointArray:
    return columns[0] if len(columns) == 1 else PointArray(np.concatenate([*(c.xy for c in columns), np.empty((0, 2))]))


def spatial_of_objects(values: Mapping[int, AnyValue], size: int) -> SpatialColumn:
    """Return the values of an attribute, given by message."""
    lines = {row: value for row, value in values.items() if isinstance(value, Line)}
    regions = {row: value._column for row, value in values.items() if isinstance(value, Region)}
    points = {row: (value.x, value.y) for row, value in values.items() if isinstance(value, Point)}
    circles = {row: value for row, value in values.items() if isinstance(value, Circle)}
    parts: list[SpatialRows] = []
    if circles:
        parts.append(CircleRows(CircleArray.from_circles(circles.values()), np.fromiter(circles, np.int64)))
    if regions:
        parts.append(ValueRows(_joined_regions(list(regions.values())), np.fromiter(regions, np.int64)))
    if points:
        parts.append(ValueRows(PointArray(np.array(list(points.values()))), np.fromiter(points, np.int64)))
    if lines:
        parts.append(ValueRows(LineArray.from_lines(list(lines.values())), np.fromiter(lines, np.int64)))
    return SpatialColumn.of_parts(parts, size)


def match_batch(snapshot: Snapshot, batch: Batch, messages: int, threads: int | None, pace: BatchPace) -> Counted:
    """Return how many subscriptions each of `messages` messages satisfies, and their rows, sorted per message."""
    large = _large_tree(snapshot, batch)
    if large is not None:
        return match_large(*large, batch.rows, messages, threads)
    size = len(batch.rows)
    is_whole = threads == 1 or pace.is_short(size)
    spans = spans_of(size, 1 if is_whole else slice_count(size, threads, MIN_MESSAGES_PER_SLICE))
    parts = map_threaded(lambda span: match_part(snapshot, batch, *span), spans, threads)
    return counted_parts(snapshot, parts, size, messages, pace)


class PartPairs(NamedTuple):
    """Messages and filters, level by level, of a part of a batch, and the seconds of processor time."""

    pairs: list[Pairs]
    seconds: float


def match_part(snapshot: Snapshot, batch: Batch, start: int, stop: int) -> PartPairs:
    """Match the messages at places `start` to `stop` of a batch, in this thread."""
    begun = time.thread_time()
    part = batch.part(start, stop)
    found = [level_pairs(level, part) for level in snapshot.levels if level.filters]
    return PartPairs([(part.rows[owners], filters) for owners, filters in found], time.thread_time() - begun)


def counted_parts(snapshot: Snapshot, parts: Sequence[PartPairs], size: int, messages: int, pace: BatchPace) -> Counted:
    """Return the answer of `match_batch` from all parts, in any order, of a batch of `size` good messages."""
    pace.note(size, sum(part.seconds for part in parts))
    owners, filters = _joined([pair for part in parts for pair in part.pairs])
    return sorted_rows(snapshot, owners, filters, messages)


def may_be_cut(snapshot: Snapshot, batch: Batch) -> bool:
    """Return False if `match_batch` writes large answers in place, which takes the batch as a whole."""
    return _large_tree(snapshot, batch) is None


def main_attribute(snapshot: Snapshot) -> str | None:
    """Return the attribute whose regions and points most filters ask about; None if no filter does."""
    counts: dict[str, int] = {}
    for level in snapshot.levels:
        for (name, _), part in (*level.trees.items(), *level.checks.items()):
            if isinstance(part, PackedTree | DistanceTree | LineTree | Residual):
                counts[name] = counts.get(name, 0) + len(part.masks)
    return max(counts, key=counts.__getitem__, default=None)


def level_pairs(level: Level, batch: Batch) -> Pairs:
    """Return the pairs of messages, by their places in `batch`, and filters of `level` that they satisfy."""
    owners, found = _joined([_tree_pairs(slot, tree, batch) for slot, tree in level.trees.items()])
    index, done = level.scalars, None
    if isinstance(index, ScalarIndex):
        offsets = np.zeros(len(batch.rows) + 1, np.int64)
        if len(owners):
            found = found[np.argsort(owners, kind="stable")]
            offsets = offsets_of(np.bincount(owners, minlength=len(batch.rows)))
        beside, done = _beside(level, index, batch)
        assert batch.scalars is not None, "filters with scalar constraints make an encoder that asks for scalars"
        counts, found = index.match_many(batch.scalars, offsets, found, beside)
        owners = np.repeat(np.arange(len(counts)), counts)
    elif isinstance(index, RecordView) and batch.scalars is not None:
        counts, filters = index.match_many(batch.scalars)
        owners, found = _joined([(owners, found), (np.repeat(np.arange(len(counts)), counts), filters)])
    for slot, checks in level.checks.items():
        if slot != done and len(owners):
            kept = _passing(slot, checks, batch, owners, found)
            owners, found = owners[kept], found[kept]
    return owners, level.filters_at(found)


def _tree_pairs(slot: Slot, tree: Tree, batch: Batch) -> Pairs:
    """Return the pairs of messages and filters that are reached through one tree."""
    if isinstance(tree, CustomIndex):
        return _custom_pairs(tree, batch.custom.get(slot, {}), batch.rows)
    column = batch.spatial.get(slot[0])
    found = []
    for values, messages, rows in () if column is None else column.parts():
        counts, filters = _matched(tree, values, rows)
        found.append((np.repeat(messages, counts), filters.astype(np.int64)))
    return _joined(found)


def _matched(tree: PackedTree | DistanceTree | LineTree, values: AnyValues, rows: Integers) -> tuple[Integers, Any]:
    """Match rows of a column with a tree; return the number of filters of each row, and the filters."""
    if not isinstance(tree, PackedTree):
        return tree.match_many(values, rows)
    return lines_matched(tree, values, rows) if isinstance(values, LineArray) else tree.match_many(values, rows)


def _custom_pairs(tree: CustomIndex, values: Mapping[int, Any], rows: Integers) -> Pairs:
    matched = [(k, tree.match(values[row])) for k, row in enumerate(rows.tolist()) if row in values]
    return _joined([(np.full(len(filters), k), filters) for k, filters in matched])


def _beside(level: Level, index: ScalarIndex, batch: Batch) -> tuple[Beside, Slot | None]:
    """Return the spatial values for the scalar index, and the slot whose residual constraints it tests."""
    slot, size = index.region_slot, len(batch.rows)
    if slot is None:
        nothing = frozen(np.full(size, NOTHING))
        return Beside(frozen(np.repeat(EVERYWHERE, size, axis=0)), NO_REGIONS, nothing, NO_TABLE), None
    checks = level.checks_beside()
    column = batch.spatial.get(slot[0]) or SpatialColumn.of_parts([], size)
    if column.circle_of is not None or column.line_of is not None:
        checks = None  # kernels know regions and points; those are checked later, together with circles and lines
    table = NO_TABLE if checks is None else checks.table
    return column.beside(table), None if checks is None else slot


def _passing(
    slot: Slot, checks: Residual | CustomResidual, batch: Batch, owners: Integers, filters: Integers
) -> NDArray[np.bool_]:
    """Return which pairs satisfy the residual constraints at `slot`."""
    if isinstance(checks, CustomResidual):
        own = batch.custom.get(slot, {})
        return checks.are_satisfied(filters, [own.get(row) for row in batch.rows[owners].tolist()])
    pairs, entries = checks.entries_of(filters)
    passed = np.ones(len(owners), bool)
    column = batch.spatial.get(slot[0])
    is_related = np.zeros(len(pairs), bool)
    asked = owners[pairs]
    for values, place in () if column is None else column.kinds:
        here = np.flatnonzero(place[asked] >= 0)
        if len(here):
            here = here[np.argsort(place[asked[here]], kind="stable")]  # pairs of one message together
            is_related[here] = checks.are_satisfied(values, place[asked[here]], entries[here])
    passed[pairs[~is_related]] = False
    return passed


def _joined(found: Sequence[Pairs]) -> Pairs:
    if len(found) == 1:
        return found[0]
    owners, filters = zip(*found, NO_PAIRS, strict=True)
    return np.concatenate(owners), np.concatenate(filters)


Large = tuple[PackedTree, SpatialValues, Integers, Integers]


def _large_tree(snapshot: Snapshot, batch: Batch) -> Large | None:
    """Return the only tree and the values for it, if filters found by it are the answer, and many; else None."""
    levels = [level for level in snapshot.levels if level.filters]
    if not is_direct(snapshot) or len(levels) != 1:
        return None
    (level,) = levels
    if level.checks or level.scalars is not None or len(level.trees) != 1:
        return None
    ((slot, tree),) = level.trees.items()
    parts = batch.spatial[slot[0]].parts() if slot[0] in batch.spatial else []
    if not isinstance(tree, PackedTree) or not len(tree.disjoint_map) or len(parts) != 1:
        return None
    column, places, rows = parts[0]
    return None if isinstance(column, LineArray) else (tree, column, places, rows)


def is_direct(snapshot: Snapshot) -> bool:
    """Return True if filter k is subscription k and all are alive: filters found by a tree are the answer."""
    return snapshot.filter_subscription is None and snapshot.died is None and not snapshot.several_filters


def match_large(
    tree: PackedTree, column: SpatialValues, places: Integers, rows: Integers, numbers: Integers,
    messages: int, threads: int | None,
) -> Counted:  # fmt: skip
    """Match against a tree with large answers, which are sorted already and are only copied into place.

    Row rows[k] of the column is the value of message numbers[places[k]].
    """
    rank = np.empty(len(column), np.int64)
    rank[z_order(column)] = np.arange(len(column))
    order = np.argsort(rank[rows], kind="stable")
    slices = np.array_split(order, slice_count(len(order), threads, 2))
    found = map_threaded(lambda part: tree.match_many(column, rows[part]), slices, threads)
    owners = numbers[places]
    counts = np.zeros(messages, np.int64)
    counts[owners[order]] = np.concatenate([count for count, _ in found])
    ends = np.cumsum(counts)
    whole = np.empty(ends[-1], np.int64)

    def place(k: int) -> None:
        count, answers = found[k]
        stops = ends[owners[slices[k]]].tolist()
        for stop, answer in zip(stops, np.split(answers, np.cumsum(count)[:-1]), strict=True):
            whole[stop - len(answer) : stop] = answer

    map_threaded(place, range(len(slices)), threads)  # in threads, because writing to new memory is slow
    return counts, whole


def slice_count(rows: int, threads: int | None, least: int) -> int:
    """Return into how many slices of at least `least` rows to cut: several per thread, to balance the load."""
    return max(1, min(4 * (threads or cores()), rows // least))


def slice_spans(rows: int, threads: int | None) -> list[tuple[int, int]]:
    """Return start and end of the slices of a table that are read and matched on their own; one if it is small."""
    check_threads(threads)
    count = min(threads or cores(), rows // MIN_ROWS_PER_SLICE)
    return spans_of(rows, max(1, count, -(-rows // MAX_ROWS_PER_SLICE)))


def spans_of(rows: int, count: int) -> list[tuple[int, int]]:
    """Return start and end of `count` slices of about the same size."""
    return [(rows * k // count, rows * (k + 1) // count) for k in range(count)]


def sorted_rows(snapshot: Snapshot, owners: Integers, filters: NDArray[Any], messages: int) -> Counted:
    """Turn pairs of messages and filters into live subscriptions, sorted by message and row, each pair once."""
    rows = filters if snapshot.filter_subscription is None else snapshot.filter_subscription[filters]
    if snapshot.died is not None:
        alive = snapshot.is_alive(rows)
        owners, rows = owners[alive], rows[alive]
    return count_pairs(owners, rows.astype(np.int64), messages, max(1, snapshot.rows), snapshot.several_filters)


def count_pairs(owners: Integers, rows: Integers, messages: int, width: int, repeated: bool) -> Counted:
    """Return pairs of messages and rows, sorted; with `repeated` duplicates are removed. Rows are below `width`."""
    pairs = owners * width + rows
    pairs = np.unique(pairs) if repeated else np.sort(pairs)
    owners, rows = np.divmod(pairs, width)
    return np.bincount(owners, minlength=messages), rows
