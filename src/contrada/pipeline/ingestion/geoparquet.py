"""Write rows with geometry as GeoParquet in Spark tasks; every file names its CRS for GIS tools and for Spark."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contrada.geometry.crs import Crs
from contrada.geometry.wellknown import arrow_buffers
from contrada.pipeline.batch.building import chunks
from contrada.pipeline.storage import store_of
from contrada.pipeline.systems import with_crs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VERSION = "1.1.0"
GROUP_ROWS, GROUP_BYTES = 1 << 17, 1 << 26  # approximate size of a row group
SPARK_SCHEMA, SPARK_VERSION = "org.apache.spark.sql.parquet.row.metadata", "org.apache.spark.version"
WKB_TYPES = {1: "Point", 3: "Polygon", 6: "MultiPolygon"}


def write_geoparquet(frame: DataFrame, path: str, geometry: str, crs: Crs | None) -> None:
    """Write a frame with a WKB column to a new directory of GeoParquet files, one per partition.

    Files are renamed when all are written: files of repeated tasks keep names with a dot, which readers skip.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    frame = with_crs(frame, geometry, crs)
    about = {SPARK_SCHEMA: frame.schema.json(), SPARK_VERSION: frame.sparkSession.version}
    write = partial(write_part, path=path, geometry=geometry, crs=crs, about=about)
    parts = [row["name"] for row in frame.mapInArrow(write, "name string").collect()]
    store, place = store_of(path)
    if not parts:  # write one empty file, so that readers can see the columns
        empty = pa.RecordBatch.from_pylist([], to_arrow_schema(frame.schema))
        parts = [name for batch in write(iter([empty])) for name in batch.column(0).to_pylist()]
    for name in parts:
        store.move(f"{place}/.{name}", f"{place}/{name}")
    store.open_output_stream(f"{place}/_SUCCESS").close()


def write_part(
    batches: Iterator[Any], path: str, geometry: str, crs: Crs | None, about: dict[str, str]
) -> Iterator[Any]:
    """Write batches to a file whose name starts with a dot; yield one row with its name, or none without batches."""
    store, place = store_of(path)
    name, kinds = f"part-{uuid.uuid4().hex}.parquet", set[str]()
    writer = None
    for table in chunks(batches, GROUP_ROWS, GROUP_BYTES):
        if writer is None:
            store.create_dir(place)
            # With its own schema stored, PyArrow would read that schema's metadata instead of the metadata added at the
            # end.
            writer = pq.ParquetWriter(f"{place}/.{name}", table.schema, filesystem=store, store_schema=False)
        writer.write_table(table)
        kinds |= wkb_types(table.column(geometry))
    if writer is None:
        return
    writer.add_key_value_metadata({**about, "geo": json.dumps(geo_metadata(geometry, crs, kinds))})
    writer.close()
    yield pa.record_batch([pa.array([name])], ["name"])


def geo_metadata(geometry: str, crs: Crs | None, kinds: set[str]) -> dict[str, Any]:
    """Return the GeoParquet metadata of a WKB column; `crs` None means unknown.

    >>> geo_metadata("geometry", None, {"Point"})["columns"]
    {'geometry': {'encoding': 'WKB', 'geometry_types': ['Point'], 'crs': None}}
    """
    column = {"encoding": "WKB", "geometry_types": sorted(kinds), "crs": None if crs is None else crs.projjson()}
    return {"version": VERSION, "primary_column": geometry, "columns": {geometry: column}}


def wkb_types(column: Any) -> set[str]:
    """Return the geometry types in a column of WKB written by contrada: little-endian and two-dimensional."""
    data, positions, missing = arrow_buffers(column)
    starts = positions[:-1][missing == 0]
    return {WKB_TYPES.get(code, "Unknown") for code in np.unique(data[starts + 1]).tolist()}
