"""Compile the subscriptions of a DataFrame into an artifact, whole or in partitions, in shared storage."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from contrada.amounts import byte_size
from contrada.cql2.queries import Asked, asked_predicate
from contrada.errors import ContradaError, FilterError, FormatError
from contrada.formats.subscriptions import template_columns
from contrada.geometry.globe import globes_of
from contrada.model import Predicate
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.batch.building import build_batches, read_rejected
from contrada.pipeline.batch.numbering import Rows, sent_rows
from contrada.pipeline.kept import KEPT, check_sendable, checked_names
from contrada.pipeline.manifests import NAME_TYPES
from contrada.pipeline.partitioned.partitioning import compile_partitions
from contrada.pipeline.partitioned.partitions import PartitionedArtifact
from contrada.pipeline.partitioned.sizing import measured, table_limits, too_large
from contrada.pipeline.spark_types import artifacts_place, attribute_columns

Plan = Literal["auto", "broadcast", "partitioned"]
NAMES = ("key", "subscriber")
REJECTED_SCHEMA = "row bigint, key string, reason string"


@dataclass(frozen=True)
class Compiled:
    """A compiled table and its rejected rows."""

    artifact: Artifact | PartitionedArtifact
    session: SparkSession
    rejected_path: str | None
    why: str = ""  # reason for the choice of the plan

    @property
    def count(self) -> int:
        """Return the number of subscriptions."""
        return self.artifact.subscriptions

    @property
    def rejected(self) -> DataFrame:
        """Return the bad rows with `row`, `key` and `reason`, read from a file beside the artifact."""
        if self.rejected_path is None:
            return self.session.createDataFrame([], REJECTED_SCHEMA)
        # Spark's own reader may know the store by another scheme, or resolve a plain path elsewhere.
        read = partial(read_rejected, path=self.rejected_path)
        return self.session.range(0, 1, 1, 1).mapInArrow(read, REJECTED_SCHEMA)


def compile(
    subscriptions: DataFrame,
    artifacts: str | os.PathLike[str] | None = None,
    *,
    template: Asked | None = None,
    plan: Plan = "auto",
    partitions: int | None = None,
    messages: DataFrame | None = None,
    keep_subscription: Sequence[str] = (),
    wrap: Mapping[str, str] | None = None,
) -> Compiled:
    """Compile rows of `key, subscriber, filter`, or of the columns of a `template`, into an artifact.

    A key defaults to the number of its row, counted over the partitions in order; a subscriber defaults to the key. Bad
    rows are set aside and the rest compile. The plan "broadcast" builds one table in one task, which must fit into a
    worker's memory; "partitioned" puts every filter into one of about `partitions` tables; "auto" decides by the size
    of the rows. No row passes through the driver. Partitions are balanced by `messages`, too, a sample of those
    expected. Matches may carry the columns `keep_subscription` of the rows. The table wraps the attributes in `wrap` at
    the date line, as `ForwardingTable` does; it is then broadcast.
    """
    globes_of(wrap)
    predicate = None if template is None else asked_predicate(template)
    session = subscriptions.sparkSession
    if plan not in ("auto", "broadcast", "partitioned"):
        raise ContradaError(f'plan: need "auto", "broadcast" or "partitioned", got {plan!r:.60}')
    if wrap:
        plan = _plan_with_wrap(plan, partitions)
    if partitions is not None and (isinstance(partitions, bool) or not 0 < partitions < 1 << 16):
        raise ContradaError(f"partitions: need a number from 1 to 65535, got {partitions!r:.60}")
    place = artifacts_place(session, artifacts)
    rows = subscription_rows(subscriptions, predicate, keep_subscription)
    chosen, count, why = _planned(rows, plan, partitions)
    if chosen == "partitioned":
        made, rejected = compile_partitions(rows, place, count, messages)
        return Compiled(made, session, rejected, why)
    about = _built(rows, place, dict(wrap or {}))
    return Compiled(Artifact.of(about["artifact"]), session, about["rejected"], why)


def _planned(rows: Rows, plan: Plan, partitions: int | None) -> tuple[str, int, str]:
    """Return the plan, its number of partitions, and the reason."""
    most, each = table_limits(rows.frame.sparkSession)
    if plan == "broadcast":
        return plan, 1, "as requested"
    if plan == "partitioned" and partitions is not None:
        return plan, partitions, "as requested, with the number of partitions"
    size = measured(rows.frame, rows.columns)
    count = max(2, math.ceil(size.table / each)) if partitions is None else partitions
    if plan == "partitioned":
        return plan, count, f"as requested; {size}, {byte_size(each)} per partition"
    fits = size.table <= most
    why = f"{size}; a worker can hold {'' if fits else 'no more than '}{byte_size(most)}"
    return ("broadcast" if fits else "partitioned"), count, why


def _plan_with_wrap(plan: Plan, partitions: int | None) -> Plan:
    """Return the plan of a table that wraps attributes; partitions find messages by the boxes of unwrapped values."""
    if plan == "partitioned" or partitions is not None:
        raise ContradaError('wrap: a table that wraps attributes has no partitions; use plan="broadcast"')
    return "broadcast"


def _built(rows: Rows, place: str, wrap: dict[str, str]) -> dict[str, Any]:
    """Build the whole table in one task; return the artifact and the address of the rejected rows."""
    # A coalesced task may start with a nearby partition, so rows are sorted by number.
    ordered = sent_rows(rows).coalesce(1).sortWithinPartitions("row")
    keeping = ordered.select(f"{KEPT}.*").schema.json() if rows.keep else ""
    built = partial(build_batches, job=rows.job()._replace(wrap=wrap), place=place, keeping=keeping)
    try:
        found = ordered.mapInArrow(built, "about string").collect()
    except PySparkException as error:
        if (told := too_large(error, rows.frame.sparkSession)) is not None:
            raise told from error
        raise
    # Spark runs no task for a frame that it knows to be empty.
    text = found[0]["about"] if found else next(built(iter(()))).column(0)[0].as_py()
    about: dict[str, Any] = json.loads(text)
    return about


def subscription_rows(subscriptions: DataFrame, template: Predicate | None, keep: Sequence[str] = ()) -> Rows:
    """Return rows of subscriptions with the required columns, by name, and the Spark types of keys and subscribers."""
    checked_names("keep_subscription", keep, subscriptions.columns)
    check_sendable("keep_subscription", subscriptions, keep)
    wanted = [*(["filter"] if template is None else template_columns(template)), *NAMES]
    types = _name_types(subscriptions, wanted)
    columns = attribute_columns(subscriptions, wanted)
    for name in wanted:
        if name not in columns and name not in NAMES:
            who = "subscriptions without a template need" if template is None else "the template needs"
            raise FilterError(f"{who} column {name!r}; columns: {', '.join(subscriptions.columns)}")
    return Rows(subscriptions, columns, types, template, tuple(keep))


def _name_types(subscriptions: DataFrame, wanted: list[str]) -> tuple[str, str]:
    """Return the Spark types of keys and subscribers; a column of other than text or integers is an error."""
    found = {field.name: field.dataType.simpleString() for field in subscriptions.schema if field.name in wanted}
    found = {name: "string" if kind.startswith(("string", "varchar", "char")) else kind for name, kind in found.items()}
    for name in NAMES:
        if found.get(name, "string") not in NAME_TYPES:
            raise FormatError(f"column {name!r}: need text or integers, got {found[name]}")
    if "filter" in wanted and found.get("filter", "string") != "string":
        raise FormatError(f"column 'filter': need CQL2 text, got {found['filter']}")
    key = found.get("key", "bigint")
    return key, found.get("subscriber", key)
