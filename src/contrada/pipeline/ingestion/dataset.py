"""Datasets: the directories that `ingest` writes, with rows, a quarantine, and `dataset.json` about both."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contrada.errors import CrsError, FormatError, TableError
from contrada.geometry.crs import Crs
from contrada.pipeline import manifests
from contrada.pipeline.ingestion.geoparquet import write_geoparquet
from contrada.pipeline.ingestion.quarantine import GEOMETRY
from contrada.pipeline.session import require_spark
from contrada.pipeline.systems import with_crs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from contrada.pipeline.ingestion.ingesting import IngestCounts, Ingested

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
    path = _absolute(path)
    filesystem, place = _filesystem(path)
    if _is_taken(filesystem, place):
        raise FormatError(f"{path} exists and is not empty; name a new directory")
    write_geoparquet(ingested.rows, os.path.join(path, "rows"), GEOMETRY, Crs.of(ingested.crs))
    ingested.quarantine.write.parquet(os.path.join(path, "quarantine"))
    page = {
        "version": VERSION,
        "crs": ingested.crs,
        "geometry": GEOMETRY,
        "counts": ingested.counts()._asdict(),
        "files": list(ingested.about.files),
        "attribution": ingested.about.attribution,
    }
    with filesystem.open_output_stream(f"{place}/{DATASET_FILE}") as stream:
        stream.write(json.dumps(page, indent=2, ensure_ascii=False).encode())


def read_dataset(spark: SparkSession, path: str | os.PathLike[str]) -> Dataset:
    """Read the dataset in a directory; an incomplete one is a FormatError."""
    require_spark()
    from contrada.pipeline.ingestion.ingesting import IngestCounts

    place = _absolute(os.fspath(path))
    try:
        filesystem, inner = _filesystem(place)
        with filesystem.open_input_stream(f"{inner}/{DATASET_FILE}") as stream:
            page = manifests.fields(manifests.parsed(stream.read()), FIELDS)
        about = Crs.of(page["crs"]), IngestCounts(**page["counts"]), page["files"], page["attribution"]
    except (OSError, TypeError, TableError, CrsError) as error:
        raise FormatError(f"{place} is no dataset, or it is not whole: {error}") from error
    if page["version"] != VERSION:
        raise FormatError(f"{place}: version {page['version']!r} of a dataset; this reads {VERSION}")
    rows, quarantine = (spark.read.parquet(os.path.join(place, name)) for name in ("rows", "quarantine"))
    return Dataset(with_crs(rows, GEOMETRY, about[0]), quarantine, *about)


def _filesystem(path: str) -> tuple[Any, str]:
    from pyarrow import fs

    found: tuple[Any, str] = fs.FileSystem.from_uri(path)
    return found


def _absolute(path: str) -> str:
    """Make a path absolute, since Java has its own working directory; a URI is returned as it is."""
    return path if "://" in path else os.path.abspath(path)


def _is_taken(filesystem: Any, place: str) -> bool:
    from pyarrow import fs

    kind = filesystem.get_file_info(place).type
    if kind == fs.FileType.NotFound:
        return False
    return kind == fs.FileType.File or bool(filesystem.get_file_info(fs.FileSelector(place)))
