"""The result of `ingest`, and datasets: directories with its rows, its quarantine, and `dataset.json` about both."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contrada.errors import CrsError, FormatError, TableError
from contrada.formats.tables.rows import covering_columns, geo_columns
from contrada.geometry.crs import Crs
from contrada.pipeline import manifests
from contrada.pipeline.ingestion.geoparquet import write_geoparquet
from contrada.pipeline.ingestion.quarantine import GEOMETRY, MARKS, REASON, REPAIRED
from contrada.pipeline.outputs import complete_output
from contrada.pipeline.storage import Storage, store_of
from contrada.pipeline.systems import with_crs

VERSION = 1
MAX_REASONS = 1000
DATASET_FILE = "dataset.json"
FIELDS: dict[str, manifests.Check] = {
    "version": manifests.count,
    "crs": manifests.optional_text,
    "geometry": manifests.text,
    "counts": manifests.map_of(manifests.count),
    "files": manifests.list_of(manifests.text),
    "attribution": manifests.map_of(manifests.text),
}


class IngestCounts(NamedTuple):
    """Numbers of rows: read = kept + quarantined; repaired rows are among those kept."""

    read: int
    kept: int
    quarantined: int
    repaired: int


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
        if self._counts is None:
            is_good, is_repaired = F.when(F.col(REASON).isNull(), 1), F.when(F.col(REPAIRED), 1)
            found = self._kept().select(F.count(F.lit(1)), F.count(is_good), F.count(is_repaired)).collect()
            read, kept, repaired = found[0]
            self._counts = IngestCounts(read, kept, read - kept, repaired)
        return self._counts

    def reasons(self) -> list[tuple[str, int]]:
        """Return the reasons for quarantine, without coordinates, and their numbers of rows, most frequent first."""
        reason = F.regexp_replace("reason", r"(?s) near \(.*|\n.*", "")
        counted = self.quarantine.groupBy(reason.alias("why")).count().orderBy(F.desc("count"), "why")
        return [(row[0], row[1]) for row in counted.limit(MAX_REASONS).collect()]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write `rows/` as GeoParquet, `quarantine/` as Parquet, and `dataset.json`; see `read_dataset`.

        `_manifest.json` with counts and digests of the files, and `_SUCCESS`, come last. A directory without
        `dataset.json` is incomplete.
        """
        self._kept()
        place = Storage(path)
        if place.is_taken():
            raise FormatError(f"{place.where} exists and is not empty; use a new directory")
        write_geoparquet(self.rows, f"{place.where}/rows", GEOMETRY, self.crs)
        self.quarantine.write.parquet(f"{place.where}/quarantine")
        page = {
            "version": VERSION,
            "crs": self.crs,
            "geometry": GEOMETRY,
            "counts": self.counts()._asdict(),
            "files": list(self.about.files),
            "attribution": self.about.attribution,
        }
        place.write(DATASET_FILE, json.dumps(page, indent=2, ensure_ascii=False).encode())
        spark = self._outcome.sparkSession
        complete_output(place, self.counts()._asdict(), spark, ("rows", "quarantine"))

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


@dataclass(frozen=True)
class Dataset:
    """A directory that `Ingested.write` made: `rows` (with `geometry` as WKB in `crs`), `quarantine` and counts.

    The files of `rows` are GeoParquet.
    """

    rows: DataFrame
    quarantine: DataFrame
    crs: Crs | None
    numbers: IngestCounts
    files: tuple[str, ...]
    attribution: dict[str, str]

    def counts(self) -> IngestCounts:
        """Return how many rows were read, kept, quarantined and repaired."""
        return self.numbers


def read_dataset(spark: SparkSession, path: str | os.PathLike[str]) -> Dataset:
    """Read the dataset in a directory; an incomplete one is a FormatError."""
    storage = Storage(path)
    place = storage.where
    try:
        page = storage.fields(DATASET_FILE, FIELDS)
        if page is None:
            raise TableError(f"{DATASET_FILE} is missing")
        about = Crs.of(page["crs"]), IngestCounts(**page["counts"]), page["files"], page["attribution"]
    except (OSError, TypeError, TableError, CrsError) as error:
        raise FormatError(f"{place} is not a complete dataset: {error}") from error
    if page["version"] != VERSION:
        raise FormatError(f"{place} has dataset version {page['version']!r:.40}; this release reads version {VERSION}")
    rows, quarantine = (spark.read.parquet(f"{place}/{name}") for name in ("rows", "quarantine"))
    rows = rows.drop(*_boxes(storage))
    return Dataset(with_crs(rows, GEOMETRY, about[0]), quarantine, *about)


def _boxes(storage: Storage) -> set[str]:
    """Return the columns of `rows` with the boxes of geometry, which other readers use; none in older datasets."""
    names = [name for name in storage.names("rows") if name.endswith(".parquet")]
    if not names:
        return set()
    store, place = store_of(f"{storage.where}/rows/{names[0]}")
    try:
        with store.open_input_file(place) as file:
            return covering_columns(geo_columns(pq.read_metadata(file).metadata or {}))
    except (OSError, pa.ArrowException) as error:
        raise FormatError(f"{storage.where}/rows/{names[0]} cannot be read: {error}") from error
