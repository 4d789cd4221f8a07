"""Jobs on embedded Spark: a session, messages and polygons as DataFrames, and what Shapely users write."""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from pyspark.sql import DataFrame, SparkSession

import contrada as ct
from benchmarks.answers import table_of
from benchmarks.polygons import PolygonSet, read_set, small_messages
from benchmarks.report import ROOT, Report, Row
from benchmarks.spark.settings import embedded
from benchmarks.timing import measured, say
from contrada import pipeline

PLANS = ("TreePerOperator", "TreePerOperatorPredicates", "BoundaryFirst")  # of peers/shapely_plans.py
TEMPLATE = "S_INTERSECTS(area, $geometry)"
LEAST, MOST = 1e-4, 1e-2  # of the universe
MATCHED = "message_id long, key long"


@dataclass
class Bench:
    """A session, where its files are, and the report."""

    spark: SparkSession
    directory: Path
    report: Report

    def polygon_set(self, name: str) -> PolygonSet:
        """Return a real set with the seven relations; a part of it in a quick run."""
        found = read_set(name, self.report.seed)
        return seven(found.take(slice(5000)) if self.report.quick else found, self.report.seed)

    def work(self, name: str, quick: int, whole: int) -> tuple[PolygonSet, int, pa.Table, DataFrame]:
        """Return a set and so many messages for it, few in a quick run: in memory, and as Spark reads them.

        Messages that another section made are taken again.
        """
        polygons, count = self.polygon_set(name), quick if self.report.quick else whole
        path = self.directory / f"{polygons.name}-{count}"
        made = pq.read_table(path) if path.exists() else messages(polygons, count, self.report.seed)
        return polygons, count, made, stored(self.spark, made, path)

    def artifact(self, table: ct.ForwardingTable) -> Any:
        """Return a table where workers find it."""
        return pipeline.publish(table, str(self.directory / "artifacts"))


@cache
def _work() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="contrada-spark-", ignore_cleanup_errors=True)


def work_directory() -> Path:
    """Return where this run keeps its files; removed at the end of the process."""
    return Path(_work().name)


def session() -> SparkSession:
    """Return embedded Spark on two cores; its workers find the benchmarks' modules."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return embedded(SparkSession.builder, work_directory()).getOrCreate()


def in_session(run: Callable[[Bench], Iterator[Row]], report: Report) -> Iterator[Row]:
    """Run a section in a session of its own: no worker holds what another section needed."""
    with session() as spark:
        yield from run(Bench(spark, work_directory(), report))


def seven(polygons: PolygonSet, seed: int) -> PolygonSet:
    """Return the set with one of the seven relations other than disjoint for each polygon."""
    operators = np.sort(np.random.default_rng(seed).integers(1, 8, len(polygons.wkb)).astype(np.uint8))
    return polygons._replace(operators=operators)


def messages(polygons: PolygonSet, count: int, seed: int) -> pa.Table:
    """Return messages of types A, B and C whose boxes take 0.01 to 1 % of the universe, evenly on a log scale."""
    rng = np.random.default_rng(seed)
    areas = small_messages(polygons, lambda: LEAST * (MOST / LEAST) ** rng.random(), count, rng)
    return pa.table({"message_id": np.arange(count), "area": pa.array(areas, pa.binary())})


def subscription_rows(polygons: PolygonSet) -> pa.Table:
    """Return the polygons with their rows as keys."""
    return pa.table({"key": np.arange(len(polygons.wkb)), "geometry": polygons.wkb.cast(pa.binary())})


def stored(spark: SparkSession, table: pa.Table, path: Path, parts: int = 8) -> DataFrame:
    """Return a table as Parquet in several files, as jobs find their data; what is there already is taken as it is."""
    if not path.exists():
        path.mkdir(parents=True)
        size = max(1, -(-table.num_rows // parts))
        for k in range(0, max(1, table.num_rows), size):
            pq.write_table(table.slice(k, size), path / f"part-{k:09d}.parquet")
    return spark.read.parquet(str(path))


def with_a_new_row(spark: SparkSession, path: Path, turn: int) -> DataFrame:
    """Return subscriptions that no turn had: one more, in a file of its own, far from all messages.

    Workers keep tables open that they have seen: a table that is to be opened must be one that they have not.
    """
    far = shapely.to_wkb(shapely.box(1000 + turn, 1000, 1001 + turn, 1001))
    new = path.with_name(f"{path.name}-{turn}.parquet")
    pq.write_table(pa.table({"key": [-1 - turn], "geometry": [far]}), new)
    return spark.read.parquet(str(path), str(new))


def drain(frame: DataFrame) -> None:
    """Make every row; nobody keeps them."""
    frame.write.format("noop").mode("overwrite").save()


def differences(ours: DataFrame, theirs: DataFrame) -> int:
    """Return rows that one has and the other has not."""
    return ours.exceptAll(theirs).count() + theirs.exceptAll(ours).count()


_plans: dict[str, Any] = {}  # of this worker


def shapely_matching(
    spark: SparkSession, polygons: PolygonSet, plan: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what users of Shapely give to `mapInArrow`: polygons broadcast, trees built once per worker."""
    shared = spark.sparkContext.broadcast((polygons.wkb.to_pylist(), polygons.operators))

    def match(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import shapely

        from benchmarks.peers import shapely_plans
        from benchmarks.spark import jobs

        if plan not in jobs._plans:
            wkb, operators = shared.value
            jobs._plans[plan] = getattr(shapely_plans, plan)(shapely.from_wkb(np.array(wkb, object)), operators)
        for batch in batches:
            found = [jobs._plans[plan].match(wkb.as_py()) for wkb in batch.column("area")]
            ids = np.repeat(np.asarray(batch.column("message_id")), [len(rows) for rows in found])
            keys = np.concatenate([*found, np.empty(0, np.int64)]).astype(np.int64)
            yield pa.RecordBatch.from_pydict({"message_id": ids, "key": keys})

    return match


def quickest_plan(spark: SparkSession, polygons: PolygonSet, few: DataFrame) -> str:
    """Return the quickest plan of a user of Shapely for a few messages, after a turn to warm up."""
    found = {plan: few.mapInArrow(shapely_matching(spark, polygons, plan), MATCHED) for plan in PLANS}
    seconds = {plan: measured(partial(drain, matches)).seconds for plan, matches in found.items()}
    say(f"the quickest of {seconds}")
    return min(seconds, key=seconds.__getitem__)


def shapely_ingest(frame: DataFrame) -> DataFrame:
    """Return what users of Shapely write to sift a column of WKB: valid rows pass, the others get a reason."""

    def sift(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import shapely

        for batch in batches:
            shapes = shapely.from_wkb(batch.column("geometry").to_numpy(zero_copy_only=False), on_invalid="ignore")
            is_good = shapely.is_valid(shapes)
            reasons = np.full(len(shapes), None, object)
            reasons[~is_good] = shapely.is_valid_reason(shapes[~is_good])
            wkb = pa.array(shapely.to_wkb(shapes), pa.binary())
            yield pa.RecordBatch.from_arrays([wkb, pa.array(reasons, pa.string())], names=["geometry", "reason"])

    return frame.mapInArrow(sift, "geometry binary, reason string")


def packed_table(polygons: PolygonSet) -> ct.ForwardingTable:
    """Return one subscription per polygon, keyed by its row, with its own operator."""
    table = table_of(polygons, keyed=True)
    table.pack()
    return table


def workers_with(spark: SparkSession, digest: str) -> str:
    """Return how many of the Python workers have a table open: "1 of 2"."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from contrada.pipeline import artifact_cache as tables

        for _ in batches:
            time.sleep(0.5)  # so that each of the workers gets one
            yield pa.RecordBatch.from_pydict({"pid": [os.getpid()], "has": [digest in tables.open_digests()]})

    rows = spark.range(0, 2, 1, 2).mapInArrow(look, "pid long, has boolean").distinct().collect()
    return f"{sum(row.has for row in rows)} of {len(rows)}"
