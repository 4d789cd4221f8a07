"""Journal: what changed in tracked objects since the last delta was taken."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada.tracking.transitions import ObjectId


class Journal:
    """Subscriptions and objects that changed; of objects only the slots. Empty if nobody takes deltas."""

    def __init__(self, is_kept: bool) -> None:
        self._is_kept = is_kept
        self.clear()

    def clear(self) -> None:
        """Begin a new delta."""
        self.watched: dict[int, None] = {}
        self.unwatched: dict[int, None] = {}
        self.named: dict[int, None] = {}
        self.aliases: list[tuple[ObjectId, int]] = []
        self._slots: list[NDArray[np.int64]] = []
        self.has_late = False

    def note_watch(self, number: int) -> None:
        """Note a subscription that is watched from now on."""
        if self._is_kept:
            self.watched[number] = None

    def note_unwatch(self, number: int) -> None:
        """Note a subscription that is watched no more."""
        if self._is_kept:
            self.watched.pop(number, None)
            self.unwatched[number] = None

    def note_names(self, slots: Iterable[int], aliases: Iterable[tuple[ObjectId, int]]) -> None:
        """Note new objects, and further ids of objects."""
        if self._is_kept:
            self.named.update(dict.fromkeys(slots))
            self.aliases += aliases

    def note_slots(self, slots: NDArray[Any]) -> None:
        """Note objects that had a fix or are gone."""
        if self._is_kept and len(slots):
            self._slots.append(slots.astype(np.int64))

    def slots(self) -> NDArray[np.int64]:
        """Return the slots of objects that changed, rising."""
        return np.unique(np.concatenate([*self._slots, np.array(list(self.named), np.int64)]))

    @property
    def is_empty(self) -> bool:
        """True if nothing changed."""
        return not (self.watched or self.unwatched or self.named or self.aliases or self._slots or self.has_late)
