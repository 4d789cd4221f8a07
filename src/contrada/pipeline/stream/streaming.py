"""Match streams of messages against subscriptions that change meanwhile, with Structured Streaming."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from contrada.cql2.queries import Asked
from contrada.errors import ContradaError, FormatError
from contrada.matching import ForwardingTable
from contrada.matching.answer import By
from contrada.matching.census import Census
from contrada.pipeline.answers import ID, answer_schema, name_types
from contrada.pipeline.artifacts import Artifact, publish
from contrada.pipeline.batch.compiling import Compiled, Plan, compile
from contrada.pipeline.java_errors import SPARK_ERRORS
from contrada.pipeline.kept import checked_names, text_ids, unfolded, with_kept_ids
from contrada.pipeline.partitioned.partitions import PartitionedArtifact, manifest
from contrada.pipeline.reasons import plain_text
from contrada.pipeline.spark_types import attribute_columns
from contrada.pipeline.storage import Storage, path_of
from contrada.pipeline.stream.changes import Changes, DirectoryChanges
from contrada.pipeline.stream.file_damage import Damage
from contrada.pipeline.stream.message_files import MessageFiles
from contrada.pipeline.stream.partition_jobs import SparkPartitionWork, distinct_matches, may_repeat, route_batch
from contrada.pipeline.stream.progress import StreamProgress, progress_of
from contrada.pipeline.stream.sinks import CallSink, ParquetSink, Sink, StreamBatch
from contrada.pipeline.stream.source_log import files_of_batch
from contrada.pipeline.stream.version import Table, Version
from contrada.pipeline.stream.version_log import Versions
from contrada.pipeline.stream.worker import FILE, FURTHER, Decoding, TaskOrders, compact_version, match_version
from contrada.pipeline.systems import declared_systems, frame_systems

TEXT = "value"
POLL_SECONDS = 0.05  # seconds


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


class Stream:
    """A running stream; `query` is Spark's own handle on it, `versions` are those of its subscriptions.

    `census` counts tested attributes and messages since this process started the stream.
    """

    query: StreamingQuery  # set when the stream has started, which may be after its first batch

    def __init__(
        self,
        versions: Versions,
        sink: Sink,
        by: By,
        decoding: Decoding | None,
        told: Callable[[StreamProgress], None] | None,
        files: tuple[MessageFiles, Storage] | None,  # with the checkpoint, which lists the files of a batch
        keep: tuple[str, ...] = (),
    ) -> None:
        self.versions, self.census = versions, Census()
        self._sink, self._by, self._decoding, self._told, self._files = sink, by, decoding, told, files
        self._keep = keep
        self._last: tuple[StreamBatch, float] | None = None
        self._is_ending = False

    def progress(self) -> StreamProgress | None:
        """Return the last batch, rates, lag and version; None before the first batch."""
        told = self.query.lastProgress if hasattr(self, "query") else None
        return progress_of(self._last, told, self.versions, self.census)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait up to `seconds` for the stream to end; return True if it has ended. Raises the error that ended it."""
        return bool(self.query.awaitTermination(seconds))  # type: ignore[arg-type]

    def stop(self, *, finish: bool = False) -> None:
        """Stop. A running batch is repeated when a new stream continues from the same checkpoint.

        With `finish`, the running batch is completed and committed first, and no other begins.
        """
        if finish:
            self._is_ending = True
            while self.query.isActive and self.query.status["isTriggerActive"]:
                time.sleep(POLL_SECONDS)
        self.query.stop()
        self.versions.wait()

    def _run(self, messages: DataFrame, number: int) -> None:
        """Match a batch against its version, and write the answers to the sink."""
        if self._is_ending:
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
        self._last = (batch, time.perf_counter() - began)
        if self._told is not None:
            report = self.progress()
            assert report is not None
            self._told(report)

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


def match_stream(
    messages: DataFrame | MessageFiles,
    subscriptions: DataFrame | Compiled | Artifact | PartitionedArtifact | ForwardingTable | None = None,
    changes: str | os.PathLike[str] | Changes | None = None,
    *,
    sink: str | os.PathLike[str] | Sink | Callable[[DataFrame, DataFrame, StreamBatch], None],
    checkpoint: str | os.PathLike[str],
    by: By = "subscription",
    plan: Plan = "auto",
    partitions: int | None = None,
    template: Asked | None = None,
    decoding: Decoding | None = None,
    trigger: Mapping[str, Any] | None = None,
    compact_after: int = 1000,
    progress: Callable[[StreamProgress], None] | None = None,
    keep: Sequence[str] = (),
) -> Stream:
    """Match a streaming DataFrame against subscriptions, and start to write the answers to a sink.

    `messages` are as for `match`; with `decoding` they have a column `value` of JSON texts beside `message_id`. Of
    `MessageFiles` a damaged file is rejected; with Spark's own file source it ends the stream. A new checkpoint starts
    with `subscriptions`; an existing one continues with its own. `changes` is a directory of change records, or a
    `ChangeTable`. `plan` and `partitions` are those of `compile`, for rows of subscriptions; a checkpoint keeps its
    plan. `sink` is a directory for Parquet, another sink, or a function of matches, rejections and `StreamBatch`.
    `trigger` holds the arguments of Spark's `trigger`, except `realTime` and `continuous`. `progress` is called after
    every batch. Matches and rejections carry the columns `keep` of their message; with `decoding` these are attributes
    of the texts, as text.
    """
    check_options(trigger, checkpoint, by, (plan, partitions), subscriptions)
    place = Storage(checkpoint)
    files = None
    if isinstance(messages, MessageFiles):
        files, decoding = messages, messages.decoding if decoding is None else decoding
        messages = files.stream(place)
    check_messages(messages, decoding, subscriptions, template, keep)
    session = messages.sparkSession
    first = partial(first_table, subscriptions, template=template, plan=plan, partitions=partitions)
    taken = sink_of(sink)
    source = DirectoryChanges(os.fspath(changes)) if isinstance(changes, str | os.PathLike) else changes

    def compact(version: Version, artifacts: str) -> Artifact:
        made = partial(compact_version, version=version, place=versions.place.where, artifacts=artifacts)
        about = session.range(0, 1, 1, 1).mapInArrow(made, "about string").collect()[0]["about"]
        return Artifact.of(json.loads(about))

    def check(attributes: set[str]) -> None:
        if decoding is None:
            attribute_columns(messages, attributes)

    versions = Versions(place, source, compact, check, compact_after, SparkPartitionWork(session))
    taken.begin(versions.id)
    versions.begin(first)
    check_plan(versions.current.artifact, plan)
    if decoding is None:
        check(set(versions.current.attributes))
    stream = Stream(versions, taken, by, decoding, progress, None if files is None else (files, place), tuple(keep))
    writer = messages.writeStream.foreachBatch(stream._run).option("checkpointLocation", place.where)
    stream.query = (writer.trigger(**trigger) if trigger else writer).start()
    return stream


def check_given(subscriptions: Any, plan: str, partitions: int | None) -> None:
    """Raise for a plan that compiled subscriptions do not have."""
    if partitions is not None:
        raise ContradaError("partitions do not apply to compiled subscriptions; pass them to compile")
    if isinstance(subscriptions, ForwardingTable):
        if plan == "partitioned":
            raise ContradaError('a ForwardingTable is one table; pass rows of subscriptions, or plan="broadcast"')
        return
    check_plan(subscriptions.artifact if isinstance(subscriptions, Compiled) else subscriptions, plan)


def check_plan(table: Table, plan: str) -> None:
    """Raise if the table of a stream, which decides the plan, has another one."""
    own = "partitioned" if isinstance(table, PartitionedArtifact) else "broadcast"
    if plan not in ("auto", own):
        raise ContradaError(f'the subscriptions were compiled with plan="{own}"; a stream keeps the plan it began with')


def check_messages(
    messages: DataFrame, decoding: Decoding | None, subscriptions: Any, template: Any, keep: Sequence[str] = ()
) -> None:
    """Raise for messages without the required columns, and for a template that has no rows."""
    if not messages.isStreaming:
        raise ContradaError("messages are a table; match_stream needs a stream, use match")
    if type(messages).__module__.startswith("pyspark.sql.connect"):
        raise ContradaError(
            "streams do not run over Spark Connect: it calls foreachBatch in a process of the server, away from the "
            "versions of subscriptions and the progress that this process keeps; run the stream in a classic session, "
            "such as `contrada stream` by spark-submit next to the server, and read its output over Connect"
        )
    for name in (ID,) if decoding is None else (ID, TEXT):
        if name not in messages.columns:
            raise FormatError(f"messages need column {name!r}; columns: {', '.join(messages.columns)}")
    checked_names("keep", keep, messages.columns if decoding is None else keep)
    if template is not None and isinstance(
        subscriptions, Compiled | Artifact | PartitionedArtifact | ForwardingTable | None
    ):
        raise ContradaError("template needs rows of subscriptions as a DataFrame")


def check_options(
    trigger: Mapping[str, Any] | None, checkpoint: Any, by: str, planned: tuple[str, int | None], subscriptions: Any
) -> None:
    """Raise for wrong options, and triggers without `foreachBatch`, in which a batch gets its version."""
    if not os.fspath(checkpoint):
        raise ContradaError("checkpoint: need a directory or URI for this stream alone")
    if by not in ("subscription", "subscriber"):
        raise ContradaError(f'by: need "subscription" or "subscriber", got {by!r:.60}')
    if planned[0] not in ("auto", "broadcast", "partitioned"):
        raise ContradaError(f'plan: need "auto", "broadcast" or "partitioned", got {planned[0]!r:.60}')
    if not isinstance(subscriptions, DataFrame | None):
        check_given(subscriptions, *planned)
    for name in ("realTime", "continuous"):
        if trigger and name in trigger:
            raise ContradaError(f"trigger {name!r} does not support foreachBatch; use another trigger")


def sink_of(sink: Any) -> Sink:
    """Return a sink as it is, and a directory or a function as a sink."""
    if isinstance(sink, str | os.PathLike):
        return ParquetSink(sink)
    if hasattr(sink, "write") and hasattr(sink, "begin"):
        return cast(Sink, sink)
    if callable(sink):
        return CallSink(sink)
    raise ContradaError(f"sink: need a directory, a sink or a function, got {sink!r:.60}")


def first_table(
    subscriptions: Any, artifacts: str, *, template: Asked | None, plan: Plan, partitions: int | None
) -> Table:
    """Return the table that a new stream starts with."""
    if subscriptions is None:
        types = ("string", "string")
        if plan == "partitioned":
            return manifest(artifacts, (), (*types, False), 0)
        return publish(ForwardingTable(), artifacts, key_type=types[0], subscriber_type=types[1])
    if isinstance(subscriptions, ForwardingTable):
        return publish(subscriptions, artifacts)
    if not isinstance(subscriptions, Artifact | PartitionedArtifact | Compiled):
        subscriptions = compile(subscriptions, artifacts, template=template, plan=plan, partitions=partitions)
    return subscriptions.artifact if isinstance(subscriptions, Compiled) else subscriptions


def _with_files(rejected: DataFrame, damage: Mapping[str, str], version: int) -> DataFrame:
    """Append a rejection for each damaged file: it has no id, and its reason starts with the path."""
    if not damage:
        return rejected
    none = [None] * (len(rejected.columns) - len(("reason", "raw", "version")))
    rows = [(*none, plain_text(f"{path_of(uri)}: {damage[uri]}"), None, version) for uri in sorted(damage)]
    return rejected.union(rejected.sparkSession.createDataFrame(rows, rejected.schema))
