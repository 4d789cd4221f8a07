"""Files and tables into rows with valid geometry, and a quarantine for the rest."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from contrada.formats.spatial import Spatial
from contrada.geometry.crs import Crs
from contrada.pipeline.ingest import planning
from contrada.pipeline.ingest.quarantine import FILE, GEOMETRY, RAW, REASON, REPAIRED, ROW, IngestOptions, Task, reading
from contrada.pipeline.ingest.sources import files_of, notes_of
from contrada.pipeline.ingest.survey import survey
from contrada.pipeline.session import require_spark
from contrada.pipeline.systems import with_crs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Path = str | os.PathLike[str]
MOST_TASKS = 10_000
MOST_REASONS = 1000


class IngestCounts(NamedTuple):
    """How many rows there were and what became of them: read = kept + quarantined; repaired ones are kept."""

    read: int
    kept: int
    quarantined: int
    repaired: int


class About(NamedTuple):
    """What is known of a source before it is read: the CRS of the rows, files, rows to come, and whose data it is."""

    crs: Crs | None
    files: tuple[str, ...]
    expected: int | None
    attribution: dict[str, str]


class Ingested:
    """Rows of files and tables: the good ones, the bad ones, and how many.

    Nothing is read before an action. Whoever asks for more than the rows (the quarantine, counts, files) has the source
    read once: what came of it is then kept, until `unpersist`, and rows come from it too.
    """

    def __init__(self, outcome: DataFrame, about: About) -> None:
        self._outcome = outcome
        self._is_kept = False
        self._counts: IngestCounts | None = None
        self.about = about

    @property
    def crs(self) -> Crs | None:
        """The coordinate reference system of all geometry, if known."""
        return self.about.crs

    @property
    def rows(self) -> DataFrame:
        """The good rows: all columns, and `geometry`, the WKB of a valid region or a point, which names its CRS."""
        from pyspark.sql import functions as F

        good = self._outcome.where(F.col(REASON).isNull())
        return with_crs(good.drop(FILE, ROW, REASON, RAW, REPAIRED), GEOMETRY, self.crs)

    @property
    def quarantine(self) -> DataFrame:
        """The bad rows: `file`, `row` (feature, row or line; null for a whole file), `reason`, `raw`."""
        from pyspark.sql import functions as F

        bad = self._kept().where(F.col(REASON).isNotNull())
        return bad.select(*(F.col(name).alias(name.strip("_")) for name in (FILE, ROW, REASON, RAW)))

    def counts(self) -> IngestCounts:
        """How many rows were read, kept, quarantined and repaired."""
        from pyspark.sql import functions as F

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
        """Why rows are in quarantine, without the places, and how many for each reason; the most frequent first."""
        from pyspark.sql import functions as F

        reason = F.regexp_replace("reason", r"(?s) near \(.*|\n.*", "")
        counted = self.quarantine.groupBy(reason.alias("why")).count().orderBy(F.desc("count"), "why")
        return [(row[0], row[1]) for row in counted.limit(MOST_REASONS).collect()]

    def write(self, path: Path) -> None:
        """Write `rows/` as GeoParquet, `quarantine/` as Parquet, and `dataset.json` last; `read_dataset` reads them."""
        from contrada.pipeline.ingest.dataset import write_dataset

        self._kept()
        write_dataset(self, os.fspath(path))

    def unpersist(self) -> None:
        """Forget what was read; the next action would read again."""
        self._outcome.unpersist()
        self._is_kept = False

    def _kept(self) -> DataFrame:
        """What became of all rows, kept from the first action on."""
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
    """Read a file, several, a directory with all below it, a table by its name, or a DataFrame.

    Files are looked at first, in Spark tasks, for columns and CRS; they are read by the first action on what comes
    back. `to_crs`, `buffer` and `crs` are those of `Spatial`; `repair` mends regions that can be mended; `layer`
    names the one layer to read of files that have several.
    """
    require_spark()
    spatial = Spatial(crs, to_crs, buffer)
    frame = _frame_of(spark, source)
    if frame is not None:
        from contrada.pipeline.ingest.frames import ingest_frame

        return ingest_frame(*frame, spatial, repair)
    return _ingest_files(spark, _paths(source), spatial, repair, layer)


def _paths(source: Any) -> list[Path]:
    return [source] if isinstance(source, str | os.PathLike) else list(source)


def _frame_of(spark: SparkSession, source: Any) -> tuple[str, DataFrame] | None:
    """A source that is no file: its name, and the DataFrame."""
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
    spatial = Spatial(target, spatial.to_crs, spatial.buffer)  # refuses a buffer in degrees
    spelled: dict[str, str] = {}
    schemas = [(item.schema, planning.schema_names(item.schema, spelled)) for item in found if item.error is None]
    wanted = IngestOptions(planning.united(schemas), spatial, repair)
    pieces = planning.pieces(found, target, spelled)
    tasks = spark.range(0, len(pieces), 1, min(max(len(pieces), 1), MOST_TASKS))
    outcome = mapped(tasks, reading(pieces, wanted), wanted)
    credits = {item.file: item.credit for item in found if item.credit is not None}
    rows = sum(item.rows for item in found if item.error is None)
    about = About(target, tuple(file.path for file in files), rows, {**credits, **notes_of(files)})
    return Ingested(outcome, about)


def mapped(frame: DataFrame, task: Task, wanted: IngestOptions) -> DataFrame:
    """What a task makes of a DataFrame."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return frame.mapInArrow(task, from_arrow_schema(wanted.outcome()))
