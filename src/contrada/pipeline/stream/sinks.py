"""Sinks: where a stream writes its answers, batch by batch. A repeated batch must replace its earlier output."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from typing import NamedTuple, Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from contrada.errors import ContradaError
from contrada.pipeline import manifests
from contrada.pipeline.kafka import BATCH_HEADER, ID_HEADER, STREAM_HEADER
from contrada.pipeline.outputs import UNMARKED, begin_output, complete_output, output_place
from contrada.pipeline.storage import full_place, is_uri
from contrada.pipeline.stream.record_ids import ROW_ID, with_row_ids
from contrada.spark_names import quoted

OWNER = "_contrada.json"
KINDS = ("matches", "events", "rejected")
NEW, OLD = HIDDEN = (".new-", ".old-")  # prefixes of directories that are being written, and replaced


class StreamBatch(NamedTuple):
    """A batch of a stream: its number, the version of its subscriptions, and counts of its messages."""

    number: int
    version: int
    subscriptions: int
    messages: int
    matches: int
    rejected: int

    def counts(self) -> dict[str, int]:
        """Return the fields by name, with the number as `batch`."""
        return {name if name != "number" else "batch": value for name, value in self._asdict().items()}


class Sink(Protocol):
    """Takes `matches` (message_id, subscriber, key, version) and `rejected` (message_id, reason, raw, version)."""

    def begin(self, stream: str) -> None:
        """Prepare for the stream with this id, which is stored in its checkpoint; by default, do nothing."""
        return None

    def write(self, matches: DataFrame, rejected: DataFrame, batch: StreamBatch) -> None:
        """Write the answers of a batch, replacing any that it wrote before."""


class ParquetSink:
    """Parquet directories `matches/batch=<n>` and `rejected/batch=<n>`; a repeated batch replaces its own.

    A complete directory has `_manifest.json`, with counts and digests of its files, and `_SUCCESS`. Every attempt
    writes to a directory of its own, since a driver that was killed may have left a Java process that still writes.
    Where files can be renamed, the directory is renamed when complete. In an object store the files are copied, and
    `_SUCCESS` is written last. The output belongs to one stream: a second stream is an error.

    A store that PyArrow cannot open is written to by Spark alone: it has `_SUCCESS`, and no manifest. `rows` is the
    name of the first directory; it is `events` for tracked objects.
    """

    def __init__(self, path: str | os.PathLike[str], rows: str = "matches") -> None:
        self.path, self._rows = full_place(path), rows
        self._place = output_place(self.path)

    def begin(self, stream: str) -> None:
        """Mark the output as this stream's, and remove incomplete directories."""
        place = self._place
        if place is None:
            return
        told = place.fields(OWNER, {"stream": manifests.text})
        if told is not None and told["stream"] != stream:
            raise ContradaError(
                f"{self.path} has the output of a stream with another checkpoint;"
                " use another output directory, or the checkpoint of that stream"
            )
        if told is None and place.is_taken():
            raise ContradaError(f"{self.path} is not empty and not the output of a stream; use a new directory")
        place.write(OWNER, json.dumps({"stream": stream}).encode())
        for folder in KINDS:
            for name in place.inner(folder).folders():
                if name.startswith(HIDDEN):
                    place.remove(f"{folder}/{name}")

    def write(self, matches: DataFrame, rejected: DataFrame, batch: StreamBatch) -> None:
        """Write a batch: a directory of matches always, one of rejections if there are any."""
        self._put(matches, self._rows, batch)
        if batch.rejected:
            self._put(rejected, "rejected", batch)
        elif self._place is not None:
            self._place.remove(f"rejected/batch={batch.number}")

    def _put(self, rows: DataFrame, folder: str, batch: StreamBatch) -> None:
        target, place = f"{folder}/batch={batch.number}", self._place
        if place is None:
            rows.write.mode("overwrite").parquet(f"{self.path}/{target}")
            return
        fresh = f"{folder}/{NEW}{batch.number}-{uuid.uuid4().hex}"
        written = rows.write.options(**UNMARKED)
        written.parquet(f"{self.path}/{fresh}" if is_uri(self.path) else f"file://{self.path}/{fresh}")
        if place.has_rename:
            complete_output(place.inner(fresh), batch.counts(), rows.sparkSession)
            # Readers see either directory, or none for a moment; if the process ends here, the batch is repeated.
            old = f"{folder}/{OLD}{batch.number}-{uuid.uuid4().hex}"
            if place.inner(target).is_taken():
                place.move(target, old)
            place.move(fresh, target)
            place.remove(old)
            return
        begin_output(place.inner(target))
        place.remove(target)
        for name, _ in place.files_below(fresh):
            if not name.rpartition("/")[2].startswith((".", "_")):
                place.move(name, f"{target}/{name.removeprefix(f'{fresh}/')}")
        place.remove(fresh)
        complete_output(place.inner(target), batch.counts(), rows.sparkSession)


class KafkaSink:
    """Kafka topics: one JSON record per match, with the columns as members, and one per rejection.

    A repeated batch is sent again. The record's key is the message's id. Its headers `contrada-stream`,
    `contrada-batch` and `contrada-id` are the same for copies of a record and tell all others apart: `MatchRecords` and
    `kafka_matches` read each match once.
    """

    def __init__(self, servers: str, topic: str, rejected: str | None = None, **options: str) -> None:
        self._options = {"kafka.bootstrap.servers": servers, **options}
        self._topic, self._rejected, self._stream = topic, rejected or f"{topic}-rejected", ""

    def begin(self, stream: str) -> None:
        """Remember the id of the stream, which is part of the ids of records."""
        self._stream = stream

    def write(self, matches: DataFrame, rejected: DataFrame, batch: StreamBatch) -> None:
        """Send a batch."""
        self._send(matches, self._topic, batch.number, batch.matches)
        if batch.rejected:
            self._send(rejected, self._rejected, batch.number, batch.rejected)

    def _send(self, rows: DataFrame, topic: str, batch: int, count: int) -> None:
        value = f"to_json(struct({', '.join(map(quoted, rows.columns))})) AS value"
        known = with_row_ids(rows, self._stream, batch, count)
        headers = {STREAM_HEADER: f.lit(self._stream), BATCH_HEADER: f.lit(str(batch)), ID_HEADER: f.col(ROW_ID)}
        entries = [
            f.struct(f.lit(name).alias("key"), f.encode(text, "UTF-8").alias("value")) for name, text in headers.items()
        ]
        key = "object" if "object" in rows.columns else "message_id"  # events of an object stay in order
        records = known.selectExpr("*", f"CAST({key} AS STRING) AS __key", value)
        records = records.select(f.col("__key").alias("key"), "value", f.array(*entries).alias("headers"))
        records.write.format("kafka").options(**self._options).option("topic", topic).save()


class ConsoleSink(Sink):
    """Standard output of the driver: one JSON line per match; rejections have a reason."""

    def write(self, matches: DataFrame, rejected: DataFrame, batch: StreamBatch) -> None:
        """Print a batch."""
        for rows in (matches, rejected) if batch.rejected else (matches,):
            for row in rows.selectExpr("to_json(struct(*)) AS line").collect():
                print(row.line, flush=True)


class CallSink(Sink):
    """A user's function, called with matches, rejections and the batch."""

    def __init__(self, function: Callable[[DataFrame, DataFrame, StreamBatch], None]) -> None:
        self._function = function

    def write(self, matches: DataFrame, rejected: DataFrame, batch: StreamBatch) -> None:
        """Call the function."""
        self._function(matches, rejected, batch)
