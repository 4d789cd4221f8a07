"""Endpoints: where the events of a subscriber are delivered to, as asked for, as kept and as shown."""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from contrada.errors import FormatError
from contrada.service.catalog import SEPARATOR
from contrada.service.cursors import Position
from contrada.service.webhooks.bodies import BodyFormat
from contrada.service.webhooks.retries import RetryPolicy
from contrada.service.webhooks.signatures import new_secret, secret_bytes

ENDPOINT, PROGRESS = "webhook", "webhook-progress"  # kinds of records
BATCH_EVENTS = 100  # in one request, for an endpoint that asks for batches and does not say how large
NAME_CHARACTERS = 255


class EndpointKey(NamedTuple):
    """Which endpoint: endpoints of one subscriber have names."""

    tenant: str
    subscriber: str
    name: str

    @property
    def record(self) -> str:
        """The name of its records."""
        return SEPARATOR.join(self)

    def check(self) -> None:
        """Raise FormatError if a record cannot have this name."""
        for part, text in zip(("tenant", "subscriber", "name"), self, strict=True):
            is_text = all(unicodedata.category(character) not in ("Cc", "Cs") for character in text)
            if not 0 < len(text) <= NAME_CHARACTERS or not is_text:
                raise FormatError(
                    f"{part} of a webhook: need 1 to {NAME_CHARACTERS} characters without control characters,"
                    f" got {text!r:.60}"
                )


class EndpointRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An endpoint as it is asked for.

    Without `secret` an endpoint keeps its secret, and a new one gets a random secret; without `second_secret` it keeps
    that too, and null removes it. `from` is the sequence number of the first message, and `since` its time; without
    both a new endpoint gets messages from now on, and an existing one goes on where it is. `age` is in seconds.
    """

    url: str
    secret: str | None = None
    second_secret: str | UnsetType | None = UNSET
    batch: bool | Annotated[int, Meta(ge=1, le=1_000)] = False
    format: BodyFormat = "plain"
    paused: bool = False
    attempts: Annotated[int, Meta(ge=1, le=1 << 31)] | None = None
    age: Annotated[float, Meta(gt=0)] | None = None
    start: Annotated[int, Meta(ge=0, le=1 << 62)] | Literal["now", "oldest"] | None = msgspec.field(
        default=None, name="from"
    )
    since: Annotated[datetime, Meta(tz=True)] | None = None


class WebhookEndpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """An endpoint as it is kept; `batch` is the largest number of events in an array, 0 for one event without array."""

    url: str
    secret: str
    second_secret: str | None = None
    batch: int = 0
    format: BodyFormat = "plain"
    paused: bool = False
    reason: str | None = None  # why it was paused, unless somebody asked for it
    attempts: int | None = None
    age: float | None = None

    def policy(self, default: RetryPolicy) -> RetryPolicy:
        """Return when this endpoint's events are given up."""
        attempts = default.attempts if self.attempts is None else self.attempts
        return default._replace(attempts=attempts, age=default.age if self.age is None else self.age)


class Progress(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of an endpoint besides its cursor; times are in milliseconds since 1970.

    The delivery after the place `after`, which ends at `until`, failed `attempts` times since `since`. Events up to
    `settled` are dead-lettered or taken. `letters` counts the dead letters that are kept.
    """

    after: Position | None = None
    until: Position | None = None
    attempts: int = 0
    since: int = 0
    reason: str = ""
    settled: Position = Position(0, 0)
    letters: int = 0


class FailureView(msgspec.Struct, frozen=True):
    """A delivery that fails: times are in milliseconds since 1970."""

    attempts: int
    since: int
    reason: str


class EndpointView(msgspec.Struct, frozen=True, omit_defaults=True):
    """An endpoint as its owner sees it. `lag` counts messages of the log after its place; secrets are not shown.

    `secret` is there once, in the answer that made it.
    """

    subscriber: str
    name: str
    url: str
    batch: int
    format: BodyFormat
    paused: bool
    acknowledged: str
    lag: int
    dropped: int
    dead_letters: int
    reason: str | None = None
    failing: FailureView | None = None
    secret: str | None = None


def endpoint_of(asked: EndpointRequest, old: WebhookEndpoint | None) -> WebhookEndpoint:
    """Return what is kept of a request; raise FormatError if it cannot be. The sender checks the URL."""
    if asked.start is not None and asked.since is not None:
        raise FormatError("from and since: give one of them")
    secret = asked.secret
    if secret is None:
        secret = new_secret() if old is None else old.secret
    second = (None if old is None else old.second_secret) if asked.second_secret is UNSET else asked.second_secret
    for one in (secret, second):
        if one is not None:
            secret_bytes(one)
    batch = (BATCH_EVENTS if asked.batch else 0) if isinstance(asked.batch, bool) else asked.batch
    return WebhookEndpoint(
        asked.url, secret, second, batch, asked.format, asked.paused, None, asked.attempts, asked.age
    )
