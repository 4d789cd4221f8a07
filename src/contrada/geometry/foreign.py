"""Convert geometry of other libraries to regions and points: Shapely, GeoPandas, GeoArrow, `__geo_interface__`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import shapely

from contrada.errors import ArgumentError
from contrada.geometry.arrow.mixed import is_vertex
from contrada.geometry.column import RegionArray
from contrada.geometry.faults import FaultCode
from contrada.geometry.point import Point, PointArray
from contrada.geometry.reading import is_shapely, read_regions
from contrada.geometry.region import Region

One = Region | Point
Many = RegionArray | PointArray
ONE_GEOMETRY = "a Region or Point, a Shapely geometry or an object with __geo_interface__"
GEOMETRY_OR_COLUMN = (
    "a Region, Point, RegionArray or PointArray, or geometry of Shapely, GeoPandas, GeoArrow or __geo_interface__"
)


def geometry_of(value: Any, needed: str = GEOMETRY_OR_COLUMN) -> One | Many:
    """Return one region or point, or a column of either, from any supported object; errors say what is `needed`.

    >>> import shapely
    >>> geometry_of(shapely.Point(1, 2)), geometry_of(shapely.box(0, 0, 1, 1)).area
    (Point(1.0, 2.0), 1.0)
    >>> len(geometry_of([shapely.box(0, 0, 1, 1), shapely.box(1, 1, 2, 2)]))
    2
    """
    if isinstance(value, (Region, Point, RegionArray, PointArray)):
        return value
    if is_shapely(value):
        return Point.from_shapely(value) if value.geom_type == "Point" else Region.from_shapely(value)
    if isinstance(value, Mapping):
        return _of_mapping(value)
    if _is_array_of_shapely(value):
        return _of_shapely_array(value)
    if hasattr(value, "__arrow_c_array__") or hasattr(value, "__arrow_c_stream__"):
        return _of_arrow(value)
    if hasattr(value, "__geo_interface__"):
        return _of_mapping(value.__geo_interface__)
    raise ArgumentError(f"need {needed}, got {type(value).__name__}")


def one_geometry_of(value: Any) -> One:
    """Return one region or point from any supported object; a column raises an ArgumentError."""
    made = geometry_of(value, ONE_GEOMETRY)
    if isinstance(made, (RegionArray, PointArray)):
        raise ArgumentError(f"need one region or point, got a column of {len(made)}")
    return made


def _is_array_of_shapely(value: Any) -> bool:
    """Return True for sequences and arrays with a Shapely geometry, such as a GeoSeries; nulls do not count."""
    if isinstance(value, (str, bytes)) or not (isinstance(value, Sequence | np.ndarray) or hasattr(value, "geom_type")):
        return False
    return any(is_shapely(item) for item in np.asarray(value, dtype=object).ravel())


def _of_shapely_array(values: Any) -> Many:
    is_point = shapely.get_type_id(np.asarray(values, dtype=object)) == shapely.GeometryType.POINT
    return PointArray.from_shapely(values) if is_point.all() else RegionArray.from_shapely(values)


def _of_arrow(values: Any) -> Many:
    from contrada.geometry.arrow.geoarrow import storage_of

    array, _ = storage_of(values)
    if is_vertex(array.type):
        return PointArray.from_arrow(values)
    read = read_regions(values)
    if not read.rejected:
        return read.regions
    if not len(read.regions) and all(bad.fault is FaultCode.POINT for bad in read.rejected):
        return PointArray.from_arrow(values)
    raise read.rejected[0].error()


def _of_mapping(value: Any) -> One:
    if not isinstance(value, Mapping) or "type" not in value:
        raise ArgumentError(f"need a GeoJSON geometry, got {str(value)[:60]}")
    if value["type"] == "Feature":
        return _of_mapping(value.get("geometry"))
    return Point.from_geojson(value) if value["type"] == "Point" else Region.from_geojson(value)
