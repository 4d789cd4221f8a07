"""Split files into pieces and read them in Spark tasks as batches of rows, with an entry per unreadable part."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import pyarrow as pa

from contrada.errors import ContradaError, FormatError
from contrada.formats.bounded import Expansion, open_parquet
from contrada.formats.geojson.columns import read_features
from contrada.formats.records import json_records
from contrada.geometry.arrow.checks import check_column, guarded, unreadable_reason
from contrada.pipeline.ingestion.lines import LineRange
from contrada.pipeline.ingestion.sources import GIS, LINES, PARQUET
from contrada.pipeline.ingestion.survey import Surveyed, TaskSizes

BY_ROWS = (GIS, PARQUET)
BATCH_ROWS = 1 << 15  # rows


class IngestRows(NamedTuple):
    """A batch of rows: file and number of each, columns, geometry, and their JSON texts if they come from JSON."""

    files: Any
    numbers: Any
    columns: dict[str, Any]
    geometry: Any
    crs: str | None
    raws: list[str] | None = None

    def slice(self, start: int, stop: int) -> IngestRows:
        """Return the rows from `start` to `stop`."""
        cut = slice(start, stop)
        columns = {name: values[cut] for name, values in self.columns.items()}
        raws = None if self.raws is None else self.raws[cut]
        return IngestRows(self.files[cut], self.numbers[cut], columns, self.geometry[cut], self.crs, raws)


class Unread(NamedTuple):
    """A row, a line or a whole file that cannot be read, with the reason and its text if there is one."""

    file: str
    number: int | None
    reason: str
    raw: str | None


def pieces_of(
    found: Surveyed, first: int, crs: str | None, names: dict[str, str], sizes: TaskSizes
) -> Iterator[Surveyed]:
    """Split a surveyed part into pieces; `first` is the number of its first line if it is a range of lines."""
    whole = found._replace(first=first, crs=crs, names=names)
    if found.error is not None or found.format == LINES:
        yield whole
        return
    step = sizes.parquet_rows if found.format == PARQUET else sizes.features
    if found.format not in BY_ROWS:  # each task decodes the whole document
        step = -(-max(found.rows, 1) // max(1, -(-found.size // sizes.document_bytes)))
    for start in range(0, found.rows, step):
        yield whole._replace(start=start, stop=min(start + step, found.rows), first=start)


def read_piece(piece: Surveyed) -> Iterator[IngestRows | Unread]:
    """Read the rows of a piece; if reading fails, one Unread stands for the rest."""
    if piece.error is not None:
        yield Unread(piece.file, None, piece.error, None)
        return
    done = piece.first
    try:
        for found in guarded(_read_rows(piece) if piece.format in BY_ROWS else _read_features(piece), "the file"):
            if isinstance(found, IngestRows) and piece.format in BY_ROWS:
                done += len(found.numbers)
            yield found
    except ContradaError as error:
        yield Unread(piece.file, done, unreadable_reason(error), None)


def _read_rows(piece: Surveyed) -> Iterator[IngestRows]:
    """Read the rows of a range; a file that ends early is a FormatError."""
    done = piece.start
    for whole in _gis_batches(piece) if piece.format == GIS else _parquet_batches(piece):
        batch = whole.slice(0, piece.stop - done)
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name == piece.geometry or name in piece.names:
                check_column(column, f"column {name!r}")
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        numbers = pa.array(np.arange(done, done + batch.num_rows))
        done += batch.num_rows
        geometry = columns.pop(piece.geometry)
        named = {piece.names[name]: values for name, values in columns.items() if name in piece.names}
        yield IngestRows(pa.repeat(piece.file, batch.num_rows), numbers, named, geometry, piece.crs)
        if done == piece.stop:
            return
    raise FormatError(f"expected at least {piece.stop} rows, but the file ends after {done}")


def _gis_batches(piece: Surveyed) -> Iterator[Any]:
    """Yield record batches from the first feature of a piece on."""
    from pyogrio.raw import open_arrow

    options = {"layer": piece.layer, "batch_size": BATCH_ROWS, "use_pyarrow": True}
    with open_arrow(piece.path, skip_features=piece.start, **options) as (_, reader):
        yield from reader


def _parquet_batches(piece: Surveyed) -> Iterator[Any]:
    """Yield record batches from the first row of a piece on; earlier row groups are not read."""
    size = os.path.getsize(piece.path)
    expansion = Expansion("the file", size)
    opened = open_parquet(piece.path, BATCH_ROWS, size, (piece.start, piece.stop))
    with opened.file as file:
        before = 0
        for group in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            skipped = min(max(piece.start - before, 0), rows)
            before += rows
            for batch in opened.batches(row_groups=[group], use_threads=False) if skipped < rows else ():
                if skipped < batch.num_rows:
                    yield from expansion.slices(batch.slice(skipped))
                skipped = max(skipped - batch.num_rows, 0)


def _read_features(piece: Surveyed) -> Iterator[IngestRows | Unread]:
    with open(piece.path, "rb") as file:
        if piece.format == LINES:
            records = json_records(cast(BinaryIO, LineRange(file, piece.start, piece.stop)), LINES)
            offset = piece.first
        else:
            records, offset = islice(json_records(file, piece.format), piece.start, piece.stop), 0
        while taken := list(islice(records, BATCH_ROWS)):
            found = read_features(taken, piece.schema, piece.crs)
            for number, reason, raw in found.rejected:
                yield Unread(piece.file, offset + number, reason, raw)
            numbers = pa.array([offset + number for number in found.numbers], pa.int64())
            named = {piece.names[name]: values for name, values in found.properties.items()}
            yield IngestRows(pa.repeat(piece.file, len(numbers)), numbers, named, found.wkb, piece.crs, found.raws)
