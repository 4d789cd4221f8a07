"""Read Parquet, GeoParquet, Arrow (Feather, IPC streams) and GIS files, batch by batch."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Collection, Iterator
from typing import Any, BinaryIO, TypeVar

import msgspec

from contrada.doors import input_errors, reason_of
from contrada.errors import ContradaError, FormatError
from contrada.formats.bounded import Expansion, check_expansion, open_parquet
from contrada.formats.parquet.ipc_sizes import ipc_file_bytes, ipc_stream_bytes
from contrada.formats.records import OpenFile, Read, Rejected
from contrada.formats.spatial import Spatial
from contrada.formats.tables.rows import attributes_of, check_table, parquet_schema, rows_of
from contrada.formats.times import instant_of
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.arrow.checks import guarded, unreadable_reason
from contrada.halving import in_halves
from contrada.installation import missing

BATCH_ROWS = 8192  # rows
T = TypeVar("T")
GEOMETRY = "geometry"  # the column of geometry of GIS files


def read_batches(stream: BinaryIO, format: str) -> Iterator[Any]:
    """Yield the tables of a file with the metadata of its schema; their values are not validated yet.

    Each table fits in memory when decoded. Any failure to read on is a FormatError.
    """
    return guarded(_batches(stream, format), "the file")


def _batches(stream: BinaryIO, format: str) -> Iterator[Any]:
    if format == "gis":
        for batch in gis_batches(stream, BATCH_ROWS):
            yield pa.Table.from_batches([batch])
        return
    # These formats are read from the end.
    seekable = stream if stream.seekable() else io.BytesIO(stream.read())
    size = seekable.seek(0, io.SEEK_END)
    seekable.seek(0)
    expansion = Expansion("the file", size)
    if format == "parquet":
        opened = open_parquet(seekable, BATCH_ROWS, size)
        schema = parquet_schema(opened.file)
        is_marked = not schema.equals(opened.file.schema_arrow, check_metadata=True)
        for batch in opened.batches():
            for part in expansion.slices(batch):
                table = pa.Table.from_batches([part])
                yield table.cast(schema) if is_marked else table.replace_schema_metadata(schema.metadata)
        return
    is_file = seekable.read(6) == b"ARROW1"
    check_expansion("the file", (ipc_file_bytes if is_file else ipc_stream_bytes)(seekable), size)
    seekable.seek(0)
    reader = pa.ipc.open_file(seekable) if is_file else pa.ipc.open_stream(seekable)
    batches = (reader.get_batch(k) for k in range(reader.num_record_batches)) if is_file else reader
    for batch in batches:
        batch.validate()  # array lengths: slices and names would exceed them
        for start in range(0, batch.num_rows, BATCH_ROWS):
            for part in expansion.slices(batch.slice(start, BATCH_ROWS)):
                yield pa.Table.from_batches([part])


def gis_batches(stream: BinaryIO, rows: int) -> Iterator[Any]:
    """Yield record batches of all layers with geometry, which is the column `geometry`; metadata name its CRS.

    pyogrio reads files by name, so the stream must have one.
    """
    try:
        import pyogrio
        from pyogrio.raw import open_arrow
    except ImportError as error:
        raise FormatError(missing("GeoPackage, Shapefile and FlatGeobuf need pyogrio", "spark")) from error

    path = getattr(stream, "name", None)
    if not isinstance(path, str | os.PathLike) or not os.path.isfile(path):
        raise FormatError("GeoPackage, Shapefile and FlatGeobuf can only be read from files, not from streams")
    try:
        layers = [name for name, kind in pyogrio.list_layers(path).tolist() if kind is not None]
        if not layers:
            raise FormatError("no layer has geometry")
        for layer in layers:
            with open_arrow(path, layer=layer, batch_size=rows, use_pyarrow=True) as (about, reader):
                own = about["geometry_name"] or "wkb_geometry"
                for batch in reader:
                    yield _named(batch, own, about["crs"])
    except pyogrio.errors.DataSourceError as error:
        raise FormatError(f"pyogrio cannot read the file: {error}") from error


def _named(batch: Any, own: str, crs: str | None) -> Any:
    """Return the batch with its geometry in the column `geometry`, and GeoParquet's metadata."""
    names = [GEOMETRY if name == own else name for name in batch.schema.names]
    about = {"primary_column": GEOMETRY, "columns": {GEOMETRY: {"encoding": "WKB", "crs": crs}}}
    fields = [pa.field(name, field.type) for name, field in zip(names, batch.schema, strict=True)]
    schema = pa.schema(fields, metadata={b"geo": json.dumps(about).encode()})
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def read_rows(ready: OpenFile, spatial: Spatial, times: Collection[str] = ()) -> Iterator[Read | Rejected]:
    """Yield the messages of a file of rows."""
    for item in sound_tables(ready, check_table):
        if isinstance(item, Rejected):
            yield item
            continue
        first, table, _ = item
        for row, found in enumerate(_messages(table, spatial, times)):
            if isinstance(found, str):
                yield Rejected(ready.name, "row", first + row, found, row_text(table, row))
            else:
                yield Read(ready.name, "row", first + row, found)


def sound_tables(ready: OpenFile, check: Callable[[Any], T]) -> Iterator[tuple[int, Any, T] | Rejected]:
    """Yield the tables of a file: the number of the first row, the table, and what `check` returns for it.

    The rows of a table for which `check` raises FormatError are rejected one by one; if reading fails, one rejection
    stands for the rest of the file.
    """
    first = 0
    try:
        for table in read_batches(ready.stream, ready.format):
            try:
                yield first, table, check(table)
            except FormatError as error:
                rows = range(first, first + table.num_rows)
                yield from (Rejected(ready.name, "row", row, str(error), "") for row in rows)
            first += table.num_rows
    except ContradaError as error:
        yield Rejected(ready.name, "row", first, unreadable_reason(error), "")


def _messages(table: Any, spatial: Spatial, times: Collection[str]) -> list[dict[str, Any] | str]:
    """Return the message of each row, or a reason."""

    def read(start: int, stop: int) -> list[dict[str, Any] | str]:
        messages, bad = rows_of(attributes_of(table.slice(start, stop - start), is_checked=True), None, spatial)
        return [bad[row].reason if row in bad else _timed(message, times) or message
                for row, message in enumerate(messages)]  # fmt: skip

    found: list[dict[str, Any] | str] = []
    for part in in_halves(table.num_rows, read, input_errors()):
        found += [reason_of(part.error)] if part.error is not None else part.result or []
    return found


def _timed(message: dict[str, Any], times: Collection[str]) -> str:
    """Turn the text of attributes in `times` into timestamps; return the fault, or ""."""
    for name in times:
        if isinstance(message.get(name), str):
            try:
                message[name] = instant_of(message[name])
            except FormatError as error:
                return f"attribute {name!r}: {error}"
    return ""


def row_text(table: Any, row: int) -> str:
    """Return a row as JSON for users: geometry in Base64, values that JSON lacks as text."""
    try:
        return msgspec.json.encode(table.slice(row, 1).to_pylist()[0], enc_hook=str).decode()
    except Exception:  # values that Python or JSON cannot hold; the rejection has the row number
        return ""
