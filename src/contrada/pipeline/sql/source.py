"""The data source `contrada`: data sets of ingest, outputs of match and artifacts as tables, read in Arrow batches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from contrada.errors import ContradaError, FormatError
from contrada.formats.tables.rows import covering_columns, geo_columns
from contrada.pipeline import kept
from contrada.pipeline.answers import names_array
from contrada.pipeline.artifact_cache import opened
from contrada.pipeline.artifacts import ABOUT, Artifact
from contrada.pipeline.storage import Storage, full_place, store_of

DATASET, SPARK_SCHEMA = "dataset.json", b"org.apache.spark.sql.parquet.row.metadata"
FIRST = ("rows", "matches", "subscriptions")  # by default the first that the path has
TABLES = (*FIRST, "quarantine", "rejected")
BATCH_ROWS, PARTITION_ROWS = 1 << 14, 1 << 20


class RowGroups(NamedTuple):
    """Row groups of a Parquet file that one task reads."""

    path: str
    groups: tuple[int, ...]


class ContradaSource(DataSource):
    """Reads what Contrada wrote: `spark.read.format("contrada").option("table", "quarantine").load(path)`.

    The table is "rows" or "quarantine" of a data set, "matches" or "rejected" of an output of `Matched.write`, or
    "subscriptions" of an artifact.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "contrada"

    def schema(self) -> StructType:
        """Return the schema, from the data, with the CRS of geometry columns."""
        return self._table().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the table."""
        return self._table()

    def _table(self) -> FilesTable | ArtifactTable:
        path = self.options.get("path")
        if not path:
            raise FormatError('contrada: need a path: spark.read.format("contrada").load(path)')
        place = Storage(full_place(path))
        is_dataset, is_output = place.read(DATASET) is not None, bool(place.names("matches"))
        has = {
            "rows": is_dataset, "quarantine": is_dataset, "matches": is_output, "rejected": is_output,
            "subscriptions": place.read(ABOUT) is not None,
        }  # fmt: skip
        wanted = self.options.get("table") or next((name for name in FIRST if has[name]), "rows")
        if wanted not in TABLES:
            raise FormatError(f"contrada: table: need one of {', '.join(TABLES)}, got {wanted!r:.60}")
        if not has[wanted]:
            own = " and ".join(name for name in TABLES if has[name])
            text = f"it has {own}" if own else "it is no data set, artifact or output of match"
            raise FormatError(f"contrada: {place.where} has no table {wanted!r}: {text}")
        if wanted == "subscriptions":
            return ArtifactTable(Artifact.read(place.where))
        return FilesTable(f"{place.where}/{wanted}")


class FilesTable(DataSourceReader):
    """A directory of Parquet files with one schema; the boxes that cover geometry are left out."""

    def __init__(self, place: str) -> None:
        self._place = place

    def _files(self) -> list[str]:
        names = [name for name in Storage(self._place).names() if name.endswith(".parquet")]
        if not names:
            raise FormatError(f"contrada: {self._place} has no Parquet files")
        return [f"{self._place}/{name}" for name in names]

    def schema(self) -> StructType:
        """Return the schema that Spark stored in the first file, else that of its columns."""
        with _opened(self._files()[0]) as file:
            metadata = {**(file.metadata.metadata or {}), **(file.schema_arrow.metadata or {})}
            stored, hidden = metadata.get(SPARK_SCHEMA), covering_columns(geo_columns(metadata))
            found = from_arrow_schema(file.schema_arrow) if stored is None else StructType.fromJson(json.loads(stored))
        return StructType([field for field in found.fields if field.name not in hidden])

    def partitions(self) -> Sequence[InputPartition]:
        """Return row groups of a file with together about a million rows."""
        found: list[InputPartition] = []
        for path in self._files():
            held: list[int] = []
            rows = 0
            with _opened(path) as file:
                for group in range(file.num_row_groups):
                    held.append(group)
                    rows += file.metadata.row_group(group).num_rows
                    if rows >= PARTITION_ROWS or group + 1 == file.num_row_groups:
                        found.append(InputPartition(RowGroups(path, tuple(held))))
                        held, rows = [], 0
        return found or [InputPartition(RowGroups(self._files()[0], ()))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of row groups."""
        part: RowGroups = partition.value
        names = self.schema().names
        with _opened(part.path) as file:
            try:
                for batch in file.iter_batches(BATCH_ROWS, list(part.groups), names, use_threads=False):
                    yield batch.select(names)
            except (OSError, pa.ArrowException) as error:
                raise FormatError(f"contrada: {part.path}: {error}") from error


def _opened(path: str) -> Any:
    store, place = store_of(path)
    try:
        return pq.ParquetFile(store.open_input_file(place))
    except (OSError, pa.ArrowException) as error:
        raise FormatError(f"contrada: {path} cannot be read: {error}") from error


class ArtifactTable(DataSourceReader):
    """The subscriptions of an artifact in one partition: `key`, `subscriber`, `filter`, and kept columns."""

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact

    def schema(self) -> StructType:
        """Return the types that keys and subscribers have in matches, and those of the kept columns."""
        own = self._artifact
        schema = StructType().add("key", own.key_type).add("subscriber", own.subscriber_type).add("filter", "string")
        return StructType([*schema.fields, *self._kept().fields])

    def _kept(self) -> StructType:
        return StructType.fromJson(json.loads(self._artifact.kept)) if self._artifact.kept else StructType()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the subscriptions, with their filters in CQL2."""
        own = self._artifact
        try:
            ready = opened(own)
            further = self._kept()
            carried = ready.kept(kept.kept_fields(further, further.names)[1] if further.names else None)
            held: list[tuple[Any, str]] = []
            for number, (key, predicate) in enumerate(ready.table.predicates(), 1):
                held.append((key, str(predicate)))
                if len(held) < BATCH_ROWS and number < own.subscriptions:
                    continue
                keys, filters = map(list, zip(*held, strict=True))
                rows = np.array(ready.table.rows_of(keys), np.int64)
                subscribers = ready.table.subscribers_of(rows, "subscription")
                columns = [names_array(keys, own.key_type), names_array(subscribers, own.subscriber_type)]
                columns += [pa.array(filters, pa.string()), *([] if carried is None else carried.take(rows).flatten())]
                yield pa.record_batch(columns, self.schema().names)
                held = []
        except ContradaError as error:
            raise FormatError(f"contrada: {own.path}: {error}") from error
