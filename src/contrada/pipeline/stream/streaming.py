"""Match streams of messages against subscriptions that change meanwhile, with Structured Streaming."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from contrada.cql2.queries import Asked
from contrada.errors import ContradaError, FormatError
from contrada.matching import ForwardingTable
from contrada.matching.answer import By
from contrada.pipeline.answers import ID
from contrada.pipeline.artifacts import Artifact, publish
from contrada.pipeline.batch.compiling import Compiled, Plan, compile
from contrada.pipeline.kept import checked_names
from contrada.pipeline.partitioned.partitions import PartitionedArtifact, manifest
from contrada.pipeline.spark_types import attribute_columns
from contrada.pipeline.storage import Storage
from contrada.pipeline.stream.batches import TEXT, BatchWork
from contrada.pipeline.stream.changes import Changes, DirectoryChanges
from contrada.pipeline.stream.message_files import MessageFiles
from contrada.pipeline.stream.partition_jobs import SparkPartitionWork
from contrada.pipeline.stream.progress import StreamProgress
from contrada.pipeline.stream.running import Stream
from contrada.pipeline.stream.sinks import CallSink, ConsoleSink, ParquetSink, Sink, StreamBatch
from contrada.pipeline.stream.version import Table, Version
from contrada.pipeline.stream.version_log import Versions
from contrada.pipeline.stream.worker import Decoding, compact_version
from contrada.pipeline.systems import is_connect


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
    first = partial(first_table, subscriptions, template=template, plan=plan, partitions=partitions)
    taken = sink_of(sink, messages)
    source = DirectoryChanges(os.fspath(changes)) if isinstance(changes, str | os.PathLike) else changes
    session = messages.sparkSession
    check = partial(check_attributes, None if decoding is not None else messages.schema)
    compact = partial(_compact, session)
    versions = Versions(place, source, compact, check, compact_after, SparkPartitionWork(session))
    taken.begin(versions.id)
    versions.begin(first, opens=not is_connect(messages))
    check_plan(versions.current.artifact, plan)
    check(set(versions.current.attributes))
    work = BatchWork(versions, taken, by, decoding, None if files is None else (files, place), keep)
    stream = Stream(work, progress)
    stream._start(messages, place.where, trigger)
    return stream


def _compact(session: SparkSession, version: Version, place: str, artifacts: str) -> Artifact:
    """Merge the table and the segments of a version, in a task."""
    made = partial(compact_version, version=version, place=place, artifacts=artifacts)
    about = session.range(0, 1, 1, 1).mapInArrow(made, "about string").collect()[0]["about"]
    return Artifact.of(json.loads(about))


def check_attributes(schema: StructType | None, attributes: set[str]) -> None:
    """Raise for attributes that Spark cannot send, of messages with this schema; texts, without one, have any."""
    if schema is not None:
        attribute_columns(schema, attributes)


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


def sink_of(sink: Any, messages: DataFrame, rows: str = "matches") -> Sink:
    """Return a sink as it is, and a directory, with the name of its `rows`, or a function as a sink."""
    if isinstance(sink, str | os.PathLike):
        return ParquetSink(sink, rows)
    if isinstance(sink, ConsoleSink) and is_connect(messages):
        raise ContradaError(
            "over Spark Connect a ConsoleSink would print into the log of the server, in whose process batches run; "
            "use a directory, a topic or a table, and read it here"
        )
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
