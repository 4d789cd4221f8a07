"""Describe plans for users: the stages, the balance of partitions, and Spark's own plan."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from contrada.amounts import byte_size, counted
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.partitioned.partitions import Partition, PartitionedArtifact

if TYPE_CHECKING:
    from contrada.pipeline.partitioned.matching import Routed

MAX_SHOWN_PARTITIONS = 20  # partitions listed


def spark_plan(frame: DataFrame) -> str:
    """Return Spark's plan of a frame."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        frame.explain("formatted")
    return printed.getvalue().rstrip()


def broadcast_text(table: Artifact, by: str, why: str) -> list[str]:
    """Return the lines that describe a broadcast table."""
    return [
        "plan: broadcast; every executor holds the whole table, messages stay where they are",
        *_about(table, why),
        *_first_stage(table),
        "  2. on each host fetch the artifact once into the local cache; all workers map it",
        f"  3. match each batch by {by}; a bad message gives a row with its reason",
        "  4. keep the rows, matches and rejections together, in memory and on disk",
    ]


def partitioned_text(table: PartitionedArtifact, routed: Routed, by: str, why: str) -> list[str]:
    """Return the lines that describe partitions, their balance, and the messages sent to them."""
    parts = table.partitions
    wide = sum(part.is_wide for part in parts)
    shared = sum(part.artifact.subscriptions - part.first_shared for part in parts)
    filters = [part.artifact.filters for part in parts]
    return [
        "plan: partitioned; every filter is in one partition, messages go to the partitions that they can match",
        *_about(table, why),
        f"partitions: {len(parts)}, of which {wide} see every message; {shared} rows of subscriptions in several",
        f"balance: the largest has {_over(filters)} the mean number of filters, "
        f"the busiest {_over(routed.counts)} the mean number of messages",
        f"replication: {counted(routed.messages, 'message')}, {routed.rejected:,} of them bad, "
        f"went to {sum(routed.counts):,} partitions, {routed.replication:.2f} each",
        *_table(parts, routed),
        *_first_stage(table),
        "  2. reject bad messages and find the partitions that each of the others can match; keep and count these rows",
        "  3. send each row to a task of its partition; one with many messages has several tasks",
        f"  4. fetch the partition's table into the local cache, map it, and match by {by}",
        "  5. keep the rows, matches and rejections together, in memory and on disk",
        f"  6. {'make what several partitions may have found distinct, by message' if routed.may_repeat else 'nothing is found twice'}",  # noqa: E501
    ]  # fmt: skip


def _table(parts: Sequence[Partition], routed: Routed) -> Iterator[str]:
    """Yield a line for each partition, the busiest first."""
    yield "  partition  filters      bytes   messages  tasks"
    order = sorted(range(len(parts)), key=lambda k: -routed.counts[k])
    for k in order[:MAX_SHOWN_PARTITIONS]:
        own = parts[k].artifact
        kind = "  sees every message" if parts[k].is_wide else ""
        yield f"  {k:9d} {own.filters:8d} {own.bytes:10d} {routed.counts[k]:10d} {routed.tasks[k]:6d}{kind}"
    if len(order) > MAX_SHOWN_PARTITIONS:
        yield f"  and {len(order) - MAX_SHOWN_PARTITIONS} more"


def _over(counts: Sequence[int]) -> str:
    mean = sum(counts) / max(1, len(counts))
    return f"{max(counts, default=0) / mean if mean else 1:.2f} times"


def _about(table: Artifact | PartitionedArtifact, why: str) -> Iterator[str]:
    """Yield the reason for the plan, and the size and place of a table."""
    filters = counted(table.filters, "filter")
    yield f"why: {why}"
    yield f"table: {counted(table.subscriptions, 'subscription')}, {filters}, {byte_size(table.bytes)}"
    yield f"artifact: {table.path}"


def _first_stage(table: Artifact | PartitionedArtifact) -> Iterator[str]:
    asked = ", ".join(table.attributes) or "none"
    yield "stages:"
    yield f"  1. send message_id and the attributes that are asked for ({asked}) in Arrow batches to Python"
