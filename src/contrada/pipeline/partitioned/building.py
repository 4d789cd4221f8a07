"""Spread scanned subscriptions over partitions and build the table of each, in Spark's Python workers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.cql2 import parse
from contrada.index.cells import covering_boxes
from contrada.matching import ForwardingTable
from contrada.matching.building import TableBuilder
from contrada.model import Predicate
from contrada.pipeline.artifacts import publish
from contrada.pipeline.batch.building import chunks
from contrada.pipeline.batch.simplified_batches import Job
from contrada.pipeline.partitioned.layouts import Layout
from contrada.pipeline.partitioned.scanning import HEAD_TYPE, head_structs, heads_in
from contrada.pipeline.systems import named_columns

SPREAD_SCHEMA = f"partition int, is_shared boolean, number bigint, filters array<int>, heads array<{HEAD_TYPE}>"
BOXES_PER_ATTRIBUTE = 16  # per attribute, over the heads of a partition
MAX_PENDING_BOXES = 1 << 16  # boxes of heads held before they are merged


class PartitionRows(NamedTuple):
    """Rows of a batch by partition: row, partition, and the heads and filters of each."""

    rows: NDArray[np.int64]
    partitions: NDArray[np.int32]
    is_shared: NDArray[np.bool_]
    starts: NDArray[np.int64]  # position of the first head of each row
    order: NDArray[np.int64]  # of the heads
    filters: NDArray[np.int32]  # filter numbers within their rows, in that order


def spread_batches(batches: Iterator[Any], layout: Layout, columns: int) -> Iterator[Any]:
    """Copy each scanned row to every partition that one of its filters belongs to."""
    for batch in batches:
        numbers = np.asarray(batch.column("number"))
        heads = heads_in(batch.column("heads"))
        counts = np.diff(heads.offsets)
        turns = np.repeat(numbers, counts)
        spread = _spread(layout.find(heads.names, heads.attributes, heads.boxes, turns), counts)
        rows = pa.array(spread.rows)
        offsets = pa.array(np.append(spread.starts, len(spread.order)), pa.int32())
        structs = head_structs(heads.names, heads.attributes[spread.order], heads.boxes[spread.order])
        yield pa.record_batch(
            [
                *(batch.column(k).take(rows) for k in range(columns)),
                pa.array(spread.partitions),
                pa.array(spread.is_shared),
                pa.array(numbers[spread.rows]),
                pa.ListArray.from_arrays(offsets, pa.array(spread.filters, pa.int32())),
                pa.ListArray.from_arrays(offsets, structs),
            ],
            [*(f"c{k}" for k in range(columns)), "partition", "is_shared", "number", "filters", "heads"],
        )


def _spread(partitions: NDArray[np.int32], counts: NDArray[np.int32]) -> PartitionRows:
    """Group heads by row and partition; row k has `counts[k]` heads."""
    rows = np.repeat(np.arange(len(counts)), counts)
    firsts = np.repeat(np.cumsum(counts) - counts, counts)
    order = np.lexsort((partitions, rows))  # stable, so filters stay in order
    owners, places = rows[order], partitions[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (owners[1:] != owners[:-1]) | (places[1:] != places[:-1])
    starts = np.flatnonzero(is_first)
    several = np.bincount(owners[starts], minlength=len(counts)) > 1
    filters = (order - firsts[order]).astype(np.int32)
    return PartitionRows(owners[starts], places[starts], several[owners[starts]], starts, order, filters)


def build_partition(batches: Iterator[Any], job: Job, place: str, wide: int) -> Iterator[Any]:
    """Build the table of a partition and publish it; yield one row about it as JSON, none without input rows.

    Rows whose filters are all in this partition come first. Partitions from `wide` on receive every message.
    """
    builders = _Builders(job)
    boxes = _Boxes()
    number = -1
    for chunk in chunks(batches):
        number = chunk.column("partition")[0].as_py()
        if number < wide:
            boxes.add(chunk.column("heads"))
        is_shared = np.asarray(chunk.column("is_shared"))
        builders.add(chunk.filter(pa.array(~is_shared)), False)
        builders.add(chunk.filter(pa.array(is_shared)), True)
    if number < 0:
        return
    artifact = publish(builders.table, place, key_type=job.types[0], subscriber_type=job.types[1])
    about = {
        "partition": number,
        "artifact": artifact._asdict(),
        "first_shared": builders.own,
        "boxes": boxes.few(),
        "rejected": builders.rejected,
    }
    yield pa.record_batch([pa.array([json.dumps(about)])], ["about"])


class _Boxes:
    """The heads of a partition by attribute, merged into few boxes."""

    def __init__(self) -> None:
        self._kept: dict[str, list[NDArray[np.float64]]] = {}

    def add(self, column: Any) -> None:
        for lists in column.chunks:
            heads = heads_in(lists)
            for k, name in enumerate(heads.names):
                kept = [*self._kept.get(name, []), heads.boxes[heads.attributes == k]]
                if sum(map(len, kept)) > MAX_PENDING_BOXES:
                    kept = [covering_boxes(np.concatenate(kept), 4 * BOXES_PER_ATTRIBUTE)]
                self._kept[name] = kept

    def few(self) -> dict[str, list[list[float]]]:
        return {
            name: covering_boxes(np.concatenate(kept), BOXES_PER_ATTRIBUTE).tolist()
            for name, kept in self._kept.items()
        }


class _Builders:
    """Builds one table from rows with all their filters, then rows with some of them."""

    def __init__(self, job: Job) -> None:
        self.table = ForwardingTable()
        self.own = 0  # subscriptions with all filters in this partition; they come first
        self.rejected: list[tuple[int, str | None, str]] = []
        self._job = job

    def add(self, rows: Any, are_shared: bool) -> None:
        """Subscribe rows with the columns of a job, `number` and `filters`."""
        if not rows.num_rows:
            return
        if not are_shared:
            self._add(rows, self._job.template)
            self.own = len(self.table)
        elif self._job.template is None:
            self._add(self._cut_texts(rows), None)
        else:
            for template, part in self._cut_templates(rows, self._job.template):
                self._add(part, template)

    def _add(self, rows: Any, template: Predicate | None) -> None:
        names = self._job.names
        given = named_columns(rows, names, self._job.systems)
        if "key" not in names:
            given = given.append_column("key", rows.column("number"))
        numbers = rows.column("number")
        for item in TableBuilder(template, self.table).add(given):
            self.rejected.append((numbers[item.row].as_py(), item.key, item.reason))

    def _cut_texts(self, rows: Any) -> Any:
        """Reduce the filter texts of rows to the filters of this partition."""
        place = self._job.names.index("filter")
        texts = []
        for text, chosen in zip(rows.column(place).to_pylist(), rows.column("filters").to_pylist(), strict=True):
            whole = parse(text).filters
            texts.append(str(Predicate([whole[k] for k in chosen])))
        return rows.set_column(place, f"c{place}", pa.array(texts, pa.string()))

    def _cut_templates(self, rows: Any, template: Predicate) -> Iterator[tuple[Predicate, Any]]:
        """Group rows by the filters of the template that belong to this partition."""
        chosen = [tuple(filters) for filters in rows.column("filters").to_pylist()]
        for filters in sorted(set(chosen)):
            own = [row for row, some in enumerate(chosen) if some == filters]
            yield Predicate([template.filters[k] for k in filters]), rows.take(own)
