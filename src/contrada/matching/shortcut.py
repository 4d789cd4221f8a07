"""Shortcut: a few filters that decide most messages for all subscribers, matched before all other filters.

A subscriber is decided when one of its filters is satisfied. If few subscribers have many filters each, as the
neighbours of a broker do, a handful of filters that nearly every message satisfies decides all subscribers, and the
other filters need not be matched. The filters are learnt from messages. A message for which they leave a subscriber
undecided is matched as usual.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contrada import forking
from contrada.matching.store.level import Level, Message, merge_levels
from contrada.matching.store.levels import Store
from contrada.matching.store.snapshot import Snapshot

MAX_FILTERS_PER_SUBSCRIBER = 8  # in the shortcut
MIN_DECIDED_SHARE = 0.5  # of messages; below that there is no shortcut


class Shortcut:
    """The shortcut of one table; answers are equal with and without it."""

    def __init__(self, store: Store) -> None:
        self._store, self._tuning = store, store.tuning
        self._lock = forking.make_lock(forking.LEARNING)
        self._base: Level | None = None  # for which the shortcut was learnt
        self._level: Level | None = None
        self._samples: list[NDArray[np.int64]] | None = []  # filters that messages satisfied; None: no gain
        self._version = -1  # of the snapshot to which `_everybody` belongs
        self._everybody: NDArray[np.int64] | None = None
        self._quiet = 0
        self._tries = self.decided = 0  # messages since the shortcut was learnt

    @property
    def filters(self) -> int:
        """Return the number of filters in the shortcut; 0 if there is none."""
        return 0 if self._level is None else self._level.filters

    def subscribers(self, snapshot: Snapshot, message: Message) -> NDArray[np.int64]:
        """Return the rows of the subscribers that a message goes to, sorted."""
        base = snapshot.levels[0]
        is_direct = not snapshot.several_filters and snapshot.subscription_subscriber is None
        if is_direct or base.filters < self._tuning.shortcut_min_filters:
            return snapshot.subscribers(message)
        if base is not self._base:
            self._begin(base)
        if self._level is None:
            if self._samples is None:
                return snapshot.subscribers(message)
            return self._learn(snapshot, message)
        everybody = self._those_there(snapshot)
        if everybody is not None:
            found = self._level.match(message)
            decided, _ = _owners(snapshot, found)
            self._tries += 1
            if len(np.unique(decided)) == len(everybody):
                self.decided += 1
                return everybody
            if self._tries >= 256 and self.decided < MIN_DECIDED_SHARE * self._tries / 2:
                self._level, self._samples = None, None
        return snapshot.subscribers(message)

    def _begin(self, base: Level) -> None:
        """Start learning again: the base was packed."""
        with self._lock:
            if base is not self._base:
                self._base, self._level, self._samples = base, None, []
                self._version, self._everybody, self._quiet = -1, None, 0
                self._tries = self.decided = 0

    def _those_there(self, snapshot: Snapshot) -> NDArray[np.int64] | None:
        """Return the rows of all subscribers with a live subscription; None if unknown since the last update."""
        if snapshot.version == self._version:
            return self._everybody
        self._quiet += 1
        if self._quiet < self._tuning.shortcut_refresh_after_messages and self._version >= 0:
            return None
        self._everybody = np.unique(snapshot.owners(snapshot.living()))
        self._everybody.setflags(write=False)
        self._version, self._quiet = snapshot.version, 0
        return self._everybody

    def _learn(self, snapshot: Snapshot, message: Message) -> NDArray[np.int64]:
        """Match as usual, and record which filters of the base the message satisfied."""
        with self._lock:
            samples = self._samples
            if samples is not None and self._base is snapshot.levels[0]:
                samples.append(self._base.match(message))
                if len(samples) >= self._tuning.shortcut_learn_from_messages:
                    self._choose(snapshot, samples)
        return snapshot.subscribers(message)

    def _choose(self, snapshot: Snapshot, samples: list[NDArray[np.int64]]) -> None:
        """Choose the filters of each subscriber that decide the most messages, if they decide enough."""
        self._samples = None
        everybody = self._those_there(snapshot)
        assert self._base is not None
        if everybody is None or len(everybody) * self._tuning.shortcut_min_filters_per_subscriber > self._base.filters:
            return
        whose = np.repeat(np.arange(len(samples)), [len(found) for found in samples])
        filters = np.concatenate(samples)
        owners, alive = _owners(snapshot, filters)
        chosen, decided = chosen_filters(filters[alive], whose[alive], owners, len(samples))
        if decided.get(len(everybody), 0) < MIN_DECIDED_SHARE * len(samples):
            return
        encoder, sample = self._store.encoder, self._store.sample
        self._level = merge_levels([self._base], lambda those: np.isin(those, chosen), encoder, sample.seen(encoder))


def _owners(snapshot: Snapshot, filters: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the subscribers of the live filters, and which filters are live."""
    rows = filters if snapshot.filter_subscription is None else snapshot.filter_subscription[filters]
    alive = snapshot.is_alive(rows)
    return snapshot.owners(rows[alive].astype(np.int64)), alive


def chosen_filters(
    filters: NDArray[np.int64], messages: NDArray[np.int64], subscribers: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], dict[int, int]]:
    """Choose filters of each subscriber greedily; return them, and how many messages they decide by subscriber count.

    Entry k of the arrays says that message `messages[k]` satisfied filter `filters[k]` of subscriber `subscribers[k]`.
    Each step takes the filter that decides the most of the messages still undecided. `count` is the number of messages.

    >>> chosen, decided = chosen_filters(np.array([7, 8, 8]), np.array([0, 0, 1]), np.array([5, 5, 5]), 2)
    >>> chosen.tolist(), decided
    ([8], {1: 2})
    """
    chosen: list[int] = []
    decided = np.zeros(count, np.int64)
    for subscriber in np.unique(subscribers).tolist():
        mine = subscribers == subscriber
        left_filters, left_messages = filters[mine], messages[mine]
        done = np.zeros(count, bool)
        for _ in range(MAX_FILTERS_PER_SUBSCRIBER):
            if not len(left_filters):
                break
            numbers, often = np.unique(left_filters, return_counts=True)
            best = int(numbers[int(often.argmax())])
            chosen.append(best)
            done[left_messages[left_filters == best]] = True
            kept = ~done[left_messages]
            left_filters, left_messages = left_filters[kept], left_messages[kept]
        decided += done
    numbers, often = np.unique(decided, return_counts=True)
    return np.array(chosen, np.int64), dict(zip(numbers.tolist(), often.tolist(), strict=True))
