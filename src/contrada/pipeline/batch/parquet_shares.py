"""Plain Parquet files in shares that Python workers read by themselves, in the row numbers that Spark gives.

Spark would decode the files and send every row to Python, which takes longer than reading the files in Python. A share
is a few row groups. Shares exist only for a frame that is nothing but columns of local Parquet files, as stored:
`parquet_shares` returns None for anything else, and Spark reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from heapq import heappop, heappush
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contrada.errors import ContradaError, FormatError
from contrada.formats.parquet.pages import row_groups
from contrada.pipeline.batch.simplified_batches import PART_BITS
from contrada.pipeline.storage import path_of
from contrada.pipeline.systems import READ_THREADS, class_name, sequence_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHARE_ROWS = 1 << 16  # smaller row groups of a partition are read together
TASK_ROWS = 1 << 21  # rows of a task, at most: starting a task takes as long as reading some 10,000 rows
READ_ROWS, READ_BYTES = 1 << 17, 1 << 26  # of a row group, at once
MAX_FILES = 4096  # the driver reads their footers
SPARK = "org.apache.spark.sql.execution.datasources"
# Settings that change which rows of the files a frame has, with the only value that shares support.
SETTINGS = dict.fromkeys(
    (
        "spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles",
        "spark.sql.parquet.fieldId.read.enabled",
    ),
    "false",
)  # fmt: skip
# Arrow types of stored columns that Spark sends to Python unchanged, by the name of the Spark type.
STORED_TYPES = {
    "binary": pa.binary(), "string": pa.string(), "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(),
    "int": pa.int32(), "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64(),
}  # fmt: skip


class GroupOfRows(NamedTuple):
    """A row group of a file, and Spark's number of its first row."""

    path: str
    group: int
    rows: int
    first: int


class ParquetShares(NamedTuple):
    """Stored columns, the shares of the files, and the number of the first row of each of Spark's partitions."""

    columns: tuple[str, ...]
    shares: list[list[GroupOfRows]]
    offsets: dict[int, int]
    rows: int

    def dealt(self, tasks: int, task_rows: int = TASK_ROWS) -> list[list[list[GroupOfRows]]]:
        """Return the shares by task, large ones first: at least `tasks` if there are so many, of about equal rows."""
        count = min(len(self.shares), max(tasks, -(-self.rows // task_rows)))
        sizes = sorted(((sum(group.rows for group in share), k) for k, share in enumerate(self.shares)), reverse=True)
        dealt: list[list[list[GroupOfRows]]] = [[] for _ in range(count)]
        least = [(0, task) for task in range(count)]
        for rows, k in sizes:
            held, task = heappop(least)
            dealt[task].append(self.shares[k])
            heappush(least, (held + rows, task))
        return dealt


class _Span(NamedTuple):
    """The bytes of a file that one of Spark's partitions reads."""

    part: int
    path: str
    start: int
    stop: int


class _RowSpan(NamedTuple):
    rows: int
    middle: int  # byte


class UnreadableShareError(ContradaError):
    """A worker could not read a share as the driver described it."""


def parquet_shares(frame: DataFrame) -> ParquetShares | None:
    """Return the shares of a frame of stored columns of local Parquet files; None if Spark must read the frame."""
    if not hasattr(frame, "_jdf"):
        return None
    session = frame.sparkSession
    columns = _stored_columns(frame)
    if columns is None or any(session.conf.get(name, value) != value for name, value in SETTINGS.items()):
        return None
    spans = _spans(frame)
    paths = list(dict.fromkeys(span.path for span in spans or ()))
    if spans is None or len(paths) > MAX_FILES:
        return None
    with ThreadPoolExecutor(READ_THREADS) as pool:
        found = list(pool.map(lambda path: _groups(path, columns), paths))
    groups = {path: groups for path, groups in zip(paths, found, strict=True) if groups is not None}
    return _shares(tuple(columns), spans, groups) if len(groups) == len(paths) else None


def _stored_columns(frame: DataFrame) -> dict[str, Any] | None:
    """Return the Arrow types of a frame's columns by their names in Parquet files; None for any other frame."""
    kinds = [STORED_TYPES.get(field.dataType.simpleString()) for field in frame.schema]
    plan = frame._jdf.queryExecution().optimizedPlan()
    chosen = sequence_of(plan.output())
    if class_name(plan) == "Project":
        chosen = [one.child() if class_name(one) == "Alias" else one for one in sequence_of(plan.projectList())]
        plan = plan.child()
    if None in kinds or class_name(plan) != "LogicalRelation" or not _is_plain(plan.relation()):
        return None
    if any(class_name(one) != "AttributeReference" for one in chosen):
        return None
    names = [str(one.name()) for one in chosen]
    partitioned = {str(field.name()).lower() for field in plan.relation().partitionSchema().fields()}
    if len(set(names)) < len(names) or partitioned & {name.lower() for name in names}:
        return None
    return dict(zip(names, kinds, strict=True))


def _is_plain(relation: Any) -> bool:
    """Return True for Parquet files that were named by paths, without options."""
    if relation.getClass().getName() != f"{SPARK}.HadoopFsRelation" or relation.bucketSpec().isDefined():
        return False
    makers = [one.getClass().getName() for one in (relation.fileFormat(), relation.location())]
    options = {str(name) for name in sequence_of(relation.options().keys().toSeq())}
    return makers == [f"{SPARK}.parquet.ParquetFileFormat", f"{SPARK}.InMemoryFileIndex"] and options <= {"path"}


def _spans(frame: DataFrame) -> list[_Span] | None:
    """Return the bytes of files that Spark's partitions read, in order; None if they are other than local files."""
    found: list[_Span] = []
    for part in frame._jdf.queryExecution().toRdd().partitions():
        if part.getClass().getName() != f"{SPARK}.FilePartition":
            return None
        for file in part.files():
            uri, start = str(file.filePath().toString()), int(file.start())
            if not uri.startswith("file:/"):
                return None
            found.append(_Span(int(part.index()), path_of(uri), start, start + int(file.length())))
    return found


def _groups(path: str, columns: dict[str, Any]) -> list[_RowSpan] | None:
    """Return the row groups of a file; None if it has other columns, or columns whose names differ only by case."""
    try:
        with open(path, "rb") as file:
            found = [
                _RowSpan(group.rows, group.chunks[0].start + sum(chunk.bytes for chunk in group.chunks) // 2)
                for group in row_groups(file, os.fstat(file.fileno()).st_size)
            ]
        with pq.ParquetFile(path) as opened:
            schema = opened.schema_arrow
    except (OSError, IndexError, FormatError, pa.ArrowException):
        return None
    names = [name.lower() for name in schema.names]
    for name, kind in columns.items():
        if names.count(name.lower()) != 1 or name not in schema.names or schema.field(name).type != kind:
            return None
    return found


def _shares(columns: tuple[str, ...], spans: list[_Span], groups: dict[str, list[_RowSpan]]) -> ParquetShares | None:
    """Return the row groups by share: Spark's partition of a row group is the one that reads its middle byte."""
    counts: dict[int, int] = {}
    shares: list[list[GroupOfRows]] = []
    last = -1
    for span in spans:
        for number, (rows, middle) in enumerate(groups[span.path]):
            if not span.start <= middle < span.stop:
                continue
            before = counts.get(span.part, 0)
            group = GroupOfRows(span.path, number, rows, (span.part << PART_BITS) + before)
            counts[span.part] = before + rows
            if span.part != last or sum(one.rows for one in shares[-1]) + rows > SHARE_ROWS:
                shares.append([])
                last = span.part
            shares[-1].append(group)
    total = sum(counts.values())
    if total != sum(group.rows for own in groups.values() for group in own):
        return None  # a span without the middle of a row group, or a file that has grown
    offsets = dict(zip(counts, accumulate(counts.values(), initial=0), strict=False))
    return ParquetShares(columns, shares, offsets, total)


def share_batches(share: Sequence[GroupOfRows], columns: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of a share, with Spark's number of each in the last column, in batches of bounded size."""
    names = [*(f"c{k}" for k in range(len(columns))), "row"]
    try:
        for path, group, rows, first in share:
            with pq.ParquetFile(path) as file:
                if group >= file.num_row_groups or file.metadata.row_group(group).num_rows != rows:
                    raise UnreadableShareError(f"{path}: the file has changed")
                size = max(1, file.metadata.row_group(group).total_byte_size)
                most = min(READ_ROWS, max(1, READ_BYTES * rows // size))
                for batch in file.iter_batches(most, [group], list(columns), use_threads=False):
                    numbers = pa.array(np.arange(first, first + batch.num_rows))
                    yield pa.record_batch([*(batch.column(name) for name in columns), numbers], names)
                    first += batch.num_rows
    except (OSError, pa.ArrowException) as error:
        raise UnreadableShareError(str(error)) from error
