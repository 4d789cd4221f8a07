"""Read a file of rows as one table for a template, checked by column: a million rows in seconds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.errors import ContradaError, FormatError
from contrada.formats.records import TABLE_FORMATS, OpenFile, Rejected, Source, files_of, opened
from contrada.formats.tables.row_faults import row_faults
from contrada.formats.tables.row_files import read_batches, row_text
from contrada.formats.tables.rows import attributes_of
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.arrow.checks import unreadable_reason


class SubscriptionTable(NamedTuple):
    """Rows for `ForwardingTable.subscribe_many` with a template, the origin of each, and the rejected rows."""

    table: Any
    origins: Sequence[tuple[str, str, int]]
    rejected: list[Rejected]


class _KeptRows(Sequence[tuple[str, str, int]]):
    """The origins of the kept rows of one file, made on demand since there may be millions."""

    def __init__(self, name: str, rows: NDArray[np.int64]) -> None:
        self._name, self._rows = name, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return [self[row] for row in range(*k.indices(len(self)))]
        return self._name, "row", int(self._rows[k])


def whole_table(
    source: Source, format: str | None, columns: list[str], patterns: set[str], key: str, subscriber: str
) -> SubscriptionTable | None:
    """Read one Parquet or Arrow file for a template with these columns; return None for any other source."""
    files = files_of(source)
    if len(files) != 1 or not isinstance(files[0], str | os.PathLike) or not os.path.isfile(files[0]):
        return None  # a source that is no file, such as a pipe, can be read only once
    with opened(files[0], format) as ready:
        if ready.format not in TABLE_FORMATS:
            return None
        return _sifted_file(ready, columns, patterns, {"key": key, "subscriber": subscriber})


def _sifted_file(ready: OpenFile, columns: list[str], patterns: set[str], names: dict[str, str]) -> SubscriptionTable:

    tables, numbers, rejected = _read_tables(ready, {*columns, *names.values()})
    if not tables:
        return SubscriptionTable(pa.table({}), [], rejected)
    table = pa.concat_tables(tables)
    chosen = {name: _found(table, name, ready.name) for name in columns}
    chosen |= {name: table.column(own) for name, own in names.items() if own in table.column_names}
    whole = pa.table(chosen)
    places = np.concatenate(numbers)
    reasons = row_faults(whole, {}, patterns)
    rejected += [
        Rejected(ready.name, "row", int(places[row]), reason, row_text(table, row)) for row, reason in reasons.items()
    ]
    kept = np.setdiff1d(np.arange(whole.num_rows), np.array(list(reasons), np.int64))
    rejected.sort(key=lambda item: item.number)
    return SubscriptionTable(whole.take(kept) if reasons else whole, _KeptRows(ready.name, places[kept]), rejected)


def _read_tables(ready: OpenFile, wanted: set[str]) -> tuple[list[Any], list[NDArray[np.int64]], list[Rejected]]:
    """Read the wanted columns of a file's tables; only the rows of damaged tables are rejected.

    Returns the sound tables, the numbers of their rows, and the rejected rows.
    """
    tables: list[Any] = []
    numbers: list[NDArray[np.int64]] = []
    rejected: list[Rejected] = []
    first = 0
    try:
        for table in read_batches(ready.stream, ready.format):
            try:
                tables.append(attributes_of(table, wanted))
                numbers.append(np.arange(first, first + table.num_rows))
            except FormatError as error:
                rows = range(first, first + table.num_rows)
                rejected.extend(Rejected(ready.name, "row", row, str(error), "") for row in rows)
            first += table.num_rows
    except ContradaError as error:
        rejected.append(Rejected(ready.name, "row", first, unreadable_reason(error), ""))
    return tables, numbers, rejected


def _found(table: Any, name: str, source: str) -> Any:
    if name not in table.column_names:
        raise FormatError(f"{source}: the template needs column {name!r}; columns: {', '.join(table.column_names)}")
    return table.column(name)
