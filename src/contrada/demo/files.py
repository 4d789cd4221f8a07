"""Write GeoParquet, GeoJSON and newline GeoJSON from columns of attributes and geometries.

Parquet keeps the metres of EPSG:25832. GeoJSON is in longitude and latitude, as RFC 7946 requires; equal vertices stay
equal, so shared edges stay shared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from pyproj import Transformer

from contrada.demo.ground import FloatArray, Geometries
from contrada.geometry import Crs
from contrada.pipeline.ingestion.geoparquet import geo_metadata, wkb_types

CRS = "EPSG:25832"


def with_wkb(attributes: pa.Table, name: str, geometries: Geometries) -> pa.Table:
    """Append the geometries as a column of WKB, null where there is none."""
    return attributes.append_column(name, pa.array(shapely.to_wkb(geometries), type=pa.binary()))


def write_geoparquet(path: Path, table: pa.Table, geometry: str) -> None:
    """Write GeoParquet 1.1: the table, with its WKB column described in the file's metadata."""
    described = geo_metadata(geometry, Crs.of(CRS), wkb_types(table[geometry]))
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(described)}), path, compression="zstd")


def write_features(path: Path, table: pa.Table, *, lines: bool) -> None:
    """Write GeoJSON in longitude and latitude: one Feature per line, or (`lines=False`) one FeatureCollection."""
    head, between, tail = (
        ("", "\n", "\n") if lines else ('{"type": "FeatureCollection", "features": [\n', ",\n", "\n]}\n")
    )
    path.write_text(head + between.join(_features(table)) + tail, encoding="utf-8")


def _features(table: pa.Table) -> Iterator[str]:
    with np.errstate(invalid="ignore"):  # Shapely raises NumPy's warning for NaN
        geometries = shapely.from_wkb(table["geometry"].to_numpy(zero_copy_only=False))
    texts = shapely.to_geojson(shapely.transform(geometries, _to_degrees))
    for properties, text in zip(table.drop_columns(["geometry"]).to_pylist(), texts, strict=True):
        # Shapely writes null for a NaN coordinate, which JSON cannot express.
        yield f'{{"type": "Feature", "properties": {json.dumps(properties)}, "geometry": {text or "null"}}}'


def _to_degrees(metres: FloatArray) -> FloatArray:
    east, north = Transformer.from_crs(CRS, "OGC:CRS84", always_xy=True).transform(metres[:, 0], metres[:, 1])
    degrees = np.stack([east, north], axis=1)
    return np.where(np.isfinite(degrees), degrees, np.nan)
