"""Convert a store to its saved form, live subscriptions in one level, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import Crs
from contrada.matching.encoding import MessageEncoder
from contrada.matching.names import Names, as_arrow
from contrada.matching.store.level import EMPTY, renumbered
from contrada.matching.store.levels import LEVEL_COUNT, Store
from contrada.matching.store.snapshot import Snapshot
from contrada.matching.store.storage import Saved
from contrada.matching.store.tuning import DEFAULT_TUNING, Tuning


def packed(store: Store, crs: dict[str, Crs | None], keys: Names | None, subscribers: Names) -> Saved:
    """Return the live subscriptions in one level, with rows, filters and subscribers renumbered from 0.

    Without `keys`, row numbers are saved in their place.
    """
    with store.lock:
        snapshot = store.snapshot
        rows = snapshot.living()
        filters = np.flatnonzero(snapshot.is_filter_alive(np.arange(snapshot.filters, dtype=np.int32)))
        is_packed = snapshot.died is None and not any(level.filters for level in snapshot.levels[1:])
        level = snapshot.levels[0] if is_packed else store.merged(snapshot)
        owners = filters if snapshot.filter_subscription is None else snapshot.filter_subscription[filters]
        named, to_subscriber = np.unique(snapshot.owners(rows), return_inverse=True)
        return Saved(
            renumbered(level, filters), dict(crs), store.encoder.saved(),
            as_arrow(range(len(rows))) if keys is None else keys.chosen(rows), subscribers.chosen(named),
            _unless_plain(np.searchsorted(rows, owners)), _unless_plain(to_subscriber),
            len(rows), len(filters), snapshot.several_filters, keys is not None,
        )  # fmt: skip


def store_of(saved: Saved, tuning: Tuning = DEFAULT_TUNING) -> Store:
    """Return a store over a saved table; the store can be updated."""
    owners = (saved.filter_subscription, saved.subscription_subscriber)
    levels = (saved.level, *(EMPTY,) * (LEVEL_COUNT - 1))
    snapshot = Snapshot(1, levels, saved.rows, saved.filters, *owners, None, saved.several_filters)
    return Store(snapshot, MessageEncoder.of_saved(saved.encoder), tuning)


def _unless_plain(numbers: NDArray[Any]) -> NDArray[np.int32] | None:
    """Return `numbers` as int32, or None if they are 0, 1, 2, ..."""
    return None if np.array_equal(numbers, np.arange(len(numbers))) else numbers.astype(np.int32)
