"""Jobs of streams whose table is in partitions: route and match a batch, look keys up, and rebuild partitions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType

from contrada.matching.answer import By
from contrada.pipeline.answers import ID, answer_schema, name_types
from contrada.pipeline.partitioned.matching import first_tasks, place_of_task, task_counts
from contrada.pipeline.partitioned.partitions import PartitionedArtifact, manifest, partitions_of
from contrada.pipeline.partitioned.sizing import table_limits
from contrada.pipeline.spark_types import ddl_fields
from contrada.pipeline.stream.changes import Change, Name
from contrada.pipeline.stream.partition_tables import find_keys, rebuild_partitions
from contrada.pipeline.stream.partitioned_changes import spread_changes
from contrada.pipeline.stream.routed_worker import FURTHER, match_routed_version, route_version
from contrada.pipeline.stream.worker import TaskOrders


class RoutedBatch(NamedTuple):
    """The answers of a batch, and the routed messages that they were made of; both are persisted."""

    answers: DataFrame
    routed: DataFrame


def route_batch(sent: DataFrame, ids: StructType, work: TaskOrders) -> RoutedBatch:
    """Route the messages of a batch now; `sent` has an id and the columns that `work` names."""
    whole = work.version.artifact
    assert isinstance(whole, PartitionedArtifact)
    schema = answer_schema(ids, name_types(whole), work.by, FURTHER)
    numbered = sent.select(f.monotonically_increasing_id().alias("number"), "*")
    route = ddl_fields("partition int, fan int")
    # Null in rows of answers, also where no message has null: Spark's code for such a column fails on it.
    of_messages = [StructField(one.name, one.dataType) for one in sent.schema.fields[1:]]
    columns = StructType([*schema.fields, *route, *of_messages])
    routed = numbered.mapInArrow(partial(route_version, work=work), columns).persist()
    try:
        is_sent = f.col("partition").isNotNull()
        counts = [0] * len(whole.partitions)
        for number, count in routed.where(is_sent).groupBy("partition").count().collect():
            counts[number] = count
        wanted = int(sent.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
        tasks = task_counts(counts, wanted)
        total, task = place_of_task(first_tasks(counts, tasks), tasks)
        own = sent.columns[1:]
        spread = routed.where(is_sent).select("partition", "fan", "number", f.col(ID).alias("id"), *own)
        placed = spread.repartitionById(total, task)
        matched = placed.mapInArrow(partial(match_routed_version, work=work), schema)
        answers = routed.where(~is_sent).select(*schema.names).union(matched).persist()
    except BaseException:
        routed.unpersist()
        raise
    return RoutedBatch(answers, routed)


def may_repeat(whole: PartitionedArtifact, by: By, has_changes: bool) -> bool:
    """Return True if a match may be found twice: in two partitions, or in one and among later subscriptions."""
    return whole.has_shared or (by == "subscriber" and (whole.has_subscribers or has_changes))


def distinct_matches(answers: DataFrame, by: By) -> DataFrame:
    """Return a row per match, each once, of answers that may have some twice."""
    found = answers.where("found IS NOT NULL")
    own = found.where("NOT is_shared").select(ID, f.inline("found"))
    names = ["subscriber", "key"] if by == "subscription" else ["subscriber"]
    shared = found.where("is_shared").select("number", ID, f.inline("found"))
    # Distinct by number, not by id: two messages with one id are two messages.
    return own.union(shared.dropDuplicates(["number", *names[-1:]]).select(ID, *names))


class SparkPartitionWork:
    """Looks keys up in partitions, and rebuilds partitions with changes, in Spark tasks."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def find(self, base: PartitionedArtifact, keys: Sequence[Name]) -> set[Name]:
        """Return which keys the base has."""
        if not base.partitions:
            return set()
        made = partial(find_keys, base=base, keys=keys)
        return {keys[row.place] for row in self._each(len(base.partitions), made, "place int")}

    def rebuild(
        self, base: PartitionedArtifact, changes: Sequence[Change], subscriptions: int, artifacts: str
    ) -> PartitionedArtifact:
        """Return a base with the last changes of some keys; the new tables go to the directory `artifacts`."""
        spread = spread_changes(base, changes, table_limits(self._session)[1])
        made = partial(
            rebuild_partitions, base=base, changes=changes, added=spread.subscriptions, boxes=spread.boxes,
            artifacts=artifacts,
        )  # fmt: skip
        count = max([len(base.partitions), *(number + 1 for number in spread.subscriptions)])
        parts, _ = partitions_of(json.loads(row.about) for row in self._each(count, made, "about string"))
        names = any(change.filter is not None and change.subscriber != change.key for change in changes)
        return manifest(
            artifacts, parts, (base.key_type, base.subscriber_type, base.has_subscribers or names), subscriptions
        )

    def _each(self, count: int, work: Callable[[Any], Any], schema: str) -> list[Any]:
        """Run a task for each of some partitions; return the rows."""
        if not count:
            return []
        return self._session.range(0, count, 1, count).mapInArrow(work, schema).collect()
