"""Read CloudEvents 1.0 in structured JSON mode: context becomes `ce.` attributes, data becomes the others."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping
from typing import Any

from contrada.errors import FormatError
from contrada.formats.attributes import Attributes
from contrada.formats.geojson.features import message_of_feature
from contrada.formats.geojson.shapes import is_feature
from contrada.formats.json import decode
from contrada.formats.spatial import Spatial
from contrada.formats.times import instant_of

REQUIRED = ("id", "source", "specversion", "type")
_DATA = ("data", "data_base64")


def is_cloudevent(value: Any) -> bool:
    """Return True for an object with a member `specversion`."""
    return isinstance(value, Mapping) and "specversion" in value


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
        _check_context(name, item)
    if context["specversion"] != "1.0":
        raise FormatError(f"specversion: need '1.0', got {context['specversion']!r:.60}")
    attributes = Attributes(spatial, times)
    for name, item in context.items():
        attributes.add(f"ce.{name}", instant_of(item) if name == "time" else item)
    data = _data_of(value)
    if is_feature(data):
        attributes.merge(message_of_feature(data, spatial, times))
    elif isinstance(data, Mapping):
        attributes.add_all(data)
    else:
        attributes.add("data", data)
    return attributes.values


def _check_context(name: str, item: Any) -> None:
    if name in REQUIRED and not (isinstance(item, str) and item):
        raise FormatError(f"context attribute {name}: need non-empty text, got {item!r:.60}")
    if not isinstance(item, str | bool | int):
        raise FormatError(f"context attribute {name}: need text, a boolean or an integer, got {type(item).__name__}")


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
