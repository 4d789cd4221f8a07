"""Seen: the ids of the latest messages, so that none is delivered or forwarded twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

DEFAULT_WINDOW = 100_000


class Seen:
    """A window of the latest ids, the oldest forgotten first.

    >>> seen = Seen(window=2)
    >>> seen.add(["a", "b", "c"])
    ['a']
    >>> seen.fresh(["a", "b", "d", "d"])
    [0, 2]
    """

    def __init__(self, window: int = DEFAULT_WINDOW) -> None:
        self.window = window
        self.count = 0  # ids taken so far
        self._ids: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def fresh(self, ids: Sequence[str]) -> list[int]:
        """Return the places of ids that are not in the window; of equal ids the first."""
        known = self._ids
        places = [place for place, id in enumerate(ids) if id not in known]
        if len(places) == len(ids) == len(set(ids)):
            return places
        first: dict[str, int] = {}
        for place in places:
            first.setdefault(ids[place], place)
        return list(first.values())

    def add(self, ids: Sequence[str]) -> list[str]:
        """Take ids that are not in the window; return those that it forgets for them."""
        self.count += len(ids)
        self._ids.update(dict.fromkeys(ids))
        over = len(self._ids) - self.window
        if over <= 0:
            return []
        oldest = iter(self._ids)
        forgotten = [next(oldest) for _ in range(over)]
        for id in forgotten:
            del self._ids[id]
        return forgotten
