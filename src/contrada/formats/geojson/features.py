"""Read GeoJSON features as messages (RFC 7946): properties are attributes, and so is `geometry`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from contrada.errors import CrsError, FormatError
from contrada.formats.attributes import Attributes
from contrada.formats.geojson.shapes import crs_of, geometry_of
from contrada.formats.spatial import NO_CRS, Spatial
from contrada.geometry.crs import LONGITUDE_LATITUDE, is_same_crs


def message_of_feature(value: Mapping[str, Any], spatial: Spatial, times: Collection[str] = ()) -> dict[str, Any]:
    """Return the attributes of a feature: its properties, `geometry`, and `id` unless a property has that name.

    >>> message_of_feature({"type": "Feature", "id": 7, "properties": {"wind": {"from": "NW"}},
    ...                     "geometry": {"type": "Point", "coordinates": [11.3, 43.3]}}, Spatial())
    {'wind.from': 'NW', 'geometry': Point(11.3, 43.3), 'id': 7}
    """
    check_crs(value, spatial)
    properties, name = value.get("properties"), value.get("id")
    if properties is not None and not isinstance(properties, Mapping):
        raise FormatError(f"properties: need an object or null, got {type(properties).__name__}")
    geometry = geometry_of(value)
    if name is not None and (isinstance(name, bool) or not isinstance(name, str | int | float)):
        raise FormatError(f"id: need text or a number, got {type(name).__name__}")
    attributes = Attributes(spatial, times, LONGITUDE_LATITUDE).add_all(properties or {})
    attributes.add("geometry", geometry)
    if "id" not in attributes.values:
        attributes.add("id", name)
    return attributes.values


def check_crs(value: Mapping[str, Any], spatial: Spatial) -> None:
    """Raise CrsError if the old member `crs` of GeoJSON 2008 names another CRS than the one the input is read in."""
    name = None if spatial.crs == NO_CRS else crs_of(value)
    if name is None:
        return
    expected = spatial.input_crs(LONGITUDE_LATITUDE)
    assert expected is not None
    if not is_same_crs(name, expected):
        raise CrsError(
            f"the GeoJSON member crs is {name[:60]}, but the input is read as {expected}; pass crs= to change this"
        )
