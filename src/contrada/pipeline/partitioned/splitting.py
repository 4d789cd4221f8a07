"""Split subscriptions in memory into partitions without Spark, by the code that its workers run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contrada.model import Predicate
from contrada.pipeline.batch.simplified_batches import Job, first_kinds
from contrada.pipeline.partitioned.building import build_partition, spread_batches
from contrada.pipeline.partitioned.layouts import layout_of
from contrada.pipeline.partitioned.partitions import PartitionedArtifact, manifest, partitions_of
from contrada.pipeline.partitioned.scanning import sample_batches, scan_batches


def split(
    rows: Any, template: Predicate | None, place: str, count: int
) -> tuple[PartitionedArtifact, list[tuple[int, str]]]:
    """Put the rows of an Arrow table, as `compile` takes them, into about `count` partitions.

    Columns are `filter`, or those of the template, and `key` and `subscriber` as in `compile`; keys must differ.
    Returns the partitions, and the bad rows with reasons.

    >>> import pyarrow as pa, tempfile
    >>> texts = [f"S_INTERSECTS(area, POLYGON(({k} 0, {k + 1} 0, {k} 1, {k} 0)))" for k in range(6)]
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     made, bad = split(pa.table({"filter": [*texts, "size <"]}), None, directory, 2)
    >>> [part.artifact.filters for part in made.partitions], [row for row, _ in bad]
    ([3, 3], [6])
    """
    names = tuple(rows.column_names)
    job = Job(names, template, _types(rows), {})
    own = [f"c{k}" for k in range(len(names))]
    marked = rows.rename_columns(own).append_column("row", pa.array(np.arange(rows.num_rows)))
    batches = marked.append_column("repeated", pa.array(np.zeros(rows.num_rows, np.bool_))).to_batches()
    if template is not None:
        kinds = [row for batch in first_kinds(iter(batches), job) for row in batch.to_pylist()]
        job = job._replace(kinds={row["name"]: row["kind"] for row in reversed(kinds)})
    kept, bad = _sifted(list(scan_batches(iter(batches), job)))
    abouts = []
    if kept:
        layout = layout_of(pa.Table.from_batches(sample_batches(iter(kept))), count)
        spread = pa.Table.from_batches(spread_batches(iter(kept), layout, len(names)))
        for number in range(layout.total):
            part = spread.filter(pc.equal(spread.column("partition"), number))
            ordered = part.sort_by([("is_shared", "ascending"), ("number", "ascending")]).to_batches()
            built = build_partition(iter(ordered), job, place, layout.wide[0])
            abouts += [json.loads(text) for batch in built for text in batch.column(0).to_pylist()]
    parts, more = partitions_of(abouts)
    bad |= {row: reason for row, _, reason in more}
    made = manifest(place, parts, (*job.types, "subscriber" in names), rows.num_rows - len(bad))
    return made, sorted(bad.items())


def _sifted(scanned: list[Any]) -> tuple[list[Any], dict[int, str]]:
    """Return the good rows of scanned batches, and why the others are bad."""
    good: list[Any] = []
    bad: dict[int, str] = {}
    for batch in scanned:
        reasons = batch.column("reason")
        refused = batch.filter(reasons.is_valid())
        bad |= dict(zip(refused.column("number").to_pylist(), refused.column("reason").to_pylist(), strict=True))
        good += [batch.filter(reasons.is_null())] if refused.num_rows < batch.num_rows else []
    return good, bad


def _types(rows: Any) -> tuple[str, str]:
    """Return the Spark types of keys and subscribers."""
    kinds = {field.name: "bigint" if pa.types.is_integer(field.type) else "string" for field in rows.schema}
    key = kinds.get("key", "bigint")
    return key, kinds.get("subscriber", key)
