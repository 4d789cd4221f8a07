"""Parquet, GeoParquet and Arrow files (Feather, IPC streams), batch by batch."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO

import msgspec

from contrada.doors import input_errors, reason_of
from contrada.errors import FormatError
from contrada.language.bounded import Expansion, open_parquet
from contrada.language.records import Opened, Read, Rejected
from contrada.language.rows import attributes_of, rows_of
from contrada.language.spatial import Spatial
from contrada.language.times import instant_of

BATCH = 8192  # rows


def read_batches(stream: BinaryIO, format: str) -> Iterator[Any]:
    """The tables of a file, one after another, with the metadata of its schema; each fits in memory when decoded."""
    import pyarrow as pa

    seekable = _seekable(stream)
    size = seekable.seek(0, io.SEEK_END)
    seekable.seek(0)
    expansion = Expansion("the file", size)
    if format == "parquet":
        file = open_parquet(seekable, BATCH, size)
        for batch in file.iter_batches(BATCH):
            for part in expansion.slices(batch):
                yield pa.Table.from_batches([part]).replace_schema_metadata(file.schema_arrow.metadata)
        return
    is_file = seekable.read(6) == b"ARROW1"
    seekable.seek(0)
    reader = pa.ipc.open_file(seekable) if is_file else pa.ipc.open_stream(seekable)
    batches = (reader.get_batch(k) for k in range(reader.num_record_batches)) if is_file else reader
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH):
            for part in expansion.slices(batch.slice(start, BATCH)):
                yield pa.Table.from_batches([part])


def _seekable(stream: BinaryIO) -> BinaryIO:
    """The stream, or in memory what it holds: these formats are read from their end."""
    return stream if stream.seekable() else io.BytesIO(stream.read())


def read_rows(ready: Opened, spatial: Spatial, times: Collection[str] = ()) -> Iterator[Read | Rejected]:
    """The messages of a file of rows; what is damaged is rejected from the first row on that cannot be had."""
    first = 0
    try:
        for table in read_batches(ready.stream, ready.format):
            for row, found in enumerate(_messages(table, spatial, times)):
                if isinstance(found, str):
                    yield Rejected(ready.name, "row", first + row, found, row_text(table, row))
                else:
                    yield Read(ready.name, "row", first + row, found)
            first += table.num_rows
    except input_errors(OSError) as error:
        yield Rejected(ready.name, "row", first, f"the file cannot be read from here on: {reason_of(error)}", "")


def _messages(table: Any, spatial: Spatial, times: Collection[str]) -> list[dict[str, Any] | str]:
    """The message of each row, or why it has none; rows that spoil the whole table are found by halves."""
    try:
        messages, bad = rows_of(attributes_of(table), None, spatial)
        return [bad[row].reason if row in bad else _timed(message, times) or message
                for row, message in enumerate(messages)]  # fmt: skip
    except input_errors() as error:
        half = table.num_rows // 2
        if not half:
            return [reason_of(error)]
        return [*_messages(table.slice(0, half), spatial, times), *_messages(table.slice(half), spatial, times)]


def _timed(message: dict[str, Any], times: Collection[str]) -> str:
    """Turn the text of attributes that are times into timestamps; what is wrong with it, or nothing."""
    for name in times:
        if isinstance(message.get(name), str):
            try:
                message[name] = instant_of(message[name])
            except FormatError as error:
                return f"attribute {name!r}: {error}"
    return ""


def row_text(table: Any, row: int) -> str:
    """A row as JSON, for people: geometry in Base64, what JSON has no word for as text."""
    try:
        return msgspec.json.encode(table.slice(row, 1).to_pylist()[0], enc_hook=str).decode()
    except input_errors(TypeError, KeyError):
        return ""
