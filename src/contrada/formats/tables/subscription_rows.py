"""Read a file of rows as one table for a template, checked by column: a million rows in seconds.

`row_faults` finds the rows to which a template cannot be bound.
"""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contrada.errors import FormatError, LimitError
from contrada.formats.records import TABLE_FORMATS, OpenFile, Rejected, Source, files_of, opened
from contrada.formats.tables.row_files import row_text, sound_tables
from contrada.formats.tables.rows import attributes_of
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.arrow.checks import bad_texts
from contrada.geometry.arrow.mixed import ValueRows, is_geometry, parts_of
from contrada.geometry.globe import Globe
from contrada.limits import check_limit, limit

Reasons = dict[int, str]  # by row
NAMES = ("key", "subscriber")


class SubscriptionTable(NamedTuple):
    """Rows for `ForwardingTable.subscribe_many` with a template, the origin of each, and the rejected rows.

    If no row was rejected, `read` has the regions and points of geometry columns.
    """

    table: Any
    origins: Sequence[tuple[str, str, int]]
    rejected: list[Rejected]
    read: Mapping[str, list[ValueRows]] = MappingProxyType({})


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


class RowBlock(NamedTuple):
    """Successive rows of a file: columns of a template with `key` and `subscriber`, and all columns as in the file."""

    asked: Any
    rows: Any


def _one_file(source: Source) -> str | os.PathLike[str] | None:
    """Return the one file of a source; None if there are several, or a pipe, which can be read only once."""
    files = files_of(source)
    if len(files) != 1 or not isinstance(files[0], str | os.PathLike) or os.fspath(files[0]) == "-":
        return None
    return files[0] if os.path.isfile(files[0]) else None


def parquet_rows(source: Source, format: str | None) -> int | None:
    """Return the number of rows of one Parquet file, as its footer tells; None for any other source."""
    file = _one_file(source)
    if file is None:
        return None
    with opened(file, format) as ready:
        if ready.format != "parquet":
            return None
        try:
            return int(pa.parquet.read_metadata(ready.stream).num_rows)
        except (pa.ArrowException, OSError, ValueError):
            return None


def row_blocks(
    source: Source, format: str | None, columns: list[str], key: str, subscriber: str, block_rows: int
) -> Iterator[RowBlock]:
    """Yield the rows of one file for a template with these columns, in blocks of about `block_rows` but the last.

    Raises FormatError where `whole_table` raises it or rejects rows that cannot be read.
    """
    names = {"key": key, "subscriber": subscriber}
    wanted = {*columns, *names.values()}
    with opened(files_of(source)[0], format) as ready:
        tables: list[Any] = []
        for item in sound_tables(ready, lambda table: attributes_of(table, wanted)):
            if isinstance(item, Rejected):
                raise FormatError(item.reason)
            for start in range(0, item[1].num_rows, block_rows):
                tables.append(item[2].slice(start, block_rows))
                if sum(table.num_rows for table in tables) >= block_rows:
                    yield _block(ready, tables, columns, names)
                    tables = []
        if tables:
            yield _block(ready, tables, columns, names)


def _block(ready: OpenFile, tables: list[Any], columns: list[str], names: dict[str, str]) -> RowBlock:
    """Return tables as one, and in it the columns of a template; raise FormatError if one is missing."""
    rows = pa.concat_tables(tables)
    for name in columns:
        if name not in rows.column_names:
            shown = ", ".join(rows.column_names)
            raise FormatError(f"{ready.name}: the template needs column {name!r}; columns: {shown}")
    chosen = {name: rows.column(name) for name in columns}
    chosen |= {name: rows.column(own) for name, own in names.items() if own in rows.column_names}
    return RowBlock(pa.table(chosen), rows)


def whole_table(
    source: Source,
    format: str | None,
    columns: list[str],
    patterns: set[str],
    key: str,
    subscriber: str,
    globes: Mapping[str, Globe] = MappingProxyType({}),
) -> SubscriptionTable | None:
    """Read one Parquet or Arrow file for a template with these columns; return None for any other source.

    `globes` says by column how regions and points are wrapped.
    """
    file = source if isinstance(source, io.BytesIO) else _one_file(source)
    if file is None:
        return None
    with opened(file, format) as ready:
        if ready.format not in TABLE_FORMATS:
            return None
        return _sifted_file(ready, columns, patterns, {"key": key, "subscriber": subscriber}, globes)


def _sifted_file(
    ready: OpenFile, columns: list[str], patterns: set[str], names: dict[str, str], globes: Mapping[str, Globe]
) -> SubscriptionTable:
    tables: list[Any] = []
    numbers: list[NDArray[np.int64]] = []
    rejected: list[Rejected] = []
    wanted = {*columns, *names.values()}
    for item in sound_tables(ready, lambda table: attributes_of(table, wanted)):
        if isinstance(item, Rejected):
            rejected.append(item)
        else:
            first, table, attributes = item
            tables.append(attributes)
            numbers.append(np.arange(first, first + table.num_rows))
    if not tables:
        return SubscriptionTable(pa.table({}), [], rejected)
    whole, rows = _block(ready, tables, columns, names)
    places = np.concatenate(numbers)
    read: dict[str, list[ValueRows]] = {}
    reasons = row_faults(whole, {}, patterns, read, globes)
    for row, reason in reasons.items():
        rejected.append(Rejected(ready.name, "row", int(places[row]), reason, row_text(rows, row)))
    kept = rows_without(whole.num_rows, reasons)
    rejected.sort(key=lambda item: item.number)
    origins = _KeptRows(ready.name, places[kept])
    if reasons:
        return SubscriptionTable(whole.take(kept), origins, rejected)
    return SubscriptionTable(whole, origins, rejected, read)


def row_faults(
    table: Any,
    kinds: dict[str, type],
    patterns: Collection[str] = (),
    read: dict[str, list[ValueRows]] | None = None,
    globes: Mapping[str, Globe] = MappingProxyType({}),
) -> Reasons:
    """Return why rows of an Arrow table cannot be subscriptions of a template that uses all columns but `NAMES`.

    A geometry column holds regions or points, as in `kinds`; columns missing from `kinds` are added by their first
    rows. `patterns` names the columns that hold patterns, whose length is limited (`pattern_columns`). The regions and
    points of geometry columns are put into `read`, wrapped as `globes` says by column.

    >>> import pyarrow as pa
    >>> row_faults(pa.table({"key": [7, 7, 8], "least": [3, 4, None]}), {})
    {2: "column 'least': no value", 1: 'duplicate key 7'}
    """
    reasons: Reasons = {}
    for name in table.column_names:
        column = table.column(name)
        if name in NAMES:
            _name_faults(name, column, reasons)
        else:
            parts = _value_faults(name, column, reasons, kinds, globes.get(name))
            if parts is not None and read is not None:
                read[name] = parts
        if name in patterns:
            _pattern_faults(name, column, reasons)
    if "key" in table.column_names:
        _repeated_keys(table.column("key"), reasons)
    return reasons


def rows_without(count: int, bad: Collection[int]) -> NDArray[np.int64]:
    """Return rows 0 to `count` without bad ones.

    >>> rows_without(4, {1: "no key"}).tolist()
    [0, 2, 3]
    """
    is_good = np.ones(count, bool)
    is_good[list(bad)] = False
    return np.flatnonzero(is_good)


def _value_faults(
    name: str, column: Any, reasons: Reasons, kinds: dict[str, type], globe: Globe | None
) -> list[ValueRows] | None:
    """Record rows without a value, with a bad region, or with a point where the first rows have regions.

    Return the regions and points of a geometry column, None for other columns.
    """
    _note(reasons, np.flatnonzero(column.is_null()), f"column {name!r}: no value")
    _note(reasons, bad_texts(column), f"column {name!r}: text is not UTF-8")
    if pa.types.is_floating(column.type):
        is_nan = pa.compute.is_nan(column).fill_null(False)
        _note(reasons, np.flatnonzero(is_nan), f"column {name!r}: NaN cannot be compared")
    if not is_geometry(column):
        return None
    parts, bad = parts_of(column, globe)
    for item in bad:
        reasons.setdefault(item.row, f"column {name!r}: {item.reason}")
    for part in sorted((part for part in parts if len(part.rows)), key=lambda part: int(part.rows[0])):
        if kinds.setdefault(name, type(part.column)) is not type(part.column):
            reason = "regions, points and lines are mixed; all rows must be of the kind of the first"
            _note(reasons, part.rows, f"column {name!r}: {reason}")
    return parts


def _pattern_faults(name: str, column: Any, reasons: Reasons) -> None:
    """Record rows whose pattern exceeds the limit `pattern_bytes`; columns without text are rejected later."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return
    lengths = np.asarray(pa.compute.binary_length(column).fill_null(0))
    for row in np.flatnonzero(lengths > limit("pattern_bytes")).tolist():
        try:
            check_limit("pattern_bytes", int(lengths[row]), "the pattern")
        except LimitError as error:
            reasons.setdefault(row, f"column {name!r}: {error}")


def _name_faults(name: str, column: Any, reasons: Reasons) -> None:
    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)):
        raise FormatError(f"column {name!r}: need text or integers, got {kind}")
    _note(reasons, np.flatnonzero(column.is_null()), f"no {name}")
    _note(reasons, bad_texts(column), f"{name} is not UTF-8")


def _note(reasons: Reasons, rows: ArrayLike, reason: str) -> None:
    for row in np.asarray(rows, np.int64).tolist():
        reasons.setdefault(row, reason)


def _repeated_keys(column: Any, reasons: Reasons) -> None:
    """Record the rows of repeated keys, except the first good row of each key."""
    codes = pa.chunked_array([column]) if isinstance(column, pa.Array) else column
    if pa.types.is_integer(codes.type) and not codes.null_count:
        counted = np.asarray(codes)
        if (counted[1:] > counted[:-1]).all():  # the usual case, without a dictionary
            return
    encoded = codes.combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    if len(encoded.dictionary) == len(encoded):
        return
    numbers = np.asarray(encoded.indices.fill_null(-1))
    is_good = np.ones(len(numbers), bool)
    is_good[list(reasons)] = False
    good = np.flatnonzero(is_good)
    _, first = np.unique(numbers[good], return_index=True)
    for row in np.setdiff1d(good, good[first]).tolist():
        reasons[row] = f"duplicate key {column[row].as_py()!r:.60}"
