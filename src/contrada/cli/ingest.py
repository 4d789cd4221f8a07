"""`contrada ingest`: files of any format into a directory of valid rows, with Spark."""

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
from contrada.cli.progress import EVERY, ProgressLine

if TYPE_CHECKING:
    from contrada.cli.spark_running import Interruption
    from contrada.pipeline.ingest.ingesting import Ingested

RUNNING = "Running"
SHOWN = 5  # reasons in a summary
REASON_WIDTH = 160

Sources = Annotated[
    list[Path],
    typer.Argument(
        metavar="SOURCE", help="Files, or directories with all below them; formats may be mixed.", show_default=False
    ),
]
Output = Annotated[Path, typer.Argument(metavar="OUTPUT", help="A new directory.", show_default=False)]
ToCrs = Annotated[str | None, typer.Option(help="Reproject all geometry.", rich_help_panel=COORDINATES)]
Crs = Annotated[
    str | None,
    typer.Option(help="What files are in that do not say so; none: plain numbers.", rich_help_panel=COORDINATES),
]
Layer = Annotated[str | None, typer.Option(help="The one layer to read of files that have several.")]
Repair = Annotated[bool, typer.Option("--repair", help="Mend regions that can be mended.", rich_help_panel=CARE)]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if anything is quarantined.", rich_help_panel=CARE)]
Master = Annotated[str | None, typer.Option(help="Where Spark runs; else here, on all cores.", rich_help_panel=RUNNING)]

HELP = """\
Read files of any format into a directory of rows with valid geometry.

GeoParquet, Parquet with WKB or GEOMETRY, GeoJSON, newline GeoJSON and whatever pyogrio reads: Shapefile, GeoPackage, \
FlatGeobuf and many more. OUTPUT gets rows/ as GeoParquet, quarantine/ as Parquet, and dataset.json. Bad rows go to \
the quarantine with file, row and reason; the rest go on. Needs Java and contrada[spark].

\b
All files of a directory:
  contrada ingest downloads/ places
Two files in one coordinate system:
  contrada ingest parcels.gpkg zones.shp.zip city --to-crs EPSG:3035
Stations are points; 500 m around them are regions:
  contrada ingest stations.geojson stations --to-crs EPSG:3035 --buffer 500
Mend what can be mended:
  contrada ingest old_survey.shp survey --repair

\b
Exit codes:
  0  done; quarantined rows are in the summary
  1  something was quarantined, with --strict; or rows came and none was good
  2  it could not run: usage, a file that is not there, no Java, files in different coordinate systems
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
    """Ingest files; HELP says it to people."""
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
    """What was read, what came of it, how fast, and what was quarantined."""
    counts = found.counts()
    yield f"read:          {counts.read:,} from {counted(len(found.about.files), 'file')}"
    yield f"kept:          {counts.kept:,}" + (f", {counts.repaired:,} of them repaired" if counts.repaired else "")
    yield f"crs:           {'unknown' if found.crs is None else found.crs.label}"
    yield f"time:          {seconds:.2f} s, {rate(counts.read, seconds, 'row')}"
    yield f"quarantined:   {counts.quarantined:,}"
    if not counts.quarantined:
        return
    reasons = found.reasons()
    for reason, count in reasons[:SHOWN]:
        yield f"  {count:,} x {_shortened(reason)}"
    if len(reasons) > SHOWN:
        yield f"  ... and {counted(len(reasons) - SHOWN, 'other reason')}"
    yield f"  all of them: {output / 'quarantine'}"


def _shortened(text: str) -> str:
    return text if len(text) <= REASON_WIDTH else text[: REASON_WIDTH - 3] + "..."


@contextmanager
def _spark_errors_told() -> Iterator[None]:
    """Tell what Spark refuses in a line."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        fail(f"Spark: {str(error).strip().partition(chr(10))[0]}")


@contextmanager
def _watched(spark: Any, progress: ProgressLine, total: int) -> Iterator[None]:
    """Tell how far Spark is, from the share of its tasks that is done."""
    done = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def watch() -> None:
        while not done.wait(EVERY):
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
