"""Matching and ingest on Spark against what PySpark users write with Shapely, and against one process.

`python benchmarks/spark.py` runs everything (a quarter of an hour), `--quick` a small version; `--write` puts the
tables into benchmarks/results. Starting the session is not part of any number.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import spark_work
from command import finish, parsed, parser_of, shown_at_least
from match_sets import PolygonSet, read_set
from match_shapely import BoundaryFirst, TreePerOperator, TreePerOperatorPredicates
from report import Report, Row
from spark_memory import Watch
from spark_partitions import against_broadcast
from spark_work import drained
from timing import say, take_turns

import contrada as ct
from contrada import pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MATCH, INGEST, WARM = "Spark: matching", "Spark: ingest", "Spark: the second job on warm workers"
LARGE, BUILT = "Spark: a million buildings", "Spark: a million buildings compiled"
PLANS = (TreePerOperator, TreePerOperatorPredicates, BoundaryFirst)


class Bench(NamedTuple):
    """A session, where its files are, and the report."""

    spark: SparkSession
    directory: Path
    report: Report

    def polygons(self, name: str) -> PolygonSet | None:
        """A real set with the seven relations; a part of it in a quick run."""
        found = read_set(name, self.report)
        if found is not None and self.report.quick:
            found = found._replace(**{part: getattr(found, part)[:5000] for part in ("wkb", "shapes", "operators")})
        return None if found is None else spark_work.seven(found, self.report.seed)

    def frame(self, polygons: PolygonSet, count: int) -> tuple[pa.Table, DataFrame]:
        """Messages, in memory and as Spark reads them; those that another section made are taken again."""
        path = self.directory / f"{polygons.name}-{count}"
        made = pq.read_table(path) if path.exists() else spark_work.messages(polygons, count, self.report.seed)
        return made, spark_work.stored(self.spark, made, path)

    def artifact(self, table: ct.ForwardingTable) -> Any:
        """A table where workers find it."""
        return pipeline.publish(table, str(self.directory / "artifacts"))


def matched(frame: DataFrame, artifact: Any, by: Any = "subscription") -> float:
    """Seconds until every match was made; nothing of it is kept for the next time."""
    found = pipeline.match(frame, artifact, by=by)
    seconds = drained(found.matches)
    found.unpersist()
    return seconds


def against_shapely(bench: Bench) -> Iterator[Row]:
    """SoCal against the best plan of a PySpark user."""
    polygons = bench.polygons("SoCal")
    if polygons is None:
        return
    count = 400 if bench.report.quick else 20_000
    _, frame = bench.frame(polygons, count)
    few = frame.limit(max(1, count // 40)).repartition(2).persist()
    seconds = {plan.__name__: _rate_of(bench, polygons, few, plan.__name__) for plan in PLANS}
    best = min(seconds, key=seconds.__getitem__)
    say(f"the quickest of {seconds}: {best}")
    artifact = bench.artifact(spark_work.table_by_operator(polygons))

    def peer() -> DataFrame:
        return spark_work.shapely_match(bench.spark, polygons, frame, best)

    calls = {"ours": lambda: matched(frame, artifact), "peer": lambda: drained(peer())}
    found = take_turns(calls, 1 if count < 1000 else 2)
    same = _difference(pipeline.match(frame, artifact).matches.select("message_id", "key"), peer())
    each = found["ours"].seconds / count, found["peer"].seconds / count
    work = f"{count:,} messages, SoCal ({len(polygons.wkb):,}), local[2], time per message"
    yield Row(MATCH, work, f"mapInArrow, Shapely ({best})", *each, each[1] / each[0], at_least=5,
              compared=count * len(polygons.wkb), different=same)  # fmt: skip


def _rate_of(bench: Bench, polygons: PolygonSet, few: DataFrame, plan: str) -> float:
    """Seconds for a few messages, the second time."""
    drained(spark_work.shapely_match(bench.spark, polygons, few, plan))
    return drained(spark_work.shapely_match(bench.spark, polygons, few, plan))


def _difference(ours: DataFrame, theirs: DataFrame) -> int:
    """Rows that one has and the other has not."""
    return ours.exceptAll(theirs).count() + theirs.exceptAll(ours).count()


def against_one_process(bench: Bench) -> Iterator[Row]:
    """The same work with match_many on as many threads."""
    polygons = bench.polygons("SoCal")
    if polygons is None:
        return
    count = 2000 if bench.report.quick else 100_000
    asked, frame = bench.frame(polygons, count)
    table = spark_work.table_by_operator(polygons)
    artifact = bench.artifact(table)
    found = take_turns(
        {
            "spark": lambda: matched(frame, artifact),
            "process": lambda: table.match_many(asked.drop_columns("message_id"), by="subscription", threads=2),
        },
        3,
    )
    ours, theirs = found["spark"].seconds, found["process"].seconds
    work = f"{count:,} messages, SoCal, local[2], rate as a share of match_many's on 2 threads"
    yield Row(MATCH, work, "match_many, 2 threads", ours, theirs, theirs / ours, "of its rate", at_least=0.6)


def many_buildings(bench: Bench) -> Iterator[Row]:
    """A million buildings: the rate, and what memory driver and workers need."""
    polygons = bench.polygons("LA")
    if polygons is None:
        return
    count = 1000 if bench.report.quick else 100_000
    _, frame = bench.frame(polygons, count)
    table = spark_work.table_by_operator(polygons)
    artifact = bench.artifact(table)
    size = artifact.bytes
    del table
    matched(frame, artifact)
    seconds = matched(frame, artifact)
    name = f"{count:,} messages, LA ({len(polygons.wkb):,}), local[2]"
    yield Row(LARGE, f"{name}: rate", "", seconds, None, count / seconds, "messages a second")
    yield Row(LARGE, "the table", "", None, None, size / 2**20, "MiB")
    for process, (peak, proportional, private) in sorted(spark_work.memory_of_workers().items()):
        kind = {"worker": "a Python worker", "JVM": "the JVM (driver and executor)"}.get(process.split()[0])
        if kind is None or peak < 100 << 20:  # the daemon that starts workers is small
            continue
        for what, size in (("peak", peak), ("its share now", proportional), ("its own now", private)):
            yield Row(LARGE, f"memory of {kind}, {what}", "", None, None, size / 2**20, "MiB")


def built(bench: Bench) -> Iterator[Row]:
    """A million buildings compiled into one table by one task: how long, and what its worker needs."""
    polygons = bench.polygons("LA")
    if polygons is None:
        return
    rows = pa.table({"key": np.arange(len(polygons.wkb)), "geometry": polygons.wkb.cast(pa.binary())})
    frame = spark_work.stored(bench.spark, rows, bench.directory / "buildings")
    with Watch() as watch:
        start = time.perf_counter()
        compiled = pipeline.compile(
            frame, str(bench.directory / "built"), template="S_INTERSECTS(area, $geometry)", plan="broadcast"
        )
        seconds = time.perf_counter() - start
        peak = max(peak.resident for peak in watch.by_host().values())
    work = f"{compiled.count:,} buildings compiled, plan broadcast"
    yield Row(BUILT, work, "", seconds, None, compiled.count / seconds, "subscriptions a second")
    yield Row(BUILT, "the Python worker that built the table, peak", "", None, None, peak / 2**20, "MiB")


def disjoint(bench: Bench) -> Iterator[Row]:
    """Subscriptions that nearly every message satisfies, asked by subscriber: a hundred of them."""
    polygons = bench.polygons("SoCal")
    if polygons is None:
        return
    count = 200 if bench.report.quick else 2_000
    _, frame = bench.frame(polygons, count)
    table = ct.ForwardingTable()
    rows = len(polygons.wkb)
    subscriptions = pa.table({
        "key": np.arange(rows),
        "subscriber": np.arange(rows) % 100,
        "geometry": polygons.wkb,
    })  # fmt: skip
    table.subscribe_many(subscriptions, ct.Constraint("area", ct.Relation.DISJOINT, ct.Column("geometry")))
    artifact = bench.artifact(table)
    matched(frame, artifact, by="subscriber")
    seconds = matched(frame, artifact, by="subscriber")
    work = f"{count:,} messages, SoCal, disjoint alone, 100 subscribers, by subscriber: rate"
    yield Row(MATCH, work, "", seconds, None, count / seconds, "messages a second")


def ingest(bench: Bench) -> Iterator[Row]:
    """A million polygons read and validated."""
    polygons = read_set("LA", bench.report)
    if polygons is None:
        return
    wkb = polygons.wkb[:20_000] if bench.report.quick else polygons.wkb
    path = bench.directory / "ingest"
    frame = spark_work.stored(bench.spark, pa.table({"geometry": wkb, "row": np.arange(len(wkb))}), path)

    def ours() -> None:
        drained(pipeline.ingest(bench.spark, str(path)).rows)

    calls = {"ours": ours, "peer": lambda: drained(spark_work.shapely_ingest(frame))}
    found = take_turns(calls, 1 if bench.report.quick else 3)
    seconds = found["ours"].seconds, found["peer"].seconds
    work = f"{len(wkb):,} polygons read and validated, local[2]"
    yield Row(INGEST, work, "mapInArrow, Shapely", *seconds, seconds[1] / seconds[0], at_least=2)


def warm(bench: Bench) -> Iterator[Row]:
    """One message, the first time in new workers and then again: what was loaded and compiled."""
    polygons = bench.polygons("SoCal")
    if polygons is None:
        return
    _, frame = bench.frame(polygons, 2)
    table = spark_work.table_by_operator(polygons)
    rows = pa.table({"key": [len(polygons.wkb)], "geometry": polygons.wkb[:1]})
    table.subscribe_many(rows, ct.Constraint("area", ct.Relation.EQUALS, ct.Column("geometry")))  # one nobody has open
    artifact = bench.artifact(table)
    for which in ("first", "second", "third"):
        before = spark_work.workers_with(bench.spark, artifact.digest)
        seconds = matched(frame, artifact)
        work = f"2 messages, the {which} job; {before} workers had the table open before"
        yield Row(WARM, work, "", seconds, None, seconds, "s")


SECTIONS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "la": many_buildings, "build": built, "shapely": against_shapely, "process": against_one_process,
    "disjoint": disjoint, "partitioned": against_broadcast, "ingest": ingest, "warm": warm,
}  # fmt: skip


def main() -> None:
    """Measure, print, save."""
    arguments, chosen = parsed(parser_of(__doc__, SECTIONS), SECTIONS, "spark")
    report = Report(arguments.seed, arguments.quick)
    directory = spark_work.work_directory()
    try:
        with shown_at_least(report):
            for name, run in SECTIONS.items():
                if name in chosen:
                    say(name)
                    with spark_work.session(directory) as spark:  # no worker holds what another section needed
                        report.rows.extend(run(Bench(spark, directory, report)))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    finish(report, "spark", arguments.write, chosen == set(SECTIONS))


if __name__ == "__main__":
    main()
