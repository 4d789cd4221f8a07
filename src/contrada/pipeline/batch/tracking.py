"""Follow tracked objects through the messages of a DataFrame: rows of events and of rejections in one pass."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from contrada.cql2.queries import Asked
from contrada.errors import ContradaError, FormatError
from contrada.pipeline.answers import ID
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.batch.compiling import Compiled, compile
from contrada.pipeline.batch.tracked_batches import UNWATCHED, TrackJob, event_fields, follow_batches, unwatched
from contrada.pipeline.manifests import NAME_TYPES
from contrada.pipeline.partitioned.partitions import PartitionedArtifact
from contrada.pipeline.spark_types import attribute_columns, fields
from contrada.pipeline.systems import frame_systems
from contrada.tracking.durations import Duration
from contrada.tracking.watch import First, On, kinds_of

TIMES = ("timestamp",)  # others depend on the time zone of the session: cast them
EVENT = ("event", "subscriber", "key", "object", "before", "after", "time", "reason")


@dataclass(frozen=True)
class Tracked:
    """Events of tracked objects and rejected messages; both are read from answers that the first action persists."""

    answers: DataFrame
    artifact: Artifact
    compiled: Compiled | None  # if subscriptions were given as rows
    job: TrackJob

    @property
    def events(self) -> DataFrame:
        """Return a row of `message_id, event, subscriber, key, object, before, after, time, reason` per event.

        `message_id` is null for what time told: dwells and exits after the last message of an object.
        """
        return self.answers.where("rejection IS NULL").select(ID, *EVENT)

    @property
    def rejected(self) -> DataFrame:
        """Return a row of `message_id, reason` per message that was not tracked."""
        return self.answers.where("rejection IS NOT NULL").select(ID, f.col("rejection").alias("reason"))

    @property
    def unwatched(self) -> DataFrame:
        """Return a row of `key, reason` per subscription that cannot be watched: it needs one spatial constraint."""
        read: Any = partial(unwatched, job=self.job)
        one = self.answers.sparkSession.range(0, 1, 1, 1)
        return one.mapInArrow(read, _spark_schema(UNWATCHED))

    def unpersist(self) -> None:
        """Drop the persisted answers; the next action follows the objects again."""
        self.answers.unpersist()


def track(
    messages: DataFrame,
    subscriptions: DataFrame | Compiled | Artifact,
    on: On,
    *,
    track: str,
    time: str,
    template: Asked | None = None,
    exit_buffer: float = 0.0,
    exit_after: Duration | None = None,
    first: First = "enter",
    expire_after: Duration | None = None,
    artifacts: str | os.PathLike[str] | None = None,
    partitions: int | None = None,
) -> Tracked:
    """Tell when tracked objects enter, leave, touch or cross the regions of subscriptions, as a `Tracker` does.

    Messages have a column `message_id`, one per attribute, the id of an object in `track` (text or whole numbers) and
    the time of the fix in `time` (timestamps). Those of one object are taken in order of time, then of
    `message_id`, in one task, of which there are `partitions`. At the end time passes up to the newest message.
    Subscriptions are rows or the result of `compile`; options are those of `Tracker`.
    """
    kinds_of(on)
    if ID not in messages.columns:
        raise FormatError(f"messages need column {ID!r}; columns: {', '.join(messages.columns)}")
    if messages.isStreaming:
        raise ContradaError("messages are a stream; track needs a table")
    if partitions is not None and (isinstance(partitions, bool) or not 0 < partitions < 1 << 16):
        raise ContradaError(f"partitions: need a number from 1 to 65535, got {partitions!r:.60}")
    compiled, artifact = _compiled(subscriptions, template, artifacts)
    columns = attribute_columns(messages, {*artifact.attributes, track, time})
    id_type = checked_types(messages, track, time)
    job = TrackJob(
        artifact, tuple(columns), frame_systems(messages, columns),
        {"track": track, "time": time, "expire_after": expire_after},
        {"on": on, "exit_buffer": exit_buffer, "exit_after": exit_after, "first": first}, id_type,
    )  # fmt: skip
    parts = () if partitions is None else (partitions,)
    sent = messages.select(ID, *columns.values()).toDF(ID, *(f"c{place}" for place in range(len(columns))))
    names = list(columns)
    owner, when = f"c{names.index(track)}", f"c{names.index(time)}"
    ordered = sent.repartition(*parts, owner).sortWithinPartitions(when, ID)
    work: Any = partial(follow_batches, job=job, newest=_newest(sent, when))
    # Events that time makes have no id, also where no message lacks one.
    id = StructField(ID, messages.schema[ID].dataType, True, messages.schema[ID].metadata)
    schema = StructType([id, *_spark_schema(pa.schema(event_fields(job))).fields])
    return Tracked(ordered.mapInArrow(work, schema).persist(), artifact, compiled, job)


def _compiled(
    subscriptions: DataFrame | Compiled | Artifact, template: Asked | None, artifacts: str | os.PathLike[str] | None
) -> tuple[Compiled | None, Artifact]:
    """Return the whole table of the subscriptions; a table in partitions is an error."""
    if not isinstance(subscriptions, DataFrame) and template is not None:
        raise ContradaError("template does not apply to compiled subscriptions; pass it to compile")
    if isinstance(subscriptions, DataFrame):
        subscriptions = compile(subscriptions, artifacts, template=template, plan="broadcast")
    compiled = subscriptions if isinstance(subscriptions, Compiled) else None
    artifact = subscriptions.artifact if isinstance(subscriptions, Compiled) else subscriptions
    if isinstance(artifact, PartitionedArtifact):
        raise ContradaError('tracking needs the whole table in each task; compile with plan="broadcast"')
    return compiled, artifact


def checked_types(messages: DataFrame, track: str, time: str) -> str:
    """Return the Spark type of the ids of objects; an absent column or one of another type is a FormatError."""
    kinds = {name: kind.simpleString() for name, _, kind in fields(messages.schema)}
    for name, allowed, need in ((track, NAME_TYPES, "text or whole numbers"), (time, TIMES, "timestamps")):
        if name not in kinds:
            raise FormatError(f"messages need column {name!r}; columns: {', '.join(messages.columns)}")
        if kinds[name] not in allowed:
            raise FormatError(f"column {name!r}: need {need}, got {kinds[name]}")
    return kinds[track]


def _newest(sent: DataFrame, when: str) -> int | None:
    """Return the newest time of all messages in milliseconds since 1970; None without messages."""
    found = sent.select(f.unix_micros(f.max(when))).first()
    return None if found is None or found[0] is None else int(found[0]) // 1_000


def _spark_schema(schema: Any) -> StructType:
    return from_arrow_schema(schema)
