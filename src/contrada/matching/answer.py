"""Answers: read-only set-like views over arrays of rows, and the answer to a batch."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import Rejection
from contrada.matching.names import Name, Names


class Matches(Set[Name]):
    """The subscribers, or the keys of the subscriptions, that a message goes to.

    Set-like and read-only: `in`, `len`, iteration, comparison and set operations work; no name is made before someone
    asks for it. `rows` are their rows in the table, sorted; they stay right whatever happens to the table.
    """

    __slots__ = ("_names", "rows")

    def __init__(self, rows: NDArray[np.int64], names: Names) -> None:
        self.rows = rows
        self._names = names
        rows.setflags(write=False)

    def __contains__(self, name: object) -> bool:
        row = self._names.row(name)
        if row is None:
            return False
        at = int(np.searchsorted(self.rows, row))
        return at < len(self.rows) and int(self.rows[at]) == row

    def __iter__(self) -> Iterator[Name]:
        return (self._names[int(row)] for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def _from_iterable(cls, names: object) -> set[Name]:  # type: ignore[override]
        return set(names)  # type: ignore[call-overload, no-any-return]

    def __repr__(self) -> str:
        shown = ", ".join(repr(name) for name, _ in zip(self, range(6), strict=False))
        return f"{{{shown}{', ...' if len(self) > 6 else ''}}}"


class ManyMatches(NamedTuple):
    """The answers to a batch: message i goes to rows[offsets[i]:offsets[i + 1]], sorted; rejected messages to none."""

    offsets: NDArray[np.int64]
    rows: NDArray[np.int64]
    rejected: tuple[Rejection, ...]
