"""Frames of the WebSocket in both directions; the AsyncAPI document is made from these types."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from contrada.service.http.publishing import DuplicateRow, RefusedMessage
from contrada.service.http.schemas import Name
from contrada.service.tracks.requests import TrackMember

Count = Annotated[int, Meta(ge=0, le=1_000_000)]


class Incoming(msgspec.Struct, frozen=True, tag_field="op", forbid_unknown_fields=True):
    """A frame of a client."""


class HelloFrame(Incoming, frozen=True, tag="hello"):
    """The first frame of a client that sends no Authorization header: a key, or a stream token of a subscriber."""

    key: str | None = None
    token: str | None = None
    subscriber: Name | None = None


class ReceiveFrame(Incoming, frozen=True, tag="receive", rename={"first": "from"}):
    """Begin to receive events, at most `credit` until more credit is given.

    `from` is a sequence number, `now` or `oldest`; `after` the id of an event that the client has; without either
    events come after those that were acknowledged.
    """

    subscriber: Name
    first: int | str | None = None
    after: str | None = None
    credit: Count = 100


class CreditFrame(Incoming, frozen=True, tag="credit"):
    """Allow so many more events."""

    subscriber: Name
    count: Count


class AckFrame(Incoming, frozen=True, tag="ack"):
    """Acknowledge events up to an id."""

    subscriber: Name
    id: str


class PublishFrame(Incoming, frozen=True, tag="publish"):
    """Publish a message or several; the answer has the same `ref`. `id` is the id of the only message."""

    message: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    messages: list[msgspec.Raw] | None = None
    ref: str | int | None = None
    id: str | None = None


class StopFrame(Incoming, frozen=True, tag="stop"):
    """Stop receiving the events of a subscriber."""

    subscriber: Name


class PingFrame(Incoming, frozen=True, tag="ping"):
    """Ask for a pong."""

    ref: str | int | None = None


class Outgoing(msgspec.Struct, frozen=True, tag_field="op", omit_defaults=True):
    """A frame of the server."""


class EventFrame(Outgoing, frozen=True, tag="event"):
    """A message that satisfies a subscription of a subscriber, or what it says of a tracked object."""

    subscriber: str
    id: str
    sequence: int
    key: str
    message: dict[str, Any]
    track: TrackMember | None = None


class PublishedFrame(Outgoing, frozen=True, tag="published"):
    """The answer to `publish`: `sequence` of one message, or the other members of several."""

    ref: str | int | None = None
    sequence: int | None = None
    duplicate: bool = False
    first: int | None = None
    last: int | None = None
    count: int | None = None
    duplicates: list[DuplicateRow] = []
    rejected: list[RefusedMessage] = []
    lost: list[RefusedMessage] = []


class ResetFrame(Outgoing, frozen=True, tag="reset"):
    """Events are gone; the next ones come from the sequence number `oldest` on."""

    subscriber: str
    oldest: int


class ErrorFrame(Outgoing, frozen=True, tag="error"):
    """A frame of the client failed; `problem` has problem details after RFC 9457."""

    problem: dict[str, Any]
    ref: str | int | None = None
    subscriber: str | None = None


class PongFrame(Outgoing, frozen=True, tag="pong"):
    """The answer to `ping`."""

    ref: str | int | None = None


ClientFrame: TypeAlias = HelloFrame | ReceiveFrame | CreditFrame | AckFrame | PublishFrame | StopFrame | PingFrame
ServerFrame: TypeAlias = EventFrame | PublishedFrame | ResetFrame | ErrorFrame | PongFrame
CLIENT_FRAMES: tuple[type[Incoming], ...] = (
    HelloFrame,
    ReceiveFrame,
    CreditFrame,
    AckFrame,
    PublishFrame,
    StopFrame,
    PingFrame,
)
SERVER_FRAMES: tuple[type[Outgoing], ...] = (EventFrame, PublishedFrame, ResetFrame, ErrorFrame, PongFrame)
