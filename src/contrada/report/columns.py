"""Choose the columns of a run that a report shows: time, geometry, title and attributes of messages."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from contrada.errors import CrsError
from contrada.geometry import Crs
from contrada.spark_names import quoted

MAX_SHOWN_ATTRIBUTES = 12  # of a message
MAX_VALUE_LENGTH = 300  # characters of one value
# Preferred columns of the time, the geometry and the title of messages, else the first column of one of the types.
TIME = ("onset", "sent", "time", "timestamp", "effective", "at"), ("timestamp", "date")
GEOMETRY = ("geometry", "area", "geom", "wkb"), ("binary", "geometry")
TITLE = ("title", "headline", "event", "name", "kind", "type"), ("string", "varchar", "char")
NESTED = ("binary", "array", "map", "struct", "geometry", "geography", "variant", "interval")


def first_column(frame: DataFrame, preferred: tuple[str, ...], kinds: tuple[str, ...]) -> str | None:
    """Return the first of the `preferred` columns that has one of the types `kinds`, else the first of such a type."""
    fitting = [name for name, kind in frame.dtypes if kind.startswith(kinds)]
    return next((name for name in (*preferred, *fitting) if name in fitting), None)


def text_column(frame: DataFrame, name: str, length: int) -> Column:
    """Return a column as text of at most `length` characters; empty text if there is no such column."""
    value = F.col(quoted(name)).cast("string") if name in frame.columns else F.lit("")
    return F.substring(value, 1, length).alias(name)


def wkb_column(frame: DataFrame, name: str | None) -> Column:
    """Return a column of WKB or GEOMETRY as WKB named `wkb`; null without a column."""
    if name is None:
        return F.lit(None).cast("binary").alias("wkb")
    value = F.col(quoted(name))
    return (value if dict(frame.dtypes)[name] == "binary" else F.st_asbinary(value)).alias("wkb")


def shown_attributes(messages: DataFrame) -> list[str]:
    """Return the columns of messages that are shown: the first that are neither nested nor binary, without the id."""
    plain = [name for name, kind in messages.dtypes if not kind.startswith(NESTED) and name != "message_id"]
    return plain[:MAX_SHOWN_ATTRIBUTES]


def crs_of_column(frame: DataFrame, name: str | None) -> Crs | None:
    """Return the CRS that a geometry column names: by the metadata `crs`, or by the SRID of its GEOMETRY type."""
    if name is None:
        return None
    field = frame.schema[name]
    if "crs" in field.metadata:
        return Crs.of(field.metadata["crs"])
    srid = getattr(field.dataType, "srid", None)
    try:
        return Crs.of(srid) if isinstance(srid, int) and srid > 0 else None
    except CrsError:  # an SRID that PROJ does not know; the map then has plain coordinates
        return None
