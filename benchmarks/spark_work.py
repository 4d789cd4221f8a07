"""What benchmarks/spark.py works on: messages and polygons as DataFrames, sessions, and what Shapely users write."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from match_sets import KINDS, PolygonSet, places

import contrada as ct
from generators import synthetic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEAST, MOST = 1e-4, 1e-2  # of the universe
ROWS = pa.schema([("message_id", pa.int64()), ("key", pa.int64())])
MATCHED = "message_id long, key long"


def work_directory() -> Path:
    """Where this run keeps its files; removed by the system, not by us, so that a failed run can be looked at."""
    return Path(tempfile.mkdtemp(prefix="contrada-spark-"))


def session(directory: Path, cores: int = 2) -> SparkSession:
    """Embedded Spark on so many cores; its workers find the benchmarks' modules."""
    from pyspark.sql import SparkSession

    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]").appName("benchmarks")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.local.dir": str(directory / "local"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(2 * cores),  # as a session of ours has it
        "spark.log.level": "ERROR",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def seven(polygons: PolygonSet, seed: int) -> PolygonSet:
    """The set with one of the seven relations other than disjoint for each polygon."""
    operators = np.sort(np.random.default_rng(seed).integers(1, 8, len(polygons.wkb)).astype(np.uint8))
    return polygons._replace(operators=operators)


def messages(polygons: PolygonSet, count: int, seed: int) -> pa.Table:
    """Messages of types A, B and C whose boxes take 0.01 to 1 % of the universe, evenly on a log scale."""
    rng = np.random.default_rng(seed)
    xmin, ymin, xmax, ymax = polygons.universe
    centres, rings = places(polygons, count, rng), []
    for k in range(count):
        least, most, stretch, draw = synthetic.KINDS[KINDS[k % 3]]
        share, aspect = LEAST * (MOST / LEAST) ** rng.random(), stretch ** rng.uniform(-1.0, 1.0)
        half = np.sqrt(share * (xmax - xmin) * (ymax - ymin) * np.array([aspect, 1 / aspect])) / 2
        frame = np.concatenate([centres[k] - half, centres[k] + half])[None]
        rings.append(synthetic.place(draw(rng, 1, int(rng.integers(least, most + 1))), frame)[0])
    return pa.table({"message_id": np.arange(count), "area": synthetic.as_regions(rings).to_wkb().cast(pa.binary())})


def stored(spark: SparkSession, table: pa.Table, path: Path, parts: int = 8) -> DataFrame:
    """A table as Parquet in several files, as jobs find their data; what is there already is taken as it is."""
    if path.exists():
        return spark.read.parquet(str(path))
    path.mkdir(parents=True)
    size = max(1, -(-table.num_rows // parts))
    for k in range(0, max(1, table.num_rows), size):
        pq.write_table(table.slice(k, size), path / f"part-{k:09d}.parquet")
    return spark.read.parquet(str(path))


def drained(frame: DataFrame) -> float:
    """Seconds until every row was made; nobody keeps them."""
    start = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


_plans: dict[str, Any] = {}  # of this worker


def shapely_match(spark: SparkSession, polygons: PolygonSet, frame: DataFrame, plan: str) -> DataFrame:
    """What users of Shapely write: the polygons broadcast, trees built once per worker, batches of messages matched."""
    return frame.mapInArrow(shapely_matching(spark, polygons, plan), MATCHED)


def shapely_matching(
    spark: SparkSession, polygons: PolygonSet, plan: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that such users give to `mapInArrow`; the polygons are broadcast here."""
    shared = spark.sparkContext.broadcast((polygons.wkb.to_pylist(), polygons.operators))

    def match(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import shapely
        import spark_work
        from match_shapely import PLANS

        if plan not in spark_work._plans:
            wkb, operators = shared.value
            made = next(one for one in PLANS if one.__name__ == plan)
            spark_work._plans[plan] = made(shapely.from_wkb(np.array(wkb, object)), operators)
        asked = spark_work._plans[plan]
        for batch in batches:
            found = [asked.match(wkb.as_py()) for wkb in batch.column("area")]
            ids = np.repeat(np.asarray(batch.column("message_id")), [len(rows) for rows in found])
            keys = np.concatenate([*found, np.empty(0, np.int64)]).astype(np.int64)
            yield pa.RecordBatch.from_arrays([pa.array(ids), pa.array(keys)], schema=ROWS)

    return match


def shapely_ingest(frame: DataFrame) -> DataFrame:
    """What users of Shapely write to sift a column of WKB: valid rows pass, the others get a reason."""

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


def table_by_operator(polygons: PolygonSet) -> ct.ForwardingTable:
    """One subscription per polygon, keyed by its row, with its own operator."""
    table = ct.ForwardingTable()
    for relation in ct.Relation:
        start, stop = np.searchsorted(polygons.operators, [relation, relation + 1])
        rows = pa.table({"key": np.arange(start, stop), "geometry": polygons.wkb[start:stop]})
        if stop > start:
            table.subscribe_many(rows, ct.Constraint("area", relation, ct.Column("geometry")))
    table.pack()
    return table


def memory_of_workers() -> dict[str, tuple[int, int, int]]:
    """Peak resident, and now proportional and private bytes, of this driver, its JVM and its Python workers."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or not is_ours(int(entry.name)):
            continue
        try:
            command = (entry / "cmdline").read_bytes().split(b"\0")
            sizes = _sizes(entry)
        except (OSError, StopIteration, KeyError):  # it ended meanwhile
            continue
        name = "driver" if int(entry.name) == os.getpid() else ("JVM" if b"java" in command[0] else "worker")
        found[f"{name} {entry.name}"] = sizes
    return found


def _sizes(entry: Path) -> tuple[int, int, int]:
    """Peak resident, proportional and private bytes of a process."""
    peak = next(line for line in (entry / "status").read_text().splitlines() if line.startswith("VmHWM"))
    rolled = dict(line.split(":") for line in (entry / "smaps_rollup").read_text().splitlines()[1:])
    kilobytes = {name: int(value.split()[0]) for name, value in rolled.items()}
    private = kilobytes["Private_Clean"] + kilobytes["Private_Dirty"]
    return int(peak.split()[1]) << 10, kilobytes["Pss"] << 10, private << 10


def is_ours(pid: int) -> bool:
    """True for this process and those that come from it."""
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError, ValueError):
            return False
    return False


def workers_with(spark: SparkSession, digest: str) -> str:
    """How many of the Python workers have a table open: "1 of 2"."""

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from contrada.pipeline import artifact_cache as tables

        for _ in batches:
            time.sleep(0.5)  # so that each of the workers gets one
            yield pa.RecordBatch.from_pydict({"pid": [os.getpid()], "has": [digest in tables._OPEN]})

    rows = spark.range(0, 2, 1, 2).mapInArrow(look, "pid long, has boolean").distinct().collect()
    return f"{sum(row.has for row in rows)} of {len(rows)}"
