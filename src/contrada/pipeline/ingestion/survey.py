"""Survey files in Spark tasks before they are read: columns, CRS, number of rows."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from contrada.errors import ContradaError, CrsError, FormatError
from contrada.formats.bounded import Expansion, open_parquet
from contrada.formats.geojson.columns import describe_features
from contrada.formats.json import decode
from contrada.formats.records import json_records
from contrada.formats.tables.rows import covering_columns, geo_columns, geometry_columns, parquet_schema
from contrada.formats.tables.schema_merge import plain_type
from contrada.geometry.arrow.checks import MAX_ERROR_CHARS, check_column
from contrada.geometry.crs import Crs
from contrada.geometry.wellknown import wkb_srids
from contrada.installation import missing
from contrada.pipeline.ingestion.lines import LineRange
from contrada.pipeline.ingestion.sources import GIS, LINES, PARQUET, File

MAX_DRIVER_FILES = 64  # Parquet files whose footers the driver reads itself, faster than a Spark job
USUAL_NAMES = ("geometry", "geom", "wkb_geometry", "the_geom", "shape", "wkb")
CREDITS = ("attribution", "license", "licence", "copyright")


class TaskSizes(NamedTuple):
    """How much of a file one task reads."""

    line_bytes: int = 32 << 20  # of newline JSON
    features: int = 50_000  # of a GIS layer
    parquet_rows: int = 1 << 17  # a row group that spans several tasks is read by each of them
    document_bytes: int = 64 << 20  # of a JSON document, roughly


class Surveyed(NamedTuple):
    """A part (a file, or a byte range of newline JSON) with its content, or that of one layer of it.

    `file` is the name shown to users; `crs` is the one the file states; `schema` is an Arrow schema without the
    geometry; `lines` counts the lines of newline JSON, including empty ones; `error` says why a part cannot be read. In
    a piece, which one task reads, `first` is the number of the first row, line or item, and `names` maps columns to
    their output names.
    """

    path: str
    format: str
    size: int
    start: int
    stop: int
    file: str
    layer: str | None = None
    rows: int = 0
    lines: int = 0
    schema: Any = pa.schema([])
    geometry: str = "geometry"
    crs: str | None = None
    credit: str | None = None
    error: str | None = None
    first: int = 0
    names: dict[str, str] = {}  # noqa: RUF012 - never modified


def survey(spark: SparkSession, files: Sequence[File], layer: str | None, line_bytes: int) -> list[Surveyed]:
    """Survey all files, in their order; newline JSON in parts of `line_bytes`."""
    parts = [part for file in files for part in _parts(file, line_bytes)]
    if len(parts) <= MAX_DRIVER_FILES and all(part.format == PARQUET for part in parts):
        return [found for part in parts for found in surveyed(part, layer)]

    def look(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            known = [(k, found) for k in batch.column(0).to_pylist() for found in surveyed(parts[k], layer)]
            rows = [{"part": k, "found": pickle.dumps(found)} for k, found in known]
            yield pa.RecordBatch.from_pylist(rows, pa.schema({"part": pa.int64(), "found": pa.binary()}))

    tasks = spark.range(0, len(parts), 1, min(len(parts), 1000)).mapInArrow(look, "part long, found binary")
    return [pickle.loads(row["found"]) for row in sorted(tasks.collect(), key=lambda row: row["part"])]


def _parts(file: File, line_bytes: int) -> Iterator[Surveyed]:
    step = line_bytes if file.format == LINES else max(file.size, 1)
    for start in range(0, max(file.size, 1), step):
        yield Surveyed(*file, start, min(start + step, file.size), file.path)


def surveyed(part: Surveyed, layer: str | None) -> list[Surveyed]:
    """Survey a part: one row per layer, or one row with an `error` if it cannot be read."""
    look: Callable[[Surveyed, str | None], list[Surveyed]] = {PARQUET: _parquet, GIS: _gis}.get(part.format, _features)
    try:
        return [item._replace(crs=Crs.of(item.crs)) for item in look(part, layer)]
    except Exception as error:  # libraries raise many types for damaged files
        reason = str(error)[:MAX_ERROR_CHARS] or type(error).__name__
        return [part._replace(error=f"the file cannot be read: {reason}")]


def _parquet(part: Surveyed, layer: str | None) -> list[Surveyed]:
    with pq.ParquetFile(part.path) as file:
        schema = file.schema_arrow
        name, crs = _geometry_of(file, schema, part.path)
        credit = _credit({key.decode(errors="replace"): value for key, value in (schema.metadata or {}).items()})
        hidden = covering_columns(geo_columns(parquet_schema(file).metadata or {}))
        plain = plain_schema(pa.schema([field for field in schema if field.name not in hidden]), name)
        about = part._replace(geometry=name, schema=plain, crs=crs, credit=credit)
        return [about._replace(rows=file.metadata.num_rows)]


def _geometry_of(file: Any, schema: Any, path: str) -> tuple[str, str | None]:
    """Return the geometry column of a Parquet file, and its CRS."""
    named = geometry_columns(parquet_schema(file))
    if named.primary is not None:
        return named.primary, named.crs[named.primary]
    is_binary, is_large = pa.types.is_binary, pa.types.is_large_binary
    name = usual_geometry([field.name for field in schema if is_binary(field.type) or is_large(field.type)], schema)
    return name, _crs_of_first(path, name)


def usual_geometry(binary: list[str], schema: Any) -> str:
    """Return the geometry column among the `binary` columns of a schema, by its name; or the only binary column."""
    by_name = [name for usual in USUAL_NAMES for name in binary if name.lower() == usual]
    if by_name or len(binary) == 1:
        return (by_name or binary)[0]
    raise FormatError(f"no geometry column; columns: {', '.join(schema.names) or 'none'}")


def _crs_of_first(path: str, name: str) -> Crs | None:
    """Return the CRS of the SRID in the first value of a WKB column."""
    size = os.path.getsize(path)
    opened, expansion = open_parquet(path, 100, size), Expansion("the file", size)
    with opened.file:
        for batch in opened.batches(columns=[name]):
            for part in expansion.slices(batch):
                values = check_column(part.column(0), f"column {name!r}").drop_null()
                if len(values):
                    return known_srid(int(wkb_srids(values)[0]))
    return None


def known_srid(srid: int) -> Crs | None:
    """Return the CRS of an SRID, None if unknown; rows with an unknown SRID are rejected when they are read."""
    with suppress(CrsError):
        return Crs.of(srid or None)
    return None


def plain_schema(schema: Any, geometry: str) -> Any:
    """Return the columns except the geometry, with the types that `ingest` writes."""
    return pa.schema([(field.name, plain_type(field.type)) for field in schema if field.name != geometry])


def _credit(metadata: dict[str, Any] | None) -> str | None:
    """Return the licence or attribution in a file's metadata."""
    for name, value in (metadata or {}).items():
        if name.lower() in CREDITS and value:
            return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return None


def _gis(part: Surveyed, layer: str | None) -> list[Surveyed]:
    """Survey the layers of a file that pyogrio reads: those with geometry, or `layer` alone."""
    pyogrio = require_pyogrio()
    layers = [name for name, kind in pyogrio.list_layers(part.path).tolist() if kind is not None]
    if layer is not None:
        if layer not in layers:
            raise FormatError(f"unknown layer {layer!r:.60}; layers with geometry: {', '.join(layers) or 'none'}")
        layers = [layer]
    if not layers:
        raise FormatError("no layer has geometry")
    found = []
    for name in layers:
        info = pyogrio.read_info(part.path, layer=name, force_feature_count=True)
        _, table = pyogrio.read_arrow(part.path, layer=name, max_features=1)
        geometry = info["geometry_name"] or "wkb_geometry"
        credit = _credit(info.get("dataset_metadata")) or _credit(info.get("layer_metadata"))
        file = part.path if len(layers) == 1 else f"{part.path}, layer {name}"
        schema = plain_schema(table.schema, geometry)
        about = part._replace(geometry=geometry, schema=schema, crs=info["crs"], credit=credit)
        found.append(about._replace(file=file, layer=name, rows=info["features"]))
    return found


def require_pyogrio() -> Any:
    """Return the module pyogrio, or raise a ContradaError that says what to install."""
    try:
        import pyogrio
    except ImportError as error:
        raise ContradaError(missing("GIS files need pyogrio", "spark")) from error
    return pyogrio


def _features(part: Surveyed, layer: str | None) -> list[Surveyed]:
    """Survey GeoJSON: a range of lines, or a whole document."""
    with open(part.path, "rb") as file:
        if part.format == LINES:
            lines = LineRange(file, part.start, part.stop)
            about = describe_features(json_records(cast(BinaryIO, lines), LINES))
            return [part._replace(lines=lines.count, **about._asdict())]
        records = list(json_records(file, part.format))
        if len(records) == 1 and records[0].error is not None:
            raise records[0].error
        credit = _credit(_document(part.path)) if part.format == "json" else None
        return [part._replace(credit=credit, **describe_features(records)._asdict())]


def _document(path: str) -> dict[str, Any]:
    """Return the members of a JSON document that state licence or attribution."""
    data = Path(path).read_bytes()
    members = decode(data, dict[str, msgspec.Raw]) if data.lstrip()[:1] == b"{" else {}
    return {name: decode(bytes(value)) for name, value in members.items() if name.lower() in CREDITS}
