"""Read messages of the log again: they are kept as JSON in one line, with the format in which they came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

import msgspec

from contrada.errors import FormatError
from contrada.formats.cap.alerts import TIMES
from contrada.formats.messages import message_of
from contrada.service.intake import BodyReader, Part, Post


class KeptMessage(Protocol):
    """A message as it is kept."""

    @property
    def format(self) -> str:
        """The format of the post that it came in."""

    @property
    def body(self) -> bytes:
        """Its JSON."""


def read_again(messages: Sequence[KeptMessage], reader: BodyReader) -> list[Part]:
    """Return the attributes of messages, as they were when these were published; places are those in `messages`."""
    others = [place for place, one in enumerate(messages) if one.format != "cap"]
    taken = reader.read(
        [
            Post("cloudevent" if messages[place].format == "cloudevent" else "json", messages[place].body)
            for place in others
        ]
    )
    parts = [Part(part.table, [others[taken.posts[row]] for row in part.rows]) for part in taken.parts]
    alerts = [place for place, one in enumerate(messages) if one.format == "cap"]
    if alerts:
        parts.append(Part([attributes_of(messages[place]) for place in alerts], alerts))
    return parts


def attributes_of(message: KeptMessage, wrap: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """Return the attributes of one message, as they were when it was published; `wrap` says which are wrapped."""
    if message.format == "cap":
        return message_of(_alert(message.body), times=TIMES, wrap=wrap)
    return message_of(message.body, wrap=wrap)


def _alert(body: bytes) -> dict[str, Any]:
    """Return the attributes of an alert from the Feature as which it was kept."""
    value = msgspec.json.decode(body)
    if "specversion" in value:
        return {**value, "data": _attributes(value["data"])}
    return _attributes(value)


def _attributes(feature: Any) -> dict[str, Any]:
    if not isinstance(feature, dict) or not isinstance(feature.get("properties"), dict):
        raise FormatError("an alert of the log is not a Feature")
    return {**feature["properties"], "area": feature.get("geometry")}
