"""Names and their rows: keys of subscriptions, names of subscribers. Rows only ever grow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Name = str | int


class Names:
    """An append-only list of names (str or int) with look-up both ways; of equal ones the latest is found.

    Names that come in Arrow columns stay there; their look-up table, sorted hashes, is made when first asked.

    >>> names = Names()
    >>> names.append("a"), names.append(7), names.row(7), names[0]
    (0, 1, 1, 'a')
    """

    def __init__(self) -> None:
        self._count = 0
        self._starts: list[int] = []
        self._segments: list[Any] = []  # Python lists and Arrow arrays
        self._rows: dict[Name, int] = {}  # of the names in lists
        self._hashed: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def __len__(self) -> int:
        return self._count

    def append(self, name: Name) -> int:
        """Add a name; returns its row."""
        row = self._count
        if not self._segments or not isinstance(self._segments[-1], list):
            self._starts.append(row)
            self._segments.append([])
        self._segments[-1].append(name)
        self._rows[name] = row
        self._count += 1
        return row

    def extend(self, names: Any) -> int:
        """Add an Arrow array of distinct names; returns the first row."""
        row = self._count
        self._starts.append(row)
        self._segments.append(names)
        self._count += len(names)
        return row

    def __getitem__(self, row: int) -> Name:
        segment = int(np.searchsorted(self._starts, row, side="right")) - 1
        value = self._segments[segment][row - self._starts[segment]]
        name: Name = value if isinstance(value, (str, int)) else value.as_py()
        return name

    def chosen(self, rows: NDArray[np.int64]) -> Any:
        """The names of chosen rows: an Arrow array where all of them came in one, else a list."""
        if len(self._segments) == 1 and not isinstance(self._segments[0], list):
            whole = len(rows) == self._count and np.array_equal(rows, np.arange(self._count))
            return self._segments[0] if whole else self._segments[0].take(rows)
        return [self[int(row)] for row in rows]

    def row(self, name: object) -> int | None:
        """The row of a name, None if it is not there."""
        if not isinstance(name, (str, int)) or isinstance(name, bool):
            return None
        listed = self._rows.get(name)
        for k in range(len(self._segments) - 1, -1, -1):  # a name that was given up and taken again: the latest counts
            if listed is not None and self._starts[k] <= listed:
                return listed
            if not isinstance(self._segments[k], list):
                found = self._row_in(k, name)
                if found is not None:
                    return found
        return None

    def _row_in(self, k: int, name: Name) -> int | None:
        """The row of a name in Arrow segment k."""
        if k not in self._hashed:
            hashes = np.fromiter(map(hash, self._segments[k].to_pylist()), np.int64, len(self._segments[k]))
            order = np.argsort(hashes, kind="stable")
            self._hashed[k] = hashes[order], order
        hashes, order = self._hashed[k]
        at = int(np.searchsorted(hashes, hash(name)))
        while at < len(hashes) and hashes[at] == hash(name):
            if self._segments[k][int(order[at])].as_py() == name:
                return self._starts[k] + int(order[at])
            at += 1
        return None
