"""Arrow batches of subscriptions looked at before they are spread over partitions: what is bad, and where filters lie.

Runs in Spark's Python workers, and knows nothing of Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.errors import ContradaError
from contrada.matching.routing_boxes import Heads, bound_heads, heads_of
from contrada.pipeline.match.simplified_batches import KINDS, PART_BITS, Job, asked_rows, faults_of, of_one_crs

CORNERS = ("xmin", "ymin", "xmax", "ymax")
HEAD = "struct<attribute:string,xmin:double,ymin:double,xmax:double,ymax:double>"
SCANNED = f"number bigint, reason string, crs string, heads array<{HEAD}>"  # beside the columns of a job
SAMPLE = "attribute string, weight double, xmin double, ymin double, xmax double, ymax double, bytes bigint"
SAMPLED = 4096  # boxes of an attribute in a task
LARGEST = 64  # boxes of it that are kept beside, so that one that nearly any message meets is seen


class ScannedRows(NamedTuple):
    """Rows: why they are bad, the CRS of their attributes as JSON, and the heads of the good ones."""

    reasons: dict[int, str]
    crs: list[str | None]
    heads: Heads


def scan_batches(batches: Iterator[Any], job: Job) -> Iterator[Any]:
    """Batches of a job's columns, `row` and `repeated` to batches of these columns and what is known of each row."""
    import pyarrow as pa

    for batch in batches:
        marks = np.asarray(batch.column(len(job.names)))
        numbers = _numbers(marks, job.offsets)
        for start, scan in _scans(pa.Table.from_batches([batch]), job):
            count = len(scan.crs)
            reasons = pa.array([scan.reasons.get(row) for row in range(count)], pa.string())
            columns = [batch.column(k).slice(start, count) for k in range(len(job.names))]
            own = [pa.array(numbers[start : start + count]), reasons, pa.array(scan.crs, pa.string())]
            names = [f"c{k}" for k in range(len(columns))]
            yield pa.record_batch(
                [*columns, *own, _head_lists(scan)], [*names, "number", "reason", "crs", "heads"]
            )  # fmt: skip


def _numbers(marks: NDArray[np.int64], offsets: dict[int, int]) -> NDArray[np.int64]:
    """The numbers of rows among all rows, from Spark's."""
    parts, which = np.unique(marks >> PART_BITS, return_inverse=True)
    firsts = np.array([offsets[part] for part in parts.tolist()], np.int64)
    return (firsts[which] if len(parts) else np.empty(0, np.int64)) + (marks & (1 << PART_BITS) - 1)


def _scans(table: Any, job: Job) -> Iterator[tuple[int, ScannedRows]]:
    """The parts of a table with their first rows: the whole, unless it mixes coordinate systems."""
    if job.template is None:
        asked = asked_rows(table, job)
        reasons = {row: one.reason for row, one in enumerate(asked) if one.reason is not None}
        yield 0, ScannedRows(reasons, [None] * len(asked), heads_of(one.predicate for one in asked))
        return
    start = 0
    for part in of_one_crs(job.typed(table)):
        yield start, _bound_scan(part, job)
        start += part.num_rows


def _bound_scan(table: Any, job: Job) -> ScannedRows:
    """The rows of a template, column by column."""
    assert job.template is not None
    reasons = faults_of(table, job, {name: KINDS[kind] for name, kind in job.kinds.items()})
    rows = table.select(range(len(job.names))).rename_columns(job.names)
    if "key" in job.names:
        keys = rows.column("key")
        for row in np.flatnonzero(np.asarray(keys.is_null())).tolist():
            reasons.setdefault(row, "no key")
        for row in np.flatnonzero(np.asarray(table.column(len(job.names) + 1))).tolist():
            reasons.setdefault(row, f"the key {keys[row].as_py()!r} was there before")
    # Keys were looked at; binding would look for repeated ones again, and among bad rows too.
    values = rows.select([name for name in job.names if name not in ("key", "subscriber")])
    good = np.setdiff1d(np.arange(table.num_rows), np.array(list(reasons), np.int64))
    parts = list(_bound(values.take(good) if reasons else values, good, job, reasons))
    counts = np.zeros(table.num_rows, np.int32)
    crs: list[str | None] = [None] * table.num_rows
    for kept, heads, systems in parts:
        counts[kept] = np.diff(heads.offsets)
        if systems is not None:
            for row in kept.tolist():
                crs[row] = systems
    return ScannedRows(reasons, crs, _joined(counts, [heads for _, heads, _ in parts]))


def _bound(
    values: Any, numbers: NDArray[np.int64], job: Job, reasons: dict[int, str]
) -> Iterator[tuple[NDArray[np.int64], Heads, str | None]]:
    """The heads of rows with these numbers; if a row spoils the whole, it is found by halves."""
    assert job.template is not None
    if not len(numbers):
        return
    try:
        heads, crs = bound_heads(values, job.template)
    except ContradaError as error:
        half = len(numbers) // 2
        if not half:
            reasons[int(numbers[0])] = str(error)
            return
        yield from _bound(values.slice(0, half), numbers[:half], job, reasons)
        yield from _bound(values.slice(half), numbers[half:], job, reasons)
        return
    named = {attribute: system for attribute, system in crs.items() if system is not None}
    yield numbers, heads, json.dumps(named, sort_keys=True) if named else None


def _joined(counts: NDArray[np.int32], parts: list[Heads]) -> Heads:
    """The heads of all rows, in order, with so many for each."""
    names = parts[0].names if parts else ()  # a template's, so all have the same
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(counts, dtype=np.int32)])
    attributes = np.concatenate([part.attributes for part in parts] or [np.empty(0, np.int32)])
    return Heads(offsets, attributes, np.concatenate([part.boxes for part in parts] or [np.empty((0, 4))]), names)


def _head_lists(scan: ScannedRows) -> Any:
    """Heads as Spark has them: a list for each row; what may be anywhere has no attribute."""
    import pyarrow as pa

    heads = scan.heads
    return pa.ListArray.from_arrays(pa.array(heads.offsets), head_structs(heads.names, heads.attributes, heads.boxes))


def head_structs(names: tuple[str, ...], attributes: NDArray[np.int32], boxes: NDArray[np.float64]) -> Any:
    """Heads as an Arrow array of structs."""
    import pyarrow as pa

    named = pa.array(names, pa.string()).take(pa.array(attributes, mask=attributes < 0))
    corners = [pa.array(np.ascontiguousarray(boxes[:, k])) for k in range(4)]
    return pa.StructArray.from_arrays([named, *corners], ["attribute", *CORNERS])


def heads_in(lists: Any) -> Heads:
    """The heads of a column that Spark sends back."""
    offsets = np.asarray(lists.offsets, np.int32)
    structs = lists.values.slice(offsets[0], offsets[-1] - offsets[0])
    coded = structs.field("attribute").dictionary_encode()
    attributes = np.asarray(coded.indices.fill_null(-1), np.int32)
    boxes = np.stack([np.asarray(structs.field(name).fill_null(np.nan)) for name in CORNERS], axis=1)
    return Heads(offsets - offsets[0], attributes, boxes.reshape(-1, 4), tuple(coded.dictionary.to_pylist()))


def sample_batches(batches: Iterator[Any], columns: int) -> Iterator[Any]:
    """Scanned batches to some of their heads, for each attribute, with the number that each stands for.

    The largest boxes come beside the others, and stand for nothing but themselves: their weight is 0.
    A row without an attribute stands for filters that may be satisfied anywhere, and tells how many bytes came by.
    """
    import pyarrow as pa

    samples: dict[str, _Sample] = {}
    anywhere, size = 0, 0
    for batch in batches:
        size += sum(batch.column(k).nbytes for k in range(columns))
        heads = heads_in(batch.column("heads"))
        anywhere += int(np.count_nonzero(heads.attributes < 0))
        for k, name in enumerate(heads.names):
            samples.setdefault(name, _Sample()).add(heads.boxes[heads.attributes == k])
    rows: list[tuple[str | None, float, NDArray[np.float64], int]]
    rows = [(None, float(anywhere), np.full((1, 4), np.nan), size)]
    rows += [(name, one.seen / max(1, len(one.kept)), one.kept, 0) for name, one in samples.items()]
    rows += [(name, 0.0, one.largest, 0) for name, one in samples.items()]
    counts = [len(some) for _, _, some, _ in rows]
    corners = np.concatenate([some for _, _, some, _ in rows])
    yield pa.record_batch(
        [
            pa.array(np.repeat(np.array([row[0] for row in rows], object), counts), pa.string()),
            pa.array(np.repeat([row[1] for row in rows], counts)),
            *(pa.array(np.ascontiguousarray(corners[:, k])) for k in range(4)),
            pa.array(np.repeat(np.array([row[3] for row in rows], np.int64), counts)),
        ],
        ["attribute", "weight", *CORNERS, "bytes"],
    )


class _Sample:
    """Every so-manieth of the boxes that came by, whatever their order, and the largest ones."""

    def __init__(self) -> None:
        self.seen = 0
        self.kept = self.largest = np.empty((0, 4))
        self._step = 1

    def add(self, boxes: NDArray[np.float64]) -> None:
        """Take further boxes into account."""
        self.kept = np.concatenate([self.kept, boxes[-self.seen % self._step :: self._step]])
        self.seen += len(boxes)
        large = np.concatenate([self.largest, boxes])
        sides = large[:, 2:] - large[:, :2]
        self.largest = large[np.argsort(-sides[:, 0] * sides[:, 1], kind="stable")[:LARGEST]]
        while len(self.kept) > SAMPLED:
            self.kept, self._step = self.kept[::2], 2 * self._step
