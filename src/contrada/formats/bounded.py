"""Read batches of rows whose decoded values fit in memory, even from a small file that expands to gigabytes.

A Parquet file of 1 MB can hold gigabytes: pages are compressed, and a long value is stored once in a dictionary that
a million rows refer to. Page sizes are checked against the limit `expansion` before anything is decompressed. Values
with a dictionary are read as dictionary arrays, and decoded a few rows at a time. Values with shared prefixes, and
long ones of fixed length, are read a few rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.errors import FormatError
from contrada.formats.parquet.pages import ColumnPages, column_pages, row_groups
from contrada.geometry.arrays import offsets_of
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.arrow.checks import check_column
from contrada.limits import check_limit

BATCH_BYTES = 1 << 26  # decoded size of one batch
BUFFER_BYTES = 1 << 20  # of a column that are read at once; without a limit a whole row group is
MIN_CHECKED_BYTES = 1 << 26  # any file may expand to this size
MAX_GROUPS = 256  # row groups whose dictionaries are looked at
MIN_ROW_BYTES = 256  # minimum size of a row in Python, even of nulls; bounds the number of rows of a small file


def check_expansion(name: str, expanded: int, size: int) -> None:
    """Raise LimitError if `size` bytes of a file expand to more than `expansion` times as many.

    >>> check_expansion("a.gz", 10**9, 10**6)
    Traceback (most recent call last):
    contrada.errors.LimitError: a.gz has 1,000 bytes out of each compressed byte; ...
    """
    if expanded > MIN_CHECKED_BYTES:
        check_limit("expansion", expanded // max(size, 1), name)


class Parquet(NamedTuple):
    """A Parquet file read in batches of `most` rows, joined from reads of `rows`, fewer if values may be long."""

    file: Any
    rows: int
    most: int

    def batches(self, **options: Any) -> Iterator[Any]:
        """Yield record batches as `ParquetFile.iter_batches` does, joined if few rows are read at once."""
        kept: list[Any] = []
        for batch in self.file.iter_batches(self.rows, **options):
            kept.append(batch)
            if sum(each.num_rows for each in kept) >= self.most or sum(each.nbytes for each in kept) >= BATCH_BYTES:
                yield _joined(kept)
                kept = []
        if kept:
            yield _joined(kept)


def open_parquet(source: Any, most: int, size: int, span: tuple[int, int] | None = None) -> Parquet:
    """Open a path or stream of `size` bytes for batches of `most` rows, all rows or those of `span` (first, stop).

    Text and bytes with a dictionary are read as dictionary arrays if a batch of them could be too large. All sizes are
    those that the pages declare, since the footer may be wrong.
    """
    is_path = not hasattr(source, "seek")
    file = pa.parquet.ParquetFile(source, memory_map=is_path, buffer_size=BUFFER_BYTES)
    with open(source, "rb") if is_path else nullcontext(source) as stream:
        walked = _walk(stream, file.schema, size, span)
    extensions = {field.name for field in file.schema_arrow if isinstance(field.type, pa.BaseExtensionType)}
    texts = [(leaf, pages) for leaf, pages in walked if leaf.physical_type == "BYTE_ARRAY"]
    heavy = {leaf.path for leaf, pages in texts if most * pages.dictionary > BATCH_BYTES} - extensions
    if span is None:
        heavy -= {
            path for path in heavy if _are_short(source, path, [p for leaf, p in texts if leaf.path == path], most)
        }
    longest = [_fixed_length(leaf) for leaf, _ in walked] + [pages.prefixed for _, pages in walked]
    longest += [pages.dictionary for leaf, pages in texts if leaf.path in extensions]
    rows = min(most, max(1, BATCH_BYTES // max(1, 1, *longest)))
    if heavy:
        if not is_path:
            source.seek(0)
        options = {"metadata": file.metadata, "read_dictionary": sorted(heavy), "buffer_size": BUFFER_BYTES}
        file = pa.parquet.ParquetFile(source, memory_map=is_path, **options)
    return Parquet(file, rows, most)


def _are_short(source: Any, path: str, groups: list[ColumnPages], most: int) -> bool:
    """Return True if `most` of the longest values in a column's dictionaries, of one row group each, fit in a batch.

    A read of one row gets the dictionary of its row group. It is complete if its bytes, with 4 for the length of each
    value, are those of the dictionary page; else the column may hold longer values.
    """
    if len(groups) > MAX_GROUPS:
        return False
    try:
        file = pa.parquet.ParquetFile(source, memory_map=not hasattr(source, "seek"), read_dictionary=[path])
        for number, pages in enumerate(groups):
            if not pages.dictionary:
                continue
            values = next(file.iter_batches(1, [number], [path], use_threads=False)).column(0).dictionary
            lengths = np.asarray(pa.compute.binary_length(values))
            if int(lengths.sum()) + 4 * len(lengths) != pages.dictionary or most * int(lengths.max()) > BATCH_BYTES:
                return False
    except (OSError, ValueError, AttributeError, StopIteration, pa.ArrowException):
        return False  # nested or damaged: the reading itself tells
    return True


def _walk(stream: BinaryIO, schema: Any, size: int, span: tuple[int, int] | None) -> list[tuple[Any, ColumnPages]]:
    """Return the columns of row groups, as in the schema, and their pages.

    Raises LimitError if all pages together exceed the limit `expansion`.
    """
    leaves = [schema.column(k) for k in range(len(schema))]
    groups = list(row_groups(stream, size, span))
    chunks = [chunk for group in groups for chunk in group.chunks[: len(leaves)]]
    packed = sum(chunk.bytes for chunk in chunks)
    if packed > 2 * size + MIN_CHECKED_BYTES // 64:  # columns that share their pages could take hours
        raise FormatError(f"the Parquet footer is damaged: columns of {packed:,} bytes in a file of {size:,} bytes")
    expansion = Expansion("the Parquet file", size)
    expansion.add(sum(MIN_ROW_BYTES * group.rows for group in groups))
    expansion.add(sum(chunk.values * _fixed_length(leaves[chunk.place]) for chunk in chunks))
    return [(leaves[chunk.place], column_pages(stream, chunk, expansion.add)) for chunk in chunks]


def _fixed_length(leaf: Any) -> int:
    """Return the fixed length of a column's values, else 0; fixed-length columns are never read as dictionaries."""
    return int(leaf.length) if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" else 0


def _joined(batches: list[Any]) -> Any:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


class Expansion:
    """Sums the decoded size of a file of `size` bytes; exceeding the limit `expansion` is a LimitError."""

    def __init__(self, name: str, size: int) -> None:
        self._name, self._size, self._sum = name, size, 0

    def slices(self, batch: Any) -> Iterator[Any]:
        """Yield a batch in slices of at most `BATCH_BYTES`, or of single rows; dictionaries are decoded.

        A batch with a damaged column is yielded as it is, for the caller to reject: decoding would read foreign memory.

        >>> import pyarrow as pa
        >>> long = pa.DictionaryArray.from_arrays(pa.array([0] * 10), ["x" * 20_000_000])
        >>> [part.num_rows for part in Expansion("a", 10**8).slices(pa.record_batch({"a": long}))]
        [3, 3, 3, 1]
        """
        growing = [column for column in batch.columns if _may_grow(column.type)]
        if not growing or not all(map(_is_sound, growing)):
            self.add(batch.nbytes + MIN_ROW_BYTES * batch.num_rows)
            yield batch
            return
        least = np.full(batch.num_rows, MIN_ROW_BYTES, np.int64)
        ends = np.cumsum(sum((_row_bytes(column) for column in batch.columns), least))
        start = 0
        while start < batch.num_rows:
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + BATCH_BYTES, "right")))
            check_limit("record_bytes", int(ends[start]) - before, f"{self._name}, row {start} of a batch,")
            self.add(int(ends[stop - 1]) - before)
            yield _decoded(batch.slice(start, stop - start))
            start = stop

    def add(self, count: int) -> None:
        """Add the size of decoded values."""
        self._sum += count
        check_expansion(self._name, self._sum, self._size)


def _is_sound(column: Any) -> bool:
    try:
        check_column(column, "the column")
    except FormatError:
        return False
    return True


def _decoded(batch: Any) -> Any:
    """Return the batch without dictionaries, including those within structs and lists."""
    fields = [field.with_type(_plain(field.type)) for field in batch.schema]
    columns = []
    for column, field in zip(batch.columns, fields, strict=True):
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, metadata=batch.schema.metadata))


def _plain(kind: Any) -> Any:
    """Return a type without dictionaries."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        list_of = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return list_of(kind.value_field.with_type(_plain(kind.value_type)))
    return kind


def _may_grow(kind: Any) -> bool:
    """Return True for types that store a value once for several rows, and for types that contain such types."""
    t = pa.types
    tests = (t.is_dictionary, t.is_run_end_encoded, t.is_fixed_size_binary, t.is_list_view, t.is_large_list_view)
    return any(test(kind) for test in tests) or any(_may_grow(kind.field(k).type) for k in range(kind.num_fields))


def _row_bytes(column: Any) -> NDArray[np.int64]:
    """Return the decoded size in bytes of each row of a column."""
    if isinstance(column, pa.ChunkedArray):
        return np.concatenate([*(_row_bytes(chunk) for chunk in column.chunks), np.empty(0, np.int64)])
    if isinstance(column, pa.ExtensionArray):
        return _row_bytes(column.storage)
    kind = column.type
    if pa.types.is_dictionary(kind):
        known = np.append(_row_bytes(column.dictionary), 0)
        return np.asarray(known[np.asarray(column.indices.fill_null(len(known) - 1).cast(pa.int64()))])
    if pa.types.is_run_end_encoded(kind):
        first, stop = column.offset, column.offset + len(column)
        ends = np.clip(np.asarray(column.run_ends).astype(np.int64), first, stop)
        return np.repeat(_row_bytes(column.values), np.diff(ends, prepend=first))
    if pa.types.is_struct(kind):
        return np.asarray(sum((_row_bytes(part) for part in column.flatten()), np.zeros(len(column), np.int64)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        items = column.items if pa.types.is_map(kind) else column.values
        below = offsets_of(_row_bytes(items))
        offsets = np.asarray(column.offsets).astype(np.int64)
        return np.asarray(below[offsets[1:]] - below[offsets[:-1]])
    if kind in (pa.binary(), pa.string(), pa.large_binary(), pa.large_string()):
        return np.asarray(pa.compute.binary_length(column).fill_null(0)).astype(np.int64)
    width = kind.byte_width if pa.types.is_fixed_size_binary(kind) else 8
    return np.full(len(column), width, np.int64)
