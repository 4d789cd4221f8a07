"""The partitioned plan against broadcast where both fit: a section of benchmarks/spark.py."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import spark_work
from report import Row
from spark_work import drained
from timing import say, take_turns

from contrada import pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from spark import Bench

PARTITIONED = "Spark: partitioned against broadcast"
TEMPLATE = "S_INTERSECTS(area, $geometry)"
PARTS = (4, 8)  # twice as many as cores, and more
COMPARED = 2_000  # messages whose rows are compared, with a thousand matches each


def matched(frame: DataFrame, compiled: Any) -> float:
    """Make every match, with the routing of messages; nothing is kept for the next time. Returns the replication."""
    found = pipeline.match(frame, compiled)
    drained(found.matches)
    found.unpersist()
    return 1.0 if found.routed is None else found.routed.replication


def against_broadcast(bench: Bench) -> Iterator[Row]:
    """The time of both plans for one job, the rows of both, and to how many partitions a message goes."""
    polygons = bench.polygons("SoCal")
    if polygons is None:
        return
    count = 2000 if bench.report.quick else 100_000
    _, frame = bench.frame(polygons, count)
    rows = pa.table({"key": np.arange(len(polygons.wkb)), "geometry": polygons.wkb.cast(pa.binary())})
    asked = spark_work.stored(bench.spark, rows, bench.directory / "socal-subscriptions", 2)
    place = str(bench.directory / "artifacts")
    compiled = {0: pipeline.compile(asked, place, template=TEMPLATE, plan="broadcast")}
    for parts in PARTS:
        compiled[parts] = pipeline.compile(asked, place, template=TEMPLATE, plan="partitioned", partitions=parts)
    calls = {parts: partial(matched, frame, one) for parts, one in compiled.items()}
    found = take_turns(calls, 1 if bench.report.quick else 3)
    few = frame.limit(COMPARED).persist()
    for parts in PARTS:
        compared, different = _differences(few, compiled[0], compiled[parts])
        ours, theirs = found[parts].seconds, found[0].seconds
        work = f"{count:,} messages, SoCal ({len(polygons.wkb):,}) in {parts} partitions, local[2]"
        yield Row(PARTITIONED, f"{work}: time", "broadcast", ours, theirs, ours / theirs, "times as long", at_most=2.5,
                  compared=compared, different=different)  # fmt: skip
        yield Row(PARTITIONED, f"{work}: partitions that a message goes to", "", None, None, found[parts].answer,
                  "partitions", at_most=2)  # fmt: skip
    few.unpersist()


def _differences(few: DataFrame, whole: Any, parts: Any) -> tuple[int, int]:
    """How many rows of matches there are, and how many of them only one of the plans gives."""
    both = [pipeline.match(few, one) for one in (whole, parts)]
    ours, theirs = (one.matches.select("message_id", "key") for one in both)
    found = ours.count(), ours.exceptAll(theirs).count() + theirs.exceptAll(ours).count()
    say(both[1].explain().split("stages:")[0])
    for one in both:
        one.unpersist()
    return found
