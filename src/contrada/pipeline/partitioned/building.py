"""Spread scanned subscriptions over partitions and build the table of each, in Spark's Python workers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contrada.cql2 import parse
from contrada.index.cells import covering_boxes
from contrada.matching import ForwardingTable
from contrada.matching.building import TableBuilder
from contrada.model import Predicate
from contrada.pipeline.artifacts import publish
from contrada.pipeline.batch.building import chunks
from contrada.pipeline.batch.simplified_batches import Job
from contrada.pipeline.kept import KEPT, KeptRows
from contrada.pipeline.partitioned.layouts import Layout
from contrada.pipeline.partitioned.partitions import BadRow
from contrada.pipeline.partitioned.scanning import HEAD_TYPE, head_structs, heads_in
from contrada.pipeline.systems import named_columns

SPREAD_SCHEMA = f"partition int, is_shared boolean, number bigint, filters array<int>, heads array<{HEAD_TYPE}>"
BOXES_PER_ATTRIBUTE = 16  # per attribute, over the heads of a partition
MAX_PENDING_BOXES = 1 << 16  # boxes of heads held before they are merged


def spread_batches(batches: Iterator[Any], layout: Layout, columns: int) -> Iterator[Any]:
    """Copy each scanned row to every partition that one of its filters belongs to."""
    for batch in batches:
        numbers = np.asarray(batch.column("number"))
        heads = heads_in(batch.column("heads"))
        counts = np.diff(heads.offsets)
        rows = np.repeat(np.arange(len(counts)), counts)
        partitions = layout.find(heads.names, heads.attributes, heads.boxes, numbers[rows])
        order = np.lexsort((partitions, rows))  # by row and partition; stable, so filters stay in order
        owners, places = rows[order], partitions[order]
        starts = np.flatnonzero((np.diff(owners, prepend=-1) != 0) | (np.diff(places, prepend=-1) != 0))
        chosen = owners[starts]
        is_shared = np.bincount(chosen, minlength=len(counts)) > 1
        offsets = pa.array(np.append(starts, len(order)), pa.int32())
        filters = pa.array(order - heads.offsets[owners], pa.int32())  # numbers of filters within their rows
        structs = head_structs(heads.names, heads.attributes[order], heads.boxes[order])
        kept = [KEPT] if KEPT in batch.schema.names else []
        yield pa.record_batch(
            [
                *(batch.column(k).take(pa.array(chosen)) for k in range(columns)),
                pa.array(places[starts]),
                pa.array(is_shared[chosen]),
                pa.array(numbers[chosen]),
                pa.ListArray.from_arrays(offsets, filters),
                pa.ListArray.from_arrays(offsets, structs),
                *(batch.column(name).take(pa.array(chosen)) for name in kept),
            ],
            [*(f"c{k}" for k in range(columns)), "partition", "is_shared", "number", "filters", "heads", *kept],
        )


def build_partition(batches: Iterator[Any], job: Job, place: str, wide: int, keeping: str = "") -> Iterator[Any]:
    """Build the table of a partition and publish it; yield one row about it as JSON, none without input rows.

    Rows whose filters are all in this partition come first. Partitions from `wide` on receive every message. `keeping`
    is the schema of `kept`, the columns that matches may carry.
    """
    table, boxes = ForwardingTable(), dict[str, list[NDArray[np.float64]]]()
    rejected, kept = list[BadRow](), KeptRows() if keeping else None
    number, first_shared = -1, 0
    for chunk in chunks(batches):
        number = chunk.column("partition")[0].as_py()
        if number < wide:
            _add_boxes(boxes, chunk.column("heads"))
        is_shared = chunk.column("is_shared")
        own = chunk.filter(pc.invert(is_shared))
        if own.num_rows:
            rejected += _subscribe(table, own, job.template, job, kept)
            first_shared = len(table)
        for template, rows in _cut(chunk.filter(is_shared), job):
            rejected += _subscribe(table, rows, template, job, kept)
    if number < 0:
        return
    own_columns = None if kept is None else (kept, keeping)
    artifact = publish(table, place, key_type=job.types[0], subscriber_type=job.types[1], keeping=own_columns)
    few = {name: covering_boxes(np.concatenate(some), BOXES_PER_ATTRIBUTE).tolist() for name, some in boxes.items()}
    about = {"partition": number, "artifact": artifact._asdict(), "first_shared": first_shared}
    yield pa.record_batch([pa.array([json.dumps({**about, "boxes": few, "rejected": rejected})])], ["about"])


def _add_boxes(boxes: dict[str, list[NDArray[np.float64]]], column: Any) -> None:
    """Add the boxes of heads by attribute; many boxes are merged into few."""
    for lists in column.chunks:
        heads = heads_in(lists)
        for k, name in enumerate(heads.names):
            kept = [*boxes.get(name, []), heads.boxes[heads.attributes == k]]
            if sum(map(len, kept)) > MAX_PENDING_BOXES:
                kept = [covering_boxes(np.concatenate(kept), 4 * BOXES_PER_ATTRIBUTE)]
            boxes[name] = kept


def _subscribe(
    table: ForwardingTable, rows: Any, template: Predicate | None, job: Job, kept: KeptRows | None
) -> list[BadRow]:
    """Subscribe rows with the columns of a job and `number`, and add what is kept of them; return the bad rows."""
    given, numbers = named_columns(rows, job.names, job.systems), rows.column("number")
    if "key" not in job.names:
        given = given.append_column("key", numbers)
    bad = TableBuilder(template, table).add(given)
    if kept is not None:
        kept.add(given.column("key"), rows.column(KEPT), {item.row for item in bad})
    return [(numbers[item.row].as_py(), item.key, item.reason) for item in bad]


def _cut(rows: Any, job: Job) -> Iterator[tuple[Predicate | None, Any]]:
    """Reduce rows to the filters of this partition; yield groups of rows with the template of each."""
    chosen = [tuple(filters) for filters in rows.column("filters").to_pylist()]
    if job.template is not None:
        for filters in sorted(set(chosen)):
            own = [row for row, some in enumerate(chosen) if some == filters]
            yield Predicate([job.template.filters[k] for k in filters]), rows.take(own)
    elif chosen:
        place = job.names.index("filter")
        wholes = (parse(text).filters for text in rows.column(place).to_pylist())
        texts = [str(Predicate([whole[k] for k in some])) for whole, some in zip(wholes, chosen, strict=True)]
        yield None, rows.set_column(place, f"c{place}", pa.array(texts, pa.string()))
