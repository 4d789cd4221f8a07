"""Compile subscriptions in partitions: scan the rows, spread them, and build each partition's table in a task."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from contrada.errors import ContradaError, CrsError
from contrada.geometry.arrow.mixed import parts_of
from contrada.geometry.crs import common_crs
from contrada.index.items import boxes_of
from contrada.pipeline.batch.building import put_rejected
from contrada.pipeline.batch.numbering import Rows, marked_job, sent_rows
from contrada.pipeline.batch.simplified_batches import Job
from contrada.pipeline.kept import KEPT
from contrada.pipeline.partitioned import scanning
from contrada.pipeline.partitioned.building import SPREAD_SCHEMA, build_partition, spread_batches
from contrada.pipeline.partitioned.layouts import Layout, layout_of
from contrada.pipeline.partitioned.partitions import BadRow, Partition, PartitionedArtifact, manifest, partitions_of
from contrada.pipeline.spark_types import attribute_columns, ddl_fields

SAMPLE_MESSAGES = 4096  # sample by which partitions are balanced


def compile_partitions(
    rows: Rows, place: str, count: int, messages: DataFrame | None
) -> tuple[PartitionedArtifact, str | None]:
    """Compile rows into about `count` partitions; return them and the address of the file of bad rows, if any."""
    with ExitStack() as at_end:
        sent = sent_rows(rows).persist()
        at_end.callback(sent.unpersist)
        job, marked = marked_job(rows, sent)
        schema = _schema(sent, job, scanning.SCANNED_SCHEMA)
        scanned = marked.mapInArrow(partial(scanning.scan_batches, job=job), schema).persist()
        at_end.callback(scanned.unpersist)
        table = scanned.mapInArrow(scanning.sample_batches, scanning.SAMPLE_SCHEMA).toArrow()
        layout = layout_of(table, count, lambda named: {} if messages is None else _expected(messages, named))
        known, subscriptions = _refused(scanned)
        keeping = sent.select(f"{KEPT}.*").schema.json() if rows.keep else ""
        parts, more = _built(known, job, layout, place, keeping)
        names = (*rows.types, "subscriber" in rows.columns)
        made = manifest(place, parts, names, subscriptions - len(more), keeping)
        return made, _rejected(known, job, more, place)


def _schema(frame: DataFrame, job: Job, further: str) -> StructType:
    """Return the columns of a job with the types of `frame`, those of the DDL text `further`, and `kept`, if any."""
    kept = [field for field in frame.schema.fields if field.name == KEPT]
    return StructType([*frame.schema.fields[: len(job.names)], *ddl_fields(further), *kept])


def _expected(messages: DataFrame, attributes: list[str]) -> dict[str, NDArray[np.float64]]:
    """Return the boxes of some messages, by attribute."""
    columns = attribute_columns(messages, attributes)
    if not columns:
        return {}
    some = messages.select(*columns.values()).toDF(*(f"c{k}" for k in range(len(columns)))).limit(SAMPLE_MESSAGES)
    table = some.mapInArrow(partial(box_batches, names=tuple(columns)), scanning.BOX_SCHEMA).toArrow()
    named, boxes = np.array(table.column("attribute").to_pylist(), object), scanning.boxes_in(table)
    return {name: boxes[named == name] for name in columns}


def box_batches(batches: Iterator[Any], names: tuple[str, ...]) -> Iterator[Any]:
    """Yield the boxes of regions and points in batches of messages; bad values have none."""
    for batch in batches:
        for name, column in zip(names, batch.columns, strict=True):
            try:
                parts, _ = parts_of(column)
            except ContradaError:  # several CRS, or no geometry: skip
                continue
            yield from (scanning.attribute_boxes(name, boxes_of(part.column)) for part in parts)


def _refused(scanned: DataFrame) -> tuple[DataFrame, int]:
    """Reject rows whose CRS differs from that of the first good row; return all rows and the number of good ones."""
    good = f.when(f.col("reason").isNull(), f.col("number"))
    found = scanned.groupBy("crs").agg(f.min(good).alias("first"), f.count(good).alias("count")).collect()
    total = sum(row["count"] for row in found)
    known: dict[str, str] = {}
    systems = sorted((row["first"], row["crs"], row["count"]) for row in found if row["crs"] and row["count"])
    for _, crs, count in systems:
        own = json.loads(crs)
        try:
            known |= {name: common_crs(known.get(name), system) or system for name, system in own.items()}
        except CrsError as error:
            reason = f"coordinate reference systems of subscriptions differ: {error}"
            is_late = f.col("reason").isNull() & f.col("crs").eqNullSafe(crs)
            scanned = scanned.withColumn("reason", f.when(is_late, f.lit(reason)).otherwise(f.col("reason")))
            total -= count
    return scanned, total


def _built(
    scanned: DataFrame, job: Job, layout: Layout, place: str, keeping: str
) -> tuple[list[Partition], list[BadRow]]:
    """Build the partitions; return them and the rows that proved bad."""
    good = scanned.where("reason IS NULL")
    spreading = partial(spread_batches, layout=layout, columns=len(job.names))
    spread = good.mapInArrow(spreading, _schema(scanned, job, SPREAD_SCHEMA)).repartitionById(layout.total, "partition")
    # Sorted, equal rows give equal tables, and rows with filters in other partitions come last.
    ordered = spread.sortWithinPartitions("is_shared", "number")
    building = partial(build_partition, job=job, place=place, wide=layout.wide[0], keeping=keeping)
    found = [json.loads(row["about"]) for row in ordered.mapInArrow(building, "about string").collect()]
    return partitions_of(found)


def _rejected(scanned: DataFrame, job: Job, more: list[BadRow], place: str) -> str | None:
    """Write the bad rows beside the artifacts; return the address, None if there are none."""
    key = f.col(f"c{job.names.index('key')}" if "key" in job.names else "number").cast("string")
    bad = scanned.where("reason IS NOT NULL").select(f.col("number").alias("row"), key.alias("key"), "reason")
    if more:
        bad = bad.union(scanned.sparkSession.createDataFrame(more, "row bigint, key string, reason string"))
    ordered = bad.coalesce(1).sortWithinPartitions("row")
    found = ordered.mapInArrow(partial(write_rejected, place=place), "path string").collect()
    return found[0]["path"] if found else None


def write_rejected(batches: Iterator[Any], place: str) -> Iterator[Any]:
    """Write bad rows to a file beside the artifacts; yield one row with its address."""
    path = put_rejected(batches, place)
    if path is not None:
        yield pa.record_batch([pa.array([path])], ["path"])
