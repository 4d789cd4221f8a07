"""Write the answers of a stream to Delta or Iceberg tables by MERGE, so that a repeated batch adds nothing."""

from __future__ import annotations

import uuid

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from contrada.errors import ContradaError
from contrada.pipeline.java_errors import SPARK_ERRORS, java_reason
from contrada.pipeline.stream.record_ids import ROW_ID, with_row_ids
from contrada.pipeline.stream.sinks import StreamBatch

FORMATS = ("delta", "iceberg")
STREAM, BATCH = "stream", "batch"
OWN = (STREAM, BATCH, ROW_ID)


class TableSink:
    """Tables of matches and of rejections, each row once; `name` is a table of Spark's catalog, made if it is missing.

    Beside the columns of matches a row has `stream`, `batch` and `row_id`, which are the same when a batch is repeated.
    A batch is merged on these three: rows that are there stay, the others are inserted, in one commit. Rows of two
    messages with one id have different ids. Several streams may write to one table.
    """

    def __init__(self, name: str, rejected: str | None = None, format: str = "delta") -> None:
        if format not in FORMATS:
            raise ContradaError(f"format: need {' or '.join(FORMATS)}, got {format!r:.60}")
        self._name, self._rejected, self._format = name, rejected or f"{name}_rejected", format
        self._stream = ""

    def begin(self, stream: str) -> None:
        """Remember the id of the stream."""
        self._stream = stream

    def write(self, matches: DataFrame, rejected: DataFrame, batch: StreamBatch) -> None:
        """Merge a batch into the tables."""
        self._merge(matches, self._name, batch.number, batch.matches)
        if batch.rejected:
            self._merge(rejected, self._rejected, batch.number, batch.rejected)

    def _merge(self, rows: DataFrame, table: str, batch: int, count: int) -> None:
        known = with_row_ids(rows, self._stream, batch, count)
        named = known.withColumns({STREAM: f.lit(self._stream), BATCH: f.lit(batch).cast("bigint")})
        session, view = rows.sparkSession, f"contrada_batch_{uuid.uuid4().hex}"
        try:
            if not session.catalog.tableExists(table):
                columns = ", ".join(f"`{one.name}` {one.dataType.simpleString()}" for one in named.schema)
                session.sql(f"CREATE TABLE IF NOT EXISTS {table} ({columns}) USING {self._format}")
            named.createTempView(view)
            same = " AND ".join(f"t.{name} = s.{name}" for name in OWN)
            # The batch as a literal: only files with this batch are read.
            session.sql(
                f"MERGE INTO {table} t USING {view} s ON t.{BATCH} = {int(batch)} AND {same}"
                " WHEN NOT MATCHED THEN INSERT *"
            )
        except SPARK_ERRORS as error:
            raise ContradaError(f"batch {batch} cannot be merged into {table}: {java_reason(error)}") from error
        finally:
            session.catalog.dropTempView(view)
