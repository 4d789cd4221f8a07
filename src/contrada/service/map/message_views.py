"""Messages as the map shows them: shapes, other attributes, and the subscriptions that they matched."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import shapely

from contrada.formats.geojson.shapes import is_feature, is_geometry_object
from contrada.formats.json import decode
from contrada.geometry import Circle
from contrada.geometry.circle import TYPE as CIRCLE
from contrada.service.core import TRACK_FORMAT
from contrada.service.http.schemas import instant
from contrada.service.map.filter_shapes import drawn_circle, geometry_json, simplified
from contrada.service.map.schemas import MapMessage, MapTransition, MessageShape
from contrada.service.map.viewers import Viewer
from contrada.service.matches import NUMBER_MASK, list_matches, unpack_tracks
from contrada.service.store.message_store import StoredMessage

SHOWN_KEYS = 100  # of subscriptions that a message matched, and of transitions
SHOWN_CHARACTERS = 2_000  # of a text; explanations have all
GIVEN_ID = "id:"  # begins an id of the header Message-Id; others are made of what is in the message
LARGEST_INTEGER = 1 << 63  # larger ones are shown as text

_encode = msgspec.json.Encoder().encode
Keys = Callable[[Iterable[int]], list[str | None]]


class MessageParts(NamedTuple):
    """The attributes of a message by dotted name: geometry as GeoJSON, and the others."""

    shapes: dict[str, Any]
    others: dict[str, Any]


def parts_of(body: bytes, format: str) -> MessageParts:
    """Return the attributes of a message that was taken, without reading its geometry.

    >>> parts_of(b'{"at": {"type": "Point", "coordinates": [1, 2]}, "wind": {"speed": 7}}', "json")
    MessageParts(shapes={'at': {'type': 'Point', 'coordinates': [1, 2]}}, others={'wind.speed': 7})
    """
    value = decode(body)
    found = MessageParts({}, {})
    if not isinstance(value, Mapping):
        return found
    if "specversion" in value:
        for name, item in value.items():
            if name not in ("data", "data_base64"):
                _add(found, f"ce.{name}", item)
        value = value.get("data")
        value = value if isinstance(value, Mapping) else {"data": value}
    for name, item in _members(value, "area" if format == "cap" else "geometry"):
        _add(found, name, item)
    return found


def _members(value: Mapping[str, Any], geometry: str) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object or a Feature, whose geometry has a name of its own."""
    if not is_feature(value):
        yield from value.items()
        return
    properties = value.get("properties") or {}
    yield from properties.items()
    yield geometry, value.get("geometry")
    if "id" not in properties:
        yield "id", value.get("id")


def _add(found: MessageParts, name: str, value: Any) -> None:
    if value is None:
        return
    if is_geometry_object(value):
        found.shapes[name] = value
    elif isinstance(value, Mapping):
        for inner, item in value.items():
            _add(found, f"{name}.{inner}", item)
    else:
        found.others[name] = shown_value(value)


def shown_value(value: Any) -> Any:
    """Return a value as JSON that a page can read: long texts are cut, very large whole numbers become texts.

    >>> shown_value("a" * 3000)[-3:], shown_value(1 << 70), shown_value([1, True])
    ('aa…', '1180591620717411303424', [1, True])
    """
    if isinstance(value, str):
        return value if len(value) <= SHOWN_CHARACTERS else f"{value[: SHOWN_CHARACTERS - 1]}…"
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and not -LARGEST_INTEGER <= value < LARGEST_INTEGER:
        return str(value) if value.bit_length() < 10_000 else hex(value)[:SHOWN_CHARACTERS]
    if isinstance(value, list):
        return [shown_value(item) for item in value[:SHOWN_CHARACTERS]]
    if isinstance(value, Mapping):
        return {str(name): shown_value(item) for name, item in value.items()}
    return value


def message_view(message: StoredMessage, keys: Keys, viewer: Viewer) -> MapMessage:
    """Return a message for a viewer; `keys` gives the keys of subscriptions by their numbers."""
    is_own = message.format == TRACK_FORMAT
    parts = parts_of(message.body, message.format)
    tracks, plain = unpack_tracks(message.matches), plain_matches(message)
    matched = [key for key in keys(plain[:SHOWN_KEYS]) if key is not None]
    shows = viewer.shows_attributes
    return MapMessage(
        message.sequence,
        instant(message.at),
        message.id.removeprefix(GIVEN_ID) if shows and message.id.startswith(GIVEN_ID) else None,
        is_own,
        [MessageShape(name, _shown_geometry(value, viewer.simplify)) for name, value in parts.shapes.items()],
        parts.others if shows else {},
        matched,
        len(plain),
        list(_transitions(tracks, keys, shows)),
    )


def plain_matches(message: StoredMessage) -> list[int]:
    """Return the numbers of the subscriptions that a message matched, without those that track objects."""
    tracks = unpack_tracks(message.matches)
    return [number for number in list_matches(message.matches) if number not in tracks]


def _transitions(tracks: Mapping[int, bytes], keys: Keys, shows_id: bool) -> Iterator[MapTransition]:
    numbers = sorted(tracks, key=lambda number: (number & NUMBER_MASK, number))[:SHOWN_KEYS]
    for number, key in zip(numbers, keys(numbers), strict=True):
        if key is not None:
            told = msgspec.json.decode(tracks[number])
            yield MapTransition(
                key,
                told["id"] if shows_id else None,
                told["kind"],
                told["before"],
                told["after"],
                told["time"],
                told.get("reason", msgspec.UNSET),
            )


def _shown_geometry(value: Any, simplify: float) -> msgspec.Raw:
    """Return the geometry of a message as GeoJSON, with fewer vertices if it has many."""
    if value["type"] == CIRCLE:
        value = drawn_circle(Circle.from_geojson(value))
    member = "coordinates" if "coordinates" in value else "geometries"
    plain = {"type": value["type"], member: value[member]}
    try:
        whole = _encode(plain)
    except OverflowError:  # a coordinate that is a whole number of more than 64 bits
        whole = json.dumps(plain).encode()
    if not simplify or len(whole) < 1_000:
        return msgspec.Raw(whole)
    try:
        return geometry_json(simplified(shapely.from_geojson(whole), simplify))
    except shapely.errors.GEOSException:  # of a kind that nothing matches, and nobody has checked
        return msgspec.Raw(whole)
