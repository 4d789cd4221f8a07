"""What is written of a table, its living subscriptions in one level; and a store of what was written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import Crs
from contrada.matching.encoding import Places
from contrada.matching.level import EMPTY, renumbered
from contrada.matching.levels import LEVEL_COUNT, Store
from contrada.matching.names import Names, as_arrow
from contrada.matching.snapshot import Snapshot
from contrada.matching.storage import Saved


def packed(store: Store, crs: dict[str, Crs | None], keys: Names | None, subscribers: Names) -> Saved:
    """The living subscriptions in one level, with rows, filters and subscribers numbered from 0 on.

    Where there are no keys the numbers of the rows stand for them.
    """
    with store.lock:
        snapshot = store.snapshot
        rows = np.flatnonzero(snapshot.is_alive(np.arange(snapshot.rows)))
        filters = np.flatnonzero(snapshot.is_filter_alive(np.arange(snapshot.filters, dtype=np.int32)))
        is_packed = snapshot.died is None and not any(level.filters for level in snapshot.levels[1:])
        level = snapshot.levels[0] if is_packed else store.merged(snapshot)
        owners = filters if snapshot.filter_subscription is None else snapshot.filter_subscription[filters]
        whose = rows if snapshot.subscription_subscriber is None else snapshot.subscription_subscriber[rows]
        named, to_subscriber = np.unique(whose.astype(np.int64), return_inverse=True)
        return Saved(
            renumbered(level, filters), dict(crs), store.places.saved(),
            as_arrow(range(len(rows))) if keys is None else keys.chosen(rows), subscribers.chosen(named),
            _unless_plain(np.searchsorted(rows, owners)), _unless_plain(to_subscriber),
            len(rows), len(filters), snapshot.several_filters, keys is not None,
        )  # fmt: skip


def store_of(saved: Saved) -> Store:
    """The store of a saved table, which can be updated further."""
    owners = (saved.filter_subscription, saved.subscription_subscriber)
    levels = (saved.level, *(EMPTY,) * (LEVEL_COUNT - 1))
    snapshot = Snapshot(1, levels, saved.rows, saved.filters, *owners, None, saved.several_filters)
    return Store(snapshot, Places.of_saved(saved.places))


def _unless_plain(numbers: NDArray[Any]) -> NDArray[np.int32] | None:
    """Return the numbers without spare room at the end; None stands for 0, 1, 2, ..."""
    return None if np.array_equal(numbers, np.arange(len(numbers))) else numbers.astype(np.int32)
