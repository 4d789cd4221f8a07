"""The partitioned plan against broadcast where both fit: a section of benchmarks/spark.py."""

from __future__ import annotations

from collections.abc import Iterator
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
PARTS = 8


def matched(frame: DataFrame, compiled: Any) -> float:
    """Seconds until every match was made, with the routing of messages; nothing of it is kept for the next time."""
    found = pipeline.match(frame, compiled)
    drained(found.matches)
    found.unpersist()
    return 0.0


def against_broadcast(bench: Bench) -> Iterator[Row]:
    """The time of both plans for one job, the rows of both, and to how many partitions a message goes."""
    polygons = bench.polygons("SoCal")
    if polygons is None:
        return
    count = 2000 if bench.report.quick else 10_000
    _, frame = bench.frame(polygons, count)
    rows = pa.table({"key": np.arange(len(polygons.wkb)), "geometry": polygons.wkb.cast(pa.binary())})
    asked = spark_work.stored(bench.spark, rows, bench.directory / "socal-subscriptions", 2)
    place = str(bench.directory / "artifacts")
    plans: dict[str, Any] = {"broadcast": {}, "partitioned": {"partitions": PARTS}}
    compiled = {
        plan: pipeline.compile(asked, place, template=TEMPLATE, plan=plan, **options)  # type: ignore[arg-type]
        for plan, options in plans.items()
    }
    calls = {plan: (lambda one=one: matched(frame, one)) for plan, one in compiled.items()}
    found = take_turns(calls, 1 if bench.report.quick else 2)
    both = [pipeline.match(frame.limit(count // 5), one) for one in compiled.values()]
    names = ("message_id", "key")
    few, many = (one.matches.select(*names) for one in both)
    different = few.exceptAll(many).count() + many.exceptAll(few).count()
    routed = both[1].routed
    assert routed is not None
    say(both[1].explain().split("stages:")[0])
    ours, theirs = found["partitioned"].seconds, found["broadcast"].seconds
    work = f"{count:,} messages, SoCal ({len(polygons.wkb):,}) in {PARTS} partitions, local[2]"
    yield Row(PARTITIONED, f"{work}: time", "broadcast", ours, theirs, ours / theirs, "times as long", at_most=2.5,
              compared=few.count(), different=different)  # fmt: skip
    yield Row(PARTITIONED, f"{work}: partitions that a message goes to", "", None, None, routed.replication,
              "partitions", at_most=2)  # fmt: skip
    for one in both:
        one.unpersist()
