"""Write matches as newline JSON, CSV, Parquet or Arrow."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from contrada.errors import FormatError
from contrada.matching.answer import By

Name = str | int
ResultFormat = StrEnum("ResultFormat", ["ndjson", "csv", "parquet", "arrow"])  # formats of matches
SUFFIXES = {
    ".ndjson": ResultFormat.ndjson, ".jsonl": ResultFormat.ndjson, ".csv": ResultFormat.csv,
    ".parquet": ResultFormat.parquet, ".arrow": ResultFormat.arrow, ".feather": ResultFormat.arrow,
    ".arrows": ResultFormat.arrow,
}  # fmt: skip
BINARY = (ResultFormat.parquet, ResultFormat.arrow)
_text = json.encoder.encode_basestring
MIN_JOINED_ROWS = 4096  # rows of which lines are written by columns
LINES_AT_ONCE = 1 << 16  # lines in memory
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # first characters of formulas in spreadsheets


class NamedRows(Protocol):
    """Rows with keys and subscribers, such as a table."""

    def __len__(self) -> int: ...

    def keys_of(self, rows: NDArray[np.int64]) -> list[Name]:
        """Return the keys of rows."""

    def subscribers_of(self, rows: NDArray[np.int64], by: By) -> list[Name]:
        """Return the subscribers for the rows of an answer by `by`."""


def chosen_format(format: ResultFormat | None, output: Path | None) -> ResultFormat:
    """Return the named format, or that of the output's suffix; newline JSON without a suffix."""
    if format is not None or output is None or not output.suffix:
        return format or ResultFormat.ndjson
    known = SUFFIXES.get(output.suffix.lower())
    if known is None:
        raise FormatError(
            f"--output {output}: unknown suffix {output.suffix!r}; suffixes: {', '.join(SUFFIXES)}; or pass --format"
        )
    return known


class ResultFile(io.RawIOBase):
    """A new file, or standard output, which `close` leaves open.

    Counts the bytes: Parquet asks for the position, and a pipe has none.
    """

    def __init__(self, file: BinaryIO, is_own: bool, format: ResultFormat) -> None:
        self._file, self._is_own, self._count, self.format = file, is_own, 0, format

    def writable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._count

    def write(self, data: Any) -> int:
        """Write bytes; return their number."""
        self._file.write(data)
        self._count += len(data)
        return len(data)

    def flush(self) -> None:
        """Pass all bytes on."""
        if not self._file.closed:
            self._file.flush()

    def close(self) -> None:
        """Finish the file."""
        super().close()
        if self._is_own:
            self._file.close()


def open_file(output: Path | None, format: ResultFormat) -> ResultFile:
    """Open a new file, or standard output."""
    if output is not None:
        return ResultFile(output.open("wb"), True, format)
    if sys.stdout is None:
        raise FormatError("standard output is closed")
    if format in BINARY and sys.stdout.isatty():
        raise FormatError(f"{format} cannot be written to a terminal; use --output or a pipe")
    return ResultFile(sys.stdout.buffer, False, format)


def open_results(
    output: Path | None, format: ResultFormat, table: NamedRows, by: By, csv_safe: bool
) -> MatchLines | MatchTables:
    """Open a writer of matches to a file or standard output."""
    file = open_file(output, format)
    return MatchTables(file, table, by) if format in BINARY else MatchLines(file, table, by, csv_safe)


class MatchLines:
    """Writes matches as lines; the end of a line is built once per subscription."""

    def __init__(self, file: ResultFile, table: NamedRows, by: By, csv_safe: bool) -> None:
        self._file, self._table, self._by = file, table, by
        self._is_csv, self._is_safe = file.format is ResultFormat.csv, csv_safe
        self._ends: dict[int, bytes] = {}
        if self._is_csv:
            file.write(b"message,subscriber,key\n" if by == "subscription" else b"message,subscriber\n")

    def write(self, ids: Sequence[str | int], counts: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """Write matches: message k has `counts[k]` of the rows."""
        matched = np.flatnonzero(counts)
        heads = [self._head(ids[row]) for row in matched.tolist()]
        whose = np.repeat(np.arange(len(heads)), counts[matched])
        for start in range(0, len(rows), LINES_AT_ONCE):
            part = slice(start, start + LINES_AT_ONCE)
            self._file.write(self._lines(heads, whose[part], rows[part]))
        self._file.flush()

    def _head(self, id: Name) -> bytes:
        if self._is_csv:
            return csv_line([id], self._is_safe)[:-1] + b","
        return f'{{"message": {_json(id)}, '.encode("utf-8", "replace")

    def _lines(self, heads: list[bytes], whose: NDArray[np.int64], rows: NDArray[np.int64]) -> bytes | memoryview:
        """Return the lines of matches; match k is one of the message with the head `whose[k]`."""
        new = np.array([row for row in np.unique(rows).tolist() if row not in self._ends], np.int64)
        if len(new) >= MIN_JOINED_ROWS and 2 * len(new) > len(rows) and not self._is_csv:
            joined = self._joined(heads, whose, rows)
            if joined is not None:
                return joined
        self._learn(new)
        pairs = zip(whose.tolist(), rows.tolist(), strict=True)
        return b"".join([heads[message] + self._ends[row] for message, row in pairs])

    def _joined(self, heads: list[bytes], whose: NDArray[np.int64], rows: NDArray[np.int64]) -> memoryview | None:
        """Return lines of JSON made by columns, which takes a third of the time if few rows occur twice.

        Return None if names are not all integers, or all text that JSON writes as it is.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        parts: list[Any] = [pa.array(heads, pa.binary()).take(whose)]
        for name, values in names_of(self._table, rows, self._by).items():
            column = _json_column(values)
            if column is None:
                return None
            parts += [f'"{name}": ' if len(parts) == 1 else f', "{name}": ', column]
        lines = pc.binary_join_element_wise(*(_binary(part) for part in (*parts, "}\n", "")))
        first, last = np.frombuffer(lines.buffers()[1], np.int32)[[lines.offset, lines.offset + len(lines)]]
        return memoryview(lines.buffers()[2])[first:last]

    def _learn(self, new: NDArray[np.int64]) -> None:
        """Build the ends of lines for new rows."""
        if not len(new):
            return
        columns = names_of(self._table, new, self._by)
        if self._is_csv:
            ends = (csv_line(list(names), self._is_safe) for names in zip(*columns.values(), strict=True))
        else:
            members = [[f'"{column}": {_json(name)}' for name in names] for column, names in columns.items()]
            ends = (f"{', '.join(parts)}}}\n".encode("utf-8", "replace") for parts in zip(*members, strict=True))
        self._ends.update(zip(new.tolist(), ends, strict=True))

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


def _json(name: Name) -> str:
    """Return a name as JSON; an encoder of any object takes several times as long."""
    return _text(name) if isinstance(name, str) else int.__repr__(name)


def _json_column(names: list[Name]) -> Any | None:
    """Return names as JSON in an Arrow array; None unless all are integers, or text without characters to escape."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        column = pa.array(names)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return None
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    if not pa.types.is_string(column.type) or pc.any(pc.match_substring_regex(column, r'["\\\x00-\x1f]')).as_py():
        return None
    return pc.binary_join_element_wise('"', column, '"', "")


def _binary(part: Any) -> Any:
    """Return text, or an Arrow array of text, as bytes."""
    return part.encode() if isinstance(part, str) else part.cast("binary")


def csv_line(values: list[Any], is_safe: bool = False) -> bytes:
    """Return a line of CSV; if `is_safe`, text that a spreadsheet would run as a formula gets an apostrophe.

    >>> csv_line(["=1+1", -5], is_safe=True)
    b"'=1+1,-5\\n"
    """
    line = io.StringIO()
    if is_safe:
        values = [
            f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value for value in values
        ]
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue().encode("utf-8", "replace")


class MatchTables:
    """Writes matches as rows of Parquet or Arrow. Message ids are text; keys are integers if all of them are."""

    def __init__(self, file: ResultFile, table: NamedRows, by: By) -> None:
        import pyarrow as pa

        self._file, self._table, self._by = file, table, by
        everyone = np.arange(len(table))
        fields = [("message", pa.string()), ("subscriber", type_of(table.subscribers_of(everyone, "subscription")))]
        if by == "subscription":
            fields.append(("key", type_of(table.keys_of(everyone))))
        self._schema = pa.schema(fields)
        self._writer = writer_of(file, self._schema)

    def write(self, ids: Sequence[str | int], counts: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """Write matches: message k has `counts[k]` of the rows."""
        import pyarrow as pa

        if not len(rows):
            return
        matched = np.flatnonzero(counts)
        whose = np.repeat(np.arange(len(matched)), counts[matched])
        columns = {"message": pa.array([str(ids[row]) for row in matched.tolist()], pa.string()).take(whose)}
        for name, values in names_of(self._table, rows, self._by).items():
            columns[name] = name_column(values, self._schema.field(name).type)
        self._writer.write_table(pa.table(columns, schema=self._schema))
        self._file.flush()

    def close(self) -> None:
        """Finish the file, which is unreadable without its end."""
        self._writer.close()
        self._file.close()


def writer_of(file: ResultFile, schema: Any) -> Any:
    """Return a writer of Parquet or Arrow tables."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # A stream of Arrow can be read while it is written.
    return pa.ipc.new_stream(file, schema) if file.format is ResultFormat.arrow else pq.ParquetWriter(file, schema)


def names_of(table: NamedRows, rows: NDArray[np.int64], by: By) -> dict[str, list[Name]]:
    """Return the subscribers of matched rows and, by subscription, their keys."""
    names = {"subscriber": table.subscribers_of(rows, by)}
    if by == "subscription":
        names["key"] = table.keys_of(rows)
    return names


def name_column(names: Sequence[Name | None], kind: Any = None) -> Any:
    """Return names as an Arrow array of type `kind`, by default of `type_of` them."""
    import pyarrow as pa

    kind = type_of(names) if kind is None else kind
    is_text = pa.types.is_string(kind)
    return pa.array([str(name) if is_text and name is not None else name for name in names], kind)


def type_of(names: Sequence[Name | None]) -> Any:
    """Return the Arrow type of names: integers if all of them are, else text."""
    import pyarrow as pa

    there = [name for name in names if name is not None]
    numbers = [name for name in there if isinstance(name, int)]
    if not numbers or len(numbers) < len(there):
        return pa.string()
    return pa.int64() if min(numbers) >= -(2**63) and max(numbers) < 2**63 else pa.string()
