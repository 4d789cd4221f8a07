"""A table's subscriptions simplified in place: recalled in bulk, and appended again where they changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import Crs
from contrada.matching.decompile import Recollection, filters_of
from contrada.matching.levels import Store
from contrada.matching.names import Names
from contrada.matching.snapshot import Snapshot
from contrada.model import Filter, Predicate
from contrada.simplify.simplification import Simplification, simplified_groups

Progress = Callable[[int, int], None]  # so many subscriptions are done, of so many
AT_ONCE = 20_000  # filters that are recalled together, about


def simplify_table(
    store: Store, keys: Names, crs: Mapping[str, Crs | None], across: bool, progress: Progress | None = None
) -> Simplification:
    """Simplify the subscriptions of a packed store, whose lock is held.

    Across subscriptions all those of a subscriber go into the place of the first.
    """
    snapshot = store.snapshot
    rows = np.flatnonzero(snapshot.is_alive(np.arange(snapshot.rows)))
    subscribers = rows if snapshot.subscription_subscriber is None else snapshot.subscription_subscriber[rows]
    groups = _groups(rows, subscribers, across)
    report, done = Simplification(), 0
    recalled = _recalled(snapshot, Recollection(snapshot.levels[0], store.places, crs), groups)
    for group, (parts, one, changed) in zip(groups, simplified_groups(recalled), strict=True):
        report = report.plus(one)
        if changed or len(group) > 1:
            first, *others = group.tolist()
            keys.append(keys[first])  # a name is there before its subscription is
            store.append(int(subscribers[np.searchsorted(rows, first)]), Predicate(parts), first)
            for row in others:
                store.remove(row)
        done += len(group)
        if progress is not None:
            progress(done, len(rows))
    return report


def _groups(rows: NDArray[np.int64], owners: NDArray[Any], across: bool) -> list[NDArray[np.int64]]:
    """Rows that are simplified together: each by itself, or all of a subscriber."""
    if not across:
        return list(rows.reshape(-1, 1))
    order = np.argsort(owners, kind="stable")
    return np.split(rows[order], np.flatnonzero(np.diff(owners[order])) + 1) if len(rows) else []


def _recalled(
    snapshot: Snapshot, recollection: Recollection, groups: list[NDArray[np.int64]]
) -> Iterator[list[Filter]]:
    """The filters of each group, recalled for many groups at a time."""
    chunk: list[NDArray[np.int64]] = []
    size = 0
    for group in groups:
        chunk.append(np.concatenate([_filters_of(snapshot, row) for row in group.tolist()]))
        size += len(chunk[-1])
        if size >= AT_ONCE:
            yield from _together(recollection, chunk)
            chunk, size = [], 0
    yield from _together(recollection, chunk)


def _filters_of(snapshot: Snapshot, row: int) -> NDArray[np.int64]:
    numbers = filters_of(snapshot, row)
    return np.arange(numbers.start, numbers.stop)


def _together(recollection: Recollection, chunk: list[NDArray[np.int64]]) -> Iterator[list[Filter]]:
    wanted = np.unique(np.concatenate([*chunk, np.empty(0, np.int64)]))
    filters = dict(zip(wanted.tolist(), recollection.filters(wanted), strict=True))
    return ([filters[number] for number in numbers.tolist()] for numbers in chunk)
