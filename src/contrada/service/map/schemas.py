"""Answers and requests of the map; web/src/api/types.ts describes the same for the page."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

Box = tuple[float, float, float, float]
Sequence = Annotated[int, Meta(ge=1, le=1 << 62)]
ShortText = Annotated[str, Meta(min_length=1, max_length=200)]
GeometryJson = msgspec.Raw


class MapTiles(msgspec.Struct, frozen=True):
    """The base map that settings name."""

    url: str
    attribution: str


class Plane(msgspec.Struct, frozen=True):
    """How plain coordinates lie on the square of the Mercator projection: its centre, and the length of its side."""

    x: float
    y: float
    span: float


class MapSettingsAnswer(msgspec.Struct, frozen=True):
    """Settings of the map, and what this caller may see and do; the page loads them first."""

    title: str
    tiles: MapTiles | None
    plain: bool
    plane: Plane | None
    bounds: Box | None
    read_only: bool
    demo: bool
    version: str
    needs_key: bool
    tenant: str | None
    scopes: list[str]
    shows: list[str]
    subscriptions: int
    tiles_from: int
    tracks: list[str]
    oldest: int
    newest: int
    now: datetime


class SubscriptionShape(msgspec.Struct, frozen=True):
    """A region or point that a filter asks about; `relations` are those that satisfy it, negation applied."""

    attribute: str
    relation: str
    negated: bool
    relations: list[str]
    geometry: GeometryJson


class MapSubscription(msgspec.Struct, frozen=True):
    """A subscription with its shapes; members that a public screen is not shown are null."""

    key: str
    subscriber: str | None
    filter: Any
    paused: bool
    on: Any
    track: str | None
    applies_from: int
    created: datetime
    expires: datetime | None
    shapes: list[SubscriptionShape]
    conditions: str | None
    bounds: Box | None


class MapSubscriptionPage(msgspec.Struct, frozen=True):
    """Subscriptions by rising key; `next` is `after` of the next page."""

    subscriptions: list[MapSubscription]
    next: str | None


class MessageShape(msgspec.Struct, frozen=True):
    """An attribute of a message that is a geometry."""

    attribute: str
    geometry: GeometryJson


class MapTransition(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event of a tracked object; `reason` is present if no message caused it."""

    key: str
    id: str | int | None
    kind: str
    before: str | None
    after: str | None
    time: str
    reason: str | msgspec.UnsetType = msgspec.UNSET


class MapMessage(msgspec.Struct, frozen=True):
    """A message with its shapes, the subscriptions that it matched, and the events of tracked objects it caused."""

    sequence: int
    at: datetime
    id: str | None
    own: bool
    shapes: list[MessageShape]
    attributes: dict[str, Any]
    matched: list[str]
    matches: int
    transitions: list[MapTransition]


class MapSubscriptionDetail(MapSubscription, frozen=True):
    """A subscription, how far its subscriber is behind, and the latest messages that it matched, newest first."""

    lag: int | None
    last: list[MapMessage]
    examined: int
    complete: bool


class MapMessagePage(msgspec.Struct, frozen=True):
    """Messages by rising sequence; `next` is `after` of the next page, `previous` is `before` of the one before."""

    messages: list[MapMessage]
    next: int | None
    previous: int | None
    complete: bool


class MatchedKeys(msgspec.Struct, frozen=True):
    """Keys of the subscriptions that a message matched, `count` in all; `next` is `after` of the next page."""

    matched: list[str]
    next: int | None
    count: int


class MapCounts(msgspec.Struct, frozen=True, rename={"start": "from", "end": "to"}):
    """Messages, and pairs of a message and a subscription, per step of seconds."""

    start: datetime
    end: datetime
    step: float
    messages: list[int]
    matches: list[int]
    complete: bool


class ObjectInside(msgspec.Struct, frozen=True):
    """An object that is inside of a subscription now."""

    attribute: str
    id: str | int | None
    key: str
    since: datetime


class ObjectsInside(msgspec.Struct, frozen=True):
    """Some of the objects that are inside of subscriptions now, and how many such pairs there are."""

    inside: list[ObjectInside]
    count: int


class SubscriptionChangeEvent(msgspec.Struct, frozen=True):
    """A subscription that was put, changed or deleted."""

    change: str
    key: str
    subscription: MapSubscription | None


class LostEvent(msgspec.Struct, frozen=True, omit_defaults=True, rename={"first": "from", "last": "to"}):
    """Messages or changes that were not sent to an open map, and why."""

    what: str
    reason: str
    first: int | msgspec.UnsetType = msgspec.UNSET
    last: int | msgspec.UnsetType = msgspec.UNSET


class MapToken(msgspec.Struct, frozen=True):
    """A token that opens the stream of the map within `expires_in` seconds."""

    token: str
    expires_in: float
    url: str


class MapExplainRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A subscription by its key or a filter, and a message by its sequence number or as it would be published."""

    key: ShortText | None = None
    filter: str | dict[str, Any] | None = None
    sequence: Sequence | None = None
    message: dict[str, Any] | None = None


class SpatialPart(msgspec.Struct, frozen=True):
    """The geometry that a constraint asks for and the one in the message, both exact."""

    operator: str
    negated: bool
    relations: list[str]
    asked: dict[str, Any]
    found: dict[str, Any] | None


class ExplainedConstraintView(msgspec.Struct, frozen=True):
    """A constraint with the value of the message and its truth, null if unknown."""

    attribute: str
    asked: str
    value: Any
    truth: bool | None
    relation: str | None
    reason: str
    spatial: SpatialPart | None


class ExplainedFilterView(msgspec.Struct, frozen=True):
    """One of the filters of which one must be true."""

    truth: bool | None
    constraints: list[ExplainedConstraintView]


class ObjectNow(msgspec.Struct, frozen=True):
    """The object that a message is about, and whether it is inside of the subscription now."""

    id: str | int | None
    inside: bool
    since: datetime | None


class MapExplanation(msgspec.Struct, frozen=True):
    """Why a message satisfies a filter, or why not; `note` says why the log has another answer, if it has."""

    matches: bool
    verdict: str
    key: str | None
    subscriber: str | None
    written: str | None
    truth: bool | None
    nearest: int
    filters: list[ExplainedFilterView]
    track: ObjectNow | None
    note: str | None


class FilterRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filter as CQL2 text or as CQL2 JSON."""

    text: str | None = None
    json: dict[str, Any] | None = None


class FormConstraint(msgspec.Struct, frozen=True):
    """A constraint as a form shows it; `shape` is its place among the shapes if it is spatial."""

    attribute: str
    operator: str
    value: Any
    casei: bool
    accenti: bool
    shape: int | None
    text: str


class FilterProblem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a filter cannot be read, and where."""

    detail: str
    line: int | None = None
    column: int | None = None
    expected: list[str] = []
    path: str | None = None


class FilterAnswer(msgspec.Struct, frozen=True):
    """A filter in all its forms, or the problem with it."""

    valid: bool
    text: str | None
    json: dict[str, Any] | None
    shapes: list[SubscriptionShape]
    conditions: str | None
    bounds: Box | None
    filters: list[list[FormConstraint]]
    problem: FilterProblem | None
