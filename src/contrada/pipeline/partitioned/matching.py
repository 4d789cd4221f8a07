"""The partitioned plan: route messages to partitions, and match each partition's messages in one or more tasks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from contrada.matching.answer import By
from contrada.pipeline.answers import answer_schema, name_types
from contrada.pipeline.kept import Carried
from contrada.pipeline.partitioned.partitions import PartitionedArtifact
from contrada.pipeline.partitioned.routing import FURTHER, ROUTED_SCHEMA, match_routed, route_batches
from contrada.pipeline.spark_types import ddl_fields
from contrada.pipeline.systems import Systems

TASK_MESSAGES = 1024  # fewer messages do not get a task of their own


class Routed(NamedTuple):
    """Routed messages, persisted, with counts of messages and tasks by partition."""

    frame: DataFrame
    messages: int
    rejected: int
    counts: tuple[int, ...]  # messages by partition
    tasks: tuple[int, ...]  # tasks by partition
    may_repeat: bool  # two partitions may find the same match

    @property
    def replication(self) -> float:
        """Return the average number of partitions of a good message."""
        return sum(self.counts) / max(1, self.messages - self.rejected)


def match_partitions(
    messages: DataFrame,
    columns: dict[str, Column],
    systems: Systems,
    artifact: PartitionedArtifact,
    by: By,
    carried: Carried,
) -> tuple[DataFrame, Routed]:
    """Route messages now; return lists of matches with the number of their message, and rejections."""
    may_repeat = artifact.has_shared or (by == "subscriber" and artifact.has_subscribers)
    routed = _routed(messages, columns, systems, artifact, may_repeat, carried)
    total, task = place_of_task(first_tasks(routed.counts, routed.tasks), routed.tasks)
    spread = routed.frame.where("partition IS NOT NULL OR reason IS NOT NULL")
    placed = spread.repartitionById(total, task)
    matching = partial(
        match_routed, whole=artifact, names=tuple(columns), by=by, systems=systems, kept=carried.arrow_type
    )
    schema = answer_schema(carried.ids, name_types(artifact), by, FURTHER, carried.kept)
    made = placed.mapInArrow(matching, schema)
    return made.persist(), routed


def place_of_task(first: Sequence[int], tasks: Sequence[int]) -> tuple[int, Column]:
    """Return the number of tasks, and the task of a row with a `partition` and a `number`."""
    total, whose = max(1, sum(tasks)), f.col("partition")
    start, several = (_chosen(values, whose) for values in (first, tasks))
    return total, f.coalesce(start + f.pmod("number", several), f.pmod("number", f.lit(total))).cast("int")


def _chosen(values: Sequence[int], place: Column) -> Column:
    """Return the value at a position, null if there is none."""
    return f.get(f.array(*(f.lit(int(value)) for value in values)).cast("array<int>"), place)


def _routed(
    messages: DataFrame,
    columns: dict[str, Column],
    systems: Systems,
    artifact: PartitionedArtifact,
    may_repeat: bool,
    carried: Carried,
) -> Routed:
    names = ["id", *(f"c{k}" for k in range(len(columns)))]
    sent = messages.select(f.monotonically_increasing_id(), carried.id, *columns.values()).toDF("number", *names)
    wide = [k for k, part in enumerate(artifact.partitions) if part.is_wide]
    routing = partial(route_batches, router=artifact.router, names=tuple(columns), wide=wide, systems=systems)
    schema = StructType([*ddl_fields(ROUTED_SCHEMA), *carried.ids.fields, *sent.schema.fields[2:]])
    frame = sent.mapInArrow(routing, schema).persist()
    is_bad = f.col("reason").isNotNull()
    counted = frame.groupBy("partition", is_bad.alias("is_bad")).agg(f.count("*"), f.sum("fan")).collect()
    counts = [0] * len(artifact.partitions)
    seen = rejected = 0
    for partition, bad, rows, fans in counted:
        if partition is not None:
            counts[partition] = rows
        elif bad:
            rejected = rows
        else:
            seen = fans
    wanted = int(messages.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    return Routed(frame, seen, rejected, tuple(counts), task_counts(counts, wanted), may_repeat)


def task_counts(counts: Sequence[int], tasks: int) -> tuple[int, ...]:
    """Divide about `tasks` tasks among partitions in proportion to their message `counts`.

    >>> task_counts([10_000, 900, 0], 8)
    (7, 1, 0)
    """
    total = max(1, sum(counts))
    return tuple(min(-(-count // TASK_MESSAGES), max(1, round(tasks * count / total))) for count in counts)


def first_tasks(counts: Sequence[int], tasks: Sequence[int]) -> list[int]:
    """Return the first task of each partition: tasks with most messages start first, so that none ends late.

    >>> first_tasks([10, 900, 2000], (1, 1, 2))
    [3, 2, 0]
    """
    order = sorted(range(len(counts)), key=lambda k: -counts[k] / max(1, tasks[k]))
    starts = dict(zip(order, np.cumsum([0, *(tasks[k] for k in order)]).tolist(), strict=False))
    return [starts[k] for k in range(len(counts))]
