"""The children of a node as arrays, to find quickly which children a message goes to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from contrada import kernels
from contrada.overlay.boxes import rows_of
from contrada.overlay.protocol import PeerId, Table


class Children:
    """The children of a node, and the boxes by which messages reach them: their sketches, else their own box.

    >>> from contrada.overlay.protocol import ChildEntry
    >>> sketched = ChildEntry((1.0, 9.0), (1.0, 3.0), ((1.0, 3.0), (8.0, 9.0)))
    >>> table = {"a": ChildEntry((0.0, 2.0), (0.0, 2.0)), "b": sketched}
    >>> Children(table).met_by(np.array([2.0, 2.0])), Children(table).met_by(np.array([5.0, 5.0]))
    (['a', 'b'], [])
    """

    __slots__ = ("_entries", "_found", "_names", "_owners", "_rows")

    def __init__(self, table: Table) -> None:
        self._names = list(table)
        self._entries = list(table.values())
        parts = [entry.parts or (entry.box,) for entry in self._entries]
        # A corrupted table may have lost all its children.
        self._rows = rows_of([box for boxes in parts for box in boxes]) if parts else np.empty((0, 0))
        self._owners = np.repeat(np.arange(len(parts)), [len(boxes) for boxes in parts])
        self._found = np.empty(len(parts), np.int64)

    def is_of(self, table: Table) -> bool:
        """Return True if `table` has the same children and entries; entries are never changed in place."""
        return list(table.values()) == self._entries and list(table) == self._names

    def met_by(self, where: npt.NDArray[np.float64]) -> list[PeerId]:
        """Return the children that a message with box `where` goes to, in the order of the table."""
        count = kernels.met_owners(self._rows, self._owners, where, self._found)
        return [self._names[k] for k in self._found[:count].tolist()] if count else []
