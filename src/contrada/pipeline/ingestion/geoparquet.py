"""Write rows with geometry as GeoParquet in Spark tasks; every file names its CRS for GIS tools and for Spark."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from numpy.typing import NDArray

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
BOX, SIDES = "bbox", ("xmin", "ymin", "xmax", "ymax")  # the column with the box of each row, for other readers
WKB_TYPES = {1: "Point", 3: "Polygon", 6: "MultiPolygon"}


def write_geoparquet(frame: DataFrame, path: str, geometry: str, crs: Crs | None) -> None:
    """Write a frame with a WKB column to a new directory of GeoParquet files, one per partition.

    Files are renamed when all are written: files of repeated tasks keep names with a dot, which readers skip.
    """
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import DoubleType, StructType

    frame, box = with_crs(frame, geometry, crs), StructType()
    for side in SIDES:
        box = box.add(side, DoubleType())
    written = StructType([*frame.schema.fields]).add(box_name(frame.columns), box)
    about = {SPARK_SCHEMA: written.json(), SPARK_VERSION: frame.sparkSession.version}
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
    writer, corners, box = None, list[NDArray[np.float64]](), BOX
    for table in chunks(batches, GROUP_ROWS, GROUP_BYTES):
        table, own = with_boxes(table, geometry)
        corners.append(own)
        if writer is None:
            store.create_dir(place)
            box = table.column_names[-1]
            # With its own schema stored, PyArrow would read that schema's metadata instead of the metadata added at the
            # end.
            writer = pq.ParquetWriter(f"{place}/.{name}", table.schema, filesystem=store, store_schema=False)
        writer.write_table(table)
        kinds |= wkb_types(table.column(geometry))
    if writer is None:
        return
    writer.add_key_value_metadata(
        {**about, "geo": json.dumps(geo_metadata(geometry, crs, kinds, box, _around(corners)))}
    )
    writer.close()
    yield pa.record_batch([pa.array([name])], ["name"])


def box_name(names: Sequence[str]) -> str:
    """Return a name for the column of boxes that no other column has; names ignore case.

    >>> box_name(["name", "BBox", "geometry"])
    'bbox_2'
    """
    used = {name.lower() for name in names}
    return next(name for name in (BOX, *(f"{BOX}_{k}" for k in range(2, len(used) + 3))) if name not in used)


def with_boxes(table: Any, geometry: str) -> tuple[Any, NDArray[np.float64]]:
    """Return a table with the box of each row as its last column, and the boxes, NaN for null."""
    values = np.array(table.column(geometry).to_pylist(), object)
    boxes = shapely.bounds(shapely.from_wkb(values)).reshape(-1, 4)
    missing = np.isnan(boxes[:, 0])
    sides = [pa.array(np.ascontiguousarray(boxes[:, k]), mask=missing) for k in range(4)]
    column = pa.StructArray.from_arrays(sides, SIDES, mask=pa.array(missing))
    return table.append_column(box_name(table.column_names), column), boxes


def _around(parts: list[NDArray[np.float64]]) -> list[float] | None:
    """Return the box around boxes; None without any."""
    boxes = np.concatenate(parts)
    good = boxes[~np.isnan(boxes[:, 0])]
    return [*good[:, :2].min(axis=0).tolist(), *good[:, 2:].max(axis=0).tolist()] if len(good) else None


def geo_metadata(
    geometry: str, crs: Crs | None, kinds: set[str], box: str = "", around: list[float] | None = None
) -> dict[str, Any]:
    """Return the GeoParquet metadata of a WKB column; `crs` None means unknown.

    `box` is the column with the box of each row, its covering; `around` is the box of the file.

    >>> geo_metadata("geometry", None, {"Point"})["columns"]
    {'geometry': {'encoding': 'WKB', 'geometry_types': ['Point'], 'crs': None}}
    """
    column: dict[str, Any] = {"encoding": "WKB", "geometry_types": sorted(kinds)}
    column["crs"] = None if crs is None else crs.projjson()
    if around is not None:
        column["bbox"] = around
    if box:
        column["covering"] = {BOX: {side: [box, side] for side in SIDES}}
    return {"version": VERSION, "primary_column": geometry, "columns": {geometry: column}}


def wkb_types(column: Any) -> set[str]:
    """Return the geometry types in a column of WKB written by contrada: little-endian and two-dimensional."""
    data, positions, missing = arrow_buffers(column)
    starts = positions[:-1][missing == 0]
    return {WKB_TYPES.get(code, "Unknown") for code in np.unique(data[starts + 1]).tolist()}
