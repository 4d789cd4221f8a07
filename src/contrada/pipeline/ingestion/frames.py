"""Ingest from DataFrames and tables, whose geometry is a Spark GEOMETRY column or WKB."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from contrada.errors import CrsError, FormatError
from contrada.formats.spatial import Spatial
from contrada.geometry.crs import Crs
from contrada.geometry.wellknown import wkb_srids
from contrada.pipeline.ingestion import planning
from contrada.pipeline.ingestion.dataset import About, Ingested
from contrada.pipeline.ingestion.quarantine import FILE, ROW, IngestOptions, sift_batches
from contrada.pipeline.ingestion.survey import known_srid, plain_schema, usual_geometry
from contrada.pipeline.systems import frame_systems
from contrada.spark_names import quoted


def ingest_frame(name: str, frame: DataFrame, spatial: Spatial, repair: bool) -> Ingested:
    """Ingest the rows of a DataFrame; rows of a GEOMETRY(ANY) column are grouped by SRID."""
    geometry, is_own = _geometry_of(frame)
    others = [field for field in frame.schema.names if field != geometry]
    placed = _placed(frame, name)
    column = F.col(quoted(geometry))
    kind = frame.schema[geometry].dataType
    parts = _by_srid(placed, column, kind) if is_own else [(_crs_of_binary(frame, geometry), placed)]
    places = [
        (f"{name}, {geometry} in {crs.label}" if crs else name, crs or spatial.input_crs(None)) for crs, _ in parts
    ]
    target = planning.one_crs(places, spatial.to_crs)
    spatial = spatial.for_input_in(target)
    schema = plain_schema(to_arrow_schema(frame.select(*map(quoted, others)).schema), geometry)
    names = planning.output_names(schema.names, {})
    wanted = IngestOptions(planning.united([(schema, names)]), spatial, repair)
    values = (F.st_asbinary(column) if is_own else column).alias(geometry)
    columns: list[Any] = [*map(quoted, others), values, FILE, ROW]
    outcomes = []
    for (_, part), (_, crs) in zip(parts, places, strict=True):
        # A row of WKB with its own SRID keeps that CRS.
        sift = partial(sift_batches, geometry=geometry, crs=crs, names=names, wanted=wanted)
        outcomes.append(part.select(*columns).mapInArrow(sift, from_arrow_schema(wanted.outcome())))
    return Ingested(reduce(DataFrame.union, outcomes), About(target, (name,), None, {}))


def _geometry_of(frame: DataFrame) -> tuple[str, bool]:
    """Return the geometry column, and whether it has Spark's GEOMETRY type."""
    own = [field.name for field in frame.schema if field.dataType.typeName() == "geometry"]
    if own:
        return ("geometry" if "geometry" in own else own[0]), True
    for field in frame.schema:
        if field.dataType.typeName() == "geography":
            raise CrsError(f"column {field.name!r} is GEOGRAPHY; only planar edges are supported")
    binary = [field.name for field in frame.schema if field.dataType.typeName() == "binary"]
    return usual_geometry(binary, frame.schema), False


def _placed(frame: DataFrame, name: str) -> DataFrame:
    """Add file and row number to each row; rows that do not come from files get `name` and a running number."""
    if {FILE, ROW} & set(frame.columns):
        raise FormatError(f"column names {FILE} and {ROW} are reserved; rename the columns")
    try:
        placed = frame.select("*", F.col("_metadata.file_path").alias(FILE), F.col("_metadata.row_index").alias(ROW))
        _ = placed.schema  # raises if the source has no such metadata
    except PySparkException:
        placed = frame.select("*", F.lit(name).alias(FILE), F.monotonically_increasing_id().alias(ROW))
    return placed


def _by_srid(frame: DataFrame, column: Any, kind: Any) -> list[tuple[Crs | None, DataFrame]]:
    """Split the rows of a GEOMETRY column by CRS; rows without geometry go to the first part."""
    if kind.simpleString() != "geometry(any)":
        return [(_crs_of(kind.srid), frame)]
    srid = F.st_srid(column)
    found = sorted(row[0] for row in frame.select(srid).distinct().collect() if row[0] is not None)
    if len(found) < 2:
        return [(_crs_of(found[0]) if found else None, frame)]
    first = frame.where(srid.isNull() | (srid == found[0]))
    return [(_crs_of(found[0]), first), *((_crs_of(one), frame.where(srid == one)) for one in found[1:])]


def _crs_of(srid: int) -> Crs | None:
    return Crs.of(srid) if srid > 0 else None


def _crs_of_binary(frame: DataFrame, name: str) -> Crs | None:
    """Return the CRS of a WKB column: the one in the column's metadata, else the SRID of its first value."""
    named = frame_systems(frame, [name]).get(name)
    if named is not None or frame.isStreaming:
        return named
    first = frame.select(F.col(quoted(name))).where(F.col(quoted(name)).isNotNull()).limit(1).collect()
    srids = wkb_srids(pa.array([bytes(row[0]) for row in first], pa.binary())).tolist()
    return known_srid(srids[0]) if srids else None
