"""Three million subscriptions on a cluster of two workers whose Python processes could not hold them: the proof.

`python benchmarks/spark_scale.py` runs it, `--quick` a small version; `--write` puts the tables, and a billion
reckoned from them, into docs/scale.md. The Los Angeles buildings are shifted twice, so that three towns lie side by
side; messages fall on all three. Workers are limited by `spark.executor.pyspark.memory`: the plan "broadcast" must
fail, the plan "partitioned" must not.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import spark_work
from command import parser_of, result_of, shown_at_least
from match_sets import PolygonSet, read_set
from report import ROOT, Report, Row, put_between, show, write_docs
from spark_billion import Measured, billion
from spark_memory import Watch
from timing import say

import contrada as ct
from cluster import WORKERS, cluster
from contrada import pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCALE = "Spark: three towns in partitions"
TEMPLATE = "S_INTERSECTS(area, $geometry)"
TOWNS = 3
PAGE = ROOT / "docs" / "scale.md"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.executor.memory": "2g",
    "spark.executor.cores": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "16",
    "spark.log.level": "ERROR",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.task.maxFailures": "1",  # what fails for want of memory fails again
}


@contextmanager
def session(directory: Path, settings: dict[str, str]) -> Iterator[SparkSession]:
    """A session on a cluster of two workers, of a core each."""
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with cluster(directory, memory="3g") as (master, _):
        builder = SparkSession.builder.master(master).appName("benchmarks")
        for name, value in settings.items():
            builder = builder.config(name, value)
        with builder.getOrCreate() as spark:
            yield spark


def shifted(wkb: Any, by: float) -> Any:
    """Regions further east, as WKB."""
    column = ct.RegionArray.from_wkb(wkb)
    arrays = column.arrays
    east = np.array([by, 0.0])
    moved = arrays._replace(xy=arrays.xy + east, bounds=arrays.bounds + np.tile(east, 2))
    return ct.RegionArray(moved).to_wkb().cast(pa.binary())


def written(polygons: PolygonSet, count: int, directory: Path, seed: int) -> tuple[Path, Path]:
    """Where subscriptions and messages are: a file of each for a part of a town."""
    width = polygons.universe[2] - polygons.universe[0]
    subscriptions, messages = directory / "subscriptions", directory / "messages"
    for path in (subscriptions, messages):
        path.mkdir()
    asked = spark_work.messages(polygons, count // TOWNS, seed)
    size = len(polygons.wkb)
    for town in range(TOWNS):
        wkb = shifted(polygons.wkb, town * 1.1 * width)
        for k in range(0, size, 250_000):
            part = pa.table(
                {"key": np.arange(k, min(k + 250_000, size)) + town * size, "geometry": wkb[k : k + 250_000]}
            )
            pq.write_table(part, subscriptions / f"{town}-{k:07d}.parquet")
        areas = shifted(asked.column("area").combine_chunks(), town * 1.1 * width)
        ids = np.asarray(asked.column("message_id")) + town * asked.num_rows
        pq.write_table(pa.table({"message_id": ids, "area": areas}), messages / f"{town}.parquet")
    return subscriptions, messages


def measured(spark: Any, paths: tuple[Path, Path], place: str, limit: str, count: int) -> tuple[list[Row], Measured]:
    """Compile and match in partitions, and tell what it took."""
    subscriptions, messages = (spark.read.parquet(str(path)) for path in paths)
    with Watch() as watch:
        start = time.perf_counter()
        compiled = pipeline.compile(subscriptions, place, template=TEMPLATE)
        took = time.perf_counter() - start
        building = watch.by_host()
    say(f"{compiled.why}; {took:.0f} s")
    table = compiled.artifact
    assert isinstance(table, pipeline.PartitionedArtifact), "the plan is not partitioned"
    with Watch() as watch:
        start = time.perf_counter()
        found = pipeline.match(messages, compiled)
        matches = found.matches.count()
        seconds = time.perf_counter() - start
        matching = watch.by_host()
    say(found.explain().split("stages:")[0])
    assert found.routed is not None
    largest = max(part.artifact.bytes for part in table.partitions)
    run = Measured(
        compiled.count, _wkb_bytes(paths[0]), table.bytes, len(table.partitions),
        (Path(table.path) / "partitions.json").stat().st_size, table.router.bytes, compiled.count / took,
        count / seconds, found.routed.replication, len(WORKERS),
        max(peak.resident for peak in matching.values()), largest,
    )  # fmt: skip
    name = f"{compiled.count:,} subscriptions, {count:,} messages, {len(WORKERS)} workers of {limit}"
    rows = [
        Row(SCALE, f"{name}: compiling", "", took, None, run.compiled, "subscriptions a second"),
        Row(SCALE, f"{name}: matching", "", seconds, None, run.matched, "messages a second"),
        Row(SCALE, f"{name}: matches", "", None, None, float(matches), "rows"),
        Row(SCALE, f"the table, in {run.partitions} partitions", "", None, None, table.bytes / 2**20, "MiB"),
        Row(SCALE, "the largest partition", "", None, None, largest / 2**20, "MiB"),
        Row(SCALE, "filters of the largest, over the mean", "", None, None,
            over([part.artifact.filters for part in table.partitions]), "times"),
        Row(SCALE, "messages of the busiest, over the mean", "", None, None, over(found.routed.counts), "times"),
        Row(SCALE, "partitions that a message goes to", "", None, None, run.replication, "partitions"),
    ]  # fmt: skip
    for what, peaks in (("after compiling", building), ("after matching", matching)):
        for host, peak in peaks.items():
            who = f"the Python worker of host {host}, most {what}"
            rows.append(Row(SCALE, f"{who}: in memory", "", None, None, peak.resident / 2**20, "MiB"))
            rows.append(
                Row(SCALE, f"{who}: addresses, which are limited", "", None, None, peak.addresses / 2**20, "MiB")
            )
    found.unpersist()
    return rows, run


def over(counts: Sequence[int]) -> float:
    """The largest over the mean."""
    return max(counts) * len(counts) / sum(counts)


def _wkb_bytes(path: Path) -> int:
    """Bytes of the regions of subscriptions."""
    return sum(pq.read_table(file, columns=["geometry"]).column(0).nbytes for file in path.glob("*.parquet"))


def broadcast_fails(spark: Any, path: Path, place: str) -> Row:
    """The plan "broadcast" under the same limit: that it fails, and what it says."""
    start = time.perf_counter()
    try:
        pipeline.compile(spark.read.parquet(str(path)), place, template=TEMPLATE, plan="broadcast")
        told = ""
    except ct.ContradaError as error:
        told = str(error)
    say(f"broadcast, {time.perf_counter() - start:.0f} s: {told or 'it fits'}")
    work = f"broadcast under the same limit fails and says: {told}" if told else "broadcast under the same limit"
    return Row(SCALE, work, "", None, None, float(bool(told)), "(1: it fails)", at_least=1)


def main() -> None:
    """Measure, print, and write to the docs if asked for."""
    parser = parser_of(__doc__, ["all"])
    parser.add_argument("--memory", default="2g", help="of a Python worker")
    arguments = parser.parse_args()
    report = Report(arguments.seed, arguments.quick)
    polygons = read_set("LA", report)
    if polygons is None:
        return
    if arguments.quick:
        polygons = polygons._replace(
            **{part: getattr(polygons, part)[:20_000] for part in ("wkb", "shapes", "operators")}
        )
    count = (3000 if arguments.quick else 200_000) // TOWNS * TOWNS
    directory = spark_work.work_directory()
    settings = {**SETTINGS, "spark.executor.pyspark.memory": arguments.memory}
    # A partition is so small that its table can be built, which takes several times its size, beside Python itself.
    settings["spark.contrada.partition.bytes"] = "1m" if arguments.quick else "48m"
    settings["spark.contrada.broadcast.bytes"] = "2m" if arguments.quick else "400m"
    place = str(directory / "artifacts")
    try:
        paths = written(polygons, count, directory, arguments.seed)
        del polygons
        say("written")
        with shown_at_least(report), session(directory, settings) as spark:
            rows, run = measured(spark, paths, place, arguments.memory, count)
            report.rows.extend(rows)
            if not arguments.quick:  # a small table fits everywhere
                report.rows.append(broadcast_fails(spark, paths[0], place))
        show(report)
        report.save(result_of("spark_scale"))
        print(billion(run))
        if arguments.write:
            write_docs(report, PAGE, "scale")
            put_between(PAGE, "billion", billion(run))
            say("wrote docs/scale.md")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
