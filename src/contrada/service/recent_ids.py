"""RecentIds: the ids of the latest messages, so that one that is published again is recognised."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class RecentIds:
    """Ids of the latest `window` messages, with their sequence numbers: what is known depends on nothing but the log.

    >>> recent = RecentIds(2, [("t", "a", 1)])
    >>> recent.add("t", "b", 2)
    >>> recent.add("t", None, 3)
    >>> recent.get("t", "a"), recent.get("t", "b"), recent.get("u", "b")
    (None, 2, None)
    """

    def __init__(self, window: int, known: Iterable[tuple[str, str, int]] = (), newest: int = 0) -> None:
        self._window, self._newest = window, newest
        self._sequences: dict[tuple[str, str], int] = {}
        self._order: deque[tuple[str, str]] = deque()
        for tenant, id, sequence in known:
            self.add(tenant, id, sequence)

    def get(self, tenant: str, id: str) -> int | None:
        """Return the sequence number of an id within the window."""
        sequence = self._sequences.get((tenant, id))
        return None if sequence is None or sequence <= self._newest - self._window else sequence

    def add(self, tenant: str, id: str | None, sequence: int) -> None:
        """Take the newest message, and its id if it has one."""
        self._newest = max(self._newest, sequence)
        order, sequences, gone = self._order, self._sequences, sequence - self._window
        if id is not None:
            sequences[tenant, id] = sequence
            order.append((tenant, id))
        while order and (first := sequences.get(order[0], 0)) <= gone:
            if first:
                del sequences[order[0]]
            order.popleft()
