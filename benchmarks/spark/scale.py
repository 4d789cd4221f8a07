"""Three million subscriptions on a cluster of two workers whose Python processes could not hold them: the proof.

`python -m benchmarks.spark.scale` runs it, `--quick` a small version; `--write` puts the tables, and a billion
reckoned from them, into docs/scale.md. The Los Angeles buildings are shifted twice, so that three towns lie side by
side; messages fall on all three, from a table and as a stream. Workers are limited by
`spark.executor.pyspark.memory`: the plan "broadcast" must fail, the plan "partitioned" must not.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import contrada as ct
from benchmarks.command import page_of, run_sections
from benchmarks.polygons import PolygonSet, read_set
from benchmarks.report import Report, Row, put_between
from benchmarks.spark import jobs
from benchmarks.spark.billion import billion
from benchmarks.spark.jobs import TEMPLATE
from benchmarks.spark.memory import watched
from benchmarks.spark.settings import QUIET, configured
from benchmarks.timing import say
from cluster import WORKERS, cluster
from contrada import pipeline

SCALE = "Spark: three towns in partitions"
TOWNS = 3
MEMORY = "2g"  # of a Python worker
RECKONED: list[str] = []  # a billion, by what this process measured
SETTINGS = QUIET | {
    "spark.driver.memory": "2g",
    "spark.executor.memory": "2g",
    "spark.executor.cores": "1",
    "spark.executor.pyspark.memory": MEMORY,
    "spark.sql.shuffle.partitions": "16",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.task.maxFailures": "1",  # what fails for want of memory fails again
}


def shifted(wkb: Any, by: float) -> Any:
    """Return regions further east, as WKB."""
    column = ct.RegionArray.from_wkb(wkb)
    arrays = column.arrays
    east = np.array([by, 0.0])
    moved = arrays._replace(xy=arrays.xy + east, bounds=arrays.bounds + np.tile(east, 2))
    return ct.RegionArray(moved).to_wkb().cast(pa.binary())


def written(polygons: PolygonSet, count: int, directory: Path, seed: int) -> tuple[Path, Path]:
    """Return where subscriptions and messages are: a file of each for a part of a town."""
    width = polygons.universe[2] - polygons.universe[0]
    subscriptions, messages = directory / "subscriptions", directory / "messages"
    for path in (subscriptions, messages):
        path.mkdir()
    asked = jobs.messages(polygons, count // TOWNS, seed)
    size = len(polygons.wkb)
    for town in range(TOWNS):
        wkb = shifted(polygons.wkb, town * 1.1 * width)
        for k in range(0, size, 250_000):
            keys = np.arange(k, min(k + 250_000, size)) + town * size
            part = pa.table({"key": keys, "geometry": wkb[k : k + 250_000]})
            pq.write_table(part, subscriptions / f"{town}-{k:07d}.parquet")
        areas = shifted(asked.column("area").combine_chunks(), town * 1.1 * width)
        ids = np.asarray(asked.column("message_id")) + town * asked.num_rows
        pq.write_table(pa.table({"message_id": ids, "area": areas}), messages / f"{town}.parquet")
    return subscriptions, messages


def matched(spark: Any, paths: tuple[Path, Path], place: str, count: int) -> tuple[list[Row], str, Any]:
    """Compile and match in partitions; return what it took, a billion reckoned from it, and the table.

    Workers load kernels with a small job before.
    """
    subscriptions, messages = (spark.read.parquet(str(path)) for path in paths)

    def match(asked: Any) -> tuple[Any, int]:
        found = pipeline.match(asked, compiled)
        return found, found.matches.count()

    few = partial(pipeline.compile, subscriptions.limit(1000), place, template=TEMPLATE)
    every = partial(pipeline.compile, subscriptions, place, template=TEMPLATE)
    (took, compiled), building = watched(every, few)
    say(f"{compiled.why}; {took:.0f} s")
    table = compiled.artifact
    assert isinstance(table, pipeline.PartitionedArtifact), "the plan is not partitioned"
    (seconds, answer), matching = watched(partial(match, messages), partial(match, messages.limit(100)))
    found, matches = answer
    say(found.explain().split("stages:")[0])
    assert found.routed is not None
    rates, replication = (compiled.count / took, count / seconds), found.routed.replication
    worker = max(peak.resident for peak in matching.values())
    reckoned = billion(table, compiled.count, _wkb_bytes(paths[0]), *rates, replication, worker)
    largest = max(part.artifact.bytes for part in table.partitions)
    name = f"{compiled.count:,} subscriptions, {count:,} messages, {len(WORKERS)} workers of {MEMORY}"
    filters = over([part.artifact.filters for part in table.partitions])
    rows = [
        Row.alone(SCALE, f"{name}: compiling", rates[0], "subscriptions a second", took),
        Row.alone(SCALE, f"{name}: matching", rates[1], "messages a second", seconds),
        Row.alone(SCALE, f"{name}: matches", float(matches), "rows"),
        Row.alone(SCALE, f"the table, in {len(table.partitions)} partitions", table.bytes / 2**20, "MiB"),
        Row.alone(SCALE, "the largest partition", largest / 2**20, "MiB"),
        Row.alone(SCALE, "filters of the largest, over the mean", filters, "times"),
        Row.alone(SCALE, "messages of the busiest, over the mean", over(found.routed.counts), "times"),
        Row.alone(SCALE, "partitions that a message goes to", replication, "partitions"),
    ]
    for when, found_then in (("after compiling", building), ("after matching", matching)):
        for host, peak in found_then.items():
            for what, size in (("in memory", peak.resident), ("addresses, which are limited", peak.addresses)):
                work = f"the Python worker of host {host}, most {when}: {what}"
                rows.append(Row.alone(SCALE, work, size / 2**20, "MiB"))
    found.unpersist()
    return rows, reckoned, table


def over(counts: Sequence[int]) -> float:
    """Return the largest over the mean."""
    return max(counts) * len(counts) / sum(counts)


def _wkb_bytes(path: Path) -> int:
    """Return bytes of the regions of subscriptions."""
    return sum(pq.read_table(file, columns=["geometry"]).column(0).nbytes for file in path.glob("*.parquet"))


def streamed(spark: Any, messages: Path, table: Any, directory: Path) -> Iterator[Row]:
    """Match the same messages as a stream, a town in each batch, against the table in partitions."""
    frame = spark.readStream.schema("message_id long, area binary").option("maxFilesPerTrigger", 1)
    told: list[Any] = []
    stream = pipeline.match_stream(
        frame.parquet(str(messages)), table, plan="partitioned", sink=lambda matches, rejected, batch: None,
        checkpoint=directory / "checkpoint", trigger={"availableNow": True}, progress=told.append,
    )  # fmt: skip
    stream.wait()
    count, seconds = sum(one.messages for one in told), sum(one.seconds for one in told)
    work = f"a stream of {count:,} messages in {len(told)} batches"
    yield Row.alone(SCALE, f"{work}: matching", count / seconds, "messages a second", seconds)
    yield Row.alone(SCALE, f"{work}: matches", float(sum(one.matches for one in told)), "rows")


def broadcast_fails(spark: Any, path: Path, place: str) -> Row:
    """Return the plan "broadcast" under the same limit: that it fails, and what it says."""
    try:
        pipeline.compile(spark.read.parquet(str(path)), place, template=TEMPLATE, plan="broadcast")
        told = ""
    except ct.ContradaError as error:
        told = str(error)
    say(f"broadcast: {told or 'it fits'}")
    work = f"broadcast under the same limit fails and says: {told}" if told else "broadcast under the same limit"
    return Row.alone(SCALE, work, float(bool(told)), "(1: it fails)", at_least=1)


def run(report: Report) -> Iterator[Row]:
    """Measure everything on a cluster of two workers, of a core each; a billion reckoned from it goes to RECKONED."""
    polygons = read_set("LA", report.seed)
    if report.quick:
        polygons = polygons.take(slice(20_000))
    count = (3000 if report.quick else 200_000) // TOWNS * TOWNS
    directory = jobs.work_directory()
    place = str(directory / "artifacts")
    # A partition is so small that its table can be built, which takes several times its size, beside Python itself.
    sizes = ("1m", "2m") if report.quick else ("48m", "400m")
    settings = dict(zip(("spark.contrada.partition.bytes", "spark.contrada.broadcast.bytes"), sizes, strict=True))
    paths = written(polygons, count, directory, report.seed)
    del polygons
    say("written")
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    with (
        cluster(directory, memory="3g") as (master, _),
        configured(SparkSession.builder.master(master), SETTINGS | settings).getOrCreate() as spark,
    ):
        rows, reckoned, table = matched(spark, paths, place, count)
        RECKONED.append(reckoned)
        yield from rows
        yield from streamed(spark, paths[1], table, directory)
        if not report.quick:  # a small table fits everywhere
            yield broadcast_fails(spark, paths[0], place)


if __name__ == "__main__":
    is_written = run_sections("scale", __doc__, {"all": run})
    for reckoned in RECKONED:
        print(reckoned)
        if is_written:
            put_between(page_of("scale"), "billion", reckoned)
