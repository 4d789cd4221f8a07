"""Build the table of all subscriptions in one Spark task, in a Python worker; this module does not use Spark."""

from __future__ import annotations

import hashlib
import json
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from contrada.geometry import Crs
from contrada.matching.building import TableBuilder
from contrada.model import Predicate
from contrada.pipeline.artifacts import publish, store_of
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
    import pyarrow as pa

    builder = TableBuilder(predicate)
    with tempfile.TemporaryDirectory(prefix="contrada-") as temporary:
        rejections = RejectedRows(Path(temporary) / "rejected.parquet")
        for chunk in chunks(batches):
            rejections.add(builder.add(named_columns(chunk.select(range(len(names))), names, systems)))
        artifact = publish(builder.table, place, key_type=types[0], subscriber_type=types[1])
        about = json.dumps({"artifact": artifact._asdict(), "rejected": rejections.placed(place)})
    yield pa.record_batch([pa.array([about])], ["about"])


def chunks(batches: Iterator[Any]) -> Iterator[Any]:
    """Group batches into tables of at least `CHUNK_ROWS` rows or `CHUNK_BYTES` bytes."""
    import pyarrow as pa

    held: list[Any] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


class RejectedRows:
    """Writes bad rows to a Parquet file, which is named by its content."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None

    def add(self, rejected: list[Any]) -> None:
        """Add rejected rows."""
        import pyarrow as pa

        schema = pa.schema({"row": pa.int64(), "key": pa.string(), "reason": pa.string()})
        self.write(pa.RecordBatch.from_pylist([item._asdict() for item in rejected], schema))

    def write(self, batch: Any) -> None:
        """Add a batch of `row, key, reason`."""
        import pyarrow.parquet as pq

        if not batch.num_rows:
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, batch.schema)
        self._writer.write_batch(batch)

    def placed(self, place: str) -> str | None:
        """Put the file beside the artifacts and return its address; None if no row was bad."""
        from pyarrow.fs import LocalFileSystem, copy_files

        if self._writer is None:
            return None
        self._writer.close()
        store, root = store_of(place)
        folder, name = "rejected", hashlib.sha256(self._path.read_bytes()).hexdigest()
        store.create_dir(f"{root}/{folder}")
        fresh = f"{root}/{folder}/.new-{uuid.uuid4().hex}"
        copy_files(str(self._path), fresh, source_filesystem=LocalFileSystem(), destination_filesystem=store)
        store.move(fresh, f"{root}/{folder}/{name}.parquet")
        return f"{place.rstrip('/')}/{folder}/{name}.parquet"


def read_rejected(batches: Iterator[Any], path: str) -> Iterator[Any]:
    """Yield the rows of a file of bad rows, after reading all batches."""
    import pyarrow.parquet as pq

    for _ in batches:
        pass
    store, place = store_of(path)
    with store.open_input_file(place) as file:
        yield from pq.ParquetFile(file).iter_batches(READ_ROWS)
