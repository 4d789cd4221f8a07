"""Bodies of requests and answers of the control plane; the OpenAPI document is made from these types."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from contrada.service.deliveries.dead_letters import NO_MESSAGE, DeadLetter
from contrada.service.deliveries.progress import FailureView
from contrada.service.subscriber_retention import KeptFor
from contrada.service.tracks.asking import Duration, DwellAsked, PlainKind
from contrada.service.tracks.requests import OPTIONS, TrackMembers
from contrada.service.views import SubscriberView, SubscriptionView
from contrada.service.webhooks import EndpointView

Name = Annotated[str, Meta(min_length=1, max_length=200, description="1 to 200 characters, no control characters")]
Filter = str | dict[str, Any]
Time = Annotated[datetime, Meta(tz=True)]


class SubscriptionRequest(TrackMembers, frozen=True, forbid_unknown_fields=True):
    """A subscription as it is asked for; `filter` is CQL2 text or JSON, `ttl` seconds until it expires."""

    subscriber: Name
    filter: Filter
    expires: Time | None = None
    ttl: Annotated[float, Meta(gt=0, le=1e10)] | None = None
    paused: bool = False


class SubscriptionLine(TrackMembers, frozen=True):
    """A line of a bulk upload; without a subscriber the key is the subscriber."""

    key: Name | int
    filter: Filter
    subscriber: Name | int | None = None
    expires: Time | None = None
    ttl: Annotated[float, Meta(gt=0, le=1e10)] | None = None
    paused: bool = False


class SubscriptionChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of a subscription."""

    paused: bool


class SubscriptionAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A subscription; messages from the sequence number `applies_from` on are matched against it.

    The members from `track` on are those of one that tracks objects.
    """

    key: str
    subscriber: str
    filter: Filter
    on: str | list[PlainKind | DwellAsked]
    applies_from: int
    created: datetime
    expires: datetime | None
    paused: bool
    track: str | None = None
    exit_buffer: float | None = None
    exit_after: Duration | None = None
    time: str | None = None
    first: str | None = None
    late: str | None = None


class PageLink(msgspec.Struct, frozen=True):
    """A link to another page."""

    rel: str
    href: str


class SubscriptionList(msgspec.Struct, frozen=True):
    """A page of subscriptions by rising key; a link with `rel` next leads to the next page."""

    subscriptions: list[SubscriptionAnswer]
    links: list[PageLink]


class RefusedSubscription(msgspec.Struct, frozen=True):
    """A row of a bulk upload that was not taken."""

    row: int
    reason: str
    key: str | None = None


class BulkAnswer(msgspec.Struct, frozen=True):
    """What became of a bulk upload; all good rows apply from `applies_from` on at the latest."""

    count: int
    applies_from: int | None
    rejected: list[RefusedSubscription]


class Deleted(msgspec.Struct, frozen=True):
    """The last sequence number that a removed subscription applies to."""

    applies_until: int


class SubscriberRetention(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a subscriber is given: messages of the last `age` seconds, the latest `bytes` or `messages` of the log.

    Whatever is reached first ends it; without a member the log's own retention counts.
    """

    age: Annotated[float, Meta(gt=0, le=1e10)] | None = None
    bytes: Annotated[int, Meta(ge=1, le=1 << 62)] | None = None
    messages: Annotated[int, Meta(ge=1, le=1 << 62)] | None = None


class SubscriberSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of a subscriber; no retention of its own if `retention` is null."""

    retention: SubscriberRetention | None


class SubscriberAnswer(msgspec.Struct, frozen=True):
    """How far a subscriber is.

    `acknowledged` is the id of the last event that was acknowledged. `lag` counts messages of the log after the last
    event that was delivered; `oldest_undelivered_age` is in seconds. `dropped` counts events that retention removed
    before they were delivered; events of messages before `oldest` are gone. `retention` is that of the subscriber.
    """

    name: str
    acknowledged: str | None
    lag: int
    oldest_undelivered: int | None
    oldest_undelivered_age: float | None
    dropped: int
    readers: int
    oldest: int
    retention: SubscriberRetention | None


class SubscriberList(msgspec.Struct, frozen=True):
    """A page of subscribers by rising name."""

    subscribers: list[str]
    links: list[PageLink]


class Acknowledgement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The id of the last event that a consumer has dealt with."""

    id: str


class StreamToken(msgspec.Struct, frozen=True):
    """A token that opens the stream of a subscriber within `expires_in` seconds."""

    token: str
    expires_in: float
    url: str


class WebhookFailure(msgspec.Struct, frozen=True):
    """A delivery that fails: how often, since when, and why."""

    attempts: int
    since: datetime
    reason: str


class WebhookAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A webhook. `secret` is there once, in the answer that made it.

    `acknowledged` is its place: the id of the last event that was taken or given up. `lag` counts messages of the log
    after it, `dropped` events that retention removed before they were taken. `reason` is why the server paused it.
    """

    subscriber: str
    name: str
    url: str
    batch: int
    format: str
    paused: bool
    acknowledged: str | None
    lag: int
    dropped: int
    dead_letters: int
    reason: str | None = None
    failing: WebhookFailure | None = None
    secret: str | None = None


class WebhookList(msgspec.Struct, frozen=True):
    """A page of the webhooks of a subscriber by rising name."""

    webhooks: list[WebhookAnswer]
    links: list[PageLink]


class DeadLetterAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event that a webhook did not take: given up at `at` after `attempts` attempts since `since`.

    A reset that was given up has no key and no message, and names the oldest message that was kept.
    """

    id: str
    sequence: int
    type: str
    reason: str
    attempts: int
    since: datetime
    at: datetime
    key: str | None = None
    message: msgspec.Raw | None = None
    oldest: int | None = None
    track: msgspec.Raw | None = None


class DeadLetterList(msgspec.Struct, frozen=True):
    """A page of dead letters, oldest first; a link with `rel` next leads to the next page."""

    dead_letters: list[DeadLetterAnswer]
    links: list[PageLink]


class KeyRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key as it is asked for; without a tenant it belongs to that of the key that asks."""

    name: str
    scopes: Annotated[list[Literal["publish", "subscribe", "link", "admin"]], Meta(min_length=1)]
    tenant: str | None = None
    expires: Time | None = None


class KeyAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A key; `key` is the secret, shown only in the answer that makes it."""

    name: str
    tenant: str
    scopes: list[str]
    created: datetime
    expires: datetime | None = None
    key: str | None = None


class KeyList(msgspec.Struct, frozen=True):
    """All keys of the server."""

    keys: list[KeyAnswer]


class ExplainedTrack(msgspec.Struct, frozen=True):
    """The object that a message is about, null if it names none; if the object is inside, `since` is the time."""

    id: str | int | None
    inside: bool
    since: datetime | None


class ExplainAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a message satisfies a subscription, or why not.

    A subscription that tracks objects has `track`: the object that the message is about, and whether it is inside now.
    """

    matches: bool
    verdict: str
    explanation: dict[str, Any]
    track: ExplainedTrack | None = None


class TrialRequest(TrackMembers, frozen=True, forbid_unknown_fields=True, rename={"start": "from"}):
    """A filter to try on the recent past: messages since a time or from a sequence number; default: an hour."""

    filter: Filter
    since: Time | None = None
    start: Annotated[int, Meta(ge=0, le=1 << 62)] | None = None
    limit: Annotated[int, Meta(ge=0, le=1_000)] = 10


class TrialMatch(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message that the filter would have matched, or what it would have said of a tracked object."""

    sequence: int
    at: datetime
    message: msgspec.Raw
    track: msgspec.Raw | None = None


class TrialAnswer(msgspec.Struct, frozen=True, rename={"first": "from", "last": "to"}):
    """What a filter would have matched: `count` of the `examined` messages of this tenant, and a sample of the latest.

    Messages from the sequence number `from` to `to` were looked at; `complete` is False if older ones that were asked
    for are gone, or were too many.
    """

    count: int
    examined: int
    first: int
    last: int
    since: datetime | None
    complete: bool
    sample: list[TrialMatch]


class Status(msgspec.Struct, frozen=True):
    """Whether the server is healthy or ready."""

    status: str


class ProblemMeaning(msgspec.Struct, frozen=True):
    """What a type of problems means."""

    type: str
    status: int
    title: str
    meaning: str


class ProblemDetails(msgspec.Struct, frozen=True):
    """An error after RFC 9457; further members name the fault, such as `row`, `attribute`, `line` and `column`."""

    type: str
    title: str
    status: int
    detail: str


def instant(milliseconds: float) -> datetime:
    """Return a time of milliseconds since 1970."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def subscription_answer(view: SubscriptionView) -> SubscriptionAnswer:
    """Return a subscription for its owner."""
    definition, track = view.definition, view.definition.track
    return SubscriptionAnswer(
        view.key,
        definition.subscriber,
        view.filter,
        definition.on if track is None else list(track.on),
        definition.applies_from,
        instant(definition.created),
        None if definition.expires is None else instant(definition.expires),
        definition.is_paused,
        **({} if track is None else {name: getattr(track, name) for name in ("track", *OPTIONS)}),
    )


def subscriber_answer(view: SubscriberView, now: float) -> SubscriberAnswer:
    """Return how far a subscriber is; `now` in seconds since 1970."""
    age = None if view.waits_since is None else max(0.0, round(now - view.waits_since / 1000, 3))
    acknowledged = view.cursor.position
    return SubscriberAnswer(
        view.name,
        acknowledged.id if acknowledged.sequence else None,
        view.lag,
        None if view.oldest is None else view.oldest.sequence,
        age,
        view.cursor.dropped,
        view.readers,
        view.oldest_kept,
        _retention(view.kept),
    )


def _retention(kept: KeptFor) -> SubscriberRetention | None:
    found = SubscriberRetention(None if kept.age is None else kept.age / 1000, kept.bytes, kept.messages)
    return None if found == SubscriberRetention() else found


def failure_answer(failing: FailureView | None) -> WebhookFailure | None:
    """Return what fails for whoever may see it."""
    return None if failing is None else WebhookFailure(failing.attempts, instant(failing.since), failing.reason)


def webhook_answer(view: EndpointView) -> WebhookAnswer:
    """Return a webhook for its owner."""
    return WebhookAnswer(
        view.subscriber,
        view.name,
        view.url,
        view.batch,
        view.format,
        view.paused,
        None if view.acknowledged.startswith("0.") else view.acknowledged,
        view.lag,
        view.dropped,
        view.dead_letters,
        view.reason,
        failure_answer(view.failing),
        view.secret,
    )


def dead_letter_answer(letter: DeadLetter) -> DeadLetterAnswer:
    """Return a dead letter for the owner of its webhook."""
    is_match = letter.type == "match"
    return DeadLetterAnswer(
        letter.id,
        letter.sequence,
        letter.type,
        letter.reason,
        letter.attempts,
        instant(letter.since),
        instant(letter.at),
        letter.key if is_match else None,
        letter.message if is_match else None,
        letter.oldest,
        None if letter.track == NO_MESSAGE else letter.track,
    )
