"""Number rows of subscriptions in Spark, and mark rows whose key an earlier row has."""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from contrada.model import Predicate
from contrada.pipeline.batch.simplified_batches import PART_BITS, Job, first_kinds, good_rows
from contrada.pipeline.kept import KEPT, kept_struct
from contrada.pipeline.systems import GEOMETRY, frame_systems


class Rows(NamedTuple):
    """Rows of subscriptions: required columns, Spark types of keys and subscribers, and the template."""

    frame: DataFrame
    columns: dict[str, Column]
    types: tuple[str, str]
    template: Predicate | None
    keep: tuple[str, ...] = ()  # columns that matches may carry

    def job(self) -> Job:
        """Return how workers read the rows, before anything is known about their values."""
        return Job(tuple(self.columns), self.template, self.types, frame_systems(self.frame, self.columns))


def sent_rows(rows: Rows) -> DataFrame:
    """Return the columns, named by position, Spark's number of each row, and last `kept`, if columns are kept."""
    names = [f"c{k}" for k in range(len(rows.columns))]
    kept = [kept_struct(rows.frame, rows.keep)] if rows.keep else []
    sent = rows.frame.select(*rows.columns.values(), f.monotonically_increasing_id(), *kept)
    return sent.toDF(*names, "row", *([KEPT] if kept else []))


def marked_job(rows: Rows, sent: DataFrame) -> tuple[Job, DataFrame]:
    """Return how workers read the `sent_rows`, and these rows with a mark on those whose key is repeated."""
    job = rows.job()._replace(offsets=row_offsets(sent))
    job = job._replace(kinds=geometry_kinds(sent, job))
    return job, marked_rows(sent, job)


def row_offsets(sent: DataFrame) -> dict[int, int]:
    """Return the number of the first row of each partition, counted over the partitions in order."""
    counts = sent.groupBy(f.shiftright("row", PART_BITS).alias("part")).count().collect()
    parts = dict(sorted((row["part"], row["count"]) for row in counts))
    return dict(zip(parts, accumulate(parts.values(), initial=0), strict=False))


def geometry_kinds(sent: DataFrame, job: Job) -> dict[str, str]:
    """Return whether each geometry column of a template holds regions or points, as in its first good row."""
    if job.template is None:
        return {}
    kinds = [field.dataType.typeName() for field in sent.schema.fields[: len(job.names)]]
    geometry = {name for name, kind in zip(job.names, kinds, strict=True) if kind in GEOMETRY}
    found: dict[str, str] = {}
    asked = sent.select(*sent.columns[: len(job.names) + 1])
    for rows in (asked.orderBy("row").limit(1), asked):  # the first row is usually good
        if geometry <= found.keys():
            break
        good = rows.mapInArrow(partial(first_kinds, job=job), "name string, row bigint, kind string")
        first = good.groupBy("name").agg(f.min_by("kind", "row").alias("kind")).collect()
        found |= {row["name"]: row["kind"] for row in first}
    return found


def marked_rows(sent: DataFrame, job: Job) -> DataFrame:
    """Add a column `repeated` after `row`, true for good rows whose key an earlier good row has."""
    first = sent.columns[: len(job.names) + 1]
    rest = sent.columns[len(first) :]
    fresh = sent.select(*first, f.lit(False).alias("repeated"), *rest)
    if "key" not in job.names:
        return fresh
    key = f"c{job.names.index('key')}"
    twice = sent.where(f"{key} IS NOT NULL").groupBy(key).count().where("count > 1").select(key)
    if twice.isEmpty():
        return fresh
    # The first good row of each key is kept, so rows with repeated keys are validated twice.
    schema = sent.select(f.col(key).alias("key"), "row").schema
    some = fresh.join(twice, key, "left_semi").select(*first, "repeated")
    good = some.mapInArrow(partial(good_rows, job=job), schema)
    firsts = good.groupBy("key").agg(f.min("row").alias("first"))
    late = good.join(firsts, "key").where("row > first").select("row", f.lit(True).alias("repeated"))
    marked = sent.join(late, "row", "left")
    return marked.select(*first, f.coalesce("repeated", f.lit(False)).alias("repeated"), *rest)
