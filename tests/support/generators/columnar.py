"""Arrow and Parquet files in memory, also Parquet files whose footers lie about their sizes."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def parquet_bytes(table: Any, **options: Any) -> bytes:
    """A table as a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def arrow_bytes(
    table: Any, compression: str | None = None, new: Callable[..., Any] = pa.ipc.new_stream, rows: int | None = None
) -> bytes:
    """A table as an Arrow stream, or with `new_file` as a file, in batches of at most so many rows."""
    sink = io.BytesIO()
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        if rows is None:
            writer.write(table)
        else:
            writer.write_table(table, rows)
    return sink.getvalue()


def varint(number: int, length: int = 0) -> bytes:
    """A number as Thrift writes it; padded with zeros that change nothing.

    >>> varint(100_000), varint(3, 2)
    (b'\\xc0\\x9a\\x0c', b'\\x86\\x00')
    """
    number, made = number << 1, bytearray()
    while number >= 128:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    while len(made) < length:
        made[-1] |= 128
        made.append(0)
    return bytes(made)


def lying(data: bytes, size: int) -> bytes:
    """The Parquet file with a footer that says `size` bytes for all that is more than 1,000."""
    about = pq.ParquetFile(io.BytesIO(data)).metadata
    start = len(data) - 8 - about.serialized_size
    head, footer = data[:start], data[start:]
    for group in map(about.row_group, range(about.num_row_groups)):
        sizes = {group.total_byte_size, *(group.column(k).total_uncompressed_size for k in range(group.num_columns))}
        for true in sizes:
            if true > 1000:
                footer = footer.replace(varint(true), varint(size, len(varint(true))))
    return head + footer
