"""Matches of a subscriber, each exactly once and in order, over any number of connections."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any, Generic, TypeVar

import aiohttp
import msgspec

from contrada.client.answers import Match, MatchReset, PolledEvents
from contrada.client.backoff import retry_after_of
from contrada.client.connection import AGAIN, LOST, ServerConnection, decoded, describe, path_of, problem_of_answer
from contrada.client.errors import ClientError, ProblemError, ProtocolError, ResetError, UnreachableError
from contrada.client.sse import SseEvent, SseParser

MOVING = ("now", "oldest")  # places that are other messages at other times

Item = TypeVar("Item", bound=Match | MatchReset)


class _EndedError(aiohttp.ClientConnectionError):
    """The server ended a stream."""


class MatchReader:
    """Reads matches by Server-Sent Events; connects again after the last match that it returned.

    `query` has the place to start at; without one the server chooses the place after what was acknowledged.
    """

    def __init__(
        self, connection: ServerConnection, subscriber: str, query: dict[str, str], patience: float | None = None
    ) -> None:
        self._connection, self._path = connection, path_of("subscribers", subscriber, "events")
        self._patience = patience
        self._query = query
        self._last: tuple[int, ...] | None = None  # the place of the last match
        self._last_id = ""
        self._response: aiohttp.ClientResponse | None = None
        self._parser = SseParser()
        self._backoff = connection.backoff()
        self._alive = time.monotonic()  # when the server last said something
        connection.streams.add(self)

    def __del__(self) -> None:
        # A loop that is left by break drops its iterator without closing it, in any thread.
        if self._response is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._response.close)

    async def close(self) -> None:
        """Close the connection."""
        if self._response is not None:
            self._response.close()
            self._response = None

    async def read(self) -> list[Match | MatchReset]:
        """Return the next items, at least one; wait for as long as it takes, or `patience` seconds for a server.

        Raises ProblemError if the server refuses the request for good.
        """
        while True:
            wait, error = 0.0, ClientError()
            try:
                if self._response is None:
                    wait = await self._connect()
                if self._response is not None:
                    data = await self._response.content.readany()
                    if not data:
                        raise _EndedError("the server ended the stream")
                    self._alive = time.monotonic()
                    if found := self._items(self._parser.feed(data)):
                        self._backoff.reset()
                        return found
                    continue
                error = UnreachableError(f"{self._connection.url}: the server asks for patience")
            except LOST as lost:
                error = UnreachableError(f"{self._connection.url}: {describe(lost)}")
            except ClientError as failed:
                if not _may_pass(failed):
                    await self.close()
                    raise
                error = failed
            await self.close()
            wait = self._backoff.seconds(wait)
            if self._patience is not None and time.monotonic() + wait > self._alive + self._patience:
                raise error
            await asyncio.sleep(wait)

    async def _connect(self) -> float:
        """Open a stream; return the seconds that the server wants us to wait if it does not open one."""
        if "since" in self._query or self._query.get("from") in MOVING:
            await self._pin()
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if self._last is not None:
            headers["Last-Event-ID"] = self._last_id
        query = {} if self._last is not None else self._query
        response = await self._connection.open("GET", self._path, query=query, headers=headers)
        if response.status == 200 and response.content_type == "text/event-stream":
            self._response, self._parser, self._loop = response, SseParser(), asyncio.get_running_loop()
            return 0.0
        async with response:
            data = await response.read()
        if response.status == 200:
            raise ProtocolError(f"need a stream of events, got {response.content_type}")
        if response.status not in AGAIN:
            raise problem_of_answer(response, data)
        return retry_after_of(response.headers.get("Retry-After"))

    async def _pin(self) -> None:
        """Ask which message a moving place is at: after a lost connection it would be another one."""
        query, headers = self._query | {"wait": "0", "limit": "1"}, {"Accept": "application/json"}
        found = await self._connection.request(PolledEvents, "GET", self._path, query=query, headers=headers)
        first = found.events[0].sequence if found.events else _place(found.next)[0] + 1
        self._query = {"from": str(first)}

    def _items(self, events: list[SseEvent]) -> list[Match | MatchReset]:
        """Return what events tell; a match that was returned before is left out."""
        found: list[Match | MatchReset] = []
        for event in events:
            if event.type == "reset":
                reset = decoded(event.data, MatchReset)
                self._last, self._query = None, {"from": str(reset.oldest)}
                found.append(reset)
            elif event.type == "message":
                match = decoded(event.data, Match)
                place = _place(match.id)
                if self._last is None or place > self._last:
                    self._last, self._last_id = place, match.id
                    found.append(match)
        return found


def _may_pass(error: ClientError) -> bool:
    """Return True if the same request may succeed later."""
    return isinstance(error, UnreachableError) or (isinstance(error, ProblemError) and error.status in AGAIN)


def _place(id: str) -> tuple[int, ...]:
    """Return the order of a match among those of its subscriber: message, rank, and number of the subscription.

    A second match of the same message and subscription has the rank 1 at the end of its id, and so on.
    """
    try:
        sequence, number, rank = map(int, (id if id.count(".") == 2 else f"{id}.0").split("."))
    except ValueError as error:
        raise ProtocolError(f"need the id of a match such as 12.3, got {id!r:.60}") from error
    return sequence, rank, number


class AsyncMatchStream(Generic[Item]):
    """Iterates over matches for ever; a context manager that closes the connection.

    Matches come in order, each exactly once, also if the connection is lost in the middle of one. Asking for the next
    match says that those before are dealt with: only then a new connection begins after them. If the iteration raises
    ResetError, it may go on.
    """

    def __init__(self, connection: ServerConnection, subscriber: str, reader: MatchReader, raises: bool) -> None:
        self._connection, self._subscriber, self._reader, self._raises = connection, subscriber, reader, raises
        self._waiting: deque[Match | MatchReset] = deque()
        self.last_id: str | None = None  # of the last match that was handed out

    async def __aenter__(self) -> AsyncMatchStream[Item]:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __aiter__(self) -> AsyncMatchStream[Item]:
        return self

    async def __anext__(self) -> Item:
        if not self._waiting:
            await self.fill()
        return self.take()

    async def close(self) -> None:
        """Close the connection."""
        await self._reader.close()

    async def ack(self) -> None:
        """Acknowledge, durably, all matches that were handed out."""
        if self.last_id is not None:
            await acknowledge(self._connection, self._subscriber, self.last_id)

    def __len__(self) -> int:
        """The number of items that `take` returns without waiting."""
        return len(self._waiting)

    async def fill(self) -> None:
        """Wait for items."""
        self._waiting.extend(await self._reader.read())

    def take(self) -> Item:
        """Hand out an item that is there."""
        item: Any = self._waiting.popleft()
        if isinstance(item, Match):
            self.last_id = item.id
        elif self._raises:
            raise ResetError(item.oldest)
        found: Item = item
        return found


async def acknowledge(connection: ServerConnection, subscriber: str, id: str) -> None:
    """Acknowledge the matches of a subscriber up to an id, durably."""
    path, body = path_of("subscribers", subscriber, "ack"), msgspec.json.encode({"id": id})
    await connection.request(type(None), "POST", path, headers={"Content-Type": "application/json"}, body=body)
