"""Sinks: where a stream writes its answers, batch by batch. A repeated batch must replace its earlier output."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from pyspark.sql import DataFrame

from contrada.errors import ContradaError
from contrada.pipeline import manifests
from contrada.pipeline.storage import Storage, full_place, is_uri

OWNER = "_contrada.json"


class StreamBatch(NamedTuple):
    """A batch of a stream: its number, the version of its subscriptions, and counts of its messages."""

    number: int
    version: int
    subscriptions: int
    messages: int
    matches: int
    rejected: int


class Sink(Protocol):
    """Takes `matches` (message_id, subscriber, key, version) and `rejected` (message_id, reason, raw, version)."""

    def begin(self, stream: str) -> None:
        """Prepare for the stream with this id, which is stored in its checkpoint; by default, do nothing."""
        return None

    def write(self, matches: DataFrame, rejected: DataFrame, batch: StreamBatch) -> None:
        """Write the answers of a batch, replacing any that it wrote before."""


class ParquetSink:
    """Parquet directories `matches/batch=<n>` and `rejected/batch=<n>`; a repeated batch replaces its own.

    On a local file system a directory is renamed when complete. Elsewhere Spark overwrites the directory and writes
    `_SUCCESS` last. The output belongs to one stream: a second stream is an error.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = full_place(path)
        self._is_local = not is_uri(self.path)

    def begin(self, stream: str) -> None:
        """Mark the output as this stream's, and remove incomplete directories."""
        if not self._is_local:
            return
        place = Storage(self.path)
        told = place.fields(OWNER, {"stream": manifests.text})
        if told is not None and told["stream"] != stream:
            raise ContradaError(
                f"{self.path} has the output of a stream with another checkpoint;"
                " use another output directory, or the checkpoint of that stream"
            )
        if told is None and place.is_taken():
            raise ContradaError(f"{self.path} is not empty and not the output of a stream; use a new directory")
        place.write(OWNER, json.dumps({"stream": stream}).encode())
        for pattern in ("*/.new-*", "*/.old-*"):
            for path in Path(self.path).glob(pattern):
                shutil.rmtree(path, ignore_errors=True)

    def write(self, matches: DataFrame, rejected: DataFrame, batch: StreamBatch) -> None:
        """Write a batch: a directory of matches always, one of rejections if there are any."""
        self._put(matches, f"{self.path}/matches", batch.number)
        if batch.rejected:
            self._put(rejected, f"{self.path}/rejected", batch.number)
        elif self._is_local:
            shutil.rmtree(f"{self.path}/rejected/batch={batch.number}", ignore_errors=True)

    def _put(self, rows: DataFrame, folder: str, number: int) -> None:
        target = f"{folder}/batch={number}"
        if not self._is_local:
            rows.write.mode("overwrite").parquet(target)
            return
        # A new name per attempt: the JVM of a killed driver may still be writing the previous one.
        fresh = f"{folder}/.new-{number}-{uuid.uuid4().hex}"
        rows.write.parquet(f"file://{fresh}")
        # Readers see either directory, or none for a moment; if the process ends here, the batch is repeated.
        old = f"{folder}/.old-{number}-{uuid.uuid4().hex}"
        with suppress(FileNotFoundError):
            os.rename(target, old)
        os.rename(fresh, target)
        shutil.rmtree(old, ignore_errors=True)


class KafkaSink(Sink):
    """Kafka topics: one JSON record per match, with the columns as members, and one per rejection.

    At least once: a repeated batch is sent again. The record's key is the message's id; copies of one match have equal
    message_id, key and version.
    """

    def __init__(self, servers: str, topic: str, rejected: str | None = None, **options: str) -> None:
        self._options = {"kafka.bootstrap.servers": servers, **options}
        self._topic, self._rejected = topic, rejected or f"{topic}-rejected"

    def write(self, matches: DataFrame, rejected: DataFrame, batch: StreamBatch) -> None:
        """Send a batch."""
        self._send(matches, self._topic)
        if batch.rejected:
            self._send(rejected, self._rejected)

    def _send(self, rows: DataFrame, topic: str) -> None:
        records = rows.selectExpr("CAST(message_id AS STRING) AS key", "to_json(struct(*)) AS value")
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
