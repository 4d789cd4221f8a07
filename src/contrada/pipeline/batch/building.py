"""Build the table of all subscriptions in one Spark task, in a Python worker; this module does not use Spark."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contrada.matching import ForwardingTable
from contrada.matching.building import RejectedRow, TableBuilder
from contrada.pipeline.artifacts import publish
from contrada.pipeline.batch.simplified_batches import Job
from contrada.pipeline.kept import KEPT, KeptRows
from contrada.pipeline.storage import Storage, store_of
from contrada.pipeline.systems import named_columns

CHUNK_ROWS, CHUNK_BYTES = 1 << 20, 1 << 28  # subscribed at once: packing is fastest with a few large parts
READ_ROWS = 1 << 14
REJECTED = pa.schema({"row": pa.int64(), "key": pa.string(), "reason": pa.string()})


def build_batches(batches: Iterator[Any], job: Job, place: str, keeping: str = "") -> Iterator[Any]:
    """Build one table of all batches and publish it, in one task; yield one row with the artifact as JSON.

    `keeping` is the schema of the columns that matches may carry, which the batches have as `kept`.
    """
    builder, kept = TableBuilder(job.template, ForwardingTable(wrap=job.wrap)), KeptRows()
    found = (_added(chunk, builder, job, kept if keeping else None) for chunk in chunks(batches))
    bad = (pa.RecordBatch.from_pylist([item._asdict() for item in items], REJECTED) for items in found)
    rejected = put_rejected(bad, place)
    own = (kept, keeping) if keeping else None
    artifact = publish(builder.table, place, key_type=job.types[0], subscriber_type=job.types[1], keeping=own)
    about = json.dumps({"artifact": artifact._asdict(), "rejected": rejected})
    yield pa.record_batch([pa.array([about])], ["about"])


def _added(chunk: Any, builder: TableBuilder, job: Job, kept: KeptRows | None) -> list[RejectedRow]:
    """Add the rows of a chunk to a table, and what is kept of them; return the bad ones."""
    first, rows = builder.rows, named_columns(chunk, job.names, job.systems)
    found = builder.add(rows)
    if kept is not None:
        numbers = pa.array(np.arange(first, builder.rows))
        keys = rows.column("key") if "key" in job.names else numbers
        kept.add(keys, chunk.column(KEPT), {item.row - first for item in found})
    return found


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


def put_rejected(batches: Iterable[Any], place: str) -> str | None:
    """Put bad rows into a file beside the artifacts, named by its content; return its address, None without rows."""
    file, count = pa.BufferOutputStream(), 0
    with pq.ParquetWriter(file, REJECTED) as writer:
        for batch in batches:
            if batch.num_rows:
                writer.write_batch(batch.cast(REJECTED))
                count += batch.num_rows
    if not count:
        return None
    data = file.getvalue().to_pybytes()
    name = f"rejected/{hashlib.sha256(data).hexdigest()}.parquet"
    Storage(place).write(name, data)
    return f"{place.rstrip('/')}/{name}"


def read_rejected(batches: Iterator[Any], path: str) -> Iterator[Any]:
    """Yield the rows of a file of bad rows, after reading all batches."""
    list(batches)
    store, place = store_of(path)
    with store.open_input_file(place) as file:
        yield from pq.ParquetFile(file).iter_batches(READ_ROWS)
