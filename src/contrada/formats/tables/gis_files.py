"""Read GeoPackage, Shapefile and FlatGeobuf by pyogrio, if it is installed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, BinaryIO

from contrada.errors import FormatError
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.installation import missing

GEOMETRY = "geometry"


def gis_batches(stream: BinaryIO, rows: int) -> Iterator[Any]:
    """Yield record batches of all layers with geometry, which is the column `geometry`; metadata name its CRS.

    pyogrio reads files by name, so the stream must have one.
    """
    try:
        import pyogrio
        from pyogrio.raw import open_arrow
    except ImportError as error:
        raise FormatError(missing("GeoPackage, Shapefile and FlatGeobuf need pyogrio", "spark")) from error

    path = getattr(stream, "name", None)
    if not isinstance(path, str | os.PathLike) or not os.path.isfile(path):
        raise FormatError("GeoPackage, Shapefile and FlatGeobuf can only be read from files, not from streams")
    try:
        layers = [name for name, kind in pyogrio.list_layers(path).tolist() if kind is not None]
        if not layers:
            raise FormatError("no layer has geometry")
        for layer in layers:
            with open_arrow(path, layer=layer, batch_size=rows, use_pyarrow=True) as (about, reader):
                own = about["geometry_name"] or "wkb_geometry"
                for batch in reader:
                    yield _named(batch, own, about["crs"])
    except pyogrio.errors.DataSourceError as error:
        raise FormatError(f"pyogrio cannot read the file: {error}") from error


def _named(batch: Any, own: str, crs: str | None) -> Any:
    """Return the batch with its geometry in the column `geometry`, and GeoParquet's metadata."""
    names = [GEOMETRY if name == own else name for name in batch.schema.names]
    about = {"primary_column": GEOMETRY, "columns": {GEOMETRY: {"encoding": "WKB", "crs": crs}}}
    fields = [pa.field(name, field.type) for name, field in zip(names, batch.schema, strict=True)]
    schema = pa.schema(fields, metadata={b"geo": json.dumps(about).encode()})
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
