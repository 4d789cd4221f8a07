"""RecentIds: the ids of the latest messages, so that one that is published again is recognised."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class RecentIds:
    """Ids within a window of the latest ones, with their sequence numbers.

    >>> recent = RecentIds(2, [("t", "a", 1)])
    >>> recent.add("t", "b", 2)
    >>> recent.add("t", "c", 3)
    >>> recent.get("t", "a"), recent.get("t", "b"), recent.get("u", "b")
    (None, 2, None)
    """

    def __init__(self, window: int, known: Iterable[tuple[str, str, int]] = ()) -> None:
        self._window = window
        self._sequences: dict[tuple[str, str], int] = {}
        self._order: deque[tuple[str, str]] = deque()
        for tenant, id, sequence in known:
            self.add(tenant, id, sequence)

    def get(self, tenant: str, id: str) -> int | None:
        """Return the sequence number of an id within the window."""
        return self._sequences.get((tenant, id))

    def add(self, tenant: str, id: str, sequence: int) -> None:
        """Take an id that is not in the window."""
        self._sequences[tenant, id] = sequence
        self._order.append((tenant, id))
        if len(self._order) > self._window:
            del self._sequences[self._order.popleft()]
