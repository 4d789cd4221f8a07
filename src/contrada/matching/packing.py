"""What is written of a table: its living subscriptions in one level."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import Crs
from contrada.matching.level import renumbered
from contrada.matching.levels import Store
from contrada.matching.names import Names
from contrada.matching.storage import Saved


def packed(store: Store, crs: dict[str, Crs | None], keys: Names, subscribers: Names, has_keys: bool) -> Saved:
    """The living subscriptions in one level, with rows, filters and subscribers numbered from 0 on."""
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
            keys.chosen(rows), subscribers.chosen(named),
            _unless_plain(np.searchsorted(rows, owners)), _unless_plain(to_subscriber),
            len(rows), len(filters), snapshot.several_filters, has_keys,
        )  # fmt: skip


def _unless_plain(numbers: NDArray[Any]) -> NDArray[np.int32] | None:
    """Return the numbers without spare room at the end; None stands for 0, 1, 2, ..."""
    return None if np.array_equal(numbers, np.arange(len(numbers))) else numbers.astype(np.int32)
