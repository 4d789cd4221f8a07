"""Datasets: the directories that `ingest` writes, with rows, a quarantine, and `dataset.json` about both."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from contrada.errors import CrsError, FormatError, TableError
from contrada.geometry.crs import Crs
from contrada.pipeline import manifests
from contrada.pipeline.ingestion.geoparquet import write_geoparquet
from contrada.pipeline.ingestion.quarantine import GEOMETRY
from contrada.pipeline.storage import Storage
from contrada.pipeline.systems import with_crs

if TYPE_CHECKING:
    from contrada.pipeline.ingestion.ingesting import Ingested

VERSION = 1
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


def write_dataset(ingested: Ingested, path: str) -> None:
    """Write rows and quarantine, then `dataset.json`: a directory without that file is incomplete."""
    place = Storage(path)
    if place.is_taken():
        raise FormatError(f"{place.where} exists and is not empty; use a new directory")
    write_geoparquet(ingested.rows, f"{place.where}/rows", GEOMETRY, Crs.of(ingested.crs))
    ingested.quarantine.write.parquet(f"{place.where}/quarantine")
    page = {
        "version": VERSION,
        "crs": ingested.crs,
        "geometry": GEOMETRY,
        "counts": ingested.counts()._asdict(),
        "files": list(ingested.about.files),
        "attribution": ingested.about.attribution,
    }
    place.write(DATASET_FILE, json.dumps(page, indent=2, ensure_ascii=False).encode())


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
    return Dataset(with_crs(rows, GEOMETRY, about[0]), quarantine, *about)
