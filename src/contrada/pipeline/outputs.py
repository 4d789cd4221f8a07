"""Complete outputs: a directory of result files has `_manifest.json`, with counts and digests, and `_SUCCESS`, last.

Readers that wait for `_SUCCESS` see all files of a run or none of them, on stores without rename too: every run writes
new names, or removes `_SUCCESS` and the manifest before it replaces files.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from contrada.errors import TableError
from contrada.pipeline import manifests
from contrada.pipeline.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANIFEST, SUCCESS = "_manifest.json", "_SUCCESS"
# An option of Spark's writers: without it, Spark writes `_SUCCESS` before there is a manifest.
UNMARKED = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
VERSION = 1
READ_THREADS = 8
READ_BYTES = 1 << 20  # bytes of a file hashed at once
MAX_DRIVER_BYTES = 256 << 20  # outputs up to this size are hashed by the driver, larger ones by tasks


class OutputFile(NamedTuple):
    """A file of an output: its path in the directory, its size in bytes, its SHA-256, and its rows if Parquet."""

    path: str
    bytes: int
    sha256: str
    rows: int | None


class OutputManifest(NamedTuple):
    """The manifest of an output: counts of the run, and all files with data."""

    path: str
    counts: dict[str, int]
    files: tuple[OutputFile, ...]


def _relative(value: Any) -> str:
    """Return a relative path below the output; anything else is a TableError."""
    path = manifests.location(value)
    if path.startswith("/") or "\\" in path or any(part in ("", ".", "..") for part in path.split("/")):
        raise TableError(f"need a path below the output, got {value!r:.100}")
    return str(path)


def _optional_count(value: Any) -> int | None:
    return None if value is None else int(manifests.count(value))


def _file(value: Any) -> OutputFile:
    checks: dict[str, manifests.Check] = {
        "path": _relative, "bytes": manifests.count, "sha256": manifests.digest, "rows": _optional_count,
    }  # fmt: skip
    return OutputFile(**manifests.fields(value, checks))


FIELDS: dict[str, manifests.Check] = {
    "version": manifests.count,
    "counts": manifests.map_of(manifests.count),
    "files": manifests.list_of(_file),
}


def output_place(where: str | os.PathLike[str]) -> Storage | None:
    """Return the storage of an output that Spark writes, or None for a store that PyArrow cannot open."""
    with suppress(TableError):
        return Storage(where)
    return None


def begin_output(place: Storage | None) -> None:
    """Mark a directory as incomplete: remove `_SUCCESS`, then the manifest of an earlier run."""
    if place is not None:
        place.remove(SUCCESS)
        place.remove(MANIFEST)


def complete_output(
    place: Storage | None,
    counts: Mapping[str, int] | None = None,
    spark: SparkSession | None = None,
    folders: Sequence[str] = ("",),
    driver_bytes: int = MAX_DRIVER_BYTES,
) -> OutputManifest | None:
    """Write the manifest of the files in some folders of a directory, and then `_SUCCESS`.

    Without `counts`, the manifest has the rows of the Parquet files of each folder. Names that begin with `.` or `_`
    are no data. With a session, tasks hash the files of outputs above `driver_bytes`. Nothing is written, and None
    returned, if the folders are empty or missing here: Spark has another default file system, or one that PyArrow
    cannot open.
    """
    if place is None:
        return None
    sizes = {path: size for folder in folders for path, size in _data_files(place, folder)}
    if not sizes:
        return None
    hashed = _hashed_by_tasks if spark is not None and sum(sizes.values()) > driver_bytes else _hashed_here
    files = tuple(sorted(hashed(place.where, list(sizes), spark)))
    rows = {folder: sum(one.rows or 0 for one in files if one.path.startswith(f"{folder}/")) for folder in folders}
    found = OutputManifest(place.where, dict(rows if counts is None else counts), files)
    about = {"version": VERSION, "counts": found.counts, "files": [one._asdict() for one in files]}
    place.write(MANIFEST, json.dumps(about, indent=1).encode())
    place.write(SUCCESS, b"")
    return found


def read_output(where: str | os.PathLike[str], *, verify: bool = False) -> OutputManifest:
    """Return the manifest of a complete output; without `_SUCCESS`, a TableError.

    With `verify`, all files are read: a missing file, another size or another digest is a TableError that names it, and
    so is a file that the manifest does not have.
    """
    place = Storage(where)
    if place.read(SUCCESS) is None:
        raise TableError(f"{place.where} is not complete: it has no {SUCCESS}")
    told = place.fields(MANIFEST, FIELDS)
    if told is None:
        raise TableError(f"{place.where} has no {MANIFEST}")
    found = OutputManifest(place.where, told["counts"], told["files"])
    if verify:
        _verify(place, found)
    return found


def _verify(place: Storage, found: OutputManifest) -> None:
    folders = {one.path.rpartition("/")[0] for one in found.files}
    there = {path for folder in folders for path, _ in _data_files(place, folder)}
    known = {one.path: one for one in found.files}
    for path in sorted(there ^ known.keys()):
        raise TableError(f"{place.where}/{path}: {'not in the manifest' if path in there else 'missing'}")
    for now in _hashed_here(place.where, list(known), None):
        for what, old, new in zip(OutputFile._fields, known[now.path], now, strict=True):
            if old != new:
                raise TableError(f"{place.where}/{now.path}: {what} is {new}, in the manifest {old}")


def _data_files(place: Storage, folder: str) -> Iterator[tuple[str, int]]:
    """Yield the paths and sizes of all files below a folder, without hidden ones."""
    for path, size in place.files_below(folder):
        if not any(part.startswith((".", "_")) for part in path.split("/")):
            yield path, size


def _hashed_here(where: str, paths: list[str], spark: SparkSession | None) -> list[OutputFile]:
    place = Storage(where)
    with ThreadPoolExecutor(READ_THREADS) as pool:
        return list(pool.map(partial(_hashed, place), paths))


def _hashed_by_tasks(where: str, paths: list[str], spark: SparkSession | None) -> list[OutputFile]:
    assert spark is not None
    rows = spark.createDataFrame([(path,) for path in paths], "path string").repartition(len(paths))
    schema = "path string, bytes bigint, sha256 string, rows bigint"
    return [OutputFile(*row) for row in rows.mapInArrow(partial(_hash_batches, where=where), schema).collect()]


def _hash_batches(batches: Iterator[Any], where: str) -> Iterator[Any]:
    for batch in batches:
        found = [_hashed(Storage(where), path)._asdict() for path in batch.column(0).to_pylist()]
        schema = pa.schema([("path", "string"), ("bytes", "int64"), ("sha256", "string"), ("rows", "int64")])
        yield pa.RecordBatch.from_pylist(found, schema)


def _hashed(place: Storage, path: str) -> OutputFile:
    """Read a file and return its size, digest and number of rows."""
    digest, size = hashlib.sha256(), 0
    with place.opened(path) as file:
        while data := file.read(READ_BYTES):
            digest.update(data)
            size += len(data)
        rows = None
        if path.endswith(".parquet"):
            file.seek(0)
            rows = int(pq.ParquetFile(file).metadata.num_rows)
    return OutputFile(path, size, digest.hexdigest(), rows)
