"""`GET /map/events`: everything that happens on the map of a tenant, as Server-Sent Events."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from contrada.errors import ContradaError
from contrada.service.access.keys import Principal
from contrada.service.http.context import Context
from contrada.service.http.events import SEQUENCE_DIGITS, reach
from contrada.service.http.faults import log
from contrada.service.http.schemas import instant
from contrada.service.http.streams import RETRY_MILLISECONDS, EventStream, cancel_when_gone, end_text
from contrada.service.http.wire import Receive, Scope, Send, headers_of, query_of
from contrada.service.map.live_map import LiveMap
from contrada.service.map.parameters import simplify_of
from contrada.service.map.schemas import LostEvent
from contrada.service.map.viewers import viewer_of
from contrada.service.map.watching import Watcher
from contrada.service.problems import BAD_PARAMETER
from contrada.service.store.message_store import StoredMessage

TOKEN_OF_MAP = "\0map"  # in place of a subscriber, none of which has this name
TOGETHER = 200  # messages in one write
PAUSE = 0.05  # seconds between writes: nobody sees more, and what comes meanwhile is written together
MOST_BEHIND = 10_000  # messages that a watcher who resumes is told; one who is further behind loads a page
PAGE_BYTES = 1 << 20  # of messages that are read from the store at once, about

_encode = msgspec.json.Encoder().encode


def event_text(name: str, data: bytes, id: int | None = None) -> bytes:
    r"""Return a Server-Sent Event.

    >>> event_text("message", b"{}", 7)
    b'id: 7\nevent: message\ndata: {}\n\n'
    """
    head = b"" if id is None else b"id: %d\n" % id
    return b"%bevent: %b\ndata: %b\n\n" % (head, name.encode(), data)


class MapStream:
    """Answers requests for the stream of a map."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with the messages and changes after a message, or from now on."""
        context = self._context
        context.require_ready()
        context.require_map()
        headers, query = headers_of(scope), query_of(scope)
        principal = await self._principal(headers, query)
        viewer = viewer_of(principal, context.settings.map, simplify_of(query))
        after = _after(query, headers)
        with context.gate.connection(principal), context.streams.held(principal) as task:
            stream = EventStream(send, None, lambda event: b"")
            with context.map.watch(viewer) as watcher:
                gone = None
                try:
                    await stream.begin()
                    gone = asyncio.create_task(cancel_when_gone(receive, task))
                    await self._run(stream, watcher, after)
                except asyncio.CancelledError:
                    task.uncancel()  # the client has gone, or the server ends the stream
                    if (reason := context.streams.reason(task)) is not None:
                        await stream.write(end_text(reason), is_last=True)
                except ContradaError as error:  # the answer has begun: the client connects again and hears of it then
                    log.error("a map's stream ended: %s", error)
                    await stream.write(b": the server cannot read its store\n\n", is_last=True)
                finally:
                    if gone is not None:
                        gone.cancel()

    async def _principal(self, headers: Mapping[str, str], query: Mapping[str, str]) -> Principal:
        if "token" in query:
            return self._context.gate.token_holder(query["token"], TOKEN_OF_MAP)
        return await self._context.gate.watcher(headers)

    async def _run(self, stream: EventStream, watcher: Watcher, after: int | None) -> None:
        """Send what came after message `after`, then messages and changes as they come."""
        service = self._context.service
        if after is not None:
            await reach(service, after)
        newest = service.newest
        hello = _encode({"newest": newest, "now": instant(service.now())})
        await stream.write(b"retry: %d\n\n" % RETRY_MILLISECONDS + event_text("hello", hello))
        if after is not None:
            await self._catch_up(stream, watcher, after, newest)
        while True:
            if not await watcher.wait(self._context.keep_alive):
                await stream.write(b":\n\n")
                continue
            waiting = watcher.take(TOGETHER)
            parts = [event_text("lost", _encode(one)) for one in waiting.lost]
            if waiting.keys:
                changed = await asyncio.to_thread(self._map.changed_texts, waiting.keys, watcher.viewer)
                parts += [event_text("subscription", text) for text in changed]
            parts += await self._message_events([one for one in waiting.messages if one.sequence > newest], watcher)
            if parts:
                watcher.is_writing = True
                await stream.write(b"".join(parts))
                watcher.is_writing = False
            await asyncio.sleep(PAUSE)

    @property
    def _map(self) -> LiveMap:
        return self._context.map

    async def _message_events(self, messages: Sequence[StoredMessage], watcher: Watcher) -> list[bytes]:
        texts = await self._map.message_texts(messages, watcher.viewer)
        return [event_text("message", text, one.sequence) for one, text in zip(messages, texts, strict=True)]

    async def _catch_up(self, stream: EventStream, watcher: Watcher, after: int, newest: int) -> None:
        """Send the stored messages after `after`, up to `newest`.

        Changes of subscriptions are not stored, so the client is told to load them again.
        """
        oldest = self._context.service.oldest
        lost = [LostEvent("subscriptions", "resumed")]
        first = after + 1
        if after > newest:  # of another log
            lost.append(LostEvent("messages", "gone"))
        elif first < oldest:
            lost.append(LostEvent("messages", "gone", first, oldest - 1))
            first = oldest
        if newest - first >= MOST_BEHIND:
            lost.append(LostEvent("messages", "many", first, newest))
            first = newest + 1
        await stream.write(b"".join(event_text("lost", _encode(one)) for one in lost))
        while first <= newest:
            page = await asyncio.to_thread(self._page, first, newest)
            if not page:
                break
            first = page[-1].sequence + 1
            own = [one for one in page if one.tenant == watcher.viewer.tenant]
            if events := await self._message_events(own, watcher):
                await stream.write(b"".join(events))

    def _page(self, first: int, newest: int) -> list[StoredMessage]:
        found, size = list[StoredMessage](), 0
        for one in self._map.kept.messages(first, TOGETHER):
            if one.sequence > newest or (found and size > PAGE_BYTES):
                break
            found.append(one)
            size += len(one.body)
        return found


def _after(query: Mapping[str, str], headers: Mapping[str, str]) -> int | None:
    """Return the message after which a client goes on; None for one that begins now."""
    name, text = "Last-Event-ID", headers.get("last-event-id")
    if not text:
        name, text = "after", query.get("after")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= SEQUENCE_DIGITS):
        raise BAD_PARAMETER(f"{name}: need a sequence number, got {text!r:.60}", attribute=name)
    return int(text)
