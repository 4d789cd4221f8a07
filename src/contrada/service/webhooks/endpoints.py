"""Endpoints: where the events of a subscriber are delivered to, as asked for, as kept and as shown."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from contrada.errors import FormatError
from contrada.service.deliveries.bodies import BodyFormat
from contrada.service.deliveries.progress import FailureView
from contrada.service.webhooks.signatures import new_secret, secret_bytes

ENDPOINT = "webhook"  # kind of records
BATCH_EVENTS = 100  # in one request, for an endpoint that asks for batches and does not say how large


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
