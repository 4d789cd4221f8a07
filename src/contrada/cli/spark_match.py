"""`contrada match --spark`: the same files, options and answers, with messages matched by Spark's workers.

Spark itself reads Parquet, in as many splits as it chooses. Every other format is read by the same code as without
Spark, one file per task.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from contrada.cli.match_run import MatchCounts, MatchPlan, concluded
from contrada.cli.message_reader import Intake, MessageBatch, MessageOptions
from contrada.cli.progress import ProgressLine
from contrada.cli.rejections import Rejections
from contrada.cli.results import ResultFormat, chosen_format
from contrada.cli.spark_asked import Parts, Whole, asked
from contrada.cli.spark_running import Interruption, interruptible
from contrada.cli.spark_tables import PartitionPlan, SparkSubscriptions
from contrada.errors import ContradaError
from contrada.formats.records import IDENTIFIERS, SUFFIXES, Rejected, files_of
from contrada.matching.census import Census
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.batch.census import asked_census
from contrada.pipeline.partitioned.partitions import PartitionedArtifact
from contrada.pipeline.spark_types import artifacts_place
from contrada.pipeline.systems import common_systems, with_systems
from contrada.spark_names import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# Output columns of a task: matches (reason is null), bad messages, and counts at the end.
KINDS = {
    "message": "string", "subscriber": "string", "key": "string", "source": "string", "unit": "string",
    "number": "long", "reason": "string", "raw": "string", "is_part": "boolean", "read": "long", "matched": "long",
    "census": "string",
}  # fmt: skip
WRITERS = {ResultFormat.parquet: "parquet", ResultFormat.csv: "csv", ResultFormat.ndjson: "json"}


Table = Artifact | PartitionedArtifact


def run_on_spark(plan: MatchPlan, master: str | None, artifacts: str | None, wanted: PartitionPlan) -> int:
    """Match, write matches to a directory, print the summary, and return the exit code."""
    with interruptible() as interruption:
        return _run(plan, master, artifacts, wanted, interruption)


def _run(
    plan: MatchPlan, master: str | None, artifacts: str | None, wanted: PartitionPlan, interruption: Interruption
) -> int:
    format = _checked(plan)
    rejections, counts = Rejections(plan.reject), MatchCounts()
    try:
        with ProgressLine(not plan.quiet) as progress:
            subscriptions = SparkSubscriptions(plan, wanted, rejections, progress)
            progress.tell(lambda: "starting Spark")
            spark = interruption.start(master)
            try:
                table = subscriptions.placed(spark, artifacts_place(spark, artifacts))
                counts = MatchCounts(subscriptions=table.artifact.subscriptions)
                _match(spark, plan, table.artifact, format, rejections, counts)
            finally:
                spark.stop()
    finally:
        rejections.close()
    if not plan.quiet:
        typer.echo(table.told, err=True)
    return concluded(plan, counts, rejections)


def _checked(plan: MatchPlan) -> str:
    """Return Spark's name of the output format; raise for options that Spark does not support."""
    if plan.output is None:
        raise ContradaError("--spark writes a directory of files: name it with --output")
    if plan.explain is not None:
        raise ContradaError("--explain is for a few messages: leave --spark out")
    if str(plan.messages) == "-":
        raise ContradaError("--spark reads files, not standard input")
    if plan.csv_safe:
        raise ContradaError("--csv-safe is for one CSV file: leave --spark out")
    format = plan.format or (chosen_format(None, plan.output) if plan.output.suffix else ResultFormat.parquet)
    if format not in WRITERS:
        raise ContradaError(f"--spark writes parquet, csv or ndjson, not {format}")
    return WRITERS[format]


def _match(
    spark: SparkSession, plan: MatchPlan, artifact: Table, format: str, rejections: Rejections, counts: MatchCounts
) -> None:
    from pyspark.sql import functions as f

    files = [str(path) for path in files_of(plan.messages)]
    if not files:
        raise ContradaError(f"{plan.messages}: no file here has a suffix that tells a format")
    began = time.perf_counter()
    pairs = (_of_parquet if _is_parquet(plan.reading, files) else _of_files)(spark, plan, artifact, files).persist()
    names = ["message", "subscriber", "key"] if plan.by == "subscription" else ["message", "subscriber"]
    pairs.where("subscriber IS NOT NULL").select(*names).write.mode("errorifexists").format(format).save(
        str(plan.output)
    )
    for row in pairs.where("reason IS NOT NULL").toLocalIterator():
        rejected = Rejected(row.source, row.unit, row.number, row.reason, row.raw or "", bool(row.is_part))
        rejections.add(rejected, "message")
    sums = f.sum("read"), f.sum("matched"), f.count("subscriber"), f.collect_list("census")
    *totals, censuses = pairs.select(*sums).collect()[0]
    counts.messages, counts.matched, counts.matches = (int(total or 0) for total in totals)
    counts.census = asked_census(artifact)
    for text in censuses:
        counts.census.merge(text)
    counts.began = began
    pairs.unpersist()


def _is_parquet(reading: MessageOptions, files: list[str]) -> bool:
    """Return True if Spark can read the messages itself: plain Parquet in one coordinate reference system."""
    formats = {reading.format or SUFFIXES.get(Path(path).suffix.lower()) for path in files}
    is_plain = formats == {"parquet"} and not any(value for name, value in reading.options.items() if name != "zones")
    return is_plain and common_systems(list(map(os.path.abspath, files))) is not None


def _of_parquet(spark: SparkSession, plan: MatchPlan, artifact: Table, files: list[str]) -> DataFrame:
    """Match Parquet files; messages are identified as without Spark."""
    from pyspark.sql import functions as f

    from contrada.pipeline.batch.matching import match

    frame = spark.read.parquet(*files)
    place = f.col("_metadata.file_path"), f.col("_metadata.row_index")
    id = _identifier(frame, plan.reading.id, len(files) > 1, place[1])
    known = f.struct(id.alias("message"), place[0].alias("source"), place[1].alias("number"))
    messages = with_systems(frame.withColumn("message_id", known), _systems(frame, files))
    found = match(messages, artifact, by=plan.by)
    whole = found.matches.withColumn("reason", f.lit(None).cast("string"))
    rows = whole.unionByName(found.rejected, allowMissingColumns=True)
    matched = rows.select(
        "message_id.message", f.col("subscriber").cast("string"),
        f.col("key").cast("string") if plan.by == "subscription" else f.lit(None).cast("string").alias("key"),
        "message_id.source", f.lit("row").alias("unit"), "message_id.number", "reason",
    )  # fmt: skip
    return _whole(matched).unionByName(_totals(found.census(), found.answers))


def _systems(frame: DataFrame, files: list[str]) -> dict[str, Any]:
    """Return the CRS of the geometry columns of a frame, as its files name them."""
    found = common_systems(list(map(os.path.abspath, files))) or {}
    return {name: crs for name, crs in found.items() if name in frame.columns}


def _whole(frame: DataFrame) -> DataFrame:
    """Add all missing output columns, as nulls."""
    from pyspark.sql import functions as f

    absent = {name: f.lit(None).cast(kind) for name, kind in KINDS.items() if name not in frame.columns}
    return frame.withColumns(absent).select(*KINDS)


def _totals(census: Census, found: DataFrame) -> DataFrame:
    """Return a row with the number of good messages, of matched messages, and the census of attributes."""
    from pyspark.sql import functions as f

    bad = f.count_distinct(f.when(f.col("reason").isNotNull(), f.col("message_id")))
    matched = f.count_distinct(f.when(f.col("reason").isNull(), f.col("message_id")))
    counted = f.lit(census.to_json()).alias("census")
    return _whole(found.select((f.lit(census.messages) - bad).alias("read"), matched.alias("matched"), counted))


def _identifier(frame: DataFrame, named: str | None, several: bool, row: Column) -> Column:
    """Return the identifier of a message: the named column, a usual one, or its row."""
    from pyspark.sql import functions as f

    if named is not None and named not in frame.columns:
        raise ContradaError(f"no column {named!r}, which shall identify the messages; there are {frame.columns}")
    names = [named] if named is not None else [name for name in IDENTIFIERS if name in frame.columns]
    by_row = row.cast("string")
    if several:
        file = f.element_at(f.split(f.col("_metadata.file_path"), "/"), -1)
        by_row = f.concat(file, f.lit(":"), by_row)
    return f.coalesce(*(f.col(quoted(name)).cast("string") for name in names), by_row)


def _of_files(spark: SparkSession, plan: MatchPlan, artifact: Table, files: list[str]) -> DataFrame:
    """Match files of any format, one task per file."""
    rows = spark.createDataFrame([(path,) for path in files], "path string").repartition(len(files))
    read = partial(read_files, reading=plan.reading, artifact=artifact, by=plan.by, several=len(files) > 1)
    return rows.mapInArrow(read, ", ".join(f"{name} {kind}" for name, kind in KINDS.items()))


def read_files(
    batches: Iterator[Any], reading: MessageOptions, artifact: Table, by: Any, several: bool
) -> Iterator[Any]:
    """Read and match the files that batches name, as `contrada match` does, in a worker."""
    for batch in batches:
        for path in batch.column(0).to_pylist():
            yield from _FileMatch(asked(artifact, by), several, asked_census(artifact)).run(Path(path), reading)


class _FileMatch:
    """Matches one file; the results are returned when the file ends."""

    def __init__(self, table: Whole | Parts, several: bool, census: Census) -> None:
        self._table, self._several, self._census = table, several, census
        self._parts: list[Any] = []

    def run(self, path: Path, reading: MessageOptions) -> Iterator[Any]:
        """Yield the record batches of a file."""
        intake = Intake(reading, self._take, self._reject, several=self._several)
        intake.run(path)
        self._add({"census": [self._census.to_json()]}, 1)
        yield from self._parts

    def _reject(self, item: Rejected) -> None:
        self._add({name: [value] for name, value in item._asdict().items()}, 1)

    def _take(self, batch: MessageBatch) -> None:
        found = self._table.ask(batch)
        self._census.add(batch.messages)
        for item in found.bad:
            self._reject(item)
        columns = {"message": [str(batch.ids[k]) for k in found.owners.tolist()], "subscriber": found.subscribers}
        if found.keys:
            columns["key"] = found.keys
        self._add(columns, len(found.owners))
        self._add({"read": [len(batch.ids) - len(found.bad)], "matched": [len(np.unique(found.owners))]}, 1)

    def _add(self, columns: dict[str, list[Any]], size: int) -> None:
        import pyarrow as pa

        kinds = {"string": pa.string(), "long": pa.int64(), "boolean": pa.bool_()}
        arrays = [pa.array(columns.get(name, [None] * size), kinds[kind]) for name, kind in KINDS.items()]
        self._parts.append(pa.record_batch(arrays, list(KINDS)))
