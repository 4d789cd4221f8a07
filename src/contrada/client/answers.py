"""What a server answers, as types. Members that a later server adds are ignored."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Protocol, TypeVar

import msgspec

T = TypeVar("T")


class TrackInfo(msgspec.Struct, frozen=True):
    """What an event says of a tracked object: `kind` is enter, exit, change, cross or dwell.

    `before` and `after` are the relations of the object to the region, such as "inside" and "disjoint", None without a
    fix that has a geometry. `reason` says what made the event if it was not a fix, such as "time" or "expired".
    """

    id: str | int
    kind: str
    before: str | None = None
    after: str | None = None
    time: datetime | None = None
    reason: str | None = None


class Match(msgspec.Struct, frozen=True):
    """A message that satisfies a subscription: `key` names the subscription, `id` this match.

    The id is the same whenever the match is sent again; matches of a subscriber have rising sequence numbers. For a
    subscription that tracks objects, `track` says what became of one.
    """

    id: str
    sequence: int
    key: str
    message: Any
    track: TrackInfo | None = None


class MatchReset(msgspec.Struct, frozen=True):
    """Matches are gone; the next one is of the message `oldest` or a later one."""

    oldest: int


class ReasonedRow(msgspec.Struct, frozen=True):
    """A row that was not taken, from 0 on; `key` is that of a subscription."""

    row: int
    reason: str
    key: str | None = None


class RepeatedRow(msgspec.Struct, frozen=True):
    """A message that the server had already, with its sequence number."""

    row: int
    sequence: int


class Receipt(msgspec.Struct, frozen=True):
    """What became of messages: `count` of them are new, with the sequence numbers from `first` to `last`.

    After a lost connection the server may have had messages from the first attempt: those are among the `duplicates`.
    `lost` names areas of alerts that could not be read.
    """

    first: int | None = None
    last: int | None = None
    count: int = 0
    duplicates: list[RepeatedRow] = []
    rejected: list[ReasonedRow] = []
    lost: list[ReasonedRow] = []

    @property
    def sequence(self) -> int:
        """The sequence number of the first message that the server has."""
        if self.first is not None:
            return self.first
        return self.duplicates[0].sequence if self.duplicates else 0


class SubscriptionInfo(msgspec.Struct, frozen=True):
    """A subscription; messages from the sequence number `applies_from` on are matched against it.

    The members from `track` on are those of one that tracks objects, whose `on` lists kinds of events.
    """

    key: str
    subscriber: str
    filter: str | dict[str, Any]
    applies_from: int
    created: datetime
    on: str | list[str | dict[str, Any]] = "match"
    expires: datetime | None = None
    paused: bool = False
    track: str | None = None
    exit_buffer: float = 0.0
    exit_after: str | float | None = None
    time: str | None = None
    first: str | None = None
    late: str | None = None


class BulkResult(msgspec.Struct, frozen=True):
    """What became of a bulk upload: `count` rows were taken and apply from `applies_from` on."""

    count: int
    applies_from: int | None
    rejected: list[ReasonedRow]


class ExplainResult(msgspec.Struct, frozen=True):
    """Why a message satisfies a subscription, or why not."""

    matches: bool
    verdict: str
    explanation: dict[str, Any]
    track: dict[str, Any] | None = None


class TriedMessage(msgspec.Struct, frozen=True):
    """A message that a filter would have matched."""

    sequence: int
    at: datetime
    message: Any
    track: TrackInfo | None = None


class DryRunResult(msgspec.Struct, frozen=True, rename={"first": "from", "last": "to"}):
    """What a filter would have matched: `count` of `examined` messages, and some of the latest.

    The messages from `first` to `last` were looked at; `complete` is False if older ones that were asked for are gone.
    """

    count: int
    examined: int
    first: int
    last: int
    since: datetime | None
    complete: bool
    sample: list[TriedMessage]


class RetentionInfo(msgspec.Struct, frozen=True):
    """What a subscriber is given: messages of the last `age` seconds, the latest `bytes` or `messages` of the log."""

    age: float | None = None
    bytes: int | None = None
    messages: int | None = None


class SubscriberInfo(msgspec.Struct, frozen=True):
    """How far a subscriber is: `lag` counts messages after the last match that was delivered.

    `dropped` counts matches that retention removed before they were delivered; those of messages before `oldest` are
    gone. `retention` is that of the subscriber, None if it has none of its own.
    """

    name: str
    acknowledged: str | None
    lag: int
    oldest_undelivered: int | None
    oldest_undelivered_age: float | None
    dropped: int
    readers: int
    oldest: int = 1
    retention: RetentionInfo | None = None


class KeyInfo(msgspec.Struct, frozen=True):
    """A key; `key` is its secret, which only the answer that makes it has."""

    name: str
    tenant: str
    scopes: list[str]
    created: datetime
    expires: datetime | None = None
    key: str | None = None


class LinkInfo(msgspec.Struct, frozen=True):
    """A link of a broker: subscriptions that it forwards, suppresses and takes, and what waits for the neighbour."""

    neighbour: str
    phase: str
    forwards: int
    suppresses: int
    takes: int
    unacknowledged: int
    unacknowledged_bytes: int
    dropped: int
    behind: list[str]


class TenantNetworkInfo(msgspec.Struct, frozen=True):
    """The network of a tenant: all brokers, the links of the one that answers, and neighbours that it waits for."""

    tenant: str
    brokers: list[str]
    links: list[LinkInfo]
    waits_for: list[str]


class LinkCallInfo(msgspec.Struct, frozen=True):
    """A link that the server makes by calling, and why the last attempt ended."""

    url: str
    tenant: str
    state: str
    neighbour: str | None
    attempts: int
    reason: str | None


class RefusedInfo(msgspec.Struct, frozen=True):
    """A subscription that a broker on the way cannot take."""

    tenant: str
    key: str
    reason: str


class NetworkInfo(msgspec.Struct, frozen=True):
    """The links of a server, by tenant."""

    name: str
    tenants: list[TenantNetworkInfo]
    refused: list[RefusedInfo]
    calls: list[LinkCallInfo]


class WebhookTrouble(msgspec.Struct, frozen=True):
    """Deliveries that fail: how many attempts, since when, and why."""

    attempts: int
    since: datetime
    reason: str


class WebhookInfo(msgspec.Struct, frozen=True):
    """A webhook. `secret` signs its requests, and is there once, in the answer that made it.

    `acknowledged` is the id of the last match that was taken or given up, `lag` counts messages after it, `dropped`
    matches that retention removed before they were taken. `reason` is why the server paused it.
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
    failing: WebhookTrouble | None = None
    secret: str | None = None


class DeadLetterInfo(msgspec.Struct, frozen=True):
    """A match that a webhook did not take: given up at `at` after `attempts` attempts since `since`.

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
    message: Any = None
    oldest: int | None = None
    track: TrackInfo | None = None


class ReplayResult(msgspec.Struct, frozen=True):
    """What became of a replay: dead letters that were taken and that are left; `failed` says why it ended early."""

    sent: int
    left: int
    failed: str | None = None


class WebhookTest(msgspec.Struct, frozen=True):
    """What became of a test: the status of the answer, 0 if there was none."""

    id: str
    taken: bool
    status: int
    reason: str | None = None


class StreamTokenInfo(msgspec.Struct, frozen=True):
    """A token that opens the stream of a subscriber, at `url`, within `expires_in` seconds."""

    token: str
    expires_in: float
    url: str


class PublishAnswer(msgspec.Struct, frozen=True):
    """The answer to one message or to a batch."""

    sequence: int | None = None
    duplicate: bool = False
    first: int | None = None
    last: int | None = None
    count: int = 0
    duplicates: list[RepeatedRow] = []
    rejected: list[ReasonedRow] = []
    lost: list[ReasonedRow] = []

    def receipt(self) -> Receipt:
        """Return it in one form."""
        if self.sequence is None:
            return Receipt(self.first, self.last, self.count, self.duplicates, self.rejected, self.lost)
        if self.duplicate:
            return Receipt(duplicates=[RepeatedRow(0, self.sequence)], lost=self.lost)
        return Receipt(self.sequence, self.sequence, 1, lost=self.lost)


class AnswerPage(Protocol[T]):
    """A page of items; it has links if there are more, which come after the name `last`."""

    @property
    def links(self) -> list[Any]:
        """Links to other pages."""

    @property
    def items(self) -> list[T]:
        """What the page holds."""

    @property
    def last(self) -> str:
        """The name of the last item."""


class SubscriptionPage(msgspec.Struct, frozen=True):
    """A page of subscriptions."""

    subscriptions: list[SubscriptionInfo]
    links: list[Any]

    @property
    def items(self) -> list[SubscriptionInfo]:
        """The subscriptions."""
        return self.subscriptions

    @property
    def last(self) -> str:
        """The key of the last one."""
        return self.subscriptions[-1].key


class SubscriberPage(msgspec.Struct, frozen=True):
    """A page of subscribers."""

    subscribers: list[str]
    links: list[Any]

    @property
    def items(self) -> list[str]:
        """The names."""
        return self.subscribers

    @property
    def last(self) -> str:
        """The last name."""
        return self.subscribers[-1]


class WebhookPage(msgspec.Struct, frozen=True):
    """A page of webhooks."""

    webhooks: list[WebhookInfo]
    links: list[Any]

    @property
    def items(self) -> list[WebhookInfo]:
        """The webhooks."""
        return self.webhooks

    @property
    def last(self) -> str:
        """The name of the last one."""
        return self.webhooks[-1].name


class LetterPage(msgspec.Struct, frozen=True):
    """A page of dead letters."""

    dead_letters: list[DeadLetterInfo]
    links: list[Any]

    @property
    def items(self) -> list[DeadLetterInfo]:
        """The dead letters."""
        return self.dead_letters

    @property
    def last(self) -> str:
        """The id of the last one."""
        return self.dead_letters[-1].id


class KeyPage(msgspec.Struct, frozen=True):
    """All keys."""

    keys: list[KeyInfo]


class Removed(msgspec.Struct, frozen=True):
    """The last message that a removed subscription applies to."""

    applies_until: int


class PolledEvents(msgspec.Struct, frozen=True):
    """The answer to a long poll; `next` is the place to go on after."""

    events: list[Match]
    next: str
