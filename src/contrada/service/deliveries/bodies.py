"""Bodies of deliveries: plain JSON or CloudEvents in structured mode, one event or an array of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

import msgspec

from contrada.service.cursors import Position
from contrada.service.feeds import Event

BodyFormat = Literal["plain", "cloudevents"]


class Parcel(NamedTuple):
    """One request to an endpoint: `place` is where the endpoint stands once it is taken.

    A reset names the `oldest` message that is kept; a test has neither events nor a place of its own.
    """

    id: str
    place: Position
    events: Sequence[Event] = ()
    oldest: int | None = None

    @classmethod
    def of_events(cls, events: Sequence[Event]) -> Parcel:
        """Return a delivery of one or more events. Its id names them all, so that equal ids have equal bodies."""
        first, last = events[0].position, events[-1].position
        return cls(first.id if first == last else f"{first.id}-{last.id}", last, events)

    @classmethod
    def of_reset(cls, oldest: int) -> Parcel:
        """Return the news that events before a message are lost."""
        return cls(f"reset.{oldest}", Position.after_message(oldest - 1), (), oldest)


class _Plain(msgspec.Struct, omit_defaults=True):
    id: str
    sequence: int
    key: str
    message: msgspec.Raw
    track: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _PlainNews(msgspec.Struct, omit_defaults=True):
    id: str
    type: str
    oldest: int | None = None


class _CloudEvent(msgspec.Struct, omit_defaults=True):
    specversion: str
    id: str
    source: str
    type: str
    datacontenttype: str
    data: Any
    subject: str | None = None
    sequence: str | None = None  # an extension, which has text


def content_type(format: BodyFormat, is_batch: bool) -> str:
    """Return the content type of bodies.

    >>> content_type("cloudevents", True)
    'application/cloudevents-batch+json'
    """
    if format == "plain":
        return "application/json"
    return "application/cloudevents-batch+json" if is_batch else "application/cloudevents+json"


def parcel_body(parcel: Parcel, subscriber: str, format: BodyFormat, is_batch: bool) -> bytes:
    """Return the body of a delivery; an array with `is_batch`."""
    if parcel.events:
        items = [_event(event, subscriber, format) for event in parcel.events]
    else:
        items = [_news(parcel, subscriber, format)]
    return msgspec.json.encode(items if is_batch else items[0])


def _event(event: Event, subscriber: str, format: BodyFormat) -> msgspec.Struct:
    id, message = event.position.id, msgspec.Raw(event.body)
    track = msgspec.Raw(event.track) if event.track else msgspec.UNSET
    if format == "plain":
        return _Plain(id, event.sequence, event.key, message, track)
    if event.track:
        data = {"track": track, "message": message}
        return _cloud_event(id, subscriber, "track", data, event.key, str(event.sequence))
    return _cloud_event(id, subscriber, "match", message, event.key, str(event.sequence))


def _news(parcel: Parcel, subscriber: str, format: BodyFormat) -> msgspec.Struct:
    type = "test" if parcel.oldest is None else "reset"
    if format == "plain":
        return _PlainNews(parcel.id, type, parcel.oldest)
    data = {} if parcel.oldest is None else {"oldest": parcel.oldest}
    return _cloud_event(parcel.id, subscriber, type, data)


def _cloud_event(
    id: str, subscriber: str, type: str, data: Any, subject: str | None = None, sequence: str | None = None
) -> _CloudEvent:
    source = f"/subscribers/{quote(subscriber, safe='')}"
    return _CloudEvent("1.0", id, source, f"contrada.{type}", "application/json", data, subject, sequence)
