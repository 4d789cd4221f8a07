"""Read one message from a dict, a GeoJSON Feature or a CloudEvent, or from JSON text of one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from contrada.arguments import checks_arguments
from contrada.doors import door
from contrada.errors import FormatError
from contrada.formats.attributes import Attributes
from contrada.formats.cloudevents import is_cloudevent, message_of_cloudevent
from contrada.formats.geojson.features import message_of_feature
from contrada.formats.geojson.shapes import is_feature
from contrada.formats.json import decode
from contrada.formats.spatial import Spatial


@checks_arguments
@door()
def message_of(
    value: Mapping[str, Any] | bytes | str,
    *,
    times: Collection[str] = (),
    crs: Any = None,
    to_crs: Any = None,
    buffer: float | None = None,
) -> dict[str, Any]:
    """Return the message of a dict, a GeoJSON Feature, a CloudEvent or JSON text; a bad one is a ContradaError.

    Nested objects become dotted names; GeoJSON geometry, Shapely objects and WKB become regions and points. `times`
    names attributes whose text is a timestamp; other text stays text. `crs` is the CRS of geometry that names none,
    `to_crs` the CRS to reproject to, and `buffer` the distance by which points and lines are widened to regions.

    >>> message_of('{"area": {"type": "Point", "coordinates": [1, 2]}, "wind": {"speed": 12}}')
    {'area': Point(1.0, 2.0), 'wind.speed': 12}
    """
    return message_from(decode(value) if isinstance(value, bytes | str) else value, Spatial(crs, to_crs, buffer), times)


def message_from(value: Any, spatial: Spatial, times: Collection[str]) -> dict[str, Any]:
    """Read a message with given options, shared by many messages."""
    if type(value) is not dict and not isinstance(value, Mapping):
        raise FormatError(not_an_object(value))
    if not value:
        return {}
    if is_cloudevent(value):
        return message_of_cloudevent(value, spatial, times)
    if is_feature(value):
        return message_of_feature(value, spatial, times)
    if value.get("type") == "FeatureCollection" and isinstance(value.get("features"), list):
        raise FormatError("a FeatureCollection holds many messages; read it as a file with format 'json'")
    return Attributes(spatial, times).add_all(value).values


def not_an_object(value: Any) -> str:
    """Return why a value that is not a mapping is not a message.

    >>> not_an_object([])
    'message: need an object, got an array'
    """
    return f"message: need an object, got {_JSON_NAMES.get(type(value), type(value).__name__)}"


_JSON_NAMES = {list: "an array", str: "text", int: "a number", float: "a number", bool: "a boolean", type(None): "null"}
