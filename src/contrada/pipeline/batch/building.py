"""Build the table of all subscriptions in one Spark task, in a Python worker; this module does not use Spark."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from contrada.geometry import Crs
from contrada.matching.building import TableBuilder
from contrada.model import Predicate
from contrada.pipeline.artifacts import publish
from contrada.pipeline.storage import Storage, store_of
from contrada.pipeline.systems import NO_SYSTEMS, named_columns

CHUNK_ROWS, CHUNK_BYTES = 1 << 20, 1 << 28  # subscribed at once: packing is fastest with a few large parts
READ_ROWS = 1 << 14


def build_empty(batches: Iterator[Any], build: Any) -> Iterator[Any]:
    """Build the table of no rows, after reading all batches."""
    for _ in batches:
        pass
    return build(iter(()))  # type: ignore[no-any-return]


def build_batches(
    batches: Iterator[Any],
    names: tuple[str, ...],
    predicate: Predicate | None,
    place: str,
    types: tuple[str, str],
    systems: Mapping[str, Crs] = NO_SYSTEMS,
) -> Iterator[Any]:
    """Build one table of all batches and publish it, in one task; yield one row with the artifact as JSON."""
    builder, rejections = TableBuilder(predicate), RejectedRows()
    for chunk in chunks(batches):
        rejections.add(builder.add(named_columns(chunk, names, systems)))
    artifact = publish(builder.table, place, key_type=types[0], subscriber_type=types[1])
    about = json.dumps({"artifact": artifact._asdict(), "rejected": rejections.placed(place)})
    yield pa.record_batch([pa.array([about])], ["about"])


def chunks(batches: Iterator[Any], most_rows: int = CHUNK_ROWS, most_bytes: int = CHUNK_BYTES) -> Iterator[Any]:
    """Group batches into tables, each complete when it has `most_rows` rows or `most_bytes` bytes."""
    held: list[Any] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= most_rows or size >= most_bytes:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


class RejectedRows:
    """Collects bad rows in a Parquet file, which is named by its content."""

    def __init__(self) -> None:
        self._file: Any = None
        self._writer: Any = None

    def add(self, rejected: list[Any]) -> None:
        """Add rejected rows."""
        schema = pa.schema({"row": pa.int64(), "key": pa.string(), "reason": pa.string()})
        self.write(pa.RecordBatch.from_pylist([item._asdict() for item in rejected], schema))

    def write(self, batch: Any) -> None:
        """Add a batch of `row, key, reason`."""
        if not batch.num_rows:
            return
        if self._writer is None:
            self._file = pa.BufferOutputStream()
            self._writer = pq.ParquetWriter(self._file, batch.schema)
        self._writer.write_batch(batch)

    def placed(self, place: str) -> str | None:
        """Put the file beside the artifacts and return its address; None if no row was bad."""
        if self._writer is None:
            return None
        self._writer.close()
        data = self._file.getvalue().to_pybytes()
        name = f"rejected/{hashlib.sha256(data).hexdigest()}.parquet"
        Storage(place).write(name, data)
        return f"{place.rstrip('/')}/{name}"


def read_rejected(batches: Iterator[Any], path: str) -> Iterator[Any]:
    """Yield the rows of a file of bad rows, after reading all batches."""
    for _ in batches:
        pass
    store, place = store_of(path)
    with store.open_input_file(place) as file:
        yield from pq.ParquetFile(file).iter_batches(READ_ROWS)
