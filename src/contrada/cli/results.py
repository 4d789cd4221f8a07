"""Write matches as newline JSON, CSV, Parquet or Arrow."""

from __future__ import annotations

import csv
import io
import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from contrada.errors import FormatError
from contrada.matching import ForwardingTable

By = Literal["subscription", "subscriber"]


class ResultFormat(StrEnum):
    """Formats of matches."""

    ndjson = "ndjson"
    csv = "csv"
    parquet = "parquet"
    arrow = "arrow"


SUFFIXES = {
    ".ndjson": ResultFormat.ndjson, ".jsonl": ResultFormat.ndjson, ".csv": ResultFormat.csv,
    ".parquet": ResultFormat.parquet, ".arrow": ResultFormat.arrow, ".feather": ResultFormat.arrow,
    ".arrows": ResultFormat.arrow,
}  # fmt: skip
BINARY = (ResultFormat.parquet, ResultFormat.arrow)
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # first characters of formulas in spreadsheets


def chosen_format(format: ResultFormat | None, output: Path | None) -> ResultFormat:
    """Return the named format, or that of the output's suffix; newline JSON without a suffix."""
    if format is not None or output is None or not output.suffix:
        return format or ResultFormat.ndjson
    known = SUFFIXES.get(output.suffix.lower())
    if known is None:
        raise FormatError(
            f"--output {output}: the suffix {output.suffix} tells no format; known are {', '.join(SUFFIXES)}, "
            "and --format names one"
        )
    return known


def opened_sink(output: Path | None, format: ResultFormat) -> Any:
    """Open a new file, or return standard output."""
    if output is not None:
        return output.open("wb")
    if sys.stdout is None:
        raise FormatError("there is no standard output")
    if format in BINARY and sys.stdout.isatty():
        raise FormatError(f"{format} is not for terminals: name a file, --output, or a pipe")
    return sys.stdout.buffer


def open_results(
    output: Path | None, format: ResultFormat, table: ForwardingTable, by: By, csv_safe: bool = False
) -> MatchLines | MatchTables:
    """Open a writer of matches to a file or standard output."""
    sink, is_binary = opened_sink(output, format), format in BINARY
    if is_binary:
        return MatchTables(sink, output is not None, table, by, format)
    return MatchLines(sink, output is not None, table, by, format, csv_safe)


class MatchLines:
    """Writes matches as lines; the end of a line is built once per subscription."""

    def __init__(
        self, sink: BinaryIO, is_own: bool, table: ForwardingTable, by: By, format: ResultFormat, csv_safe: bool = False
    ) -> None:
        self._sink, self._is_own, self._table, self._by = sink, is_own, table, by
        self._is_csv, self._is_safe = format is ResultFormat.csv, csv_safe
        self._ends: dict[int, bytes] = {}
        if self._is_csv:
            sink.write(b"message,subscriber,key\n" if by == "subscription" else b"message,subscriber\n")

    def write(self, ids: list[str | int], counts: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """Write matches: message k has `counts[k]` of the rows."""
        self._learn(rows)
        ends = [self._ends[row] for row in rows.tolist()]
        lines: list[bytes] = []
        start = 0
        for id, count in zip(ids, counts.tolist(), strict=True):
            if not count:
                continue
            head = csv_line([id], self._is_safe)[:-1] + b"," if self._is_csv else b'{"message": %b, ' % _json(id)
            lines += [head + end for end in ends[start : start + count]]
            start += count
        self._sink.write(b"".join(lines))
        self._sink.flush()

    def _learn(self, rows: NDArray[np.int64]) -> None:
        """Build the ends of lines for new rows."""
        new = np.array([row for row in np.unique(rows).tolist() if row not in self._ends], np.int64)
        if not len(new):
            return
        columns = {"subscriber": self._table.subscribers_of(new, self._by)}
        if self._by == "subscription":
            columns["key"] = self._table.keys_of(new)
        for row, *names in zip(new.tolist(), *columns.values(), strict=True):
            if self._is_csv:
                self._ends[row] = csv_line(names, self._is_safe)
            else:
                self._ends[row] = _json(dict(zip(columns, names, strict=True)))[1:] + b"\n"

    def close(self) -> None:
        """Finish the file."""
        self._sink.flush()
        if self._is_own:
            self._sink.close()


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


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

    def __init__(self, sink: BinaryIO, is_own: bool, table: ForwardingTable, by: By, format: ResultFormat) -> None:
        import pyarrow as pa

        self._sink, self._is_own, self._table, self._by = sink, is_own, table, by
        everyone = np.arange(len(table))
        fields = [("message", pa.string()), ("subscriber", type_of(table.subscribers_of(everyone, "subscription")))]
        if by == "subscription":
            fields.append(("key", type_of(table.keys_of(everyone))))
        self._schema = pa.schema(fields)
        self._writer = writer_of(sink, self._schema, format)

    def write(self, ids: list[str | int], counts: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """Write matches: message k has `counts[k]` of the rows."""
        import pyarrow as pa

        if not len(rows):
            return
        whose = np.repeat(np.arange(len(ids)), counts)
        columns = {"message": pa.array([str(id) for id in ids], pa.string()).take(whose)}
        names = {"subscriber": self._table.subscribers_of(rows, self._by)}
        if self._by == "subscription":
            names["key"] = self._table.keys_of(rows)
        for name, values in names.items():
            kind = self._schema.field(name).type
            columns[name] = pa.array(values if pa.types.is_integer(kind) else map(str, values), kind)
        self._writer.write_table(pa.table(columns, schema=self._schema))
        self._sink.flush()

    def close(self) -> None:
        """Finish the file, which is unreadable without its end."""
        self._writer.close()
        self._sink.flush()
        if self._is_own:
            self._sink.close()


def writer_of(sink: Any, schema: Any, format: ResultFormat) -> Any:
    """Return a writer of Parquet or Arrow tables."""
    counted = _CountingSink(sink)
    import pyarrow as pa

    if format is ResultFormat.arrow:
        return pa.ipc.new_stream(counted, schema)  # a stream can be read while it is written
    import pyarrow.parquet as pq

    return pq.ParquetWriter(counted, schema)


def type_of(names: list[str | int]) -> Any:
    """Return the Arrow type of names: integers if all of them are, else text."""
    import pyarrow as pa

    fits = all(isinstance(name, int) and -(2**63) <= name < 2**63 for name in names)
    return pa.int64() if fits and names else pa.string()


class _CountingSink(io.RawIOBase):
    """A sink that counts written bytes: Parquet asks for the position, and a pipe has none."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink, self._count = sink, 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._count

    def write(self, data: Any) -> int:
        self._sink.write(data)
        self._count += len(data)
        return len(data)

    def flush(self) -> None:
        if not self._sink.closed:
            self._sink.flush()
