"""`ingest`: read files and tables into rows with valid geometry, and a quarantine of the other rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from contrada.formats.spatial import Spatial
from contrada.geometry.globe import Globe
from contrada.pipeline.ingestion import planning
from contrada.pipeline.ingestion.dataset import About, Ingested
from contrada.pipeline.ingestion.frames import ingest_frame
from contrada.pipeline.ingestion.quarantine import IngestOptions, read_batches
from contrada.pipeline.ingestion.sources import files_of, notes_of
from contrada.pipeline.ingestion.survey import TaskSizes, survey

Path = str | os.PathLike[str]
MAX_TASKS = 10_000


def ingest(
    spark: SparkSession,
    source: Path | Sequence[Path] | DataFrame,
    *,
    to_crs: Any = None,
    buffer: float | None = None,
    repair: bool = False,
    crs: Any = None,
    layer: str | None = None,
    wrap: Any = None,
    densify: float | None = None,
) -> Ingested:
    """Ingest a file, several files, a directory with all below it, a table by name, or a DataFrame.

    Spark tasks first look up columns and CRS of the files; the first action on the result reads them. `to_crs`,
    `buffer` and `crs` are those of `Spatial`; `repair` mends invalid regions where possible; `layer` selects one layer
    of files that have several. `wrap` and `densify` are those of `read_regions`; points are wrapped, too.
    """
    spatial = Spatial(crs, to_crs, buffer, Globe.of(wrap, densify))
    frame = _frame_of(spark, source)
    if frame is not None:
        return ingest_frame(*frame, spatial, repair)
    paths: Any = [source] if isinstance(source, str | os.PathLike) else source
    return ingest_files(spark, list(paths), spatial, repair, layer, TaskSizes())


def ingest_files(
    spark: SparkSession, paths: list[Path], spatial: Spatial, repair: bool, layer: str | None, sizes: TaskSizes
) -> Ingested:
    """Ingest files and directories; `sizes` say how files are divided among tasks."""
    files = files_of(paths)
    found = planning.resolved(survey(spark, files, layer, sizes.line_bytes), spatial)
    target = planning.one_crs([(item.file, item.crs) for item in found if item.error is None], spatial.to_crs)
    spatial = spatial.for_input_in(target)  # raises for a buffer in degrees
    spelled: dict[str, str] = {}
    schemas = [(item.schema, planning.output_names(item.schema.names, spelled)) for item in found if item.error is None]
    wanted = IngestOptions(planning.united(schemas), spatial, repair)
    pieces = planning.pieces(found, target, spelled, sizes)
    tasks = spark.range(0, len(pieces), 1, min(max(len(pieces), 1), MAX_TASKS))
    read = partial(read_batches, pieces=pieces, wanted=wanted)
    outcome = tasks.mapInArrow(read, from_arrow_schema(wanted.outcome()))
    credits = {item.file: item.credit for item in found if item.credit is not None}
    rows = sum(item.rows for item in found if item.error is None)
    about = About(target, tuple(file.path for file in files), rows, {**credits, **notes_of(files)})
    return Ingested(outcome, about)


def _frame_of(spark: SparkSession, source: Any) -> tuple[str, DataFrame] | None:
    """Return name and DataFrame of a source that is not a file, else None."""
    if hasattr(source, "mapInArrow"):
        return "DataFrame", source
    if not isinstance(source, str) or os.path.exists(source) or os.sep in source:
        return None
    return (source, spark.table(source)) if spark.catalog.tableExists(source) else None
