"""Read geometry of any library: Shapely, GeoPandas, Arrow, `__geo_interface__`, and WKB, WKT and GeoJSON.

Columns are read row by row: good rows become a column, bad rows are rejected with reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import shapely

from contrada.arguments import checks_arguments
from contrada.codes import MISSING
from contrada.errors import ArgumentError
from contrada.geometry.column import RegionArray, Sifted
from contrada.geometry.crs import Crs, common_crs
from contrada.geometry.faults import FaultCode, rejection
from contrada.geometry.globe import Globe
from contrada.geometry.globe_reading import sift_on_globe
from contrada.geometry.line import Line
from contrada.geometry.line_column import LineArray, SiftedLines, sift_lines
from contrada.geometry.line_sources import LINE_TYPES
from contrada.geometry.point import (
    Point,
    PointArray,
    SiftedPoints,
    plain_points,
    sift_coordinates,
    sift_plain,
    sift_points,
)
from contrada.geometry.region import Region
from contrada.geometry.sources import raw_from_geojson, raw_from_shapely, raw_from_wkb, raw_from_wkt
from contrada.geometry.validation import sift
from contrada.geometry.wellknown import shapes_from_wkb
from contrada.shown import short

One = Region | Point
Many = RegionArray | PointArray
ONE_SHAPE = "a Region, Point or Line, a Shapely geometry or an object with __geo_interface__"
GEOMETRY_OR_COLUMN = (
    "a Region, Point, RegionArray or PointArray, or geometry of Shapely, GeoPandas, GeoArrow or __geo_interface__"
)
_LINE_NAMES = ("LineString", "LinearRing", "MultiLineString")
SourceKind = Literal["wkb", "wkt", "geojson", "shapely", "arrow"]


@checks_arguments
def read_regions(
    source: Any, *, crs: Any = None, repair: bool = False, wrap: Any = None, densify: float | None = None
) -> Sifted:
    """Return the good regions of a column and the rejected rows with reasons: no row is lost, and no bad row raises.

    `source` holds WKB or EWKB (bytes or hex), WKT or EWKT, GeoJSON (dicts or text), Shapely geometries, or is an Arrow
    array of WKB, WKT or GeoArrow, including a GeoSeries. `crs` is the coordinate reference system of rows that name
    none; a row that names another system is rejected. `repair` repairs regions that can be repaired.

    `wrap` and `densify` are for longitude and latitude ([Globe](../globe.md)). `wrap="longitude"` brings regions that
    leave longitude -180..180 back, cut at the date line; with `wrap="shorter"` every edge of more than 180 degrees goes
    the shorter way round, and an outline around a pole holds the pole. `densify` adds vertices along geodesics, so that
    edges stay within so many metres of them.

    >>> read = read_regions(["POLYGON((0 0, 2 0, 2 2, 0 0))", "POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))", None])
    >>> read.rows.tolist(), [(bad.row, bad.fault.value) for bad in read.rejected]
    ([0], [(1, 'self-intersection'), (2, 'null')])
    """
    globe = Globe.of(wrap, densify)
    if isinstance(source, RegionArray):
        common_crs(source.crs, crs)
        if globe is None:
            return Sifted(source, np.arange(len(source)), (), np.empty(0, np.int64))
        source = source.to_shapely()
    return sift_regions(*_with_kind(source), crs, repair, globe)


@checks_arguments
def read_points(source: Any, *, crs: Any = None) -> SiftedPoints:
    """Return the good points of a column and the rejected rows, like `read_regions`; WKT and GeoJSON are not read.

    >>> read = read_points([b"rubbish", PointArray([(1, 2)]).to_wkb()[0].as_py()])
    >>> read.points[0], read.rejected[0].fault.value
    (Point(1.0, 2.0), 'malformed')
    """
    if isinstance(source, PointArray):
        common_crs(source.crs, crs)
        return SiftedPoints(source, np.arange(len(source)), ())
    return sift_point_rows(*_with_kind(source), crs)


@checks_arguments
def read_lines(source: Any, *, crs: Any = None) -> SiftedLines:
    """Return the good lines of a column and the rejected rows, like `read_regions`.

    >>> read = read_lines(["LINESTRING(0 0, 2 0)", "LINESTRING(1 1, 1 1)", None])
    >>> read.lines[0], [(bad.row, bad.fault.value) for bad in read.rejected]
    (<Line LINESTRING (0 0, 2 0)>, [(1, 'too-few-vertices'), (2, 'null')])
    """
    if isinstance(source, LineArray):
        common_crs(source.crs, crs)
        return SiftedLines(source, np.arange(len(source)), ())
    return sift_lines(*_with_kind(source), crs)


def sift_regions(kind: SourceKind, values: Any, crs: Any, repair: bool, globe: Globe | None = None) -> Sifted:
    """Return the good regions of a column of one kind, and the rejected rows with reasons."""
    if kind == "arrow":
        from contrada.geometry.arrow.geoarrow import raw_from_arrow

        raw = raw_from_arrow(values)
    elif kind == "shapely":
        raw, crs = raw_from_shapely(values), common_crs(getattr(values, "crs", None), crs)
    elif kind == "wkb":
        raw = raw_from_wkb(values)
    else:
        raw = (raw_from_wkt if kind == "wkt" else raw_from_geojson)(_listed(values))
    return sift(raw, crs, repair) if globe is None else sift_on_globe(raw, crs, repair, globe)


def sift_point_rows(kind: SourceKind, values: Any, crs: Any) -> SiftedPoints:
    """Return the good points of a column of one kind, and the rejected rows with reasons."""
    if kind == "shapely":
        array = np.atleast_1d(np.asarray(values, dtype=object))
        return sift_points(array, np.zeros(len(array), np.int64), common_crs(getattr(values, "crs", None), crs))
    if kind == "arrow":
        from contrada.geometry.arrow.geoarrow import points_from_arrow

        values, named, missing = points_from_arrow(values)
        crs = common_crs(named, crs)
        if isinstance(values, np.ndarray):
            sifted = sift_coordinates(values, crs)
            null = (int(MISSING), 0, 0)
            rejected = (rejection(bad.row, null) if missing[bad.row] else bad for bad in sifted.rejected)
            return sifted._replace(rejected=tuple(rejected))
    elif kind != "wkb":
        raise ArgumentError(f"points: need WKB, Shapely or Arrow values, got {kind}")
    plain = plain_points(values)
    if plain is not None:
        return sift_plain(plain, Crs.of(crs))
    array, faults = shapes_from_wkb(values)
    return sift_points(array, faults, Crs.of(crs))


def _with_kind(source: Any) -> tuple[SourceKind, Any]:
    """Return the kind of a source and its values, judged by the first value that is not None."""
    if isinstance(source, str | bytes | Mapping | Region | Line):
        raise ArgumentError(f"need a column, such as a list, got a single {type(source).__name__}")
    if hasattr(source, "geom_type"):  # GeoPandas
        return "shapely", source
    if hasattr(source, "__arrow_c_array__") or hasattr(source, "__arrow_c_stream__"):
        return "arrow", source
    values = _listed(source)
    first = next((value for value in values if value is not None), b"")
    if is_shapely(first):
        return "shapely", source if isinstance(source, np.ndarray) else values
    if isinstance(first, Mapping) or (isinstance(first, str) and first.lstrip().startswith("{")):
        return "geojson", values
    is_text = isinstance(first, str) and not first.lstrip().startswith(("00", "01"))
    return "wkt" if is_text else "wkb", values


def is_shapely(value: Any) -> bool:
    """Return True for one Shapely geometry."""
    return hasattr(value, "geom_type") and type(value).__module__.partition(".")[0] == "shapely"


def _listed(values: Iterable[Any]) -> list[Any]:
    if isinstance(values, list):
        return values
    if isinstance(values, str | bytes):
        raise ArgumentError(f"need a column, such as a list, got a single {type(values).__name__}")
    return list(values)


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


def one_shape_of(value: Any) -> One | Line:
    """Return one region, point or line from any supported object; a column raises an ArgumentError."""
    made = shape_of(value, ONE_SHAPE)
    if isinstance(made, (RegionArray, PointArray, LineArray)):
        raise ArgumentError(f"need one region, point or line, got a column of {len(made)}")
    return made


def shape_of(value: Any, needed: str = GEOMETRY_OR_COLUMN) -> One | Many | Line | LineArray:
    """Return one region, point or line, or a column of one of these, from any supported object.

    >>> shape_of({"type": "LineString", "coordinates": [[0, 0], [1, 1]]})
    <Line LINESTRING (0 0, 1 1)>
    """
    if isinstance(value, (Line, LineArray)):
        return value
    if is_shapely(value):
        return Line.from_shapely(value) if value.geom_type in _LINE_NAMES else geometry_of(value, needed)
    if isinstance(value, Mapping):
        geometry = value.get("geometry") if value.get("type") == "Feature" else value
        is_line = isinstance(geometry, Mapping) and geometry.get("type") in _LINE_NAMES
        return Line.from_geojson(value) if is_line else geometry_of(value, needed)
    if _is_array_of_shapely(value):
        kinds = shapely.get_type_id(np.asarray(value, dtype=object))
        return LineArray.from_shapely(value) if np.isin(kinds, LINE_TYPES).all() else geometry_of(value, needed)
    if hasattr(value, "__arrow_c_array__") or hasattr(value, "__arrow_c_stream__"):
        from contrada.geometry.arrow.lines import is_line_array

        return LineArray.from_arrow(value) if is_line_array(value) else geometry_of(value, needed)
    if not isinstance(value, (Region, Point)) and isinstance(getattr(value, "__geo_interface__", None), Mapping):
        return shape_of(value.__geo_interface__, needed)
    return geometry_of(value, needed)


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
    from contrada.geometry.arrow.mixed import is_vertex

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
        raise ArgumentError(f"need a GeoJSON geometry, got {short(value)}")
    if value["type"] == "Feature":
        return _of_mapping(value.get("geometry"))
    return Point.from_geojson(value) if value["type"] == "Point" else Region.from_geojson(value)
