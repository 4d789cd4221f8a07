"""`contrada ingest`: read files of any format into a directory of valid rows, with Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrada.amounts import counted, rate
from contrada.cli.ending import FAULTS, errors_told, fail, require_spark
from contrada.cli.match import CARE, COORDINATES, Buffer, Quiet
from contrada.cli.progress import UPDATE_SECONDS, ProgressLine

if TYPE_CHECKING:
    from contrada.cli.spark_running import Interruption
    from contrada.pipeline.ingestion.ingesting import Ingested

RUNNING = "Running"
MAX_SHOWN_REASONS = 5  # reasons in a summary
MAX_REASON_LENGTH = 160

Sources = Annotated[
    list[Path],
    typer.Argument(
        metavar="SOURCE", help="Files, or directories with all files below; formats may be mixed.", show_default=False
    ),
]
Output = Annotated[Path, typer.Argument(metavar="OUTPUT", help="New directory for the rows.", show_default=False)]
ToCrs = Annotated[str | None, typer.Option(help="Reproject all geometry to this CRS.", rich_help_panel=COORDINATES)]
Crs = Annotated[
    str | None,
    typer.Option(help="CRS of files that name none; 'none' for plain numbers.", rich_help_panel=COORDINATES),
]
Layer = Annotated[str | None, typer.Option(help="Layer to read from files that have several.")]
Repair = Annotated[bool, typer.Option("--repair", help="Repair invalid regions if possible.", rich_help_panel=CARE)]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if any row is quarantined.", rich_help_panel=CARE)]
Master = Annotated[
    str | None, typer.Option(help="Spark master; default: all cores of this machine.", rich_help_panel=RUNNING)
]

HELP = """\
Read files of any format into a directory of rows with valid geometry.

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
Repair invalid regions:
  contrada ingest old_survey.shp survey --repair

\b
Exit codes:
  0  done; quarantined rows are in the summary
  1  a row was quarantined, with --strict; or no row was good
  2  could not run: wrong usage, missing file, no Java, files in different coordinate reference systems
"""


def ingest(
    sources: Sources,
    output: Output,
    to_crs: ToCrs = None,
    buffer: Buffer = None,
    repair: Repair = False,
    crs: Crs = None,
    layer: Layer = None,
    master: Master = None,
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Ingest files; the help text is HELP."""
    for path in sources:
        if not path.exists():
            raise typer.BadParameter(f"{path} does not exist")
    if output.exists() and (output.is_file() or any(output.iterdir())):
        raise typer.BadParameter(f"{output} exists and is not empty; name a new directory")
    with errors_told(), _interruptible() as interruption, _spark_errors_told():
        from contrada import pipeline

        began = time.perf_counter()
        spark = interruption.start(master)
        with ProgressLine(not quiet) as progress:
            progress.tell(lambda: "looking at the files")
            options: dict[str, Any] = {"to_crs": to_crs, "buffer": buffer, "repair": repair, "crs": crs, "layer": layer}
            found = pipeline.ingest(spark, sources, **options)
            with _watched(spark, progress, found.about.expected or 0):
                found.write(output)
        counts = found.counts()
        if not quiet:
            for line in summary(found, output, time.perf_counter() - began):
                typer.echo(line, err=True)
        found.unpersist()
        is_bad = counts.quarantined and (strict or not counts.kept)
        raise typer.Exit(FAULTS if is_bad else 0)


def _interruptible() -> AbstractContextManager[Interruption]:
    require_spark()
    from contrada.cli.spark_running import interruptible

    return interruptible()


def summary(found: Ingested, output: Path, seconds: float) -> Iterator[str]:
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
        yield f"  {count:,} x {_shortened(reason)}"
    if len(reasons) > MAX_SHOWN_REASONS:
        yield f"  ... and {counted(len(reasons) - MAX_SHOWN_REASONS, 'other reason')}"
    yield f"  all of them: {output / 'quarantine'}"


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_REASON_LENGTH else text[: MAX_REASON_LENGTH - 3] + "..."


@contextmanager
def _spark_errors_told() -> Iterator[None]:
    """Print an error of Spark as one line, and exit."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
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
            text, position = f"about {total * finished // tasks:,} of {counted(total, 'row')}", (finished, tasks)
            progress.tell(partial(str, text), partial(tuple, position))

    watcher = threading.Thread(target=watch, daemon=True)
    if progress.is_shown:
        watcher.start()
    try:
        yield
    finally:
        done.set()
        if watcher.is_alive():
            watcher.join()
