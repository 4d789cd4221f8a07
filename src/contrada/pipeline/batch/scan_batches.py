"""Read rows of subscriptions past a few messages, in Spark's Python workers; this module does not use Spark.

Rows near a message become a table that lives as long as its chunk of rows. Some rows are good or bad depending on rows
of other tasks (keys, coordinate reference systems, regions and points). Every chunk reports what it has seen of these,
and the driver compares the reports.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contrada.collecting import freeze_live_objects
from contrada.errors import ContradaError
from contrada.formats.templates import template_columns
from contrada.geometry.crs import Crs
from contrada.matching import ForwardingTable
from contrada.matching.answer import By
from contrada.matching.near_rows import MessageBoxes, SiftedRows, sift_rows
from contrada.matching.store.storage import SavedNames
from contrada.matching.table import subscribe_rows
from contrada.matching.template import asked_columns, read_columns
from contrada.pipeline.answers import AnswerWriter, Slices
from contrada.pipeline.batch.building import chunks
from contrada.pipeline.batch.parquet_shares import GroupOfRows, share_batches
from contrada.pipeline.batch.simplified_batches import Job, row_numbers
from contrada.pipeline.kept import KEPT, KeptColumns
from contrada.pipeline.reasons import plain_text
from contrada.pipeline.systems import Systems, named_columns

CHUNK_ROWS, CHUNK_BYTES = 1 << 17, 1 << 26  # of subscriptions: messages are matched with the rows of a chunk at once
# Columns of answers: the message of matches, the chunk that rejects a message, a bad subscription, a report as JSON.
FURTHER = {
    "number": "int64", "is_shared": "bool", "chunk": "int64", "row": "int64", "key": "string", "about": "string",
}  # fmt: skip


class FewMessages(NamedTuple):
    """Messages that every worker holds: Arrow IPC of an id and attributes, whose names and CRS are beside."""

    data: bytes
    names: tuple[str, ...]
    systems: Systems

    def read(self) -> _ReadMessages:
        """Return the messages; a worker reads them once for all its tasks."""
        return _read_messages(self.data, self.names, tuple(self.systems.items()))


class _ReadMessages(NamedTuple):
    ids: Any
    values: Any  # a table of attributes
    boxes: MessageBoxes


@lru_cache(maxsize=1)
def _read_messages(data: bytes, names: tuple[str, ...], systems: tuple[tuple[str, Crs], ...]) -> _ReadMessages:
    table = pa.ipc.open_stream(data).read_all()
    values = named_columns(table, names, dict(systems), 1)
    return _ReadMessages(table.column(0).combine_chunks(), values, MessageBoxes.of_table(values, names))


class ChunkReport(NamedTuple):
    """What a chunk tells the driver; rows are compiled unless all chunks agree on `kinds` and `rejected`."""

    chunk: int  # Spark's number of the first row
    rows: int
    good: int
    trouble: str = ""  # why the rows of this chunk must be compiled
    kinds: dict[str, list[str]] = {}  # noqa: RUF012 - of geometry, by column; never modified
    asked: dict[str, list[str]] = {}  # noqa: RUF012 - kinds of values, by attribute; never modified
    rejected: str = ""  # digest of the rejected messages
    keys: tuple[Any, Any] | None = None  # the smallest and the largest key of good rows


def scan_batches(
    batches: Iterator[Any], messages: FewMessages, job: Job, by: By, kept: Any = None, chunk_rows: int = CHUNK_ROWS
) -> Iterator[Any]:
    """Match all messages with batches of subscriptions and their `row`; yield lists of matches and reports.

    Batches also have `kept`, if matches carry columns of subscriptions, whose Arrow type is given.
    """
    ids, values, boxes = messages.read()
    assert job.template is not None
    writer = AnswerWriter(job.types, by, FURTHER, kept=kept)
    for chunk in chunks(batches, chunk_rows, CHUNK_BYTES):
        marks = np.asarray(chunk.column(len(job.names)))
        first = int(marks[0])
        rows = asked_columns(named_columns(chunk, job.names, job.systems), job.template)
        if "key" not in rows.column_names:
            rows = rows.append_column("key", pa.array(row_numbers(marks, job.offsets)))
        carried = chunk.column(KEPT) if kept is not None else None
        try:
            sifted = sift_rows(rows, job.template, boxes)
        except ContradaError as error:
            yield _about(writer, ids, ChunkReport(first, len(marks), 0, plain_text(str(error))))
            continue
        yield from _bad_rows(writer, ids, rows, marks, sifted)
        yield from _matches(writer, ids, values, rows, first, sifted, job, by, (kept, carried))
    freeze_live_objects()


def scan_shares(
    batches: Iterator[Any],
    tasks: Sequence[Sequence[Sequence[GroupOfRows]]],
    columns: Sequence[str],
    messages: FewMessages,
    job: Job,
    by: By,
    kept: Any = None,
) -> Iterator[Any]:
    """Match all messages with the shares of tasks, whose numbers are in the batches, as `scan_batches` does."""
    numbers = (number for batch in batches for number in batch.column(0).to_pylist())
    for share in (share for number in numbers for share in tasks[number]):
        read = share_batches(share, columns)
        yield from scan_batches(read if kept is None else _folded(read, len(job.names), kept), messages, job, by, kept)


def _folded(batches: Iterator[Any], count: int, kept: Any) -> Iterator[Any]:
    """Put the columns after the first `count` together as `kept`, behind the number of the row, which is the last."""
    for batch in batches:
        own, fields = batch.columns[count:-1], list(kept)
        values = pa.StructArray.from_arrays(own, fields=fields)
        names = [*batch.schema.names[:count], "row", KEPT]
        yield pa.record_batch([*batch.columns[:count], batch.column(batch.num_columns - 1), values], names)


def _about(writer: AnswerWriter, ids: Any, report: ChunkReport) -> Any:
    return writer.rows(pa.nulls(1, ids.type), about=[json.dumps(report._asdict())])


def _bad_rows(writer: AnswerWriter, ids: Any, rows: Any, marks: Any, sifted: SiftedRows) -> Iterator[Any]:
    if sifted.reasons:
        bad = np.array(sorted(sifted.reasons), np.int64)
        keys = rows.column("key").combine_chunks().take(pa.array(bad)).cast(pa.string())
        reasons = [plain_text(sifted.reasons[row]) for row in bad.tolist()]
        nobody = pa.nulls(len(bad), ids.type)
        yield writer.rows(nobody, reason=reasons, row=pa.array(marks[bad]), key=keys)


def _matches(
    writer: AnswerWriter,
    ids: Any,
    values: Any,
    rows: Any,
    first: int,
    sifted: SiftedRows,
    job: Job,
    by: By,
    kept: tuple[Any, Any],  # type and values of the columns that matches carry
) -> Iterator[Any]:
    """Yield the matches of the rows near messages, the messages that they reject, and the report of the chunk."""
    assert job.template is not None
    report = ChunkReport(first, rows.num_rows, len(sifted.good), _trouble(sifted), sifted.kinds)
    if report.trouble or not report.good:
        yield _about(writer, ids, report)
        return
    chosen = _chosen(sifted)
    near, table = rows if len(chosen) == rows.num_rows else rows.take(chosen), ForwardingTable()
    asked = near.select(template_columns(job.template))  # keys are known to be distinct: rows are numbered instead
    read = read_columns(sifted.read, chosen, rows.num_rows)
    subscribe_rows(table, asked, job.template, read=read, written=())
    keys = near.column("key").combine_chunks()
    subscribers = near.column("subscriber").combine_chunks() if "subscriber" in near.column_names else keys
    carried = None
    if kept[1] is not None:
        carried = KeptColumns(kept[1].take(pa.array(chosen)).combine_chunks(), kept[0])
    names = AnswerWriter(job.types, by, FURTHER, SavedNames(keys, subscribers, None), kept[0], carried)
    rejected: dict[int, str] = {}
    shared = pa.repeat(pa.scalar(by == "subscriber" and "subscriber" in job.names), len(ids))
    numbers, chunk = pa.array(np.arange(len(ids))), pa.repeat(pa.scalar(first, pa.int64()), len(ids))
    for start, answer in Slices().match(table, values, "subscription"):  # made distinct by Spark
        moved = answer._replace(messages=answer.messages + start)
        yield from names.matches(ids, moved, number=numbers, is_shared=shared)
        rejected |= {start + row: reason for row, reason in answer.rejected.items()}
    yield from writer.rejections(ids, rejected, chunk=chunk)
    digest = hashlib.sha256(json.dumps(rejected).encode()).hexdigest()
    told = report._replace(asked=table.asked_kinds(), rejected=digest)
    if "key" in job.names:
        ends = pc.min_max(rows.column("key").take(pa.array(sifted.good))).as_py()
        told = told._replace(keys=(ends["min"], ends["max"]))
    yield _about(writer, ids, told)


def _chosen(sifted: SiftedRows) -> Any:
    """Return the rows to index."""
    return sifted.near if len(sifted.near) else sifted.good[:1]  # any good row tells which messages are bad


def _trouble(sifted: SiftedRows) -> str:
    """Return why rows of other chunks may decide about rows of this one; an empty text if they cannot."""
    for name, kinds in sifted.kinds.items():
        if len(kinds) > 1:
            return f"column {name!r} mixes {' and '.join(kinds)}"
    if sifted.has_long:
        return "numbers of more than 103 bits are compared by the table"
    if any(reason.startswith("duplicate key") for reason in sifted.reasons.values()):
        return "keys are repeated"
    return ""


def number_rows(batches: Iterator[Any], offsets: dict[int, int]) -> Iterator[Any]:
    """Turn Spark's numbers of bad rows, in the first column, into positions among all rows."""
    for batch in batches:
        yield batch.set_column(0, "row", pa.array(row_numbers(batch.column(0), offsets)))
