"""Plan "scan" of `contrada match --spark`: workers hold a few messages, and read rows of a Parquet file past them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from contrada.cli.match import MatchPlan
from contrada.cli.scanning import BLOCK_ROWS, scannable_rows
from contrada.cli.subscribing import Asking, FirstRejected, Reject, no_subscription
from contrada.cql2 import parse
from contrada.errors import ContradaError
from contrada.formats.records import Rejected, files_of
from contrada.formats.tables.row_files import row_text
from contrada.formats.tables.subscription_rows import NAMES, row_blocks
from contrada.formats.templates import template_columns
from contrada.matching.near_rows import can_prune
from contrada.pipeline.batch.matching import Matched
from contrada.pipeline.batch.parquet_shares import STORED_TYPES
from contrada.pipeline.batch.scan import MIN_ROWS, ScannedSubscriptions, scan
from contrada.pipeline.kept import Carried
from contrada.spark_names import quoted


def may_scan(plan: MatchPlan, partitions: int | None, is_parquet: bool) -> bool:
    """Return whether to try a scan, before the subscriptions are read; `is_parquet` tells of the messages.

    Raises ContradaError if the plan is "scan" and the subscriptions cannot be scanned.
    """
    if plan.plan not in ("auto", "scan") or partitions is not None:
        return False
    rows = scannable_rows(plan.asking)
    is_possible = rows is not None and is_parquet and can_prune(parse(plan.asking.template or ""))
    if plan.plan == "scan" and not is_possible:
        raise ContradaError(
            "--plan scan with --spark needs Parquet files of messages, one Parquet file of subscriptions, and a "
            "--template whose filters each have a region or point to meet, without --times, --buffer and options of "
            "coordinate reference systems"
        )
    return is_possible and (plan.plan == "scan" or (rows or 0) >= MIN_ROWS)


def scan_rows(spark: SparkSession, plan: MatchPlan, messages: DataFrame, reject: Reject) -> Matched | str:
    """Match messages with the rows of subscriptions; return why these must be in a table instead, if so.

    Bad rows are rejected with the reasons of a table.
    """
    asking, template = plan.asking, parse(plan.asking.template or "")
    path = os.path.abspath(str(files_of(str(asking.source))[0]))
    columns = template_columns(template)
    if not _are_plain(path, columns, [asking.options[name] for name in NAMES]):
        return "columns of the subscriptions are read by the table only"
    rows = _named(spark.read.parquet(path), asking)
    try:
        found = scan(messages, rows, template, plan.plan, plan.by, Carried.of(messages, plan.keep))
    except ContradaError as error:
        return str(error)  # a table tells all errors
    if isinstance(found, str):
        return found
    known, count = found.subscriptions, pq.read_metadata(path).num_rows
    if known.count < count:
        if "key" not in rows.columns:
            found.persisted.unpersist()
            return "rows without a key are numbered after bad rows are set aside"
        note = FirstRejected(reject)
        for item in _rejected(asking, columns, known):
            note(item)
        if not known.count:
            raise no_subscription(asking, note.first)
    return Matched(found.answers, plan.by, "scan", None, known, found.why, None, messages, found, plan.keep)


def _are_plain(path: str, columns: Collection[str], names: Collection[str]) -> bool:
    """Return True if Spark reads the columns, and those of keys and subscribers, as Arrow does.

    Spark does not tell apart names that differ only by case.
    """
    schema = pq.read_schema(path)
    lowered = [name.lower() for name in schema.names]
    used = {*columns, *names, *NAMES}
    kinds = [schema.field(name).type for name in used if name in schema.names]
    return (
        {*columns} <= {*schema.names}
        and not {*columns} & {*NAMES}
        and all("." not in name and lowered.count(name.lower()) == (name in schema.names) for name in used)
        and all(kind in STORED_TYPES.values() or _is_wkb(kind) for kind in kinds)
    )


def _is_wkb(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType) and kind.storage_type == pa.binary()


def _named(rows: DataFrame, asking: Asking) -> DataFrame:
    """Return rows with the columns `key` and `subscriber`, as the options name them, if they have them."""
    given = {name: asking.options[name] for name in NAMES}
    chosen = [f.col(quoted(own)).alias(name) for name, own in given.items() if own in rows.columns]
    others = [f.col(quoted(name)) for name in rows.columns if name not in NAMES]
    return rows if all(name == own for name, own in given.items()) else rows.select(*others, *chosen)


def _rejected(asking: Asking, columns: list[str], known: ScannedSubscriptions) -> Iterator[Rejected]:
    """Yield the bad rows in order; the file is read again for their texts."""
    names = {name: asking.options[name] for name in NAMES}
    blocks = row_blocks(str(asking.source), asking.format, columns, **names, block_rows=BLOCK_ROWS)
    source, first, block = str(files_of(str(asking.source))[0]), 0, next(blocks)
    for bad in known.rejected.orderBy("row").toLocalIterator():
        while bad.row >= first + block.rows.num_rows:
            first, block = first + block.rows.num_rows, next(blocks)
        yield Rejected(source, "row", bad.row, bad.reason, row_text(block.rows, bad.row - first))
