"""Read one message from a dict, a GeoJSON Feature (RFC 7946) or a CloudEvent, or from JSON text of one.

Nested names are dotted, and geometry objects are values. The properties of a feature are attributes, and so is
`geometry`. The context of a CloudEvent (1.0, structured JSON mode) becomes `ce.` attributes, its data the others.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping
from typing import Any

from contrada.arguments import checks_arguments
from contrada.doors import door
from contrada.errors import ContradaError, CrsError, FormatError
from contrada.formats.geojson.shapes import crs_of, geometry_of, is_feature
from contrada.formats.json import decode
from contrada.formats.message_values import is_value, value_of
from contrada.formats.spatial import Spatial
from contrada.formats.times import instant_of
from contrada.geometry.crs import LONGITUDE_LATITUDE, is_same_crs
from contrada.geometry.globe import globes_of
from contrada.limits import check_limit, limit

REQUIRED = ("id", "source", "specversion", "type")  # of a CloudEvent
_DATA = ("data", "data_base64")
_JSON_TYPES = frozenset((str, int, float, bool, list))  # types of values that are kept as they are
_TEXT = frozenset((str,))
_ID_TYPES, _CONTEXT_TYPES = (str, int, float), (str, bool, int)  # making a union takes longer than the test
_JSON_NAMES = {list: "an array", str: "text", int: "a number", float: "a number", bool: "a boolean", type(None): "null"}


@checks_arguments
@door()
def message_of(
    value: Mapping[str, Any] | bytes | str,
    *,
    times: Collection[str] = (),
    crs: Any = None,
    to_crs: Any = None,
    buffer: float | None = None,
    wrap: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the message of a dict, a GeoJSON Feature, a CloudEvent or JSON text; a bad one is a ContradaError.

    Nested objects become dotted names; GeoJSON geometry, Shapely objects and WKB become regions and points. `times`
    names attributes whose text is a timestamp; other text stays text. `crs` is the CRS of geometry that names none,
    `to_crs` the CRS to reproject to, and `buffer` the distance by which points and lines are widened to regions. `wrap`
    says by attribute how regions and points are wrapped at the date line ([Globe](../globe.md)).

    >>> message_of('{"area": {"type": "Point", "coordinates": [1, 2]}, "wind": {"speed": 12}}')
    {'area': Point(1.0, 2.0), 'wind.speed': 12}
    """
    spatial = Spatial(crs, to_crs, buffer, globes=globes_of(wrap))
    return message_from(decode(value) if isinstance(value, bytes | str) else value, spatial, times)


def message_from(value: Any, spatial: Spatial, times: Collection[str]) -> dict[str, Any]:
    """Read a message with given options, shared by many messages."""
    if type(value) is not dict and not isinstance(value, Mapping):
        raise FormatError(not_an_object(value))
    if not value:
        return {}
    if "specversion" in value:
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


class Attributes:
    """Collects the attributes of one message; two values for one name are an error.

    Null is an absent attribute; an array stays a list, which only operators of added types can test.

    >>> Attributes(Spatial(), ("at",)).add_all({"wind": {"speed": 12.5}, "gone": None, "at": "2024-05-01"}).values
    {'wind.speed': 12.5, 'at': datetime.datetime(2024, 5, 1, 0, 0, tzinfo=datetime.timezone.utc)}
    """

    def __init__(self, spatial: Spatial, times: Collection[str] = (), crs: str | None = None) -> None:
        self.values: dict[str, Any] = {}
        self._spatial, self._times, self._crs = spatial, times, crs
        self._longest, self._most = limit("name_bytes"), limit("attributes")

    def add_all(self, members: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Attributes:
        """Add the members of an object and of the objects within it."""
        if not prefix and self._is_plain(members):
            self.values.update(members)
            return self
        check_limit("nesting", depth, f"object {prefix[:60]!r}")
        check_limit("name_bytes", len(prefix), f"attribute {prefix[:40]}...")
        for name, value in members.items():
            full = prefix + str(name)
            if isinstance(value, Mapping) and not is_value(value):
                self.add_all(value, full + ".", depth + 1)
            else:
                self.add(full, value)
        return self

    def _is_plain(self, members: Mapping[str, Any]) -> bool:
        """Return True if members are attributes as they are: adding them one by one takes twice as long."""
        if self.values or self._times or type(members) is not dict or not 0 < len(members) < self._most:
            return False
        return (
            _JSON_TYPES.issuperset(map(type, members.values()))
            and _TEXT.issuperset(map(type, members))
            and max(map(len, members)) <= self._longest
        )

    def add(self, name: str, value: Any) -> None:
        """Add one attribute, unless it is null."""
        if value is None:
            return
        if name in self.values:
            raise FormatError(f"duplicate attribute {name[:60]!r}")
        if len(name) > self._longest:
            check_limit("name_bytes", len(name), f"attribute {name[:40]}...")
        if len(self.values) >= self._most:
            check_limit("attributes", len(self.values) + 1, "the message")
        if name in self._times and isinstance(value, str | bool | int | float | list):
            try:
                self.values[name] = instant_of(value)
            except ContradaError as error:
                raise type(error)(f"attribute {name!r}: {error}") from error
            return
        read = value if type(value) in _JSON_TYPES else value_of(name, value, self._spatial, self._crs)
        if read is not None:
            self.values[name] = read


def message_of_feature(value: Mapping[str, Any], spatial: Spatial, times: Collection[str] = ()) -> dict[str, Any]:
    """Return the attributes of a feature: its properties, `geometry`, and `id` unless a property has that name.

    Raises CrsError if the old member `crs` of GeoJSON 2008 names another CRS than the one the input is read in.

    >>> message_of_feature({"type": "Feature", "id": 7, "properties": {"wind": {"from": "NW"}},
    ...                     "geometry": {"type": "Point", "coordinates": [11.3, 43.3]}}, Spatial())
    {'wind.from': 'NW', 'geometry': Point(11.3, 43.3), 'id': 7}
    """
    if "crs" in value and (expected := spatial.input_crs(LONGITUDE_LATITUDE)) is not None:
        named = crs_of(value)
        if named is not None and not is_same_crs(named, expected):
            raise CrsError(
                f"the GeoJSON member crs is {named[:60]}, but the input is read as {expected}; pass crs= to change this"
            )
    properties, name = value.get("properties"), value.get("id")
    if properties is not None and type(properties) is not dict and not isinstance(properties, Mapping):
        raise FormatError(f"properties: need an object or null, got {type(properties).__name__}")
    geometry = geometry_of(value)
    if name is not None and (isinstance(name, bool) or not isinstance(name, _ID_TYPES)):
        raise FormatError(f"id: need text or a number, got {type(name).__name__}")
    attributes = Attributes(spatial, times, LONGITUDE_LATITUDE).add_all(properties or {})
    attributes.add("geometry", geometry)
    if "id" not in attributes.values:
        attributes.add("id", name)
    return attributes.values


def message_of_cloudevent(value: Mapping[str, Any], spatial: Spatial, times: Collection[str] = ()) -> dict[str, Any]:
    """Return the attributes of a CloudEvent: `ce.id`, `ce.source`, ... and those of its data, a dict or a Feature.

    >>> message_of_cloudevent({"specversion": "1.0", "id": "7", "source": "/buoy", "type": "wave",
    ...                        "data": {"height": 2.5}}, Spatial())
    {'ce.id': '7', 'ce.source': '/buoy', 'ce.specversion': '1.0', 'ce.type': 'wave', 'height': 2.5}
    """
    missing = [name for name in REQUIRED if value.get(name) is None]
    if missing:
        raise FormatError(f"a CloudEvent needs {', '.join(missing)}")
    context = {name: value[name] for name in (*REQUIRED, *value) if name not in _DATA and value[name] is not None}
    for name, item in context.items():
        if name in REQUIRED and not (isinstance(item, str) and item):
            raise FormatError(f"context attribute {name}: need non-empty text, got {item!r:.60}")
        if not isinstance(item, _CONTEXT_TYPES):
            kind = type(item).__name__
            raise FormatError(f"context attribute {name}: need text, a boolean or an integer, got {kind}")
    if context["specversion"] != "1.0":
        raise FormatError(f"specversion: need '1.0', got {context['specversion']!r:.60}")
    attributes = Attributes(spatial, times)
    for name, item in context.items():
        attributes.add(f"ce.{name}", instant_of(item) if name == "time" else item)
    data = _data_of(value)
    if is_feature(data):
        data = message_of_feature(data, spatial, times)
        for name in attributes.values.keys() & data.keys():
            raise FormatError(f"duplicate attribute {name[:60]!r}")
        return attributes.values | data
    attributes.add_all(data if isinstance(data, Mapping) else {"data": data})
    return attributes.values


def _data_of(value: Mapping[str, Any]) -> Any:
    """Return the data, decoded if it is Base64."""
    encoded = value.get("data_base64")
    if encoded is None:
        return value.get("data")
    if value.get("data") is not None:
        raise FormatError("a CloudEvent cannot have both data and data_base64")
    kind = str(value.get("datacontenttype") or "application/json").partition(";")[0].strip().lower()
    if not (kind.endswith(("/json", "+json"))):
        raise FormatError(f"data_base64: need JSON, got datacontenttype {kind[:60]}")
    try:
        return decode(base64.b64decode(encoded, validate=True))
    except (binascii.Error, TypeError, ValueError) as error:
        raise FormatError(f"data_base64: {error}") from error
