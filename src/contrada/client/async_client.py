"""AsyncClient: everything that a server offers, on an event loop."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime
from os import PathLike
from typing import Any, Literal, TypeVar, Unpack, overload

import msgspec

from contrada.client.answers import (
    AnswerPage,
    BulkResult,
    DeadLetterInfo,
    DryRunResult,
    ExplainResult,
    KeyInfo,
    KeyPage,
    LetterPage,
    Match,
    MatchReset,
    NetworkInfo,
    PublishAnswer,
    Receipt,
    Removed,
    ReplayResult,
    StreamTokenInfo,
    SubscriberInfo,
    SubscriberPage,
    SubscriptionInfo,
    SubscriptionPage,
    WebhookInfo,
    WebhookPage,
    WebhookTest,
)
from contrada.client.connection import IDLE, PATIENCE, ServerConnection, path_of
from contrada.client.errors import ProblemError
from contrada.client.streams import AsyncMatchStream, MatchReader, acknowledge
from contrada.client.tracking import TrackOptions, track_members, track_query
from contrada.errors import ArgumentError

JSON, LINES = "application/json", "application/x-ndjson"
PAGE = 1_000  # subscriptions that are asked for together

Start = Literal["now", "oldest"] | int
T = TypeVar("T")


def _plain(value: Any) -> Any:
    """Return what stands for an object that JSON does not know: a geometry, or a filter by its text."""
    geometry = getattr(value, "__geo_interface__", None)
    if geometry is None:
        raise TypeError(f"cannot write {type(value).__name__} as JSON")
    return geometry


_encoder = msgspec.json.Encoder(enc_hook=_plain)


def encoded(value: Any) -> bytes:
    """Return JSON; raise ArgumentError for what has none."""
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"cannot be written as JSON: {error}") from error


def body_of(messages: Any, content_type: str | None) -> tuple[bytes, str]:
    """Return messages, rows or bytes as the body of a request and its content type."""
    if isinstance(messages, bytes):
        if content_type is None:
            raise ArgumentError("bytes need a content_type, such as application/geo+json or application/cap+xml")
        return messages, content_type
    if isinstance(messages, Mapping) or hasattr(messages, "__geo_interface__"):
        return encoded(messages), content_type or JSON
    if isinstance(messages, str) or not isinstance(messages, Iterable):
        raise ArgumentError(f"need a mapping, mappings or bytes, got {type(messages).__name__}")
    return b"".join([encoded(one) + b"\n" for one in messages]), content_type or LINES


def places_of(after: str | None, start: Start | None, since: datetime | None) -> dict[str, str]:
    """Return the query that names the place where a stream begins."""
    given = {"after": after, "from": start, "since": since and since.astimezone().isoformat()}
    found = {name: str(value) for name, value in given.items() if value is not None}
    if len(found) > 1:
        raise ArgumentError("need one of after, start and since")
    return found


def _webhook(subscriber: str, name: str, *more: str) -> str:
    return path_of("subscribers", subscriber, "webhooks", name, *more)


class AsyncClient:
    """A client of `contrada serve`; a context manager that closes its connections.

    Without `url` and `key` the variables CONTRADA_URL and CONTRADA_KEY have them. A request is tried for `patience`
    seconds while the server cannot be reached, is busy, or gives no sign of life for `idle` seconds. `ca` is a PEM file
    of certificates to trust in place of those of the system.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        patience: float = PATIENCE,
        idle: float = IDLE,
        ca: str | PathLike[str] | None = None,
    ) -> None:
        self._connection = ServerConnection(url, key, patience=patience, idle=idle, ca=ca)
        self._request = self._connection.request

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    async def ready(self) -> None:
        """Wait until the server takes messages; raise an error after `patience` seconds."""
        await self._request(msgspec.Raw, "GET", "/ready")

    # --- messages ---

    async def publish(self, messages: Any, *, id: str | None = None, content_type: str | None = None) -> Receipt:
        """Publish a message, several messages, or bytes of a content type; return after they are durable.

        Every attempt of one call has the same key, by which the server recognises the messages of a lost attempt: none
        is taken twice. `id` is the id of a single message, recognised over calls too.
        """
        body, kind = body_of(messages, content_type)
        if not body and not isinstance(messages, bytes):
            return Receipt()
        headers = {"Content-Type": kind, "Idempotency-Key": uuid.uuid4().hex}
        if id is not None:
            headers["Message-Id"] = id
        return (await self._request(PublishAnswer, "POST", "/messages", headers=headers, body=body)).receipt()

    # --- subscriptions ---

    async def subscribe(
        self,
        key: str,
        subscriber: str,
        filter: Any,
        *,
        expires: datetime | None = None,
        ttl: float | None = None,
        paused: bool = False,
        new: bool = False,
        **tracking: Unpack[TrackOptions],
    ) -> SubscriptionInfo:
        """Add or replace a subscription; `filter` is CQL2 text or JSON, or anything whose `str` is CQL2 text.

        It ends at `expires` or after `ttl` seconds. With `new`, a key in use is an error. With `track`, the attribute
        that names objects, and `on`, kinds of events such as "enter", it tracks objects (see TrackOptions).
        """
        asked: dict[str, Any] = {"subscriber": subscriber, "filter": filter}
        asked["filter"] = filter if isinstance(filter, Mapping) else str(filter)
        asked |= {"paused": paused} | track_members(tracking)
        asked |= {name: value for name, value in (("expires", expires), ("ttl", ttl)) if value is not None}
        headers = {"Content-Type": JSON} | ({"If-None-Match": "*"} if new else {})
        path, body = path_of("subscriptions", key), encoded(asked)
        # A second attempt would find the subscription of the first one.
        return await self._request(SubscriptionInfo, "PUT", path, headers=headers, body=body, is_repeatable=not new)

    async def unsubscribe(self, key: str, *, missing_ok: bool = False) -> int | None:
        """Remove a subscription; return the last sequence number that it applies to.

        With `missing_ok`, the answer is None if there is none. So it is after a lost connection too, if the first
        attempt removed the subscription.
        """
        path = path_of("subscriptions", key)
        try:
            return (await self._request(Removed, "DELETE", path, is_repeatable=missing_ok)).applies_until
        except ProblemError as error:
            if error.status == 404 and missing_ok:
                return None
            raise

    async def get(self, key: str) -> SubscriptionInfo:
        """Return a subscription."""
        return await self._request(SubscriptionInfo, "GET", path_of("subscriptions", key))

    async def list(
        self, *, subscriber: str | None = None, prefix: str | None = None, page: int = PAGE
    ) -> AsyncIterator[SubscriptionInfo]:
        """Yield subscriptions by rising key: all, those of a subscriber, or those whose keys have a prefix."""
        wanted = {"subscriber": subscriber, "prefix": prefix or None}
        query = {name: value for name, value in wanted.items() if value is not None} | {"limit": str(page)}
        async for one in self._items(SubscriptionPage, "/subscriptions", query):
            yield one

    async def bulk(
        self,
        rows: Iterable[Mapping[str, Any]] | bytes,
        *,
        content_type: str | None = None,
        template: str | None = None,
        **tracking: Unpack[TrackOptions],
    ) -> BulkResult:
        """Add or replace many subscriptions: mappings with key, subscriber and filter, or bytes of a content type.

        Bytes of GeoParquet or GeoJSON need a template, a filter with $column in place of values. Bad rows are in the
        answer, good ones are kept. With `track` all rows track objects that do not say it themselves.
        """
        body, kind = body_of(rows, content_type)
        query = ({} if template is None else {"template": template}) | track_query(tracking)
        headers = {"Content-Type": kind}
        return await self._request(
            BulkResult, "POST", "/subscriptions", query=query, headers=headers, body=body, also=(422,)
        )

    async def pause(self, key: str) -> SubscriptionInfo:
        """Pause a subscription: it matches nothing until it is resumed."""
        return await self._request(SubscriptionInfo, "POST", path_of("subscriptions", key, "pause"))

    async def resume(self, key: str) -> SubscriptionInfo:
        """Resume a subscription from the next message on."""
        return await self._request(SubscriptionInfo, "POST", path_of("subscriptions", key, "resume"))

    async def explain(self, key: str, message: Mapping[str, Any]) -> ExplainResult:
        """Explain why a message satisfies a subscription, or why not."""
        path, headers = path_of("subscriptions", key, "explain"), {"Content-Type": JSON}
        return await self._request(ExplainResult, "POST", path, headers=headers, body=encoded(message))

    async def dry_run(
        self,
        filter: Any,
        *,
        since: datetime | None = None,
        start: int | None = None,
        limit: int = 10,
        **tracking: Unpack[TrackOptions],
    ) -> DryRunResult:
        """Match a filter against the past: since a time, from a sequence number on, or within the last hour."""
        asked: dict[str, Any] = {"filter": filter if isinstance(filter, Mapping) else str(filter), "limit": limit}
        asked |= track_members(tracking)
        if since is not None:
            asked["since"] = since.astimezone()
        if start is not None:
            asked["from"] = start
        headers = {"Content-Type": JSON}
        return await self._request(DryRunResult, "POST", "/dry-run", headers=headers, body=encoded(asked))

    # --- matches ---

    @overload
    def matches(
        self,
        subscriber: str,
        after: str | None = None,
        *,
        start: Start | None = None,
        since: datetime | None = None,
        on_reset: Literal["raise"] = "raise",
        patience: float | None = None,
    ) -> AsyncMatchStream[Match]: ...

    @overload
    def matches(
        self,
        subscriber: str,
        after: str | None = None,
        *,
        start: Start | None = None,
        since: datetime | None = None,
        on_reset: Literal["yield"],
        patience: float | None = None,
    ) -> AsyncMatchStream[Match | MatchReset]: ...

    def matches(
        self,
        subscriber: str,
        after: str | None = None,
        *,
        start: Start | None = None,
        since: datetime | None = None,
        on_reset: Literal["raise", "yield"] = "raise",
        patience: float | None = None,
    ) -> AsyncMatchStream[Any]:
        """Return an iterator over the matches of a subscriber, in order, each exactly once.

        It begins after the match with the id `after`, at a sequence number, at "now" or "oldest" (`start`), or at a
        time (`since`); by default after what the subscriber has acknowledged. It connects when the first match is
        asked for ("now" is then), and again for ever, or while the server was silent for less than `patience` seconds.
        If matches are gone, ResetError is raised and the iteration may go on, or with `on_reset="yield"` a MatchReset
        is among the items.
        """
        if on_reset not in ("raise", "yield"):
            raise ArgumentError(f"on_reset: need raise or yield, got {on_reset!r:.60}")
        reader = MatchReader(self._connection, subscriber, places_of(after, start, since), patience)
        return AsyncMatchStream(self._connection, subscriber, reader, on_reset == "raise")

    async def ack(self, subscriber: str, id: str) -> None:
        """Acknowledge, durably, the matches of a subscriber up to an id."""
        await acknowledge(self._connection, subscriber, id)

    # --- webhooks ---

    async def put_webhook(
        self,
        subscriber: str,
        name: str,
        url: str,
        *,
        secret: str | None = None,
        batch: bool | int = False,
        format: Literal["plain", "cloudevents"] = "plain",
        paused: bool = False,
        attempts: int | None = None,
        age: float | None = None,
        start: Start | None = None,
        since: datetime | None = None,
    ) -> WebhookInfo:
        """Add or replace a webhook: signed requests to a URL with the matches of a subscriber.

        The server makes a secret for a new webhook that has none; it is in this answer only. A match is given up after
        so many `attempts` or `age` seconds. A new webhook begins with the next message, at `start` or at `since`.
        """
        given = {"secret": secret, "attempts": attempts, "age": age, "from": start}
        asked = {"url": url, "batch": batch, "format": format, "paused": paused}
        asked |= {member: value for member, value in given.items() if value is not None}
        if since is not None:
            asked["since"] = since.astimezone()
        # The answer to a second attempt would lack the secret that the first one made.
        return await self._request(
            WebhookInfo,
            "PUT",
            _webhook(subscriber, name),
            headers={"Content-Type": JSON},
            body=encoded(asked),
            is_repeatable=secret is not None,
        )

    async def webhook(self, subscriber: str, name: str) -> WebhookInfo:
        """Return a webhook and how far it is."""
        return await self._request(WebhookInfo, "GET", _webhook(subscriber, name))

    async def webhooks(self, subscriber: str, *, page: int = PAGE) -> AsyncIterator[WebhookInfo]:
        """Yield the webhooks of a subscriber by rising name."""
        async for one in self._items(WebhookPage, path_of("subscribers", subscriber, "webhooks"), {"limit": str(page)}):
            yield one

    async def delete_webhook(self, subscriber: str, name: str) -> None:
        """Remove a webhook with its dead letters."""
        await self._request(type(None), "DELETE", _webhook(subscriber, name), is_repeatable=False)

    async def pause_webhook(self, subscriber: str, name: str) -> WebhookInfo:
        """Pause a webhook; its matches wait."""
        return await self._request(WebhookInfo, "POST", _webhook(subscriber, name, "pause"))

    async def resume_webhook(self, subscriber: str, name: str) -> WebhookInfo:
        """Go on with deliveries to a webhook, at once."""
        return await self._request(WebhookInfo, "POST", _webhook(subscriber, name, "resume"))

    async def test_webhook(self, subscriber: str, name: str) -> WebhookTest:
        """Send a signed test to a webhook, once."""
        return await self._request(WebhookTest, "POST", _webhook(subscriber, name, "test"), is_repeatable=False)

    async def dead_letters(self, subscriber: str, name: str, *, page: int = PAGE) -> AsyncIterator[DeadLetterInfo]:
        """Yield the matches that were given up, oldest first."""
        path = _webhook(subscriber, name, "dead-letters")
        async for one in self._items(LetterPage, path, {"limit": str(page)}):
            yield one

    async def replay(self, subscriber: str, name: str, id: str | None = None) -> ReplayResult:
        """Send a dead letter again, or all, oldest first, up to the first that is not taken."""
        names = ("replay",) if id is None else (id, "replay")
        path = _webhook(subscriber, name, "dead-letters", *names)
        return await self._request(ReplayResult, "POST", path, is_repeatable=False)

    # --- subscribers and keys ---

    async def subscriber(self, name: str) -> SubscriberInfo:
        """Return how far a subscriber is."""
        return await self._request(SubscriberInfo, "GET", path_of("subscribers", name))

    async def set_retention(
        self, name: str, *, age: float | None = None, bytes: int | None = None, messages: int | None = None
    ) -> SubscriberInfo:
        """Keep matches of a subscriber only for `age` seconds, or for the latest `bytes` or `messages` of the log.

        Without a limit the subscriber is given all that the log keeps.
        """
        given = {"age": age, "bytes": bytes, "messages": messages}
        limits = {limit: value for limit, value in given.items() if value is not None}
        body, headers = encoded({"retention": limits or None}), {"Content-Type": JSON}
        return await self._request(SubscriberInfo, "PUT", path_of("subscribers", name), headers=headers, body=body)

    async def subscribers(self) -> AsyncIterator[str]:
        """Yield the names of subscribers, in order."""
        async for name in self._items(SubscriberPage, "/subscribers", {"limit": str(PAGE)}):
            yield name

    async def _items(self, kind: type[AnswerPage[T]], path: str, query: Mapping[str, str]) -> AsyncIterator[T]:
        """Yield the items of all pages of a list."""
        asked = dict(query)
        while True:
            page = await self._request(kind, "GET", path, query=asked)
            for one in page.items:
                yield one
            if not page.links or not page.items:
                return
            asked["after"] = page.last

    async def token(self, subscriber: str) -> StreamTokenInfo:
        """Return a token that opens the stream of a subscriber without a key, for a browser."""
        return await self._request(StreamTokenInfo, "POST", path_of("subscribers", subscriber, "token"))

    async def create_key(
        self, name: str, scopes: Iterable[str], *, tenant: str | None = None, expires: datetime | None = None
    ) -> KeyInfo:
        """Make a key with scopes among publish, subscribe, link and admin; its secret is in this answer only."""
        asked = {"name": name, "scopes": [*scopes], "tenant": tenant, "expires": expires}
        body, headers = encoded(asked), {"Content-Type": JSON}
        return await self._request(KeyInfo, "POST", "/keys", headers=headers, body=body, is_repeatable=False)

    async def keys(self) -> tuple[KeyInfo, ...]:
        """Return all keys without their secrets."""
        return tuple((await self._request(KeyPage, "GET", "/keys")).keys)

    async def revoke_key(self, tenant: str, name: str) -> None:
        """Revoke a key."""
        await self._request(type(None), "DELETE", path_of("keys", tenant, name), is_repeatable=False)

    # --- the network ---

    async def network(self) -> NetworkInfo:
        """Return the links of the server to other brokers."""
        return await self._request(NetworkInfo, "GET", "/network")

    async def remove_link(self, tenant: str, neighbour: str) -> None:
        """Give up a neighbour of a tenant for good, with what waits for it."""
        await self._request(type(None), "DELETE", path_of("network", tenant, neighbour), is_repeatable=False)
