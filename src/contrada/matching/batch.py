"""Match batches of messages: column by column where filters are single regions or points, else a few calls a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import RegionArray
from contrada.geometry.arrays import concatenate, frozen
from contrada.geometry.arrow.mixed import ValueRows
from contrada.geometry.pool import cores, map_threaded
from contrada.index.packed import PackedTree, reordered, z_order
from contrada.index.scalars import NO_REGIONS, NOTHING_BESIDE, Beside, EncodedMessages, ScalarIndex
from contrada.matching.encoding import MessageEncoder
from contrada.matching.store.custom_types import CustomIndex
from contrada.matching.store.level import Level, Message, Slot
from contrada.matching.store.snapshot import Snapshot

Counted = tuple[NDArray[np.int64], NDArray[np.int64]]  # number of rows per message; the rows, message by message

MIN_MESSAGES_PER_SLICE = 16


class Checked(NamedTuple):
    """A checked message, and by slot its regions, points and values of added types."""

    message: Mapping[str, Any]
    objects: Mapping[Slot, Any]


def match_together(
    snapshot: Snapshot, encoder: MessageEncoder, messages: Sequence[Checked | None], threads: int | None
) -> Counted:
    """Return how many subscriptions each message satisfies, and their rows, sorted per message; None matches none."""
    levels = [level for level in snapshot.levels if level.filters]
    if threads is None and any(not level.trees and _batch_index(level) is None for level in levels):
        threads = 1  # one short call per message: threads would only wait for the GIL
    good = np.array([k for k, message in enumerate(messages) if message is not None], np.int64)

    def match(rows: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        chosen = [message for row in rows.tolist() if (message := messages[row]) is not None]
        scalars = encoder.encode([one.message for one in chosen]) if encoder.asked else None
        parts = [_level_pairs(level, [one.objects for one in chosen], scalars) for level in levels]
        return [(rows[owners], filters) for owners, filters in parts]

    slices = np.array_split(good, slice_count(len(good), threads, MIN_MESSAGES_PER_SLICE)) if len(good) else []
    found = [pair for part in map_threaded(match, slices, threads) for pair in part]
    owners, filters = _joined([owner for owner, _ in found]), _joined([part for _, part in found])
    return sorted_rows(snapshot, owners, filters, len(messages))


def _level_pairs(
    level: Level, objects: list[Mapping[Slot, Any]], scalars: EncodedMessages | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of messages and filters of `level` that the messages satisfy."""
    index = _batch_index(level)
    if index is None or scalars is None:
        found = [level.match(Message(own, _one(scalars, k))) for k, own in enumerate(objects)]
        return np.repeat(np.arange(len(found)), [len(each) for each in found]), _joined(found)
    if index.region_slot is None and not level.trees:  # nothing but scalars
        beside, reached = _repeated(NOTHING_BESIDE, len(objects)), []
    else:
        messages = [Message(own, None) for own in objects]
        beside = _together([level.beside(message) for message in messages])
        trees = level._replace(checks={}, scalars=None)
        reached = [trees.match(message) for message in messages] if level.trees else []
    offsets = np.zeros(len(objects) + 1, np.int64)
    offsets[1 : len(reached) + 1] = np.cumsum([len(each) for each in reached])
    counts, filters = index.match_many(scalars, offsets, _joined(reached), beside)
    return np.repeat(np.arange(len(counts)), counts), filters


def _batch_index(level: Level) -> ScalarIndex | None:
    """Return the index by which `level` matches several messages in one call; None if it takes them one by one."""
    return level.scalars if isinstance(level.scalars, ScalarIndex) and level.is_checked_beside else None


def _one(scalars: EncodedMessages | None, number: int) -> EncodedMessages | None:
    """Return message `number` of an encoded batch."""
    return None if scalars is None else EncodedMessages(scalars.offsets[number : number + 2], *scalars[1:])


def _repeated(beside: Beside, count: int) -> Beside:
    """Repeat the region part of one message `count` times."""
    boxes, region_of = np.repeat(beside.boxes, count, axis=0), np.repeat(beside.region_of, count)
    return beside._replace(boxes=frozen(boxes), region_of=frozen(region_of))


def _together(each: list[Beside]) -> Beside:
    """Concatenate the spatial parts of several encoded messages."""
    columns = [RegionArray._of_kernel_arrays(one.regions).arrays for one in each if one.region_of[0] == 0]
    region_of = np.concatenate([one.region_of for one in each])
    region_of[region_of == 0] = np.arange(len(columns))
    regions = RegionArray(concatenate(columns))._kernel_arrays() if columns else NO_REGIONS
    return Beside(frozen(np.concatenate([one.boxes for one in each])), regions, frozen(region_of), each[0].table)


def _joined(found: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([*found, np.empty(0, np.int64)])


def is_plain(snapshot: Snapshot) -> bool:
    """Return True if every filter is one constraint on regions or points, so columns can be matched separately."""
    return not any(
        level.checks or level.scalars or any(isinstance(tree, CustomIndex) for tree in level.trees.values())
        for level in snapshot.levels
    )


def match_columns(
    snapshot: Snapshot, columns: Mapping[str, Sequence[ValueRows]], messages: int, threads: int | None
) -> Counted:
    """Return how many subscriptions each of `messages` messages satisfies, and their rows, sorted per message."""
    asked = [
        (tree, part)
        for level in snapshot.levels
        for (attribute, _), tree in level.trees.items()
        if isinstance(tree, PackedTree)
        for part in columns.get(attribute, ())
    ]
    if len(asked) == 1 and len(asked[0][0].disjoint_map) and is_direct(snapshot):
        return match_large(*asked[0], messages, threads)
    found = []
    for tree, (column, rows) in asked:
        order = z_order(column)
        slices = np.array_split(order, slice_count(len(order), threads, 16))
        answers = map_threaded(partial(tree.match_many, column), slices, threads)
        counts = np.concatenate([answer[0] for answer in answers])
        found.append((np.repeat(rows[order], counts), np.concatenate([answer[1] for answer in answers])))
    owners = np.concatenate([owner for owner, _ in found] or [np.empty(0, np.int64)])
    filters = np.concatenate([part for _, part in found] or [np.empty(0, np.int32)])
    return sorted_rows(snapshot, owners, filters, messages)


def is_direct(snapshot: Snapshot) -> bool:
    """Return True if filter k is subscription k and all are alive: filters found by a tree are the answer."""
    return snapshot.filter_subscription is None and snapshot.died is None and not snapshot.several_filters


def match_large(tree: PackedTree, part: ValueRows, messages: int, threads: int | None) -> Counted:
    """Match against a tree with large answers, which are sorted already and are only copied into place."""
    order = z_order(part.column)
    slices = np.array_split(order, slice_count(len(order), threads, 2))
    found = map_threaded(partial(tree.match_many, part.column), slices, threads)
    counts = np.zeros(messages, np.int64)
    counts[part.rows[order]] = np.concatenate([count for count, _ in found])
    ends = np.cumsum(counts)
    whole = np.empty(ends[-1], np.int64)

    def place(k: int) -> None:
        count, answers = found[k]
        stops = ends[part.rows[slices[k]]].tolist()
        for stop, answer in zip(stops, np.split(answers, np.cumsum(count)[:-1]), strict=True):
            whole[stop - len(answer) : stop] = answer

    map_threaded(place, range(len(slices)), threads)  # in threads, because writing to new memory is slow
    return counts, whole


def kept_rows(part: ValueRows, good: NDArray[np.int64]) -> ValueRows:
    """Return the rows of `part` that are in `good`."""
    kept = np.isin(part.rows, good)
    return part if kept.all() else ValueRows(reordered(part.column, np.flatnonzero(kept)), part.rows[kept])


def slice_count(rows: int, threads: int | None, least: int) -> int:
    """Return into how many slices of at least `least` rows to cut: several per thread, to balance the load."""
    return max(1, min(4 * (threads or cores()), rows // least))


def sorted_rows(snapshot: Snapshot, owners: NDArray[np.int64], filters: NDArray[Any], messages: int) -> Counted:
    """Turn pairs of messages and filters into live subscriptions, sorted by message and row, each pair once."""
    rows = filters if snapshot.filter_subscription is None else snapshot.filter_subscription[filters]
    if snapshot.died is not None:
        alive = snapshot.is_alive(rows)
        owners, rows = owners[alive], rows[alive]
    return count_pairs(owners, rows.astype(np.int64), messages, max(1, snapshot.rows), snapshot.several_filters)


def count_pairs(
    owners: NDArray[np.int64], rows: NDArray[np.int64], messages: int, width: int, repeated: bool
) -> Counted:
    """Return pairs of messages and rows, sorted; with `repeated` duplicates are removed. Rows are below `width`."""
    pairs = owners * width + rows
    pairs = np.unique(pairs) if repeated else np.sort(pairs)
    owners, rows = np.divmod(pairs, width)
    return np.bincount(owners, minlength=messages), rows
