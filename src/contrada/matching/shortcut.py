"""Front: a few filters that decide most messages for every subscriber, looked at before all the others.

A subscriber is decided when one of its filters is satisfied. Where few subscribers have many filters each, as the
neighbours of a broker do, a handful of filters that hold of nearly every message decides them all, and the rest need
not be looked at. Which filters these are is learnt from messages; where they do not decide everybody, everything is
asked as usual.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contrada import forking
from contrada.matching.level import Level, Message, merge_levels
from contrada.matching.levels import Store
from contrada.matching.snapshot import Snapshot

MIN_FILTERS = 1024  # filters worth the trouble
MIN_FILTERS_PER_SUBSCRIBER = 32  # filters for a subscriber, on average
LEARN_FROM_MESSAGES = 64  # messages
MAX_FILTERS_PER_SUBSCRIBER = 8  # filters of a subscriber at most
MIN_DECIDED_SHARE = 0.5  # share of messages that must be decided
REFRESH_SUBSCRIBERS_AFTER = 64  # messages without an update, until it is looked at who is there


class Front:
    """What is learnt of one table; answers are the same with it and without."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = forking.make_lock(forking.LEARNING)
        self._base: Level | None = None  # that all this is about
        self._level: Level | None = None
        self._samples: list[NDArray[np.int64]] | None = []  # filters that messages satisfied; None: nothing to gain
        self._version = -1  # of the snapshot whose subscribers are known
        self._everybody: NDArray[np.int64] | None = None
        self._quiet = 0
        self._tries = self._hits = 0

    def subscribers(self, snapshot: Snapshot, message: Message) -> NDArray[np.int64]:
        """Rows of the subscribers that a message goes to, sorted."""
        base = snapshot.levels[0]
        if base.filters < MIN_FILTERS or (not snapshot.several_filters and snapshot.subscription_subscriber is None):
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
                self._hits += 1
                return everybody
            if self._tries >= 256 and self._hits < MIN_DECIDED_SHARE * self._tries / 2:
                self._level, self._samples = None, None
        return snapshot.subscribers(message)

    def _begin(self, base: Level) -> None:
        """Forget all: the table was packed."""
        with self._lock:
            if base is not self._base:
                self._base, self._level, self._samples = base, None, []
                self._version, self._everybody, self._quiet = -1, None, 0
                self._tries = self._hits = 0

    def _those_there(self, snapshot: Snapshot) -> NDArray[np.int64] | None:
        """All subscribers with a living subscription; None while that is not known."""
        if snapshot.version == self._version:
            return self._everybody
        self._quiet += 1
        if self._quiet < REFRESH_SUBSCRIBERS_AFTER and self._version >= 0:
            return None
        rows = np.flatnonzero(snapshot.is_alive(np.arange(snapshot.rows)))
        owners = snapshot.subscription_subscriber
        self._everybody = rows if owners is None else np.unique(owners[rows]).astype(np.int64)
        self._everybody.setflags(write=False)
        self._version, self._quiet = snapshot.version, 0
        return self._everybody

    def _learn(self, snapshot: Snapshot, message: Message) -> NDArray[np.int64]:
        """Answer as usual, and remember which filters of the base the message satisfied."""
        with self._lock:
            samples = self._samples
            if samples is not None and self._base is snapshot.levels[0]:
                samples.append(self._base.match(message))
                if len(samples) >= LEARN_FROM_MESSAGES:
                    self._choose(snapshot, samples)
        return snapshot.subscribers(message)

    def _choose(self, snapshot: Snapshot, samples: list[NDArray[np.int64]]) -> None:
        """Choose the filters that decide the most messages for each subscriber, if that decides enough of them."""
        self._samples = None
        everybody = self._those_there(snapshot)
        assert self._base is not None
        if everybody is None or len(everybody) * MIN_FILTERS_PER_SUBSCRIBER > self._base.filters:
            return
        whose = np.repeat(np.arange(len(samples)), [len(found) for found in samples])
        filters = np.concatenate(samples)
        owners, alive = _owners(snapshot, filters)
        chosen, decided = chosen_filters(filters[alive], whose[alive], owners, len(samples))
        if decided.get(len(everybody), 0) < MIN_DECIDED_SHARE * len(samples):
            return
        places, sample = self._store.places, self._store.sample
        self._level = merge_levels([self._base], lambda those: np.isin(those, chosen), places, sample.seen(places))


def _owners(snapshot: Snapshot, filters: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The subscribers of those filters that are alive, and which these are."""
    rows = filters if snapshot.filter_subscription is None else snapshot.filter_subscription[filters]
    alive = snapshot.is_alive(rows)
    owners = snapshot.subscription_subscriber
    return (rows[alive] if owners is None else owners[rows[alive]]).astype(np.int64), alive


def chosen_filters(
    filters: NDArray[np.int64], messages: NDArray[np.int64], subscribers: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], dict[int, int]]:
    """Few filters of each subscriber, and how many of the messages they decide for how many subscribers.

    The arrays say which filter each message satisfied, and whose it is. One filter after another is taken that decides
    the most messages which those before did not.

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
