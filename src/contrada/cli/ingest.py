"""Read files of any format into a directory of rows with valid geometry.

Reads GeoParquet, Parquet with WKB or GEOMETRY, GeoJSON, newline GeoJSON and all formats of pyogrio: Shapefile, \
GeoPackage, FlatGeobuf and many more. Writes rows/ as GeoParquet, quarantine/ as Parquet, and dataset.json to OUTPUT. \
Bad rows go to the quarantine with file, row and reason. Needs Java and contrada[spark].

\b
All files of a directory:
  contrada ingest downloads/ places
Two files in one coordinate reference system:
  contrada ingest parcels.gpkg zones.shp.zip city --to-crs EPSG:3035
Stations as regions, 500 m around their points:
  contrada ingest stations.geojson stations --to-crs EPSG:3035 --buffer 500
Warnings that cross the date line, with great circles as edges:
  contrada ingest warnings.geojson warnings --wrap longitude --densify 100
Repair invalid regions:
  contrada ingest old_survey.shp survey --repair

\b
Exit codes:
  0  done; quarantined rows are in the summary
  1  a row was quarantined, with --strict; or no row was good
  2  could not run: wrong usage, missing file, no Java, files in different coordinate reference systems
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrada import pipeline
from contrada.amounts import counted, rate
from contrada.cli.ending import FAULTS, fail, require_spark
from contrada.cli.options import CARE, COORDINATES, Buffer, Master, Quiet, argument, check_exist, option, plain
from contrada.cli.progress import UPDATE_SECONDS, ProgressLine
from contrada.cli.rejections import MAX_SHOWN_REASONS, shortened
from contrada.cli.summary import summary_of_run

if TYPE_CHECKING:
    from contrada.cli.spark.running import Interruption
    from contrada.pipeline.ingestion.dataset import Ingested


WrapMode = StrEnum("WrapMode", ["longitude", "shorter"])  # edges as given, or of more than 180 degrees turned round


def ingest(
    sources: Annotated[
        list[Path], argument("Files, or directories with all files below; formats may be mixed.", metavar="SOURCE")
    ],
    output: Annotated[str, argument("New directory or URI for the rows.", metavar="OUTPUT")],
    to_crs: Annotated[str | None, option(COORDINATES, "Reproject all geometry to this CRS.")] = None,
    buffer: Buffer = None,
    repair: Annotated[bool, option(CARE, "Repair invalid regions if possible.", "--repair")] = False,
    crs: Annotated[str | None, option(COORDINATES, "CRS of files that name none; 'none' for plain numbers.")] = None,
    wrap: Annotated[
        WrapMode | None, option(COORDINATES, "Bring regions back to longitude -180..180, cut at the date line.")
    ] = None,
    densify: Annotated[
        float | None, option(COORDINATES, "Add vertices along geodesics: edges stay within so many metres of them.")
    ] = None,
    layer: Annotated[str | None, plain("Layer to read from files that have several.")] = None,
    master: Master = None,
    strict: Annotated[bool, option(CARE, "Exit with 1 if any row is quarantined.", "--strict")] = False,
    quiet: Quiet = False,
) -> None:
    """Ingest files; the docstring of this module is the help page."""
    check_exist(sources)
    require_spark()
    from contrada.pipeline.storage import Storage

    if Storage(output).is_taken():
        raise typer.BadParameter(f"{output} exists and is not empty; use a new directory")
    from contrada.cli.spark.running import interruptible

    with interruptible() as interruption, _spark_errors_told(interruption):
        began = time.perf_counter()
        spark = interruption.start(master)
        with ProgressLine(not quiet) as progress:
            progress.tell(lambda: "inspecting files")
            found = pipeline.ingest(
                spark, sources, layer=layer, to_crs=to_crs, buffer=buffer, repair=repair, crs=crs,
                wrap=None if wrap is None else wrap.value, densify=densify,
            )  # fmt: skip
            with _watched(spark, progress, found.about.expected or 0):
                found.write(output)
        counts = found.counts()
        note = {"files": len(found.about.files), "read": counts.read, "kept": counts.kept, "repaired": counts.repaired}
        summary_of_run().note(outputs=[output], rejected=counts.quarantined, **note)
        if not quiet:
            for line in summary(found, output, time.perf_counter() - began):
                typer.echo(line, err=True)
        found.unpersist()
        is_bad = counts.quarantined and (strict or not counts.kept)
        raise typer.Exit(FAULTS if is_bad else 0)


def summary(found: Ingested, output: str, seconds: float) -> Iterator[str]:
    """Yield the lines of the summary: rows read and kept, speed, and quarantined rows by reason."""
    counts = found.counts()
    yield f"read:          {counts.read:,} from {counted(len(found.about.files), 'file')}"
    yield f"kept:          {counts.kept:,}" + (f", {counts.repaired:,} of them repaired" if counts.repaired else "")
    yield f"crs:           {'unknown' if found.crs is None else found.crs.label}"
    yield f"time:          {seconds:.2f} s, {rate(counts.read, seconds, 'row')}"
    yield f"quarantined:   {counts.quarantined:,}"
    if not counts.quarantined:
        return
    reasons = found.reasons()
    for reason, count in reasons[:MAX_SHOWN_REASONS]:
        yield f"  {count:,} x {shortened(reason)}"
    if len(reasons) > MAX_SHOWN_REASONS:
        yield f"  ... and {counted(len(reasons) - MAX_SHOWN_REASONS, 'other reason')}"
    yield f"  all of them: {output}/quarantine"


@contextmanager
def _spark_errors_told(interruption: Interruption) -> Iterator[None]:
    """Print an error of Spark as one line, and exit; after a signal, Java has ended, and its errors say nothing."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        if interruption.number is not None:
            raise KeyboardInterrupt from error
        fail(f"Spark: {str(error).strip().partition(chr(10))[0]}")


@contextmanager
def _watched(spark: Any, progress: ProgressLine, total: int) -> Iterator[None]:
    """Show the progress of Spark, by the share of its tasks that is done."""
    done = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def watch() -> None:
        while not done.wait(UPDATE_SECONDS):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            tasks = max(1, sum(stage.numTasks for stage in stages if stage is not None))
            finished = sum(stage.numCompletedTasks for stage in stages if stage is not None)
            progress.step(f"about {total * finished // tasks:,} of {counted(total, 'row')}", finished, tasks)

    watcher = threading.Thread(target=watch, daemon=True)
    if progress.is_shown:
        watcher.start()
    try:
        yield
    finally:
        done.set()
        if watcher.is_alive():
            watcher.join()
