"""Entries: all subscriptions of a broker in one ForwardingTable, with what the broker knows of each beside it."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.errors import TableError
from contrada.matching.answer import ManyMatches
from contrada.matching.names import Name
from contrada.matching.store.storage import saved_names
from contrada.matching.table import ForwardingTable
from contrada.model import Predicate

# Fewer are matched by one thread: to cut them into slices for several costs more than these win. 512 polygons against
# 100,000 took 2.6 ms by one thread and 3.7 ms by two; the cores are also wanted by whoever runs the broker.
FEW_MESSAGES = 1_000


class Entry(NamedTuple):
    """What a broker knows of a subscription.

    `number` is its id on the links to others; `theirs` its id at the neighbour that it came from, -1 for a client's.
    """

    number: int
    digest: int
    theirs: int
    interface: int


class EntryColumns(NamedTuple):
    """What a broker knows of the subscriptions of a saved table, by row; keys are None for those of neighbours."""

    table_keys: NDArray[np.int64]
    numbers: NDArray[np.int64]
    digests: NDArray[np.int64]
    theirs: NDArray[np.int64]
    interfaces: NDArray[np.int32]
    keys: list[Name | None]


class Entries:
    """Subscriptions by row of the table, in the order in which they arrived; numbers grow with rows."""

    def __init__(self) -> None:
        self._table = ForwardingTable()
        # By row. While one of them is shared with NumPy it cannot grow.
        self._numbers, self._digests, self._theirs = array("q"), array("q"), array("q")
        self._interfaces = array("i")
        self._table_keys = array("q")  # they rise; those of an opened table are not its rows
        self.keys: list[Any] = []  # of clients' subscriptions, None for those of neighbours

    def __len__(self) -> int:
        return len(self._table)

    def add(self, entry: Entry, predicate: Predicate, key: Name | None = None) -> int:
        """Add a subscription, with the key if a client gave one, and return its row.

        An error of the table changes nothing.
        """
        table_key = self._table.subscribe(entry.interface, predicate)
        self._table_keys.append(int(table_key))
        self._numbers.append(entry.number)
        self._digests.append(entry.digest)
        self._theirs.append(entry.theirs)
        self._interfaces.append(entry.interface)
        self.keys.append(key)
        return len(self._numbers) - 1

    def remove(self, row: int) -> None:
        """Remove a subscription."""
        self._table.unsubscribe(self._table_keys[row])
        self.keys[row] = None

    def __getitem__(self, row: int) -> Entry:
        return Entry(self._numbers[row], self._digests[row], self._theirs[row], self._interfaces[row])

    def rename(self, row: int, theirs: int) -> None:
        """Give a neighbour's subscription another id of the neighbour."""
        self._theirs[row] = theirs

    def row_of(self, number: int) -> int | None:
        """Return the row of a live subscription; None if there is none."""
        row = bisect_left(self._numbers, number)
        is_found = row < len(self._numbers) and self._numbers[row] == number and self._table_keys[row] in self._table
        return row if is_found else None

    def interfaces_of(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the interface of each subscription in `rows`."""
        return np.frombuffer(self._interfaces, np.int32)[rows]

    def match(self, messages: pa.Table) -> ManyMatches:
        """Match messages in columns; the answer is by subscription."""
        threads = 1 if messages.num_rows < FEW_MESSAGES else None
        return self._table.match_many(messages, by="subscription", threads=threads)

    def match_one(self, message: Mapping[str, Any]) -> NDArray[np.int64]:
        """Return the rows of the subscriptions that a message satisfies, by rising row."""
        return self._table.match(message, by="subscription").rows

    def pack(self) -> None:
        """Pack the table now; it also packs itself, step by step, while subscriptions arrive."""
        self._table.pack()

    def predicates(self) -> list[tuple[Entry, Predicate]]:
        """Return all live subscriptions with their predicates, oldest first."""
        return [
            (self[bisect_left(self._table_keys, int(key))], predicate) for key, predicate in self._table.predicates()
        ]

    # --- saved tables ---

    def save_table(self, directory: Path) -> None:
        """Save the table; unlike the other methods this one may be called while another thread makes changes."""
        self._table.save(directory)

    def columns_of(self, directory: Path) -> EntryColumns:
        """Return what is known of the rows of a table that was saved before."""
        table_keys = np.asarray(saved_names(directory).keys, np.int64)
        rows = np.searchsorted(np.array(self._table_keys, np.int64), table_keys)
        columns = (self._numbers, self._digests, self._theirs, self._interfaces)
        numbers, digests, theirs, interfaces = (np.array(column)[rows] for column in columns)
        keys = [self.keys[row] for row in rows.tolist()]
        return EntryColumns(table_keys, numbers, digests, theirs, interfaces, keys)

    @classmethod
    def opened(cls, directory: Path, columns: EntryColumns) -> Entries:
        """Return the entries of a saved table; damaged files are a TableError."""
        entries = cls()
        entries._table = ForwardingTable.open(directory)
        if len(entries._table) != len(columns.numbers):
            raise TableError(f"{directory}: {len(entries._table):,} subscriptions, not {len(columns.numbers):,}")
        entries._table_keys, entries._numbers = array("q", columns.table_keys), array("q", columns.numbers)
        entries._digests, entries._theirs = array("q", columns.digests), array("q", columns.theirs)
        entries._interfaces = array("i", columns.interfaces)
        entries.keys = list(columns.keys)
        return entries
