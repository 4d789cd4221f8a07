"""Write all messages of a run, each with its matches, as JSON lines in the order of time.

Spark sorts messages and matches into one stream: each message is followed by its matches. Tasks write lines and emit
them in blocks, so neither a task nor the driver holds more than a block, however many messages there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from contrada.report.columns import GEOMETRY, MAX_VALUE_LENGTH, first_column, shown_attributes, text_column, wkb_column
from contrada.report.numbers import CountedTables, persisted
from contrada.report.relating import UNKNOWN, located, relations_of
from contrada.report.shapes import ShapeEncoder
from contrada.report.text import json_text
from contrada.spark_names import quoted

MESSAGES_PER_BLOCK = 2000
MATCHES_PER_BLOCK = 100_000
ROWS_PER_TASK = 200_000  # messages and matches
LETTERS = "01234567"  # of relation codes
BLOCKS = "items string, details string, counts string, box array<double>"
MESSAGE, MATCH = 0, 1  # kinds of rows; a message sorts before its matches


class MessageLine(NamedTuple):
    """One message: its line in the list, its line of details, and the number of its matches (-1: rejected)."""

    item: str
    detail: str
    matches: int
    box: NDArray[np.float64]  # NaN if nothing is drawn


def _parallelism(session: SparkSession) -> int:
    """Return the number of tasks that run at once; Spark Connect tells that of tasks after a shuffle only."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        return int(session.conf.get("spark.sql.shuffle.partitions") or 1)
    return session.sparkContext.defaultParallelism


@contextmanager
def message_blocks(
    kept: CountedTables, subscriptions: DataFrame, encoder: ShapeEncoder, total: int
) -> Iterator[DataFrame]:
    """Return blocks of consecutive messages (BLOCKS): lines of the list and of details, and numbers of matches.

    `total` is about the number of messages and matches together. The blocks are on the disks of the workers within the
    context.
    """
    names = shown_attributes(kept.run.messages)
    parts = max(_parallelism(kept.run.messages.sparkSession), -(-total // ROWS_PER_TASK))
    columns = [f"value{k}" for k in range(len(names))]

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _blocks(_lines(batches, columns, encoder))

    with persisted(_numbered_messages(kept, names)) as messages:
        rows = _rows(kept, messages, subscriptions)
        ordered = rows.repartitionByRange(parts, "number").sortWithinPartitions("number", "kind", "subscription")
        blocks = ordered.mapInArrow(write, BLOCKS).persist(StorageLevel.DISK_ONLY)
        try:
            blocks.count()  # all tasks at once; an iterator would run them one after another
            yield blocks
        finally:
            blocks.unpersist()


def _rows(kept: CountedTables, messages: DataFrame, subscriptions: DataFrame) -> DataFrame:
    """Return messages and matches as one table: the number of a message, the kind of row, and columns of both."""
    refused = kept.run.rejected.groupBy(F.col("message_id").alias("_id")).agg(
        F.min(text_column(kept.run.rejected, "reason", MAX_VALUE_LENGTH)).alias("reason")
    )
    # Only if all messages of an id were rejected; of some that share an id, nothing tells which ones were.
    whole = kept.messages.where("rejected >= copies AND rejected > 0").select(F.col("message_id").alias("_whole"))
    refused = refused.join(whole, F.col("_id").eqNullSafe(F.col("_whole")), "left_semi")
    told = messages.join(refused, F.col("message_id").eqNullSafe(F.col("_id")), "left").drop("_id", "message_id")
    given = told.withColumns({"kind": F.lit(MESSAGE), "subscription": F.lit(None).cast("long")})
    found = _matches(kept, messages, subscriptions)
    return given.unionByName(found, allowMissingColumns=True)


def _numbered_messages(kept: CountedTables, names: list[str]) -> DataFrame:
    """Return message_id, number, name, time (milliseconds), values and wkb of all messages, numbered by time."""
    table = kept.run.messages
    values = [text_column(table, name, MAX_VALUE_LENGTH).alias(f"value{k}") for k, name in enumerate(names)]
    time = F.lit(None) if kept.time is None else F.col(quoted(kept.time))
    told = table.select(
        "message_id",
        F.substring(F.col("message_id").cast("string"), 1, MAX_VALUE_LENGTH).alias("name"),
        F.unix_millis(time.cast("timestamp")).alias("time"),
        *values,
        wkb_column(table, first_column(table, *GEOMETRY)),
    )
    # Messages that are equal in all columns get equal lines, so their order does not matter. One task sorts all.
    columns = ["message_id", *(f"value{k}" for k in range(len(names))), "wkb"]
    order = [F.asc_nulls_last("time"), *map(F.col, columns)]
    return told.withColumn("number", (F.row_number().over(Window.orderBy(*order)) - 1).cast("long"))


def _matches(kept: CountedTables, messages: DataFrame, subscriptions: DataFrame) -> DataFrame:
    """Return number (of the message), kind, subscription (its number) and wkb (of the subscription) of all matches."""
    owner = F.col("subscriber").cast("string").alias("_subscriber")
    found = kept.run.matches.select(
        F.col("message_id").alias("_id"), F.col(kept.unit).cast("string").alias("_unit"), owner
    )
    known = subscriptions.select(F.col("number").alias("subscription"), "unit", "subscriber", "wkb")
    both = F.col("_unit").eqNullSafe(F.col("unit")) & F.col("_subscriber").eqNullSafe(F.col("subscriber"))
    ids = messages.select("message_id", "number")
    joined = found.join(ids, F.col("_id").eqNullSafe(F.col("message_id"))).join(known, both)
    return joined.select("number", F.lit(MATCH).alias("kind"), "subscription", "wkb")


class _Open:
    """The message whose matches are being read: they may come in several batches."""

    def __init__(self, item: str, shape: str, box: NDArray[np.float64], reason: str | None) -> None:
        self.item, self.shape, self.box, self.reason = item, shape, box, reason
        self.subscriptions: list[NDArray[np.int64]] = []
        self.codes: list[NDArray[np.uint8]] = []

    def line(self) -> MessageLine:
        """Return the finished line; a subscription that matched more than once is listed once."""
        numbers = np.concatenate(self.subscriptions) if self.subscriptions else np.empty(0, np.int64)
        codes = np.concatenate(self.codes) if self.codes else np.empty(0, np.uint8)
        steps = np.diff(numbers, prepend=0)
        keep = np.ones(len(numbers), np.bool_)
        keep[1:] = steps[1:] > 0
        letters = "".join("-" if code == UNKNOWN else LETTERS[code] for code in codes[keep].tolist())
        listed = ",".join(map(str, steps[keep].tolist()))
        refused = "" if self.reason is None else "," + json_text(self.reason)
        detail = f'[{self.shape},[{listed}],"{letters}"{refused}]'
        return MessageLine(self.item, detail, -1 if self.reason is not None else len(letters), self.box)


def _lines(batches: Iterator[pa.RecordBatch], columns: list[str], encoder: ShapeEncoder) -> Iterator[MessageLine]:
    """Return the lines of messages; the rows of a batch are messages, each before its matches."""
    current: _Open | None = None
    carried: Any = None  # the WKB of the message whose matches the batch begins with
    for batch in batches:
        is_message = batch.column("kind").to_numpy() == MESSAGE
        starts = np.flatnonzero(is_message)
        own = batch.column("wkb").filter(pa.array(is_message))
        of_messages = pa.concat_arrays([pa.array([carried], pa.binary()), own.cast(pa.binary())])
        matches = np.flatnonzero(~is_message)
        owners = np.cumsum(is_message)[matches]  # 0: the message of an earlier batch
        of_matches = located(batch.column("wkb").filter(pa.array(~is_message)).cast(pa.binary()))
        codes = relations_of(located(of_messages), owners, of_matches)
        numbers = batch.column("subscription").to_numpy(zero_copy_only=False)[matches].astype(np.int64)
        ends = np.searchsorted(owners, np.arange(len(starts) + 2))
        _add(current, numbers[: ends[1]], codes[: ends[1]])
        opened = _opened(batch.filter(pa.array(is_message)), own, columns, encoder)
        for place, message in enumerate(opened, start=1):
            if current is not None:
                yield current.line()
            current = message
            _add(current, numbers[ends[place] : ends[place + 1]], codes[ends[place] : ends[place + 1]])
        carried = of_messages[-1].as_py()
    if current is not None:
        yield current.line()


def _add(message: _Open | None, numbers: NDArray[np.int64], codes: NDArray[np.uint8]) -> None:
    if message is not None and len(numbers):
        message.subscriptions.append(numbers)
        message.codes.append(codes)


def _opened(batch: pa.RecordBatch, wkb: Any, columns: list[str], encoder: ShapeEncoder) -> Iterator[_Open]:
    shapes, boxes = encoder.encode(wkb)
    told = [batch.column(name).to_pylist() for name in ("name", "time", *columns)]
    for shape, box, reason, *values in zip(shapes, boxes, batch.column("reason").to_pylist(), *told, strict=True):
        yield _Open(json_text(values), shape, box, reason)


def _blocks(lines: Iterator[MessageLine]) -> Iterator[pa.RecordBatch]:
    """Return blocks of lines; a block ends after MESSAGES_PER_BLOCK messages or MATCHES_PER_BLOCK matches."""
    block: list[MessageLine] = []
    matches = 0
    for line in lines:
        block.append(line)
        matches += max(0, line.matches)
        if len(block) == MESSAGES_PER_BLOCK or matches >= MATCHES_PER_BLOCK:
            yield _block(block)
            block, matches = [], 0
    if block:
        yield _block(block)


def _block(lines: list[MessageLine]) -> pa.RecordBatch:
    items, details, counts, boxes = zip(*lines, strict=True)
    texts = "\n".join(items), "\n".join(details), "\n".join(map(str, counts))
    corners = np.array(boxes)
    known = corners[~np.isnan(corners[:, 0])]
    box = [*known[:, :2].min(axis=0).tolist(), *known[:, 2:].max(axis=0).tolist()] if len(known) else None
    columns = [*(pa.array([text], pa.string()) for text in texts), pa.array([box], pa.list_(pa.float64()))]
    return pa.record_batch(columns, names=["items", "details", "counts", "box"])
