"""Client: the asynchronous client for those without an event loop; it runs on one in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping
from datetime import datetime
from os import PathLike
from typing import Any, Generic, Literal, TypeVar, Unpack, overload
from weakref import finalize

from contrada.client.answers import (
    BulkResult,
    DeadLetterInfo,
    DryRunResult,
    ExplainResult,
    KeyInfo,
    Match,
    MatchReset,
    NetworkInfo,
    Receipt,
    ReplayResult,
    StreamTokenInfo,
    SubscriberInfo,
    SubscriptionInfo,
    WebhookInfo,
    WebhookTest,
)
from contrada.client.async_client import PAGE, AsyncClient, Start
from contrada.client.connection import IDLE, PATIENCE
from contrada.client.streams import AsyncMatchStream, Item
from contrada.client.tracking import TrackOptions

T = TypeVar("T")


class LoopThread:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="contrada-client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine; it is cancelled if the caller is interrupted."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def items(self, source: AsyncIterator[T]) -> Iterator[T]:
        """Yield the items of an asynchronous iterator."""
        while True:
            try:
                yield self.run(_next(source))
            except StopAsyncIteration:
                return

    def close(self) -> None:
        """Stop the thread; once."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(source: AsyncIterator[T]) -> T:
    return await anext(source)


class MatchStream(Generic[Item]):
    """Iterates over matches for ever; a context manager that closes the connection.

    What AsyncMatchStream promises holds here too. One thread at a time may use it.
    """

    def __init__(self, client: Client, thread: LoopThread, stream: AsyncMatchStream[Item]) -> None:
        self._client, self._thread, self._stream = client, thread, stream  # the client lives as long as its streams

    def __enter__(self) -> MatchStream[Item]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __iter__(self) -> MatchStream[Item]:
        return self

    def __next__(self) -> Item:
        if not len(self._stream):
            self._thread.run(self._stream.fill())
        return self._stream.take()

    @property
    def last_id(self) -> str | None:
        """The id of the last match that was handed out."""
        return self._stream.last_id

    def close(self) -> None:
        """Close the connection."""
        self._thread.run(self._stream.close())

    def ack(self) -> None:
        """Acknowledge, durably, all matches that were handed out."""
        self._thread.run(self._stream.ack())


def _close(client: AsyncClient, thread: LoopThread) -> None:
    thread.run(client.close())
    thread.close()


class Client:
    """A client of `contrada serve`, also for several threads; a context manager that closes its connections.

    Its methods are those of AsyncClient, which says more about each.
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
        self._client = AsyncClient(url, key, patience=patience, idle=idle, ca=ca)
        self._thread = LoopThread()
        self._run = self._thread.run
        self._close = finalize(self, _close, self._client, self._thread)  # at the latest when the program ends

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._close()

    def ready(self) -> None:
        """Wait until the server takes messages."""
        self._run(self._client.ready())

    def publish(self, messages: Any, *, id: str | None = None, content_type: str | None = None) -> Receipt:
        """Publish a message, several messages, or bytes of a content type; return after they are durable."""
        return self._run(self._client.publish(messages, id=id, content_type=content_type))

    def subscribe(
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
        """Add or replace a subscription."""
        asked = self._client.subscribe(
            key, subscriber, filter, expires=expires, ttl=ttl, paused=paused, new=new, **tracking
        )
        return self._run(asked)

    def unsubscribe(self, key: str, *, missing_ok: bool = False) -> int | None:
        """Remove a subscription; return the last sequence number that it applies to."""
        return self._run(self._client.unsubscribe(key, missing_ok=missing_ok))

    def get(self, key: str) -> SubscriptionInfo:
        """Return a subscription."""
        return self._run(self._client.get(key))

    def list(
        self, *, subscriber: str | None = None, prefix: str | None = None, page: int = PAGE
    ) -> Iterator[SubscriptionInfo]:
        """Yield subscriptions by rising key."""
        yield from self._thread.items(self._client.list(subscriber=subscriber, prefix=prefix, page=page))

    def bulk(
        self,
        rows: Iterable[Mapping[str, Any]] | bytes,
        *,
        content_type: str | None = None,
        template: str | None = None,
        **tracking: Unpack[TrackOptions],
    ) -> BulkResult:
        """Add or replace many subscriptions."""
        return self._run(self._client.bulk(rows, content_type=content_type, template=template, **tracking))

    def pause(self, key: str) -> SubscriptionInfo:
        """Pause a subscription."""
        return self._run(self._client.pause(key))

    def resume(self, key: str) -> SubscriptionInfo:
        """Resume a subscription from the next message on."""
        return self._run(self._client.resume(key))

    def explain(self, key: str, message: Mapping[str, Any]) -> ExplainResult:
        """Explain why a message satisfies a subscription, or why not."""
        return self._run(self._client.explain(key, message))

    def dry_run(
        self,
        filter: Any,
        *,
        since: datetime | None = None,
        start: int | None = None,
        limit: int = 10,
        **tracking: Unpack[TrackOptions],
    ) -> DryRunResult:
        """Match a filter against the past."""
        return self._run(self._client.dry_run(filter, since=since, start=start, limit=limit, **tracking))

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
    ) -> MatchStream[Match]: ...

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
    ) -> MatchStream[Match | MatchReset]: ...

    def matches(
        self,
        subscriber: str,
        after: str | None = None,
        *,
        start: Start | None = None,
        since: datetime | None = None,
        on_reset: Any = "raise",
        patience: float | None = None,
    ) -> MatchStream[Any]:
        """Return an iterator over the matches of a subscriber, in order, each exactly once."""
        stream: AsyncMatchStream[Any] = self._client.matches(
            subscriber, after, start=start, since=since, on_reset=on_reset, patience=patience
        )
        return MatchStream(self, self._thread, stream)

    def ack(self, subscriber: str, id: str) -> None:
        """Acknowledge, durably, the matches of a subscriber up to an id."""
        self._run(self._client.ack(subscriber, id))

    def put_webhook(
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
        """Add or replace a webhook: signed requests to a URL with the matches of a subscriber."""
        asked = self._client.put_webhook(
            subscriber,
            name,
            url,
            secret=secret,
            batch=batch,
            format=format,
            paused=paused,
            attempts=attempts,
            age=age,
            start=start,
            since=since,
        )
        return self._run(asked)

    def webhook(self, subscriber: str, name: str) -> WebhookInfo:
        """Return a webhook and how far it is."""
        return self._run(self._client.webhook(subscriber, name))

    def webhooks(self, subscriber: str, *, page: int = PAGE) -> Iterator[WebhookInfo]:
        """Yield the webhooks of a subscriber by rising name."""
        yield from self._thread.items(self._client.webhooks(subscriber, page=page))

    def delete_webhook(self, subscriber: str, name: str) -> None:
        """Remove a webhook with its dead letters."""
        self._run(self._client.delete_webhook(subscriber, name))

    def pause_webhook(self, subscriber: str, name: str) -> WebhookInfo:
        """Pause a webhook; its matches wait."""
        return self._run(self._client.pause_webhook(subscriber, name))

    def resume_webhook(self, subscriber: str, name: str) -> WebhookInfo:
        """Go on with deliveries to a webhook, at once."""
        return self._run(self._client.resume_webhook(subscriber, name))

    def test_webhook(self, subscriber: str, name: str) -> WebhookTest:
        """Send a signed test to a webhook, once."""
        return self._run(self._client.test_webhook(subscriber, name))

    def dead_letters(self, subscriber: str, name: str, *, page: int = PAGE) -> Iterator[DeadLetterInfo]:
        """Yield the matches that were given up, oldest first."""
        yield from self._thread.items(self._client.dead_letters(subscriber, name, page=page))

    def replay(self, subscriber: str, name: str, id: str | None = None) -> ReplayResult:
        """Send a dead letter again, or all, oldest first, up to the first that is not taken."""
        return self._run(self._client.replay(subscriber, name, id))

    def subscriber(self, name: str) -> SubscriberInfo:
        """Return how far a subscriber is."""
        return self._run(self._client.subscriber(name))

    def set_retention(
        self, name: str, *, age: float | None = None, bytes: int | None = None, messages: int | None = None
    ) -> SubscriberInfo:
        """Keep matches of a subscriber only for `age` seconds, or for the latest `bytes` or `messages` of the log."""
        return self._run(self._client.set_retention(name, age=age, bytes=bytes, messages=messages))

    def subscribers(self) -> Iterator[str]:
        """Yield the names of subscribers, in order."""
        yield from self._thread.items(self._client.subscribers())

    def token(self, subscriber: str) -> StreamTokenInfo:
        """Return a token that opens the stream of a subscriber without a key, for a browser."""
        return self._run(self._client.token(subscriber))

    def create_key(
        self, name: str, scopes: Iterable[str], *, tenant: str | None = None, expires: datetime | None = None
    ) -> KeyInfo:
        """Make a key with scopes among publish, subscribe, link and admin."""
        return self._run(self._client.create_key(name, scopes, tenant=tenant, expires=expires))

    def keys(self) -> tuple[KeyInfo, ...]:
        """Return all keys without their secrets."""
        return self._run(self._client.keys())

    def revoke_key(self, tenant: str, name: str) -> None:
        """Revoke a key."""
        self._run(self._client.revoke_key(tenant, name))

    # --- the network ---

    def network(self) -> NetworkInfo:
        """Return the links of the server to other brokers."""
        return self._run(self._client.network())

    def remove_link(self, tenant: str, neighbour: str) -> None:
        """Give up a neighbour of a tenant for good, with what waits for it."""
        self._run(self._client.remove_link(tenant, neighbour))
