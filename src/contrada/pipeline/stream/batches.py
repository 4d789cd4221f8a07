"""Run the batches of a stream: match a batch against its version, write the answers, and tell what happened.

Over Spark Connect `foreachBatch` calls a copy of this in a Python process of the server, which has a session and
`Versions` of its own. The process that started the stream reads the reports of batches.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from contrada.errors import ContradaError
from contrada.matching.answer import By
from contrada.matching.census import Census
from contrada.pipeline.answers import ID, answer_schema, name_types
from contrada.pipeline.java_errors import SPARK_ERRORS
from contrada.pipeline.kept import text_ids, unfolded, with_kept_ids
from contrada.pipeline.partitioned.partitions import PartitionedArtifact
from contrada.pipeline.reasons import plain_text
from contrada.pipeline.spark_types import attribute_columns
from contrada.pipeline.storage import Storage, path_of
from contrada.pipeline.stream.file_damage import Damage
from contrada.pipeline.stream.message_files import MessageFiles
from contrada.pipeline.stream.partition_jobs import distinct_matches, may_repeat, route_batch
from contrada.pipeline.stream.reports import BatchReport, Reports
from contrada.pipeline.stream.sinks import Sink, StreamBatch
from contrada.pipeline.stream.source_log import files_of_batch
from contrada.pipeline.stream.version import Version
from contrada.pipeline.stream.version_log import Versions
from contrada.pipeline.stream.worker import FILE, FURTHER, Decoding, TaskOrders, match_version
from contrada.pipeline.systems import declared_systems, frame_systems

TEXT = "value"


class BatchCounts(NamedTuple):
    """The answers of a batch, their counts, and the censuses and files that its tasks report."""

    answers: DataFrame
    good: DataFrame  # the matches
    bad: DataFrame  # the rejections: id, reason and text
    persisted: tuple[DataFrame, ...]
    read: int
    matches: int
    rejected: int
    censuses: list[str]
    files: list[str]
    damage: Mapping[str, str]  # rejected files with reasons; each counts as one rejected message

    def unpersist(self) -> None:
        """Drop what is persisted."""
        for frame in self.persisted:
            frame.unpersist()


class BatchWork:
    """What runs the batches of a stream; `census` counts attributes and messages since the stream was started."""

    late = 0  # fixes of tracked objects that were left out since then

    def __init__(
        self,
        versions: Versions,
        sink: Sink,
        by: By,
        decoding: Decoding | None,
        files: tuple[MessageFiles, Storage] | None,  # with the checkpoint, which lists the files of a batch
        keep: Sequence[str] = (),
    ) -> None:
        self.versions, self.census, self.is_ending = versions, Census(), False
        self._sink, self._by, self._decoding, self._files, self._keep = sink, by, decoding, files, tuple(keep)

    def run(self, messages: DataFrame, number: int) -> BatchReport:
        """Match a batch against its version, and write the answers to the sink."""
        if self.is_ending:
            raise ContradaError(f"the stream is stopping; batch {number} runs again at the next start")
        began = time.perf_counter()
        self.versions.committed(number)  # Spark begins a batch after the earlier ones are committed
        version = self.versions.of_batch(number)
        counted = self._counted(messages, number, version)
        lost = len(counted.damage)
        try:
            counts = counted.read + lost, counted.matches, counted.rejected + lost
            batch = StreamBatch(number, version.number, version.subscriptions, *counts)
            named = f.lit(version.number).cast("bigint")
            good = unfolded(counted.good, self._keep, (), counted.good.columns[1:]).withColumn("version", named)
            bad = counted.bad.withColumn("version", named)
            self.versions.check_driver()
            self._sink.write(good, _with_files(bad, counted.damage, version.number), batch)
        finally:
            counted.unpersist()
        for text in counted.censuses:
            self.census.merge(text)
        seconds = time.perf_counter() - began
        return BatchReport(batch, seconds, self.versions.counts, self.late, self.census.to_json())

    def _counted(self, messages: DataFrame, number: int, version: Version) -> BatchCounts:
        """Match a batch; look for damaged files if it fails, or if some of its files gave no rows."""
        if self._files is None:
            return self._count(messages, version)
        files, checkpoint = self._files
        uris = files_of_batch(checkpoint, number)
        damage = Damage(files, messages.sparkSession, lambda frame: self._sent(frame, version)[0])
        try:
            counted = self._count(messages, version)
        except SPARK_ERRORS:
            found = damage.sorted(uris)
            if not found.damage:
                raise
        else:
            seen = set(map(path_of, counted.files))
            unread = damage.unread([uri for uri in uris if path_of(uri) not in seen])
            if unread is not None:
                return counted._replace(damage=unread)
            counted.unpersist()
            found = damage.sorted(uris)
        frame = damage.read(found)
        return self._count(messages.where("false") if frame is None else frame, version)._replace(damage=found.damage)

    def _count(self, messages: DataFrame, version: Version) -> BatchCounts:
        answers, good, persisted = self._answers(messages, version)
        matches = f.lit(-1)  # counted apart, where some are found twice
        if good is None:
            good, matches = answers.where("found IS NOT NULL").select(ID, f.inline("found")), f.sum(f.size("found"))
        sums = f.sum("messages"), matches, f.count("reason")
        try:
            found = answers.select(*sums, f.collect_list("census"), f.collect_list("file")).collect()
            *total, censuses, files = found[0]
            read, number, rejected = (int(value or 0) for value in total)
            number = good.count() if number < 0 else number
        except BaseException:
            for frame in persisted:
                frame.unpersist()
            raise
        bad = unfolded(answers.where("reason IS NOT NULL"), self._keep, (), ["reason", "raw"])
        return BatchCounts(answers, good, bad, persisted, read, number, rejected, censuses, files, {})

    def _sent(self, messages: DataFrame, version: Version) -> tuple[DataFrame, tuple[str, ...]]:
        """Return the columns for tasks (id, attributes or text, file), and the names of the attributes."""
        file = [FILE] if FILE in messages.columns else []
        if self._decoding is None:
            columns = attribute_columns(messages, version.attributes)
            own: list[Any] = [*columns.values(), *file]
            id, _ = self._ids(messages)
            return messages.select(id, *own).toDF("id", *(f"c{k}" for k in range(len(own)))), tuple(columns)
        # As bytes: a text that is not UTF-8 is the fault of one message, and Arrow rejects such text.
        return messages.select(messages[ID].cast("string").alias("id"), messages[TEXT].cast("binary"), *file), ()

    def _ids(self, messages: DataFrame) -> tuple[Column, StructType]:
        """Return what travels as the id, and its schema; the driver opens no file, which may be damaged."""
        return with_kept_ids(messages, self._keep, declared_systems(messages, self._keep))

    def _answers(
        self, messages: DataFrame, version: Version
    ) -> tuple[DataFrame, DataFrame | None, tuple[DataFrame, ...]]:
        """Return lists of matches, rejections and counts; the matches, if some lists repeat others; what to unpersist.

        Messages of a table in partitions are routed now.
        """
        has_files = FILE in messages.columns
        sent, columns = self._sent(messages, version)
        if self._decoding is None:
            _, ids = self._ids(messages)
        else:
            ids = from_arrow_schema(pa.schema({ID: text_ids(self._keep)}))
        ids[ID].nullable = True
        # If files may be damaged, tasks read their CRS, where C++ code can crash a worker only.
        systems = declared_systems(messages, columns) if has_files else frame_systems(messages, columns)
        work = TaskOrders(
            version._replace(state=None), self.versions.place.where, self._by, columns, self._decoding,
            self.versions.retired, systems, self._keep, has_files,
        )  # fmt: skip
        if isinstance(version.artifact, PartitionedArtifact):
            made = route_batch(sent, ids, work)
            repeats = may_repeat(version.artifact, self._by, bool(version.segments))
            return made.answers, distinct_matches(made.answers, self._by) if repeats else None, tuple(made)
        schema = answer_schema(ids, name_types(version.artifact), self._by, FURTHER)
        answers = sent.mapInArrow(partial(match_version, work=work), schema).persist()
        return answers, None, (answers,)


def _with_files(rejected: DataFrame, damage: Mapping[str, str], version: int) -> DataFrame:
    """Append a rejection for each damaged file: it has no id, and its reason starts with the path."""
    if not damage:
        return rejected
    none = [None] * (len(rejected.columns) - len(("reason", "raw", "version")))
    rows = [(*none, plain_text(f"{path_of(uri)}: {damage[uri]}"), None, version) for uri in sorted(damage)]
    return rejected.union(rejected.sparkSession.createDataFrame(rows, rejected.schema))


class ReportedBatches:
    """Runs batches in a process of a server of Spark Connect, for `foreachBatch`, and leaves reports of them."""

    def __init__(self, work: BatchWork, reports: Reports) -> None:
        self._work, self._reports = work, reports

    def __call__(self, messages: DataFrame, number: int) -> None:
        """Run a batch."""
        self._work.is_ending = self._reports.is_ending()
        self._reports.write(self._work.run(messages, number))
