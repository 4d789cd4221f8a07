"""The plan "scan": every worker holds the few messages, and rows of subscriptions are read past them, not compiled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType

from contrada.amounts import byte_size, counted
from contrada.errors import ContradaError
from contrada.matching.answer import By
from contrada.matching.near_rows import can_prune
from contrada.model import Predicate
from contrada.pipeline.answers import ID, answer_schema
from contrada.pipeline.batch.compiling import REJECTED_SCHEMA, subscription_rows
from contrada.pipeline.batch.numbering import Rows, row_offsets, sent_rows
from contrada.pipeline.batch.parquet_shares import (
    ParquetShares,
    UnreadableShareError,
    parquet_shares,
    share_batches,
)
from contrada.pipeline.batch.scan_batches import (
    FURTHER,
    ChunkReport,
    FewMessages,
    number_rows,
    scan_batches,
    scan_shares,
)
from contrada.pipeline.batch.simplified_batches import PART_BITS
from contrada.pipeline.kept import KEPT, Carried, kept_struct
from contrada.pipeline.spark_types import attribute_columns
from contrada.pipeline.systems import frame_systems
from contrada.spark_names import quoted

# Plan "auto" scans if there are at most MAX_MESSAGES, with MAX_BYTES, at least MIN_ROWS of subscriptions, and
# ROWS_PER_MESSAGE of them for each message. Measured by `python -m benchmarks.spark --only scan`: compiling is faster
# with 20,000 rows, scanning with 500,000, and both take about the same time with 100,000.
MAX_MESSAGES, MAX_BYTES = 16_384, 64 << 20
MIN_ROWS, ROWS_PER_MESSAGE = 50_000, 25


@dataclass(frozen=True)
class ScannedSubscriptions:
    """Subscriptions that were read once: the number of good ones, and the persisted answers with the bad rows."""

    count: int
    persisted: DataFrame
    offsets: dict[int, int]  # number of the first row of each partition

    @property
    def rejected(self) -> DataFrame:
        """Return the bad rows with `row`, `key` and `reason`."""
        bad = self.persisted.where("row IS NOT NULL").select("row", "key", "reason")
        return bad.mapInArrow(partial(number_rows, offsets=self.offsets), REJECTED_SCHEMA)


class MessageScan(NamedTuple):
    """Answers of a scan, from a persisted frame, and what is known of the subscriptions."""

    answers: DataFrame
    persisted: DataFrame
    subscriptions: ScannedSubscriptions
    asked: dict[str, list[str]]  # kinds of values that subscriptions ask for, by attribute
    may_repeat: bool  # several chunks of rows may have a subscriber in common
    why: str
    stages: list[str]


def scan(
    messages: DataFrame,
    subscriptions: DataFrame,
    template: Predicate | None,
    plan: str,
    by: By,
    carried: Carried,
    keep: Sequence[str] = (),
) -> MessageScan | str:
    """Match few messages with rows of subscriptions, now; return why the rows must be compiled instead.

    With plan "scan" counts do not matter, and a template that needs all rows for a message is a ContradaError.
    """
    if template is None or not can_prune(template):
        if plan == "scan":
            raise ContradaError('plan "scan" needs a template whose filters each have a region or point to meet')
        return ""
    rows = subscription_rows(subscriptions, template, keep)
    if rows.keep:
        schema = subscriptions.select(kept_struct(subscriptions, keep)).select(f"{KEPT}.*").schema
        carried = carried.with_subscriptions(schema, keep)
    shares = parquet_shares(subscriptions.select(*rows.columns.values(), *_to_keep(rows)))
    count = None if plan == "scan" else subscriptions.count() if shares is None else shares.rows
    if count is not None and count < MIN_ROWS:
        return ""
    most = None if count is None else min(MAX_MESSAGES, count // ROWS_PER_MESSAGE)
    few = _collected(messages, carried, template, most)
    if few is None:
        return ""
    why = "as requested" if count is None else f"{counted(few.size, 'message')} for {counted(count, 'row')}"
    return _scanned(messages, rows, few, by, why, shares, carried)


def _to_keep(rows: Rows) -> list[Column]:
    """Return the kept columns under names of their own: a column may be kept that the template needs as well."""
    return [f.col(quoted(name)).alias(f"kept {name}") for name in rows.keep]


class _Collected(NamedTuple):
    messages: FewMessages
    size: int


def _collected(messages: DataFrame, carried: Carried, template: Predicate, most: int | None) -> _Collected | None:
    """Return the messages; None if there are more than `most`, or they are large."""
    columns = attribute_columns(messages, {constraint.attribute for part in template for constraint in part})
    sent = messages.select(carried.id, *columns.values()).toDF("id", *(f"c{k}" for k in range(len(columns))))
    table = _table_of(sent, most)
    if most is not None and (table.num_rows > most or table.nbytes > MAX_BYTES):
        return None
    data = pa.BufferOutputStream()
    with pa.ipc.new_stream(data, table.schema) as writer:
        writer.write_table(table)
    found = FewMessages(data.getvalue().to_pybytes(), tuple(columns), frame_systems(messages, columns))
    return _Collected(found, table.num_rows)


def _table_of(sent: DataFrame, most: int | None) -> Any:
    """Return the rows of a frame; some of them if there are more than `most`."""
    shares = parquet_shares(sent)
    if shares is not None and shares.shares and (most is None or shares.rows <= most):
        with suppress(UnreadableShareError):
            batches = [batch for share in shares.shares for batch in share_batches(share, shares.columns)]
            return pa.Table.from_batches(batches).drop_columns("row")
    return (sent if most is None else sent.limit(most + 1)).toArrow()


def _scanned(
    messages: DataFrame,
    rows: Rows,
    few: _Collected,
    by: By,
    why: str,
    shares: ParquetShares | None,
    carried: Carried,
) -> MessageScan | str:
    job, kind = rows.job(), carried.arrow_type
    if shares is None:
        source = sent_rows(rows)
        if "key" not in job.names:
            job = job._replace(offsets=row_offsets(source))
        reading: Any = partial(scan_batches, messages=few.messages, job=job, by=by, kept=kind)
    else:
        job = job._replace(offsets=shares.offsets)
        session = messages.sparkSession
        tasks = shares.dealt(session.sparkContext.defaultParallelism)
        source = session.range(0, len(tasks), 1, max(1, len(tasks)))
        reading = partial(
            scan_shares, tasks=tasks, columns=shares.columns, messages=few.messages, job=job, by=by, kept=kind
        )
    field = carried.ids[ID]
    ids = StructType([StructField(ID, field.dataType, True, field.metadata)])  # null: bad subscriptions, reports
    frame = source.mapInArrow(reading, answer_schema(ids, rows.types, by, FURTHER, carried.kept)).persist()
    try:
        about = frame.where("about IS NOT NULL").select("about").collect()
    except PySparkException as error:
        frame.unpersist()
        if UnreadableShareError.__name__ not in str(error):
            raise
        return _scanned(messages, rows, few, by, why, None, carried)
    reports = sorted(ChunkReport(**json.loads(row.about)) for row in about)
    trouble = _trouble(reports) or _repeated(rows, reports)
    if trouble:
        frame.unpersist()
        return trouble
    good = [report for report in reports if report.good]
    first = good[0].chunk if good else -1  # every chunk rejects the same messages
    answers = frame.where(f"found IS NOT NULL OR (reason IS NOT NULL AND chunk = {first})")
    known = ScannedSubscriptions(sum(report.good for report in reports), frame, _offsets(reports))
    may_repeat = by == "subscriber" and "subscriber" in job.names
    stages = _stages(few, known.count, reports, by, shares)
    return MessageScan(answers, frame, known, good[0].asked if good else {}, may_repeat, why, stages)


def _trouble(reports: Sequence[ChunkReport]) -> str:
    """Return why rows that were read in chunks may have to be rejected because of rows of other chunks."""
    for report in reports:
        if report.trouble:
            return report.trouble
    kinds = {(name, kind) for report in reports for name, kinds in report.kinds.items() for kind in kinds}
    if len(kinds) > len({name for name, _ in kinds}):
        return "geometry of subscriptions is of several kinds"
    if len({report.rejected for report in reports if report.good}) > 1:
        return "messages are bad for some of the subscriptions only"
    return ""


def _repeated(rows: Rows, reports: Sequence[ChunkReport]) -> str:
    """Return why keys must be compared: some are repeated. Chunks have distinct keys, most often in ranges apart."""
    ranges = sorted(report.keys for report in reports if report.keys is not None)
    if all(one[1] < other[0] for one, other in pairwise(ranges)):
        return ""
    keys = rows.frame.select(rows.columns["key"].alias("key")).where("key IS NOT NULL")
    twice = keys.groupBy("key").count().where("count > 1")
    return "" if twice.isEmpty() else "keys are repeated"


def _offsets(reports: Sequence[ChunkReport]) -> dict[int, int]:
    """Return the number of the first row of each partition, counted over the partitions in order."""
    counts: dict[int, int] = {}
    for report in reports:
        part = report.chunk >> PART_BITS
        counts[part] = counts.get(part, 0) + report.rows
    return dict(zip(counts, accumulate(counts.values(), initial=0), strict=False))


def _stages(
    few: _Collected, good: int, reports: Sequence[ChunkReport], by: By, shares: ParquetShares | None
) -> list[str]:
    size = byte_size(len(few.messages.data))
    read = "send rows of subscriptions in Arrow batches to Python" if shares is None else "read Parquet files in Python"
    return [
        "plan: scan; every worker holds all messages, rows of subscriptions are read once and not compiled",
        f"messages: {few.size:,}, {size}",
        f"subscriptions: {good:,} good of {sum(report.rows for report in reports):,}, in {len(reports)} chunks",
        "stages:",
        "  1. collect the messages, with the attributes that are asked for, on the driver",
        f"  2. {read}; set bad rows aside",
        f"  3. build a table of the rows of a chunk whose boxes meet a message, and match all messages by {by}",
        "  4. keep the rows, matches and rejections together, in memory and on disk",
        "  5. compare what the chunks say of keys, coordinate systems and kinds of geometry; compile if they differ",
    ]
