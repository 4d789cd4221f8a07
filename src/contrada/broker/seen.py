"""SeenIds: the ids of the latest messages, so that none is delivered or forwarded twice."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

DEFAULT_WINDOW = 100_000


class SeenIds:
    """A window of the latest ids; batches of ids are forgotten, oldest first, while `window` later ones are there.

    >>> seen = SeenIds(window=2)
    >>> seen.add(["a"]), seen.add(["b", "c"])
    ((0, []), (1, [0]))
    >>> seen.fresh(["a", "b", "d", "d"])
    [0, 2]
    """

    def __init__(self, window: int = DEFAULT_WINDOW) -> None:
        self.window = window
        self._ids: set[str] = set()
        self._batches: deque[tuple[int, Sequence[str]]] = deque()
        self._next = 0

    def __len__(self) -> int:
        return len(self._ids)

    def fresh(self, ids: Sequence[str]) -> list[int]:
        """Return the places of ids that are not in the window; of equal ids the first."""
        known = self._ids
        if known.isdisjoint(ids) and len(set(ids)) == len(ids):
            return list(range(len(ids)))
        first: dict[str, int] = {}
        for place, id in enumerate(ids):
            if id not in known:
                first.setdefault(id, place)
        return list(first.values())

    def add(self, ids: Sequence[str], number: int | None = None) -> tuple[int, list[int]]:
        """Take a batch of ids that are not in the window; return its number, and those of batches that are forgotten.

        A batch that is restored has its `number` already; batches are restored in their order.
        """
        number = self._next if number is None else number
        self._next = number + 1
        self._ids.update(ids)
        self._batches.append((number, ids))
        forgotten = []
        while len(self._ids) - len(self._batches[0][1]) >= self.window:
            old, gone = self._batches.popleft()
            self._ids.difference_update(gone)
            forgotten.append(old)
        return number, forgotten
