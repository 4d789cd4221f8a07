"""Match Arrow batches column by column: for tables in which every filter is one constraint on a region or point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from contrada.geometry.mixed import ValueRows
from contrada.geometry.pool import cores, map_threaded
from contrada.index.packed import PackedTree, reordered, z_order
from contrada.matching.custom_types import OwnIndex
from contrada.matching.snapshot import Snapshot

Counted = tuple[NDArray[np.int64], NDArray[np.int64]]  # number of rows per message; the rows, message by message


def is_plain(snapshot: Snapshot) -> bool:
    """Return True if every filter is one constraint on regions or points, so columns can be matched separately."""
    return not any(
        level.checks or level.scalars or any(isinstance(tree, OwnIndex) for tree in level.trees.values())
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


def sorted_rows(snapshot: Snapshot, owners: NDArray[np.int64], filters: NDArray[np.int32], messages: int) -> Counted:
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
