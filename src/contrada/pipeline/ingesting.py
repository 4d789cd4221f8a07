"""Files and tables into rows with valid geometry, and a quarantine for the rest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from contrada.language.spatial import Spatial
from contrada.pipeline import planning
from contrada.pipeline.outcome import FILE, RAW, REASON, REPAIRED, ROW, Task, Wanted, reading, sifting
from contrada.pipeline.planning import Group
from contrada.pipeline.session import require_spark
from contrada.pipeline.sources import PARQUET, PARQUET_BY_ARROW, files_of, notes_of
from contrada.pipeline.survey import Surveyed, survey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Path = str | os.PathLike[str]
MOST_TASKS = 10_000
MOST_REASONS = 1000


class Counts(NamedTuple):
    """How many rows there were and what became of them: read = kept + quarantined; repaired ones are kept."""

    read: int
    kept: int
    quarantined: int
    repaired: int


class About(NamedTuple):
    """What is known of a source before it is read: the CRS of the rows, files, rows to come, and whose data it is."""

    crs: str | None
    files: tuple[str, ...]
    expected: int | None
    attribution: dict[str, str]


class Ingested:
    """Rows of files and tables: the good ones, the bad ones, and how many.

    Sources are read once, by the first action; what came of it is kept until `unpersist`.
    """

    def __init__(self, outcome: DataFrame, about: About, expected: DataFrame | None) -> None:
        self._outcome = outcome.persist()
        self._expected = expected
        self._counts: Counts | None = None
        self.about = about

    @property
    def crs(self) -> str | None:
        """The coordinate reference system of all geometry, if known."""
        return self.about.crs

    @property
    def rows(self) -> DataFrame:
        """The good rows: all columns, and `geometry`, the WKB of a valid region or a point."""
        from pyspark.sql import functions as F

        good = self._outcome.where(F.col(REASON).isNull())
        return good.drop(FILE, ROW, REASON, RAW, REPAIRED)

    @property
    def quarantine(self) -> DataFrame:
        """The bad rows: `file`, `row` (feature, row or line; null for a whole file), `reason`, `raw`."""
        from pyspark.sql import functions as F

        bad = self._outcome.where(F.col(REASON).isNotNull())
        told = bad.select(*(F.col(name).alias(name.strip("_")) for name in (FILE, ROW, REASON, RAW)))
        lost = self._lost()
        return told if lost is None else told.unionByName(lost)

    def counts(self) -> Counts:
        """How many rows were read, kept, quarantined and repaired."""
        from pyspark.sql import functions as F

        if self._counts is not None:
            return self._counts
        kept, repaired = self._outcome.select(
            F.count(F.when(F.col(REASON).isNull(), 1)), F.count(F.when(F.col(REPAIRED), 1))
        ).collect()[0]
        quarantined = self.quarantine.count()
        self._counts = Counts(kept + quarantined, kept, quarantined, repaired)
        return self._counts

    def reasons(self) -> list[tuple[str, int]]:
        """Why rows are in quarantine, without the places, and how many for each reason; the most frequent first."""
        from pyspark.sql import functions as F

        reason = F.regexp_replace("reason", r"(?s) near \(.*|\n.*", "")
        counted = self.quarantine.groupBy(reason.alias("why")).count().orderBy(F.desc("count"), "why")
        return [(row[0], row[1]) for row in counted.limit(MOST_REASONS).collect()]

    def write(self, path: Path) -> None:
        """Write `rows/` and `quarantine/` as Parquet, and `dataset.json`, last; `read_dataset` reads them."""
        from contrada.pipeline.dataset import write_dataset

        write_dataset(self, os.fspath(path))

    def unpersist(self) -> None:
        """Forget what was read; the next action would read again."""
        self._outcome.unpersist()

    def _lost(self) -> DataFrame | None:
        """What Spark's Parquet reader left out because a file is damaged behind a footer that is not."""
        from pyspark.sql import functions as F

        if self._expected is None:
            return None
        seen = self._outcome.groupBy(F.col(FILE).alias("file")).agg(F.count("*").alias("seen"))
        missing = F.col("expected") - F.coalesce(F.col("seen"), F.lit(0))
        reason = F.concat(F.lit("the file is damaged: "), missing.cast("string"), F.lit(" of its rows cannot be read"))
        joined = self._expected.join(seen, "file", "left").where(missing > 0)
        none = F.lit(None)
        return joined.select(
            "file", none.cast("long").alias("row"), reason.alias("reason"), none.cast("string").alias("raw")
        )


def ingest(
    spark: SparkSession,
    source: Path | Sequence[Path] | DataFrame,
    *,
    to_crs: str | None = None,
    buffer: float | None = None,
    repair: bool = False,
    crs: str | None = None,
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
        from contrada.pipeline.frames import ingest_frame

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
    from pyspark.errors import PySparkException

    files = files_of(sources)
    found = planning.resolved(survey(spark, files, layer), spatial)
    target = planning.one_crs([(item.file, item.crs) for item in found if item.error is None], spatial.to_crs)
    spatial = Spatial(target, spatial.to_crs, spatial.buffer)  # refuses a buffer in degrees
    opened = {}
    for group in planning.parquet_groups(found):
        try:
            opened[group] = parquet_frame(spark, group)
        except PySparkException:
            found = [item._replace(format=PARQUET_BY_ARROW) if item.path in group.paths else item for item in found]
    groups = list(opened)
    spelled: dict[str, str] = {}
    schemas = [(item.schema, planning.schema_names(item.schema, spelled)) for item in found if item.error is None]
    wanted = Wanted(planning.united(schemas), spatial, repair)
    pieces = planning.pieces(found, target, spelled)
    frames = []
    if pieces or not groups:
        tasks = spark.range(0, len(pieces), 1, min(max(len(pieces), 1), MOST_TASKS))
        frames.append(mapped(tasks, reading(pieces, wanted), wanted))
    for group, frame in opened.items():
        names = planning.schema_names(group.schema, spelled)
        frames.append(mapped(frame, sifting(group.geometry, group.crs or target, names, wanted), wanted))
    outcome = frames[0]
    for frame in frames[1:]:
        outcome = outcome.union(frame)
    credits = {item.file: item.credit for item in found if item.credit is not None}
    rows = sum(item.rows for item in found if item.error is None)
    about = About(target, tuple(file.path for file in files), rows, {**credits, **notes_of(files)})
    return Ingested(outcome, about, _expected(spark, found))


def parquet_frame(spark: SparkSession, group: Group) -> DataFrame:
    """The rows of Parquet files as Spark reads them, with the file and the number of each; geometry as binary."""
    from pyspark.sql import functions as F

    # A directory that looks like `key=value` is none here, and what is damaged is found by counting.
    reader = spark.read.option("recursiveFileLookup", "true").option("ignoreCorruptFiles", "true")
    frame = reader.parquet(*map(_escaped, group.paths))
    names = [*planning.schema_in(group.schema).names, group.geometry]
    chosen = [binary_geometry(frame, name) if name == group.geometry else F.col(quoted(name)) for name in names]
    return frame.select(*chosen, F.col("_metadata.file_path").alias(FILE), F.col("_metadata.row_index").alias(ROW))


def binary_geometry(frame: DataFrame, name: str) -> Any:
    """A geometry column as WKB or GeoArrow, whatever Spark has it as."""
    from pyspark.sql import functions as F

    column = F.col(quoted(name))
    is_own = frame.schema[name].dataType.typeName() == "geometry"
    return (F.st_asbinary(column) if is_own else column).alias(name)


def quoted(name: str) -> str:
    """A column's name as Spark takes any name.

    >>> quoted("wind.speed")
    '`wind.speed`'
    """
    return "`" + name.replace("`", "``") + "`"


def _escaped(path: str) -> str:
    """A path in which nothing is a pattern."""
    return "".join(f"\\{letter}" if letter in "*?[]{}\\" else letter for letter in path)


def mapped(frame: DataFrame, task: Task, wanted: Wanted) -> DataFrame:
    """What a task makes of a DataFrame."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return frame.mapInArrow(task, from_arrow_schema(wanted.outcome()))


def _expected(spark: SparkSession, found: Iterable[Surveyed]) -> DataFrame | None:
    """How many rows each Parquet file has, as its footer says."""
    rows = [(item.path, item.rows) for item in found if item.format == PARQUET and item.error is None]
    return spark.createDataFrame(rows, "file string, expected long") if rows else None
