"""Scan Arrow batches of subscriptions before they are partitioned: find bad rows and the boxes of filters.

Runs in Spark's Python workers; this module does not use Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.errors import ContradaError
from contrada.halving import in_halves
from contrada.matching.routing_boxes import Heads, bound_heads, heads_of
from contrada.pipeline.batch.simplified_batches import KINDS, Job, asked_rows, faults_of, of_one_crs, row_numbers
from contrada.pipeline.kept import KEPT

CORNERS = ("xmin", "ymin", "xmax", "ymax")
HEAD_TYPE = "struct<attribute:string,xmin:double,ymin:double,xmax:double,ymax:double>"
SCANNED_SCHEMA = f"number bigint, reason string, crs string, heads array<{HEAD_TYPE}>"  # after the columns of a job
BOX_SCHEMA = "attribute string, xmin double, ymin double, xmax double, ymax double"
SAMPLE_SCHEMA = f"weight double, {BOX_SCHEMA}"
SAMPLE_BOXES = 4096  # boxes per attribute in a task
LARGEST_BOXES = 64  # largest boxes per attribute, kept so that wide filters are found


# Scanned rows: why some are bad, the CRS of their attributes as JSON, and the heads of the good ones.
ScannedRows = tuple[dict[int, str], NDArray[np.object_], Heads]


def scan_batches(batches: Iterator[Any], job: Job) -> Iterator[Any]:
    """Scan batches of a job's columns, `row` and `repeated`; yield the columns, number, reason, CRS and heads."""
    for batch in batches:
        numbers = row_numbers(batch.column(len(job.names)), job.offsets)
        asked = pa.Table.from_batches([batch]).select(range(len(job.names) + 2))
        for start, (bad, crs, heads) in _scans(asked, job):
            count = len(crs)
            reasons = pa.array([bad.get(row) for row in range(count)], pa.string())
            columns = [batch.column(k).slice(start, count) for k in range(len(job.names))]
            own = [pa.array(numbers[start : start + count]), reasons, pa.array(crs, pa.string())]
            # A filter that may match anywhere has no attribute.
            structs = head_structs(heads.names, heads.attributes, heads.boxes)
            lists = pa.ListArray.from_arrays(pa.array(heads.offsets), structs)
            names = [f"c{k}" for k in range(len(columns))]
            columns += [*own, lists]
            names += ["number", "reason", "crs", "heads"]
            if KEPT in batch.schema.names:
                columns, names = [*columns, batch.column(KEPT).slice(start, count)], [*names, KEPT]
            yield pa.record_batch(columns, names)


def _scans(table: Any, job: Job) -> Iterator[tuple[int, ScannedRows]]:
    """Scan the parts of a table; yield the first row and scan of each. A table without mixed CRS is one part."""
    if job.template is None:
        asked = asked_rows(table, job)
        reasons = {row: one.reason for row, one in enumerate(asked) if one.reason is not None}
        yield 0, (reasons, np.full(len(asked), None), heads_of(one.predicate for one in asked))
        return
    start = 0
    for part in of_one_crs(job.typed(table)):
        yield start, _bound_scan(part, job)
        start += part.num_rows


def _bound_scan(table: Any, job: Job) -> ScannedRows:
    """Scan the rows of a template, column by column."""
    assert job.template is not None
    reasons = faults_of(table, job, {name: KINDS[kind] for name, kind in job.kinds.items()})
    rows = table.select(range(len(job.names))).rename_columns(job.names)
    if "key" in job.names:
        keys = rows.column("key")
        for row in np.flatnonzero(np.asarray(keys.is_null())).tolist():
            reasons.setdefault(row, "no key")
        for row in np.flatnonzero(np.asarray(table.column(len(job.names) + 1))).tolist():
            reasons.setdefault(row, f"duplicate key {keys[row].as_py()!r:.60}")
    # Keys are checked above; binding would check them again, including those of bad rows.
    values = rows.select([name for name in job.names if name not in ("key", "subscriber")])
    good = np.setdiff1d(np.arange(table.num_rows), np.array(list(reasons), np.int64))
    parts = list(_bound(values.take(good) if reasons else values, good, job, reasons))
    counts, crs = np.zeros(table.num_rows, np.int32), np.full(table.num_rows, None)
    for kept, heads, systems in parts:
        counts[kept], crs[kept] = np.diff(heads.offsets), systems
    return reasons, crs, _joined(counts, [heads for _, heads, _ in parts] or [heads_of(())])


def _bound(
    values: Any, numbers: NDArray[np.int64], job: Job, reasons: dict[int, str]
) -> Iterator[tuple[NDArray[np.int64], Heads, str | None]]:
    """Bind rows; yield numbers, heads and CRS. Bad rows are noted in `reasons`."""
    template = job.template
    assert template is not None
    for part in in_halves(
        len(numbers), lambda start, stop: bound_heads(values.slice(start, stop - start), template), ContradaError
    ):
        if part.result is None:
            reasons[int(numbers[part.start])] = str(part.error)
            continue
        heads, crs = part.result
        named = {attribute: system for attribute, system in crs.items() if system is not None}
        yield numbers[part.start : part.stop], heads, json.dumps(named, sort_keys=True) if named else None


def _joined(counts: NDArray[np.int32], parts: list[Heads]) -> Heads:
    """Join the heads of all rows in order; row k has `counts[k]` heads."""
    offsets = np.append(0, np.cumsum(counts)).astype(np.int32)
    attributes = np.concatenate([part.attributes for part in parts])
    boxes = np.concatenate([part.boxes for part in parts])
    return Heads(offsets, attributes, boxes, parts[0].names)  # all parts come from one template


def head_structs(names: tuple[str, ...], attributes: NDArray[np.int32], boxes: NDArray[np.float64]) -> Any:
    """Return heads as an Arrow array of structs."""
    named = pa.array(names, pa.string()).take(pa.array(attributes, mask=attributes < 0))
    corners = [pa.array(np.ascontiguousarray(boxes[:, k])) for k in range(4)]
    return pa.StructArray.from_arrays([named, *corners], ["attribute", *CORNERS])


def attribute_boxes(name: str | None, boxes: NDArray[np.float64]) -> Any:
    """Return the boxes of one attribute as a record batch with the fields of `head_structs`."""
    names = np.full(len(boxes), -1 if name is None else 0, np.int32)
    return pa.RecordBatch.from_struct_array(head_structs((name or "",), names, boxes))


def boxes_in(fields: Any) -> NDArray[np.float64]:
    """Return the boxes in a table with the fields of `head_structs`; null becomes NaN."""
    return np.stack([np.asarray(fields.column(name).fill_null(np.nan)) for name in CORNERS], axis=1)


def heads_in(lists: Any) -> Heads:
    """Return the heads in a column that comes from Spark."""
    offsets = np.asarray(lists.offsets, np.int32)
    structs = lists.values.slice(offsets[0], offsets[-1] - offsets[0])
    coded = structs.field("attribute").dictionary_encode()
    attributes = np.asarray(coded.indices.fill_null(-1), np.int32)
    boxes = boxes_in(pa.RecordBatch.from_struct_array(structs))
    return Heads(offsets - offsets[0], attributes, boxes, tuple(coded.dictionary.to_pylist()))


def sample_batches(batches: Iterator[Any]) -> Iterator[Any]:
    """Sample the heads of scanned batches for each attribute, each with the number of heads that it stands for.

    The largest boxes are added with weight 0. A row without an attribute holds the number of filters that may match
    anywhere.
    """
    samples: dict[str, _Sample] = {}
    anywhere = 0
    for batch in batches:
        heads = heads_in(batch.column("heads"))
        anywhere += int(np.count_nonzero(heads.attributes < 0))
        for k, name in enumerate(heads.names):
            samples.setdefault(name, _Sample()).add(heads.boxes[heads.attributes == k])
    yield _weighted(anywhere, attribute_boxes(None, np.full((1, 4), np.nan)))
    for name, one in samples.items():
        yield _weighted(one.seen / max(1, len(one.kept)), attribute_boxes(name, one.kept))
        yield _weighted(0.0, attribute_boxes(name, one.largest))


def _weighted(weight: float, boxes: Any) -> Any:
    return boxes.add_column(0, "weight", pa.array(np.full(boxes.num_rows, weight, np.float64)))


class _Sample:
    """A regular sample, every `_step`-th of the boxes seen, and the largest boxes."""

    def __init__(self) -> None:
        self.seen = 0
        self.kept = self.largest = np.empty((0, 4))
        self._step = 1

    def add(self, boxes: NDArray[np.float64]) -> None:
        """Add boxes."""
        self.kept = np.concatenate([self.kept, boxes[-self.seen % self._step :: self._step]])
        self.seen += len(boxes)
        large = np.concatenate([self.largest, boxes])
        sides = large[:, 2:] - large[:, :2]
        self.largest = large[np.argsort(-sides[:, 0] * sides[:, 1], kind="stable")[:LARGEST_BOXES]]
        while len(self.kept) > SAMPLE_BOXES:
            self.kept, self._step = self.kept[::2], 2 * self._step
