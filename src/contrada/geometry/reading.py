"""Read columns of geometry row by row: good rows become a column, bad rows are rejected with reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np

from contrada.arguments import checks_arguments
from contrada.errors import ArgumentError
from contrada.geometry.column import RegionArray, Sifted
from contrada.geometry.crs import Crs, common_crs
from contrada.geometry.point import PointArray, SiftedPoints, plain_points, sift_coordinates, sift_points
from contrada.geometry.region import Region
from contrada.geometry.sources import raw_from_geojson, raw_from_shapely, raw_from_wkb, raw_from_wkt
from contrada.geometry.validation import sift
from contrada.geometry.wellknown import shapes_from_wkb

SourceKind = Literal["wkb", "wkt", "geojson", "shapely", "arrow"]


@checks_arguments
def read_regions(source: Any, *, crs: Any = None, repair: bool = False) -> Sifted:
    """Return the good regions of a column and the rejected rows with reasons: no row is lost, and no bad row raises.

    `source` holds WKB or EWKB (bytes or hex), WKT or EWKT, GeoJSON (dicts or text), Shapely geometries, or is an Arrow
    array of WKB, WKT or GeoArrow, including a GeoSeries. `crs` is the coordinate reference system of rows that name
    none; a row that names another system is rejected. `repair` repairs regions that can be repaired.

    >>> read = read_regions(["POLYGON((0 0, 2 0, 2 2, 0 0))", "POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))", None])
    >>> read.rows.tolist(), [(bad.row, bad.fault.value) for bad in read.rejected]
    ([0], [(1, 'self-intersection'), (2, 'null')])
    """
    if isinstance(source, RegionArray):
        common_crs(source.crs, crs)
        return Sifted(source, np.arange(len(source)), (), np.empty(0, np.int64))
    values, kind = _told(source)
    return sift_regions(kind, values, crs, repair)


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
    values, kind = _told(source)
    return sift_point_rows(kind, values, crs)


def sift_regions(kind: SourceKind, values: Any, crs: Any, repair: bool) -> Sifted:
    """Return the good regions of a column of one kind, and the rejected rows with reasons."""
    if kind == "arrow":
        from contrada.geometry.arrow.geoarrow import raw_from_arrow

        return sift(raw_from_arrow(values), crs, repair)
    if kind == "shapely":
        return sift(raw_from_shapely(values), common_crs(getattr(values, "crs", None), crs), repair)
    if kind == "wkb":
        return sift(raw_from_wkb(values), crs, repair)
    return sift((raw_from_wkt if kind == "wkt" else raw_from_geojson)(_listed(values)), crs, repair)


def sift_point_rows(kind: SourceKind, values: Any, crs: Any) -> SiftedPoints:
    """Return the good points of a column of one kind, and the rejected rows with reasons."""
    if kind == "shapely":
        array = np.atleast_1d(np.asarray(values, dtype=object))
        return sift_points(array, np.zeros(len(array), np.int64), common_crs(getattr(values, "crs", None), crs))
    if kind == "arrow":
        from contrada.geometry.arrow.geoarrow import points_from_arrow

        values, named = points_from_arrow(values)
        crs = common_crs(named, crs)
        if isinstance(values, np.ndarray):
            return sift_coordinates(values, crs)
    elif kind != "wkb":
        raise ArgumentError(f"points: need WKB, Shapely or Arrow values, got {kind}")
    plain = plain_points(values)
    if plain is not None:
        return sift_coordinates(plain, Crs.of(crs))
    array, faults = shapes_from_wkb(values)
    return sift_points(array, faults, Crs.of(crs))


def _told(source: Any) -> tuple[Any, SourceKind]:
    """Return the values of a source and their kind, judged by the first value that is not None."""
    if isinstance(source, str | bytes | Mapping | Region):
        raise ArgumentError(f"need a column, such as a list, got a single {type(source).__name__}")
    if hasattr(source, "geom_type"):  # GeoPandas
        return source, "shapely"
    if hasattr(source, "__arrow_c_array__") or hasattr(source, "__arrow_c_stream__"):
        return source, "arrow"
    values = _listed(source)
    first = next((value for value in values if value is not None), b"")
    if is_shapely(first):
        return (source if isinstance(source, np.ndarray) else values), "shapely"
    if isinstance(first, Mapping) or (isinstance(first, str) and first.lstrip().startswith("{")):
        return values, "geojson"
    is_text = isinstance(first, str) and not first.lstrip().startswith(("00", "01"))
    return values, "wkt" if is_text else "wkb"


def is_shapely(value: Any) -> bool:
    """Return True for one Shapely geometry."""
    return hasattr(value, "geom_type") and type(value).__module__.partition(".")[0] == "shapely"


def _listed(values: Iterable[Any]) -> list[Any]:
    if isinstance(values, list):
        return values
    if isinstance(values, str | bytes):
        raise ArgumentError(f"need a column, such as a list, got a single {type(values).__name__}")
    return list(values)
