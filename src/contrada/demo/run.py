"""Run `contrada demo` stage by stage."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from contrada import pipeline
from contrada.amounts import rate
from contrada.demo.district import write_district
from contrada.errors import ContradaError
from contrada.pipeline.outputs import begin_output, complete_output
from contrada.pipeline.storage import Storage
from contrada.pipeline.systems import file_systems
from contrada.pipeline.warming import Warming, not_cached
from contrada.report.numbers import Numbers, RunTables
from contrada.report.report import report_and_numbers
from contrada.report.template import built_page

MARK_FILE = ".contrada-demo"  # marks the directory of a run, which a later run may replace
AREA = "area"  # the attribute of a message's region
TEMPLATE = f"S_INTERSECTS({AREA}, $geometry)"
THRESHOLD = "severity >= $min_severity"
DEFAULT_THRESHOLD = 3  # of rows without a threshold, if others have one
# Kernels that workers and this process use: to read regions, and to pack and match the subscriptions of the district.
# Of each, the one that takes longest to compile comes first; regions are read while the others are still compiled.
READING_KERNELS = ("validate_regions", "read_polygon", "count_wkb", "fill_wkb", "scan_wkb", "write_wkb")
MATCHING_KERNELS = (
    "match_scalars", "hilbert_keys", "gather_regions", "fill_points", "z_order", "fill_boxes", "fill_ordered_bits",
    "fill_integer_bits", "fill_values",
)  # fmt: skip
REPORTING_KERNELS = ("relate_rows", "relate_points")  # name the relation of every match
FIRST_MESSAGES = 1024  # messages that workers match before the run is timed
# Spark would read files below 4 MB in one task each, on one core.
SMALL_TASKS = {"spark.sql.files.openCostInBytes": str(1 << 17)}


class Demo:
    """One run: its data, output directory and Spark master."""

    def __init__(self, output: Path, data: Path | None, master: str | None) -> None:
        self.output, self.data, self.master = output, data, master
        self.seconds: dict[str, float] = {}

    def run(self, scale: float, seed: int, start: Callable[[str | None], SparkSession]) -> Numbers:
        """Generate or find data, ingest, compile, match, write and report; print a summary and return its numbers."""
        from rich.console import Console

        self.console = Console(stderr=True)
        self._take_output()
        # What the matching of other data needs depends on its filters, and is compiled when it is needed.
        needed = READING_KERNELS + (MATCHING_KERNELS if self.data is None else ()) + REPORTING_KERNELS
        with Warming(not_cached(needed)) as self.warming:
            if self.data is None:
                with self.stage("make the district"):
                    shutil.rmtree(self.output / "data", ignore_errors=True)
                    write_district(self.output / "data", seed=seed, scale=scale)
            inputs = inputs_in(self.data or self.output / "data")
            built_page()  # the report ends the run: fail now rather than then if the page was never built
            with self.stage("start Spark"):
                spark = start(self.master)
            try:
                return self._match(spark, *inputs)
            finally:
                spark.stop()

    def _take_output(self) -> None:
        """Take an empty directory or the output of an earlier run; any other directory is an error."""
        mark = self.output / MARK_FILE
        if self.output.exists() and not mark.exists() and any(self.output.iterdir()):
            raise ContradaError(f"{self.output} has other files, which would be replaced; use a new directory")
        self.output.mkdir(parents=True, exist_ok=True)
        mark.touch()

    def _match(self, spark: SparkSession, given: list[Path], filters: list[Path], areas: list[Path]) -> Numbers:
        for name, value in SMALL_TASKS.items():
            spark.conf.set(name, value)
        with self.stage("compile kernels"):
            self.warming.wait(READING_KERNELS)
        begin_output(Storage(self.output))
        with self.stage("ingest"):
            messages, crs, quarantine = self._messages(spark, given)
            regions = pipeline.ingest(spark, areas, to_crs=crs) if areas else None
            if regions is not None:
                quarantine.append(regions.quarantine)
                shutil.rmtree(self.output / "regions", ignore_errors=True)
                regions.write(self.output / "regions")
        with self.stage("compile"):
            asked, compiled = self._compiled(spark, None if regions is None else regions.rows, filters)
        with self.stage("compile kernels"):
            self.warming.wait()
        with self.stage("start workers"):
            start_workers(messages, compiled)
        with self.stage("match"):
            found = [pipeline.match(messages, one) for one in compiled]
            for answered in found:
                answered.answers.count()  # persists the answers, so that writing them is timed alone
        with self.stage("write"):
            matches = united([one.matches for one in found])
            rejected = refused(found)
            for name, table in (("matches", matches), ("rejected", rejected)):
                table.write.mode("overwrite").parquet(str(self.output / name))
            matches, rejected = (spark.read.parquet(str(self.output / name)) for name in ("matches", "rejected"))
        with self.stage("report"):
            unread = united([one.select("file", "row", "reason") for one in quarantine]) if quarantine else None
            aside = united([one.rejected.select("row", "key", "reason") for one in compiled])
            tables = RunTables(messages, asked, matches, rejected, unread, aside)
            attribution = None if regions is None else list(regions.about.attribution.values())
            title, page = "Contrada: who hears of what", self.output / "report.html"
            seconds = dict(self.seconds)
            _, numbers = report_and_numbers(page, tables, title, seconds, attribution, "broadcast", crs)
        self._tell(None if regions is None else regions.counts(), numbers)
        counts = {"messages": numbers.messages, "matches": numbers.matches, "rejected": numbers.rejected.rows}
        complete_output(Storage(self.output), counts, folders=("matches", "rejected"))
        return numbers

    def _messages(self, spark: SparkSession, files: list[Path]) -> tuple[DataFrame, str | None, list[DataFrame]]:
        """Return messages with an id and a region `area`, their CRS, and the quarantined rows of files."""
        if all(path.suffix == ".parquet" or path.is_dir() for path in files):
            frame = spark.read.parquet(*map(str, files))
            if {"message_id", AREA} <= set(frame.columns):
                file = next(files[0].glob("*.parquet")) if files[0].is_dir() else files[0]
                return frame, file_systems(str(file.absolute())).get(AREA), []
        read = pipeline.ingest(spark, files)
        frame = read.rows.withColumnRenamed("geometry", AREA)
        if "message_id" not in frame.columns:
            frame = frame.withColumn("message_id", f.monotonically_increasing_id())
        return frame, read.crs, [read.quarantine]

    def _compiled(
        self, spark: SparkSession, regions: DataFrame | None, filters: list[Path]
    ) -> tuple[DataFrame, list[Any]]:
        """Compile regions with a template, and filters; return the subscriptions as a table, and the compiled ones."""
        asked, compiled = [], []
        if regions is not None:
            rows, template = subscriptions_of(regions)
            compiled.append(pipeline.compile(rows, self.output / "artifacts", template=template))
            asked.append(rows.select("key", "subscriber", f.lit(template).alias("filter"), "geometry"))
        for path in filters:
            rows = spark.read.parquet(str(path)) if path.suffix == ".parquet" else spark.read.json(str(path))
            compiled.append(pipeline.compile(rows, self.output / "artifacts"))
            asked.append(rows.select("key", "subscriber", "filter", f.lit(None).cast("binary").alias("geometry")))
        if not compiled:
            raise ContradaError("no subscriptions: the data has neither regions nor filters")
        return united(asked), compiled

    def _tell(self, counts: Any, numbers: Numbers) -> None:
        """Print a summary of eleven lines; all but the line of regions are numbers of the report."""
        messages, made, seconds = numbers.messages, numbers.matches, self.seconds
        bad = 0 if numbers.quarantined is None else numbers.quarantined.rows
        aside = 0 if numbers.set_aside is None else numbers.set_aside.rows
        told = [
            f"data           {(self.data or self.output / 'data')}",
            "regions        none" if counts is None else
            f"regions        {counts.read:,} read, {counts.kept:,} kept",
            f"quarantined    {bad:,} rows of files"
            + (f", those of regions in {self.output / 'regions' / 'quarantine'}" if counts is not None else ""),
            f"subscriptions  {numbers.subscriptions:,} compiled, {aside:,} set aside",
            f"messages       {messages:,}, of which {numbers.rejected.rows:,} rejected with a reason",
            f"matches        {made:,}, {made / max(1, messages):.1f} a message",
            f"rate           {rate(messages, seconds['match'], 'message')},"
            f" {rate(made, seconds['match'], 'match', 'matches')} without start, compiling and writing",
            f"start          Spark {seconds['start Spark']:.1f} s, workers {seconds['start workers']:.1f} s,"
            f" waiting for kernels to be compiled {seconds['compile kernels']:.1f} s",
            f"time           {sum(seconds.values()):.0f} s: "
            + ", ".join(f"{name} {duration:.0f}" for name, duration in seconds.items()),
            f"tables         {self.output / 'matches'}, {self.output / 'rejected'}",
            f"look at        {self.output / 'report.html'}",
        ]  # fmt: skip
        print("\n".join(told))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Show the running stage, and its duration at the end; times of stages with one name are added."""
        start = time.monotonic()
        with self.console.status(name) if self.console.is_terminal else nullcontext():
            yield
        duration = time.monotonic() - start
        self.seconds[name] = self.seconds.get(name, 0.0) + duration
        self.console.print(f"{name}: {duration:.1f} s", highlight=False)


def inputs_in(directory: Path) -> tuple[list[Path], list[Path], list[Path]]:
    """Sort the files of a directory into messages, filters and regions."""
    files = sorted(path for path in directory.iterdir() if not path.name.startswith((".", "_")))
    texts = {".md", ".txt", ".csv.crs"}
    named = {name: [path for path in files if path.stem == name] for name in ("messages", "subscriptions")}
    rest = [path for path in files if path.stem not in named and path.suffix.lower() not in texts]
    if not named["messages"]:
        raise ContradaError(f"{directory} has no file messages.*; files: {', '.join(p.name for p in files)}")
    return named["messages"], named["subscriptions"], rest


def subscriptions_of(regions: DataFrame) -> tuple[DataFrame, str]:
    """Return regions as rows of subscriptions, and their template."""
    known = set(regions.columns)

    def first_of(*names: str) -> Any:
        found = [f.col(name).cast("string") for name in names if name in known]
        return f.coalesce(*found, f.lit(None).cast("string"))

    number = f.concat(f.lit("row "), f.monotonically_increasing_id().cast("string"))
    key = f.coalesce(first_of("key", "id"), number)
    subscriber = f.coalesce(first_of("subscriber", "parcel"), key).alias("subscriber")
    columns = [key.alias("key"), subscriber, f.col("geometry")]
    if "min_severity" not in known:
        return regions.select(*columns), TEMPLATE
    threshold = f.coalesce(f.col("min_severity"), f.lit(DEFAULT_THRESHOLD)).alias("min_severity")
    return regions.select(*columns, threshold), f"{TEMPLATE} AND {THRESHOLD}"


def start_workers(messages: DataFrame, compiled: list[Any]) -> None:
    """Match a few messages on every core, so that all workers have imported what they need and opened the tables."""
    some = messages.limit(FIRST_MESSAGES).repartition(messages.sparkSession.sparkContext.defaultParallelism)
    for one in compiled:
        found = pipeline.match(some, one)
        found.answers.count()
        found.unpersist()


def refused(found: list[Any]) -> DataFrame:
    """Return the messages that one of several tables rejects, each with its first reason."""
    whole: DataFrame = found[0].rejected
    for one in found[1:]:
        known = whole.select("message_id").distinct()
        whole = whole.unionByName(one.rejected.join(known, "message_id", "left_anti"))
    return whole


def united(frames: list[DataFrame]) -> DataFrame:
    """Return the union of frames."""
    return reduce(DataFrame.unionByName, frames)
