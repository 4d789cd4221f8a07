"""Sift batches of rows in Spark tasks: good rows with valid geometry and bad rows with reasons, in one stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from contrada.errors import ContradaError
from contrada.formats.spatial import sift_column
from contrada.formats.tables.row_files import row_text
from contrada.formats.tables.schema_merge import conformed
from contrada.geometry import Crs
from contrada.halving import in_halves
from contrada.pipeline.ingestion.splits import IngestRows, Unread, read_piece
from contrada.pipeline.ingestion.survey import Surveyed
from contrada.pipeline.storage import path_of

if TYPE_CHECKING:
    from contrada.formats.spatial import Spatial

GEOMETRY = "geometry"
FILE, ROW, REASON, RAW, REPAIRED = "__file", "__row", "__reason", "__raw", "__repaired"
MARKS = (FILE, ROW, REASON, RAW, REPAIRED)


class IngestOptions(NamedTuple):
    """The Arrow schema of the output columns without the geometry, and how geometry is treated."""

    schema: Any
    spatial: Spatial
    repair: bool

    def outcome(self) -> Any:
        """Return all output columns: those of the rows, the geometry, and the marks of bad and repaired rows."""
        texts = dict.fromkeys((FILE, REASON, RAW), pa.string())
        marks = {GEOMETRY: pa.binary(), **texts, ROW: pa.int64(), REPAIRED: pa.bool_()}
        return pa.schema([*self.schema, *pa.schema(marks)])


def read_batches(batches: Iterable[Any], pieces: Sequence[Surveyed], wanted: IngestOptions) -> Iterator[Any]:
    """Read and sift pieces, whose positions in `pieces` the batches hold."""
    for batch in batches:
        for k in batch.column(0).to_pylist():
            for found in read_piece(pieces[k]):
                yield from quarantined([found], wanted) if isinstance(found, Unread) else sifted(found, wanted)


def sift_batches(
    batches: Iterable[Any], geometry: str, crs: str | None, names: dict[str, str], wanted: IngestOptions
) -> Iterator[Any]:
    """Sift rows that Spark has read, which have the columns FILE and ROW."""
    for batch in batches:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        uris, numbers, values = columns.pop(FILE), columns.pop(ROW), columns.pop(geometry)
        coded = uris.dictionary_encode()
        files = pa.array([path_of(uri) for uri in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)
        named = {names[name]: column for name, column in columns.items()}
        yield from sifted(IngestRows(files, numbers, named, values, crs), wanted)


def sifted(batch: IngestRows, wanted: IngestOptions) -> Iterator[Any]:
    """Sift a batch into record batches; rows that make sifting fail are quarantined."""
    errors = (ContradaError, pa.ArrowException, ValueError, ArithmeticError)
    for part in in_halves(
        len(batch.numbers), lambda start, stop: list(_sifted(batch.slice(start, stop), wanted)), errors
    ):
        if part.result is None:
            yield from quarantined([_unread(batch, part.start, str(part.error))], wanted)
        else:
            yield from part.result


def _sifted(batch: IngestRows, wanted: IngestOptions) -> Iterator[Any]:
    kept = sift_column(pa.chunked_array([batch.geometry]), wanted.spatial, Crs.of(batch.crs), wanted.repair)
    if len(kept.rows):
        schema, rows, nothing = wanted.outcome(), pa.array(kept.rows), pa.nulls(len(kept.rows))
        given = {name: values.take(rows) for name, values in batch.columns.items()}
        given |= {GEOMETRY: kept.wkb, REPAIRED: pa.array(np.isin(kept.rows, kept.repaired))}
        columns = [conformed(given.get(field.name, nothing), field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
    yield from quarantined([_unread(batch, bad.row, bad.reason) for bad in kept.rejected], wanted)


def _unread(batch: IngestRows, row: int, reason: str) -> Unread:
    """Return a row of a batch as it goes into the quarantine."""
    one = batch.slice(row, row + 1)
    raw = row_text(pa.table({**one.columns, GEOMETRY: one.geometry}), 0) if one.raws is None else one.raws[0]
    return Unread(one.files[0].as_py(), one.numbers[0].as_py(), reason, raw)


def quarantined(items: Sequence[Unread], wanted: IngestOptions) -> Iterator[Any]:
    """Return bad rows as a record batch: file, row, reason and raw text, with null in all other columns."""
    if items:
        rows = [dict(zip(MARKS, (*item, False), strict=True)) for item in items]
        yield pa.RecordBatch.from_pylist(rows, wanted.outcome())
