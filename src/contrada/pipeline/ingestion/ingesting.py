"""`ingest`: read files and tables into rows with valid geometry, and a quarantine of the other rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from contrada.formats.spatial import Spatial
from contrada.geometry.crs import Crs
from contrada.pipeline.ingestion import planning
from contrada.pipeline.ingestion.dataset import IngestCounts, write_dataset
from contrada.pipeline.ingestion.quarantine import GEOMETRY, MARKS, REASON, REPAIRED, IngestOptions, Task, reading
from contrada.pipeline.ingestion.sources import files_of, notes_of
from contrada.pipeline.ingestion.survey import survey
from contrada.pipeline.systems import with_crs

Path = str | os.PathLike[str]
MAX_TASKS = 10_000
MAX_REASONS = 1000


class About(NamedTuple):
    """Facts about a source before it is read: CRS of the rows, files, expected rows, attribution by file."""

    crs: Crs | None
    files: tuple[str, ...]
    expected: int | None
    attribution: dict[str, str]


class Ingested:
    """The result of `ingest`: good rows, quarantined rows, and counts.

    Nothing is read before an action. The first access to the quarantine, the counts or `write` reads the source once
    and persists the outcome until `unpersist`; `rows` then comes from it too.
    """

    def __init__(self, outcome: DataFrame, about: About) -> None:
        self._outcome = outcome
        self._is_kept = False
        self._counts: IngestCounts | None = None
        self.about = about

    @property
    def crs(self) -> Crs | None:
        """Return the coordinate reference system of all geometry, or None if unknown."""
        return self.about.crs

    @property
    def rows(self) -> DataFrame:
        """Return the good rows: all columns, and `geometry`, the WKB of a valid region or a point, with its CRS."""
        good = self._outcome.where(F.col(REASON).isNull())
        return with_crs(good.drop(*MARKS), GEOMETRY, self.crs)

    @property
    def quarantine(self) -> DataFrame:
        """Return the bad rows: `file`, `row` (feature, row or line; null for a whole file), `reason`, `raw`."""
        bad = self._kept().where(F.col(REASON).isNotNull())
        return bad.select(*(F.col(name).alias(name.strip("_")) for name in MARKS if name != REPAIRED))

    def counts(self) -> IngestCounts:
        """Return how many rows were read, kept, quarantined and repaired."""
        if self._counts is not None:
            return self._counts
        read, kept, repaired = (
            self._kept()
            .select(F.count(F.lit(1)), F.count(F.when(F.col(REASON).isNull(), 1)), F.count(F.when(F.col(REPAIRED), 1)))
            .collect()[0]
        )
        self._counts = IngestCounts(read, kept, read - kept, repaired)
        return self._counts

    def reasons(self) -> list[tuple[str, int]]:
        """Return the reasons for quarantine, without coordinates, and their numbers of rows, most frequent first."""
        reason = F.regexp_replace("reason", r"(?s) near \(.*|\n.*", "")
        counted = self.quarantine.groupBy(reason.alias("why")).count().orderBy(F.desc("count"), "why")
        return [(row[0], row[1]) for row in counted.limit(MAX_REASONS).collect()]

    def write(self, path: Path) -> None:
        """Write `rows/` as GeoParquet, `quarantine/` as Parquet, and `dataset.json` last; see `read_dataset`."""
        self._kept()
        write_dataset(self, os.fspath(path))

    def unpersist(self) -> None:
        """Drop the persisted outcome; the next action reads the source again."""
        self._outcome.unpersist()
        self._is_kept = False

    def _kept(self) -> DataFrame:
        """Return the outcome of all rows, persisted from the first action on."""
        if not self._is_kept:
            self._outcome.persist()
            self._is_kept = True
        return self._outcome


def ingest(
    spark: SparkSession,
    source: Path | Sequence[Path] | DataFrame,
    *,
    to_crs: Any = None,
    buffer: float | None = None,
    repair: bool = False,
    crs: Any = None,
    layer: str | None = None,
) -> Ingested:
    """Ingest a file, several files, a directory with all below it, a table by name, or a DataFrame.

    Spark tasks first look up columns and CRS of the files; the first action on the result reads them. `to_crs`,
    `buffer` and `crs` are those of `Spatial`; `repair` mends invalid regions where possible; `layer` selects one layer
    of files that have several.
    """
    spatial = Spatial(crs, to_crs, buffer)
    frame = _frame_of(spark, source)
    if frame is not None:
        from contrada.pipeline.ingestion.frames import ingest_frame

        return ingest_frame(*frame, spatial, repair)
    paths: Any = [source] if isinstance(source, str | os.PathLike) else source
    return _ingest_files(spark, list(paths), spatial, repair, layer)


def _frame_of(spark: SparkSession, source: Any) -> tuple[str, DataFrame] | None:
    """Return name and DataFrame of a source that is not a file, else None."""
    if hasattr(source, "mapInArrow"):
        return "DataFrame", source
    if not isinstance(source, str) or os.path.exists(source) or os.sep in source:
        return None
    return (source, spark.table(source)) if spark.catalog.tableExists(source) else None


def _ingest_files(
    spark: SparkSession, sources: Sequence[Path], spatial: Spatial, repair: bool, layer: str | None
) -> Ingested:
    files = files_of(sources)
    found = planning.resolved(survey(spark, files, layer), spatial)
    target = planning.one_crs([(item.file, item.crs) for item in found if item.error is None], spatial.to_crs)
    spatial = Spatial(target, spatial.to_crs, spatial.buffer)  # raises for a buffer in degrees
    spelled: dict[str, str] = {}
    schemas = [(item.schema, planning.output_names(item.schema.names, spelled)) for item in found if item.error is None]
    wanted = IngestOptions(planning.united(schemas), spatial, repair)
    pieces = planning.pieces(found, target, spelled)
    tasks = spark.range(0, len(pieces), 1, min(max(len(pieces), 1), MAX_TASKS))
    outcome = mapped(tasks, reading(pieces, wanted), wanted)
    credits = {item.file: item.credit for item in found if item.credit is not None}
    rows = sum(item.rows for item in found if item.error is None)
    about = About(target, tuple(file.path for file in files), rows, {**credits, **notes_of(files)})
    return Ingested(outcome, about)


def mapped(frame: DataFrame, task: Task, wanted: IngestOptions) -> DataFrame:
    """Run `task` on a DataFrame in Spark's Python workers."""
    return frame.mapInArrow(task, from_arrow_schema(wanted.outcome()))
