"""Simplify the subscriptions of a table, one by one or merged by subscriber; filters are rebuilt in bulk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import Crs
from contrada.matching.decompile import Recollection, filters_of
from contrada.matching.encoding import MessageEncoder
from contrada.matching.names import Names
from contrada.matching.store.levels import Store
from contrada.matching.store.snapshot import Snapshot
from contrada.model import Filter, Predicate
from contrada.simplification.simplifying import Simplification, simplified_groups

Progress = Callable[[int, int], None]  # called with subscriptions done and their total
RECALLED_FILTERS_PER_CHUNK = 20_000  # about how many filters are rebuilt in one step


def simplify_table(
    store: Store, keys: Names, crs: Mapping[str, Crs | None], progress: Progress | None = None
) -> Simplification:
    """Simplify each subscription of a packed store in place; the caller holds its lock."""
    snapshot = store.snapshot
    rows = snapshot.living()
    subscribers = snapshot.owners(rows)
    found = recalled(snapshot, store.encoder, crs, list(rows.reshape(-1, 1)))
    report = Simplification()
    for done, (parts, one, changed) in enumerate(simplified_groups(found)):
        report = report.plus(one)
        if changed:
            row = int(rows[done])
            keys.append(keys[row])  # a key is stored before its subscription
            store.append(int(subscribers[done]), Predicate(parts), row)
        if progress is not None:
            progress(done + 1, len(rows))
    return report


def simplified_subscribers(
    snapshot: Snapshot, encoder: MessageEncoder, crs: Mapping[str, Crs | None], progress: Progress | None = None
) -> Iterator[tuple[int, Predicate, Simplification]]:
    """Yield each subscriber's row, its simplified predicate, and the counts of what was dropped."""
    rows = snapshot.living()
    subscribers = snapshot.owners(rows)
    groups = _by_subscriber(rows, subscribers)
    done = 0
    found = simplified_groups(recalled(snapshot, encoder, crs, groups))
    for group, (parts, one, _) in zip(groups, found, strict=True):
        yield int(subscribers[np.searchsorted(rows, group[0])]), Predicate(parts), one
        done += len(group)
        if progress is not None:
            progress(done, len(rows))


def _by_subscriber(rows: NDArray[np.int64], subscribers: NDArray[Any]) -> list[NDArray[np.int64]]:
    """Return the subscription rows of each subscriber."""
    order = np.argsort(subscribers, kind="stable")
    return np.split(rows[order], np.flatnonzero(np.diff(subscribers[order])) + 1) if len(rows) else []


def recalled(
    snapshot: Snapshot, encoder: MessageEncoder, crs: Mapping[str, Crs | None], groups: list[NDArray[np.int64]]
) -> Iterator[list[Filter]]:
    """Yield the filters of each group of subscription rows, rebuilt for many groups at a time; `snapshot` is packed."""
    recollection = Recollection(snapshot.levels[0], encoder, crs)
    chunk: list[NDArray[np.int64]] = []
    size = 0
    for group in groups:
        chunk.append(np.concatenate([_filters_of(snapshot, row) for row in group.tolist()]))
        size += len(chunk[-1])
        if size >= RECALLED_FILTERS_PER_CHUNK:
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
