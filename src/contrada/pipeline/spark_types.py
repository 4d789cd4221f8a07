"""Convert between Spark's types and contrada's: attributes as columns, GEOMETRY as binary, the artifacts directory."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from inspect import signature
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.functions import col
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, FractionalType, StructField, StructType

from contrada.errors import ContradaError, CrsError, FormatError
from contrada.pipeline.storage import full_place
from contrada.spark_names import quoted

ARTIFACTS = "spark.contrada.artifacts"
# Structs of numbers that are one value: GeoArrow's points, and circles.
VALUE_FIELDS = ({"x", "y"}, {"x", "y", "z"}, {"x", "y", "m"}, {"x", "y", "z", "m"}, {"x", "y", "radius"})
# PySpark 4.1 has no such parameter, and is in UTC.
_IN_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
EWKB_SRID = "20"  # bit in the highest byte of a WKB geometry type: an SRID follows


def attribute_columns(frame: DataFrame | StructType, asked: Collection[str]) -> dict[str, Column]:
    """Return the `asked` attributes of a frame or schema: struct fields have dotted names, GEOMETRY becomes EWKB.

    >>> from pyspark.sql.types import DoubleType, StructType
    >>> wind = StructType().add("wind", StructType().add("speed", DoubleType()).add("from", DoubleType()))
    >>> [name for name, _, _ in fields(wind)]
    ['wind.speed', 'wind.from']
    """
    columns: dict[str, Column] = {}
    for name, path, kind in fields(frame if isinstance(frame, StructType) else frame.schema):
        if name not in asked:
            continue
        if name in columns:
            raise FormatError(f"duplicate attribute {name!r}")
        columns[name] = _sent(name, col(path), kind)
    return columns


def fields(schema: StructType, prefix: str = "", path: str = "") -> Iterator[tuple[str, str, DataType]]:
    """Yield all leaf fields: attribute name, Spark path and type."""
    for field in schema.fields:
        name, place = prefix + field.name, path + quoted(field.name)
        if isinstance(field.dataType, StructType) and not _is_value(field.dataType):
            yield from fields(field.dataType, f"{name}.", f"{place}.")
        else:
            yield name, place, field.dataType


def sent_type(kind: DataType) -> Any:
    """Return the Arrow type in which Spark sends a type to Python; raises PySparkException if it does not send it.

    >>> from pyspark.sql.types import TimestampType
    >>> sent_type(TimestampType())
    TimestampType(timestamp[us, tz=UTC])
    """
    return to_arrow_type(kind, **_IN_UTC)


def _is_value(kind: StructType) -> bool:
    """Return True for a struct of x and y, GeoArrow's encoding of a point, or of x, y and radius, a circle."""
    is_number = all(isinstance(f.dataType, FractionalType) and "decimal" not in f.dataType.typeName() for f in kind)
    return {field.name for field in kind} in VALUE_FIELDS and is_number


def _sent(name: str, column: Column, kind: DataType) -> Column:
    """Return a column as it is sent to Python; a type that Spark cannot send is a FormatError."""
    if kind.typeName() == "geography":
        raise CrsError(f"column {name!r} is GEOGRAPHY, with geodesic edges; only planar edges are supported")
    if kind.typeName() == "geometry":
        return _ewkb(column)
    try:
        sent_type(kind)
    except PySparkException as error:  # else a job would fail on it
        raise FormatError(f"column {name!r}: type {kind.simpleString()} is not supported for attributes") from error
    return column


def _ewkb(column: Column) -> Column:
    """Convert GEOMETRY to EWKB; Spark writes little-endian WKB, with the geometry type in bytes 2 to 5."""
    wkb, srid = f.st_asbinary(column), f.st_srid(column)
    digits = f.lpad(f.hex(srid), 8, "0")
    little = f.concat(*(f.substring(digits, start, 2) for start in (7, 5, 3, 1)))
    named = f.concat(
        f.substring(wkb, 1, 4), f.unhex(f.concat(f.lit(EWKB_SRID), little)), f.substring(wkb, 6, 2**31 - 1)
    )
    return f.when(srid > 0, named).otherwise(wkb)


def ddl_fields(text: str) -> list[StructField]:
    """Return the fields in a DDL text."""
    kind = StructType.fromDDL(text)
    assert isinstance(kind, StructType)
    return kind.fields


def artifacts_place(session: SparkSession, artifacts: str | os.PathLike[str] | None) -> str:
    """Return where artifacts go: `artifacts`, the session's configuration, or the user's cache for a local master."""
    chosen = artifacts or session.conf.get(ARTIFACTS, None)
    if chosen is not None:
        return full_place(chosen)
    if str(session.conf.get("spark.master", None)).startswith("local"):
        from contrada.pipeline.artifact_cache import cache_home

        return str(cache_home() / "artifacts")
    raise ContradaError(
        "need a directory or URI for compiled tables that driver and executors share: pass artifacts="
        f" or set {ARTIFACTS}"
    )
