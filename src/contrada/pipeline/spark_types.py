"""Spark's types at the edge: attributes as plain columns, GEOMETRY as binary, the place that artifacts go to."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from contrada.errors import ContradaError, CrsError, FormatError
from contrada.spark_names import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

ARTIFACTS = "spark.contrada.artifacts"
VERTEX_FIELDS = ({"x", "y"}, {"x", "y", "z"}, {"x", "y", "m"}, {"x", "y", "z", "m"})
EWKB_SRID = "20"  # the bit of a geometry type's highest byte that says that an SRID follows


def attribute_columns(frame: DataFrame, asked: Collection[str]) -> dict[str, Column]:
    """The asked attributes that a frame has, by name: fields of structs have dotted names, GEOMETRY becomes EWKB.

    >>> from pyspark.sql.types import DoubleType, StructType
    >>> wind = StructType().add("wind", StructType().add("speed", DoubleType()).add("from", DoubleType()))
    >>> [name for name, _, _ in fields(wind)]
    ['wind.speed', 'wind.from']
    """
    from pyspark.sql.functions import col

    columns: dict[str, Column] = {}
    for name, path, kind in fields(frame.schema):
        if name not in asked:
            continue
        if name in columns:
            raise FormatError(f"two columns give the attribute {name!r}")
        columns[name] = _sent(name, col(path), kind)
    return columns


def fields(schema: StructType, prefix: str = "", path: str = "") -> Iterator[tuple[str, str, DataType]]:
    """All plain fields: the name of the attribute, how Spark finds it, its type."""
    from pyspark.sql.types import StructType

    for field in schema.fields:
        name, place = prefix + field.name, path + quoted(field.name)
        if isinstance(field.dataType, StructType) and not _is_vertex(field.dataType):
            yield from fields(field.dataType, f"{name}.", f"{place}.")
        else:
            yield name, place, field.dataType


def _is_vertex(kind: StructType) -> bool:
    """True for a struct of x and y, which GeoArrow has for a point."""
    from pyspark.sql.types import FractionalType

    is_number = all(isinstance(f.dataType, FractionalType) and "decimal" not in f.dataType.typeName() for f in kind)
    return {field.name for field in kind} in VERTEX_FIELDS and is_number


def _sent(name: str, column: Column, kind: DataType) -> Column:
    """A column as it is sent to Python."""
    if kind.typeName() == "geography":
        raise CrsError(f"column {name!r} is GEOGRAPHY, with geodesic edges; relations here are planar")
    if kind.typeName() == "geometry":
        return _ewkb(column)
    _check_arrow(name, kind)
    return column


def _ewkb(column: Column) -> Column:
    """GEOMETRY as WKB with its SRID; Spark writes little-endian WKB, where the type stands in bytes 2 to 5."""
    from pyspark.sql import functions as f

    wkb, srid = f.st_asbinary(column), f.st_srid(column)
    digits = f.lpad(f.hex(srid), 8, "0")
    little = f.concat(*(f.substring(digits, start, 2) for start in (7, 5, 3, 1)))
    named = f.concat(
        f.substring(wkb, 1, 4), f.unhex(f.concat(f.lit(EWKB_SRID), little)), f.substring(wkb, 6, 2**31 - 1)
    )
    return f.when(srid > 0, named).otherwise(wkb)


def _check_arrow(name: str, kind: DataType) -> None:
    """Refuse types that Spark does not send to Python, before a job fails for them."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        to_arrow_type(kind, timezone="UTC")
    except PySparkException as error:
        raise FormatError(f"column {name!r} is {kind.simpleString()}, which no attribute can be") from error


def name_type(name: str) -> DataType:
    """The Spark type of keys or subscribers: text, or one of the integers.

    >>> name_type("bigint")
    LongType()
    """
    from pyspark.sql import types

    integers = {"tinyint": types.ByteType, "smallint": types.ShortType, "int": types.IntegerType}
    return types.StringType() if name == "string" else integers.get(name, types.LongType)()


def ddl_fields(text: str) -> list[StructField]:
    """The fields that a text in Spark's DDL describes."""
    from pyspark.sql.types import StructType

    kind = StructType.fromDDL(text)
    assert isinstance(kind, StructType)
    return kind.fields


def artifacts_place(session: SparkSession, artifacts: str | os.PathLike[str] | None) -> str:
    """Where artifacts go: as asked, as the configuration says, or for a local master into the user's cache."""
    chosen = artifacts or session.conf.get(ARTIFACTS, None)
    if chosen is not None:
        text = os.fspath(chosen)
        return text if "://" in text or text.startswith("file:") else os.path.abspath(text)
    if str(session.conf.get("spark.master", None)).startswith("local"):
        from contrada.pipeline.artifact_cache import cache_home

        return str(cache_home() / "artifacts")
    raise ContradaError(
        "compiled tables go to a place that driver and executors share: give artifacts=, a directory or URI,"
        f" or set {ARTIFACTS}"
    )
