"""Three million subscriptions on a cluster of two workers whose Python processes could not hold them: the proof.

`python benchmarks/spark_scale.py` runs it, `--quick` a small version.
The Los Angeles buildings are shifted twice, so that three towns lie side by side; messages fall on all three. Workers
are limited by `spark.executor.pyspark.memory`: the plan "broadcast" must fail, the plan "partitioned" must not.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import spark_work
from match_sets import PolygonSet, read_set
from report import Report, Row, show
from spark_cluster import cluster
from timing import say

import contrada as ct
from contrada import pipeline

SCALE = "Spark: three towns in partitions"
TEMPLATE = "S_INTERSECTS(area, $geometry)"
TOWNS = 3
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
}


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


def rows_of(spark: Any, paths: tuple[Path, Path], place: str, limit: str, count: int) -> list[Row]:
    """Compile and match in partitions, see broadcast fail, and tell what it took."""
    subscriptions, messages = (spark.read.parquet(str(path)) for path in paths)
    start = time.perf_counter()
    compiled = pipeline.compile(subscriptions, place, template=TEMPLATE)
    took = time.perf_counter() - start
    say(f"{compiled.why}; {took:.0f} s")
    assert isinstance(compiled.artifact, pipeline.PartitionedArtifact), "the plan is not partitioned"
    start = time.perf_counter()
    matched = pipeline.match(messages, compiled)
    found = matched.matches.count()
    seconds = time.perf_counter() - start
    say(matched.explain().split("stages:")[0])
    assert matched.routed is not None
    memory = _memory()
    parts = len(compiled.artifact.partitions)
    name = f"{compiled.count:,} subscriptions, {count:,} messages, two workers of {limit}"
    made = [
        Row(SCALE, f"{name}: compiling", "", took, None, compiled.count / took, "subscriptions a second"),
        Row(SCALE, f"{name}: matching", "", seconds, None, count / seconds, "messages a second"),
        Row(SCALE, f"{name}: matches", "", None, None, float(found), "rows"),
        Row(SCALE, f"the table, in {parts} partitions", "", None, None, compiled.artifact.bytes / 2**20, "MiB"),
        Row(SCALE, "partitions that a message goes to", "", None, None, matched.routed.replication, "partitions"),
        Row(SCALE, "the largest partition", "", None, None,
            max(part.artifact.bytes for part in compiled.artifact.partitions) / 2**20, "MiB"),
    ]  # fmt: skip
    made += [Row(SCALE, f"memory of {who}, {what}", "", None, None, size / 2**20, "MiB") for who, what, size in memory]
    matched.unpersist()
    try:
        pipeline.compile(subscriptions, place, template=TEMPLATE, plan="broadcast")
        failed = 0.0
    except Exception as error:
        say("broadcast: " + " | ".join(line for line in str(error).splitlines() if "Error" in line)[:600])
        failed = 1.0
    made.append(Row(SCALE, "broadcast fails for want of memory (1: yes)", "", None, None, failed, "", at_least=1))
    return made


def _memory() -> list[tuple[str, str, int]]:
    """Peak resident and address space of every Python worker."""
    found = []
    for process in sorted(spark_work.memory_of_workers()):
        kind, number = process.split()
        try:
            status = Path(f"/proc/{number}/status").read_text().splitlines()
        except OSError:
            continue
        sizes = {line.split(":")[0]: int(line.split()[1]) << 10 for line in status if line.startswith("Vm")}
        if kind == "worker" and sizes.get("VmHWM", 0) > 100 << 20:
            found += [("a Python worker", "peak", sizes["VmHWM"]), ("a Python worker", "addresses", sizes["VmPeak"])]
    return found


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small run, to see that everything works")
    parser.add_argument("--seed", type=int, default=7)
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
    count = 3000 if arguments.quick else 200_000
    directory = spark_work.work_directory()
    settings = {**SETTINGS, "spark.executor.pyspark.memory": arguments.memory}
    # A partition is so small that its table can be built, which takes several times its size, beside Python itself.
    settings["spark.contrada.partition.bytes"] = "1m" if arguments.quick else "48m"
    settings["spark.contrada.broadcast.bytes"] = "2m" if arguments.quick else "400m"
    try:
        paths = written(polygons, count, directory, arguments.seed)
        del polygons
        say("written")
        with cluster(directory, 2, settings) as spark:
            report.rows.extend(
                rows_of(spark, paths, str(directory / "artifacts"), arguments.memory, count // TOWNS * TOWNS)
            )
        show(report)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
