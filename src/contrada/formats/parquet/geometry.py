"""Geometry columns of Parquet files with Parquet's own types GEOMETRY and GEOGRAPHY."""

from __future__ import annotations

import json
from typing import Any

from contrada.errors import ContradaError, CrsError
from contrada.formats.tables.rows import EXTENSION, EXTENSION_METADATA, geo_columns
from contrada.geometry.crs import LONGITUDE_LATITUDE, Crs


def parquet_schema(file: Any) -> Any:
    """Return the Arrow schema of a `ParquetFile`; GEOMETRY columns are marked as GeoArrow with their CRS.

    PyArrow reads such a column as plain bytes. Columns in the GeoParquet metadata are left unchanged.
    """
    schema = file.schema_arrow
    described = geo_columns(schema.metadata or {})
    for place in range(len(file.schema)):
        column = file.schema.column(place)
        kind = json.loads(column.logical_type.to_json())
        if kind.get("Type") not in ("Geometry", "Geography") or column.path not in schema.names:
            continue
        if kind["Type"] == "Geography":
            raise CrsError(f"column {column.name!r} is GEOGRAPHY, with geodesic edges; only planar edges are supported")
        if column.name in described:
            continue
        about = json.dumps({"crs": _system(column.name, kind.get("crs"), schema.metadata or {})})
        number = schema.names.index(column.name)
        field = schema.field(number).with_metadata({EXTENSION: b"geoarrow.wkb", EXTENSION_METADATA: about.encode()})
        schema = schema.set(number, field)
    return schema


def _system(name: str, text: str | None, metadata: dict[bytes, bytes]) -> Crs | None:
    """Return the CRS of a GEOMETRY column: longitude and latitude by default, None for `srid:0`."""
    form, _, what = (text or LONGITUDE_LATITUDE).partition(":")
    try:
        if form.lower() == "srid":
            return Crs.of(int(what) or None)
        if form.lower() == "projjson":
            return Crs.of(metadata[what.encode()].decode())
        return Crs.of(text or LONGITUDE_LATITUDE)
    except (ContradaError, KeyError, ValueError) as error:
        raise CrsError(f"column {name!r}: unknown coordinate reference system {str(text)[:60]!r}") from error
