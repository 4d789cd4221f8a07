"""Recognise GeoJSON geometry objects and validate the nesting of their coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import numpy as np
import shapely

from contrada.errors import FormatError, RegionError
from contrada.geometry.circle import TYPE as CIRCLE
from contrada.geometry.interchange import polygons_to_wkb
from contrada.limits import check_limit
from contrada.shown import short

POLYGONAL, POINT = ("Polygon", "MultiPolygon"), "Point"
LINEAR = ("LineString", "LinearRing", "MultiLineString")
# Circle is no type of GeoJSON, but that of circles in messages (geometry/circle.py).
GEOMETRY_TYPES = frozenset(
    (*POLYGONAL, POINT, "LineString", "MultiLineString", "MultiPoint", "GeometryCollection", CIRCLE)
)
_Position = Annotated[list[float], msgspec.Meta(min_length=2)]
_Line = list[_Position]
_COORDINATE_TYPES: dict[str, Any] = {
    "Point": _Position,
    "MultiPoint": _Line,
    "LineString": _Line,
    "MultiLineString": list[_Line],
    "Polygon": list[_Line],
    "MultiPolygon": list[list[_Line]],
}


def is_geometry_object(value: Any) -> bool:
    """Return True for an object with the type and members of a GeoJSON geometry.

    >>> is_geometry_object({"type": "Point", "coordinates": [0, 0]}), is_geometry_object({"type": "Point"})
    (True, False)
    """
    if type(value) is not dict and not isinstance(value, Mapping):  # the first test is faster
        return False
    if not isinstance(value.get("type"), str) or value["type"] not in GEOMETRY_TYPES:
        return False
    return ("geometries" if value["type"] == "GeometryCollection" else "coordinates") in value


def is_feature(value: Any) -> bool:
    """Return True for a GeoJSON Feature: an object of that type with a geometry or properties."""
    if type(value) is not dict and not isinstance(value, Mapping):
        return False
    return value.get("type") == "Feature" and ("geometry" in value or "properties" in value)


def geometry_of(feature: Mapping[str, Any]) -> Any:
    """Return the geometry object of a feature, or None."""
    geometry = feature.get("geometry")
    if geometry is not None and not is_geometry_object(geometry):
        raise FormatError(f"geometry: need a GeoJSON geometry, got {short(geometry)}")
    return geometry


def crs_of(feature: Mapping[str, Any]) -> str | None:
    """Return the name of the CRS in the old member `crs` of GeoJSON 2008."""
    member = feature.get("crs")
    if member is None:
        return None
    named = member.get("properties") if isinstance(member, Mapping) else None
    name = named.get("name") if isinstance(named, Mapping) else None
    if not isinstance(name, str):
        raise FormatError(f"crs: need the name of a coordinate reference system, got {short(member)}")
    check_limit("name_bytes", len(name), "the GeoJSON member crs")
    return name


def coordinates_of(kind: str, value: Any) -> Any:
    """Validate coordinates against the nesting of a geometry type; return lists of doubles."""
    try:
        return msgspec.convert(value, _COORDINATE_TYPES[kind])
    except msgspec.ValidationError as error:
        try:
            return msgspec.convert(_without_numpy(value, 4), _COORDINATE_TYPES[kind])
        except msgspec.ValidationError:
            raise RegionError(f"{kind}: coordinates: {error}") from error


def _without_numpy(value: Any, depth: int) -> Any:
    """Convert NumPy arrays and numbers in nested lists, down to `depth` levels, to Python lists and numbers."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [_without_numpy(item, depth - 1) for item in value] if isinstance(value, list | tuple) and depth else value


def shape_of(value: Mapping[str, Any], depth: int = 0) -> Any:
    """Return the Shapely geometry of a GeoJSON geometry of any type; collections nest at most 16 levels deep."""
    kind = value["type"]
    if kind == "GeometryCollection":
        members = value.get("geometries")
        if depth > 16 or not isinstance(members, list) or not all(map(is_geometry_object, members)):
            raise RegionError(f"{kind}: need `geometries`, a list of geometries nested at most 16 levels deep")
        return shapely.GeometryCollection([shape_of(member, depth + 1) for member in members])
    if kind == CIRCLE:
        raise RegionError("a Circle is a value of messages; here a GeoJSON geometry is needed")
    coordinates = coordinates_of(kind, value.get("coordinates"))
    try:
        return shapely.geometry.shape({"type": kind, "coordinates": coordinates})
    except (ValueError, TypeError, IndexError, shapely.errors.ShapelyError) as error:
        raise RegionError(f"{kind}: {error}") from error


def wkb_of_geojson(value: Mapping[str, Any]) -> bytes:
    """Return the WKB of a GeoJSON geometry of any type; only the nesting of its coordinates is validated.

    >>> len(wkb_of_geojson({"type": "Point", "coordinates": [1, 2]}))
    21
    """
    kind = value["type"]
    if kind not in POLYGONAL:
        return bytes(shapely.to_wkb(shape_of(value)))
    coordinates = coordinates_of(kind, value.get("coordinates"))
    polygons = [[_ring(ring) for ring in polygon] for polygon in ([coordinates] if kind == "Polygon" else coordinates)]
    empty = np.empty((0, 2))
    return polygons_to_wkb([(polygon[0], tuple(polygon[1:])) if polygon else (empty, ()) for polygon in polygons])


def _ring(ring: list[list[float]]) -> Any:
    """Return a ring without heights; its positions may have different lengths."""
    flat = ring if all(len(position) == 2 for position in ring) else [position[:2] for position in ring]
    return np.array(flat, "<f8").reshape(-1, 2)
