"""MatchPage: the events of some stored messages, by feed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from contrada.service.catalog import Catalog
from contrada.service.cursors import Position
from contrada.service.matches import NUMBER_MASK, unpack_many


class MatchPage:
    """The events of some consecutive messages, by feed."""

    def __init__(self, rows: Sequence[tuple[int, bytes]], catalog: Catalog) -> None:
        numbers, counts = unpack_many([data for _, data in rows])
        sequences = np.repeat(np.array([sequence for sequence, _ in rows], np.int64), counts)
        owners = [catalog.owners[number] for number in (numbers & NUMBER_MASK).tolist()]
        feeds = np.array([-1 if owner is None else owner.feed for owner in owners], np.int64)
        order = np.argsort(feeds, kind="stable")  # by sequence and number within a feed
        self._feeds, self._sequences, self._numbers = feeds[order], sequences[order], numbers[order]

    def events(self, feed: int) -> list[Position]:
        """Return the places of a feed's events."""
        return self._places(*np.searchsorted(self._feeds, [feed, feed + 1]).tolist())

    def items(self) -> Iterator[tuple[int, list[Position]]]:
        """Yield feeds and the places of their events."""
        bounds = [*np.flatnonzero(np.diff(self._feeds, prepend=-1)).tolist(), len(self._feeds)]
        for start, stop in pairwise(bounds):
            yield int(self._feeds[start]), self._places(start, stop)

    def _places(self, start: int, stop: int) -> list[Position]:
        return list(map(Position, self._sequences[start:stop].tolist(), self._numbers[start:stop].tolist()))
