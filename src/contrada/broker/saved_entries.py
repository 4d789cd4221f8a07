"""Saved entries: the table of a broker on disk, so that a restart need not build it from records.

A number stands for one predicate for ever, so a saved table stays right for every number that the records still have;
what came or went after it was saved is known by comparing numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import msgspec
import numpy as np

from contrada.broker.entries import Entries, EntryColumns
from contrada.errors import TableError
from contrada.matching.names import Name

TABLE, COLUMNS = "table", "entries.npz"
_ARRAYS = ("table_keys", "numbers", "digests", "theirs", "interfaces")


class SavedEntries:
    """The subscriptions of a broker as they were when it was saved, and the names of its interfaces."""

    def __init__(self, directory: Path, columns: EntryColumns, interfaces: Sequence[str]) -> None:
        self._directory, self._columns, self._interfaces = directory, columns, interfaces

    @classmethod
    def open(cls, directory: Path) -> SavedEntries:
        """Open what `write` has written; anything that is not whole is a TableError."""
        try:
            with (directory / COLUMNS).open("rb") as file, np.load(file) as found:
                arrays = {name: found[name] for name in _ARRAYS}
                names = found["names"].tobytes()
            keys, interfaces = msgspec.msgpack.decode(names, type=tuple[list[Name | None], list[str]])
        except (OSError, ValueError, KeyError, EOFError, BadZipFile, msgspec.MsgspecError) as error:
            raise TableError(f"{directory}: {error}") from error
        if {len(array) for array in arrays.values()} != {len(keys)} or (np.diff(arrays["numbers"]) <= 0).any():
            raise TableError(f"{directory}: columns that do not fit together")
        return cls(directory, EntryColumns(**arrays, keys=keys), interfaces)

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of the subscriptions."""
        return frozenset(self._columns.numbers.tolist())

    def entries(self, places: Mapping[str, int]) -> Entries:
        """Return the entries; `places` are the interfaces that names have now."""
        places_now = np.array([places[name] for name in self._interfaces], np.int32)
        columns = self._columns._replace(interfaces=places_now[self._columns.interfaces])
        return Entries.opened(self._directory / TABLE, columns)

    @property
    def names(self) -> Sequence[str]:
        """The names of the interfaces that have subscriptions."""
        used: Any = np.unique(self._columns.interfaces)
        return [self._interfaces[place] for place in used.tolist()]


def write_columns(directory: Path, entries: Entries, interfaces: Sequence[str]) -> None:
    """Write what is known of the table that was saved in a directory."""
    columns = entries.columns_of(directory / TABLE)
    names = np.frombuffer(msgspec.msgpack.encode((columns.keys, list(interfaces))), np.uint8)
    np.savez(directory / COLUMNS, names=names, **{name: getattr(columns, name) for name in _ARRAYS})
