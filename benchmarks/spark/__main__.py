"""Matching and ingest on Spark against what PySpark users write with Shapely, and against one process.

`python -m benchmarks.spark` runs everything (a quarter of an hour), `--quick` a small version; `--write` puts the
tables into benchmarks/results. Starting the session is not part of any number.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

import contrada as ct
from benchmarks.command import run_sections
from benchmarks.polygons import read_set
from benchmarks.report import Row
from benchmarks.spark import jobs
from benchmarks.spark.jobs import TEMPLATE, Bench, differences, drain, stored, subscription_rows
from benchmarks.spark.memory import memory_rows, watched
from benchmarks.spark.settings import DIGEST
from benchmarks.timing import measured, race, say, take_turns, time_cold
from contrada import pipeline

MATCH, INGEST, WARM = "Spark: matching", "Spark: ingest", "Spark: the second job on warm workers"
SCAN = "Spark: few messages, rows scanned or compiled"
LARGE, BUILT = "Spark: a million buildings", "Spark: a million buildings compiled"


def match(frame: DataFrame, artifact: Any, by: Any = "subscription") -> float:
    """Make every match; nothing of it is kept for the next time. Return to how many partitions a message goes."""
    found = pipeline.match(frame, artifact, by=by)
    drain(found.matches)
    found.unpersist()
    return 1.0 if found.routed is None else found.routed.replication


def against_shapely(bench: Bench) -> Iterator[Row]:
    """Measure SoCal against the best plan of a PySpark user."""
    polygons, count, _, frame = bench.work("SoCal", 400, 20_000)
    few = frame.limit(max(1, count // 40)).repartition(2).persist()
    best = jobs.quickest_plan(bench.spark, polygons, few)
    artifact = bench.artifact(jobs.packed_table(polygons))

    def peer() -> DataFrame:
        return frame.mapInArrow(jobs.shapely_matching(bench.spark, polygons, best), jobs.MATCHED)

    ours, theirs = race(partial(match, frame, artifact), lambda: drain(peer()), 1 if count < 1000 else 2, count)
    different = differences(pipeline.match(frame, artifact).matches.select("message_id", "key"), peer())
    work = f"{count:,} messages, SoCal ({len(polygons.wkb):,}), local[2], time per message"
    counts = {"compared": count * len(polygons.wkb), "different": different}
    yield Row.versus(MATCH, work, f"mapInArrow, Shapely ({best})", ours, theirs, 5, **counts)


def against_one_process(bench: Bench) -> Iterator[Row]:
    """Measure the same work with match_many on as many threads."""
    polygons, count, asked, frame = bench.work("SoCal", 2_000, 100_000)
    table = jobs.packed_table(polygons)
    artifact = bench.artifact(table)
    process = partial(table.match_many, asked.drop_columns("message_id"), by="subscription", threads=2)
    (ours, _), (theirs, _) = race(partial(match, frame, artifact), process, 3)
    work = f"{count:,} messages, SoCal, local[2], rate as a share of match_many's on 2 threads"
    yield Row(MATCH, work, "match_many, 2 threads", ours, theirs, theirs / ours, "of its rate", at_least=0.6)


def many_buildings(bench: Bench) -> Iterator[Row]:
    """Measure a million buildings: the rate, and what memory driver and workers need."""
    polygons, count, _, frame = bench.work("LA", 1_000, 100_000)
    artifact = bench.artifact(jobs.packed_table(polygons))
    seconds = measured(lambda: match(frame, artifact)).seconds
    name = f"{count:,} messages, LA ({len(polygons.wkb):,}), local[2]"
    yield Row.alone(LARGE, f"{name}: rate", count / seconds, "messages a second", seconds)
    yield Row.alone(LARGE, "the table", artifact.bytes / 2**20, "MiB")
    yield from memory_rows(LARGE)


def built(bench: Bench) -> Iterator[Row]:
    """Measure a million buildings compiled into one table by one task: how long, and what its worker needs."""
    polygons = bench.polygon_set("LA")
    frame = jobs.stored(bench.spark, jobs.subscription_rows(polygons), bench.directory / "buildings")
    place = str(bench.directory / "built")
    compile_rows = partial(pipeline.compile, artifacts=place, template=TEMPLATE, plan="broadcast")
    warm_up = partial(compile_rows, frame.limit(1000))  # workers load kernels and libraries
    (seconds, compiled), peaks = watched(partial(compile_rows, frame), warm_up)
    work = f"{compiled.count:,} buildings compiled, plan broadcast"
    yield Row.alone(BUILT, work, compiled.count / seconds, "subscriptions a second", seconds)
    peak = max(peak.resident for peak in peaks.values())
    yield Row.alone(BUILT, "the Python worker that built the table, peak", peak / 2**20, "MiB")


def disjoint(bench: Bench) -> Iterator[Row]:
    """Measure subscriptions that nearly every message satisfies, asked by subscriber: a hundred of them."""
    polygons, count, _, frame = bench.work("SoCal", 200, 2_000)
    table = ct.ForwardingTable()
    rows = jobs.subscription_rows(polygons)
    rows = rows.append_column("subscriber", pa.array(np.arange(len(rows)) % 100))
    table.subscribe_many(rows, ct.Constraint("area", ct.Relation.DISJOINT, ct.Column("geometry")))
    artifact = bench.artifact(table)
    seconds = measured(lambda: match(frame, artifact, by="subscriber")).seconds
    work = f"{count:,} messages, SoCal, disjoint alone, 100 subscribers, by subscriber: rate"
    yield Row.alone(MATCH, work, count / seconds, "messages a second", seconds)


def ingest(bench: Bench) -> Iterator[Row]:
    """Measure a million polygons read and validated."""
    polygons = read_set("LA", bench.report.seed)
    wkb = polygons.wkb[:20_000] if bench.report.quick else polygons.wkb
    path = bench.directory / "ingest"
    frame = jobs.stored(bench.spark, pa.table({"geometry": wkb, "row": np.arange(len(wkb))}), path)

    def read_and_validate() -> None:
        drain(pipeline.ingest(bench.spark, str(path)).rows)

    ours, theirs = race(read_and_validate, lambda: drain(jobs.shapely_ingest(frame)), 1 if bench.report.quick else 3)
    work = f"{len(wkb):,} polygons read and validated, local[2]"
    yield Row.versus(INGEST, work, "mapInArrow, Shapely", ours, theirs, 2)


def warm(bench: Bench) -> Iterator[Row]:
    """Measure one message, the first time in new workers and then again: what was loaded and compiled."""
    polygons, _, _, frame = bench.work("SoCal", 2, 2)
    table = jobs.packed_table(polygons)
    rows = pa.table({"key": [len(polygons.wkb)], "geometry": polygons.wkb[:1]})
    table.subscribe_many(rows, ct.Constraint("area", ct.Relation.EQUALS, ct.Column("geometry")))  # one nobody has open
    artifact = bench.artifact(table)
    for which in ("first", "second", "third"):
        before = jobs.workers_with(bench.spark, artifact.digest)
        work = f"2 messages, the {which} job; {before} workers had the table open before"
        yield Row.lasting(WARM, work, time_cold(lambda: match(frame, artifact)))


PARTITIONED = "Spark: partitioned against broadcast"
PARTS = (4, 8)  # twice as many as cores, and more
COMPARED = 2_000  # messages whose rows are compared, with a thousand matches each


def against_broadcast(bench: Bench) -> Iterator[Row]:
    """Measure the time of both plans for one job, the rows of both, and to how many partitions a message goes."""
    polygons, count, _, frame = bench.work("SoCal", 2_000, 100_000)
    asked = stored(bench.spark, subscription_rows(polygons), bench.directory / "socal-subscriptions", 2)
    compiling = partial(pipeline.compile, asked, str(bench.directory / "artifacts"), template=TEMPLATE)
    compiled = {0: compiling(plan="broadcast")}
    compiled |= {parts: compiling(plan="partitioned", partitions=parts) for parts in PARTS}
    calls = {parts: partial(match, frame, one) for parts, one in compiled.items()}
    found = take_turns(calls, 1 if bench.report.quick else 3)
    few = frame.limit(COMPARED).persist()
    for parts in PARTS:
        compared, different = _rows_that_differ(few, compiled[0], compiled[parts])
        ours, theirs = found[parts].seconds, found[0].seconds
        work = f"{count:,} messages, SoCal ({len(polygons.wkb):,}) in {parts} partitions, local[2]"
        yield Row(PARTITIONED, f"{work}: time", "broadcast", ours, theirs, ours / theirs, "times as long", at_most=2.5,
                  compared=compared, different=different)  # fmt: skip
        replication = f"{work}: partitions that a message goes to"
        yield Row.alone(PARTITIONED, replication, found[parts].answer, "partitions", at_most=2)
    few.unpersist()


def _rows_that_differ(few: DataFrame, whole: Any, parts: Any) -> tuple[int, int]:
    """Return how many rows of matches there are, and how many of them only one of the plans gives."""
    both = [pipeline.match(few, one) for one in (whole, parts)]
    ours, theirs = (one.matches.select("message_id", "key") for one in both)
    found = ours.count(), differences(ours, theirs)
    say(both[1].explain().split("stages:")[0])
    for one in both:
        one.unpersist()
    return found


def scanned(bench: Bench) -> Iterator[Row]:
    """Measure plan "scan" beside compiling and broadcasting, over messages and regions: where `auto` changes."""
    polygons = bench.polygon_set("LA")
    asked = jobs.messages(polygons, 16_000, bench.report.seed)
    for regions in (2_000,) if bench.report.quick else (20_000, 100_000, 500_000):
        path = bench.directory / f"scanned-{regions}"
        stored(bench.spark, subscription_rows(polygons).slice(0, regions), path)
        for count in (50,) if bench.report.quick else (100, 1_000, 4_000, 16_000):
            frame = stored(bench.spark, asked.slice(0, count), bench.directory / f"asked-{count}")
            turn = itertools.count(100 * count)

            def once(plan: Any, frame: DataFrame = frame, path: Path = path, turn: Iterator[int] = turn) -> list[int]:
                rows = jobs.with_a_new_row(bench.spark, path, next(turn))
                places = {"artifacts": str(bench.directory / "artifacts")}
                found = pipeline.match(frame, rows, plan, template=TEMPLATE, **places)
                made = found.matches.selectExpr(*DIGEST).collect()[0]
                found.unpersist()
                return [found.plan, made.pairs, made.digest or 0]

            times = take_turns({plan: partial(once, plan) for plan in ("scan", "broadcast")}, turns(bench))
            ours, theirs = times["scan"], times["broadcast"]
            if ours.answer[1:] != theirs.answer[1:] or ours.answer[0] != "scan":
                raise RuntimeError(f"plans differ: {ours.answer} and {theirs.answer}")
            work = f"{count:,} messages, {regions:,} of LA, from files"
            yield Row.versus(SCAN, work, "compiled and broadcast", ours, theirs, compared=count * regions, different=0)


def turns(bench: Bench) -> int:
    """Return how often plans take turns."""
    return 1 if bench.report.quick else 3


SECTIONS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "la": many_buildings, "build": built, "shapely": against_shapely, "process": against_one_process,
    "disjoint": disjoint, "partitioned": against_broadcast, "ingest": ingest, "warm": warm,
    "scan": scanned,
}  # fmt: skip

if __name__ == "__main__":
    run_sections("spark", __doc__, {name: partial(jobs.in_session, run) for name, run in SECTIONS.items()})
