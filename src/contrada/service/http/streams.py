"""`GET /subscribers/{name}/events`: Server-Sent Events, and long poll for those who accept JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from time import monotonic
from urllib.parse import quote

from contrada.errors import ContradaError
from contrada.service.access.keys import Principal
from contrada.service.access.open_streams import STOPS
from contrada.service.feeds import Event, EventReader, Reset
from contrada.service.http.context import Context
from contrada.service.http.events import (
    Start,
    Writer,
    cloudevent_json,
    event_json,
    number_of,
    reader_at,
    sse_writer,
    start_of,
)
from contrada.service.http.faults import log
from contrada.service.http.listening import WRITE
from contrada.service.http.wire import Receive, Scope, Send, check_name, headers_of, query_of, send_answer
from contrada.service.problems import BAD_PARAMETER, GONE, NOT_ACCEPTABLE, NOT_READY, UNAUTHORIZED

BATCH_JSON = "application/cloudevents-batch+json"
FIRST_EVENTS, MOST_EVENTS = 16, 256  # that are read together; fewer if messages are large
BYTES_TOGETHER = 256 << 10  # of events that are read together, about
RETRY_MILLISECONDS = 2_000  # until a browser connects again
POLL_EVENTS, MOST_POLL_EVENTS = 100, 1_000
POLL_SECONDS, MOST_POLL_SECONDS = 20.0, 60.0
SSE_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would collect events
]


class Pace:
    """How many events to read together, so that they have about BYTES_TOGETHER bytes."""

    def __init__(self) -> None:
        self.events = FIRST_EVENTS

    def adjust(self, size: int) -> None:
        """Take the size of the events that were read last."""
        if size > BYTES_TOGETHER:
            self.events = max(1, self.events // 2)
        elif self.events < MOST_EVENTS:
            self.events *= 2


class EventStream:
    """One open answer with Server-Sent Events; a slow client delays only its own stream."""

    __slots__ = ("_send", "_write", "_writer", "is_writing", "written")

    def __init__(self, send: Send, write: Callable[[bytes], bool] | None, writer: Writer) -> None:
        self._send, self._write, self._writer = send, write, writer
        self.written = monotonic()
        self.is_writing = False

    async def begin(self) -> None:
        """Send the head of the answer."""
        await self._send({"type": "http.response.start", "status": 200, "headers": SSE_HEADERS})

    async def write(self, data: bytes, is_last: bool = False) -> None:
        """Send data; wait while the client takes none."""
        self.is_writing = True
        await self._send({"type": "http.response.body", "body": data, "more_body": not is_last})
        self.is_writing = False
        self.written = monotonic()

    async def run(self, reader: EventReader) -> None:
        """Send events until the client or the server ends the stream."""
        pace = Pace()
        while True:
            if self._write is not None:
                await reader.push(self._push)
            found = await reader.read(pace.events)
            if isinstance(found, Reset):
                await self.write(reset_text(found))
                continue
            text = b"".join(map(self._writer, found))
            pace.adjust(len(text))
            await self.write(text)

    def _push(self, events: list[Event]) -> bool:
        """Send events without waiting, unless they are many or the client takes none."""
        assert self._write is not None
        if len(events) == 1:
            text = self._writer(events[0])
        elif is_much(events):
            return False
        else:
            text = b"".join(map(self._writer, events))
        if not self._write(text):
            return False
        self.written = monotonic()
        return True


def is_much(events: list[Event]) -> bool:
    """Return True if events have to be sent in several parts."""
    return len(events) > 1 and sum([len(event.body) for event in events]) > BYTES_TOGETHER


def reset_text(reset: Reset) -> bytes:
    """Return the event that tells a consumer that events are gone."""
    return b'event: reset\ndata: {"oldest":%d}\n\n' % reset.oldest


def end_text(reason: str) -> bytes:
    """Return the event that tells why a stream ends; a server that stops leaves a comment, as clients connect again.

    >>> end_text("the key was revoked")
    b'event: end\\ndata: {"reason":"the key was revoked"}\\n\\n'
    """
    if reason == STOPS:
        return b": %b\n\n" % reason.encode()
    return b'event: end\ndata: {"reason":"%b"}\n\n' % reason.encode()


class Streams:
    """Answers requests for events."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._open: set[EventStream] = set()
        self._keeper: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send, name: str) -> None:
        """Answer a request."""
        service = self._context.service
        headers, query = headers_of(scope), query_of(scope)
        check_name("subscriber", name)
        principal = await self._context.gate.consumer(headers, query, name)
        form, writer = _form(headers.get("accept", "*/*"), query, name)
        oldest = service.oldest_of(principal.tenant, name)
        start = await start_of(query, headers.get("last-event-id"), service, oldest)
        with self._context.gate.connection(principal), self._context.streams.held(principal) as task:
            if form == "sse":
                stream = EventStream(send, scope.get("extensions", {}).get(WRITE), sse_writer(writer))
                await self._stream(principal, name, start, receive, stream, task)
            else:
                await self._poll(principal, name, start, writer, query, send, form, task)

    # --- Server-Sent Events ---

    async def _stream(
        self,
        principal: Principal,
        name: str,
        start: Start,
        receive: Receive,
        stream: EventStream,
        task: asyncio.Task[None],
    ) -> None:
        reader = await reader_at(start, principal.tenant, name, self._context.service)
        try:
            await stream.begin()
            await stream.write(b"retry: %d\n\n" % RETRY_MILLISECONDS)
            if start.is_ahead:
                await stream.write(reset_text(Reset(self._context.service.oldest_of(principal.tenant, name))))
            self._enter(stream)
            watcher = asyncio.create_task(cancel_when_gone(receive, task))
            try:
                await stream.run(reader)
            finally:
                watcher.cancel()
        except asyncio.CancelledError:
            task.uncancel()  # the client has gone, or the server ends the stream
            if (reason := self._context.streams.reason(task)) is not None:
                await stream.write(end_text(reason), is_last=True)
        except ContradaError as error:  # the answer has begun: the client connects again and hears of it then
            log.error("a stream ended: %s", error)
            await stream.write(b": the server cannot read its store\n\n", is_last=True)
        finally:
            self._open.discard(stream)
            reader.close()

    def _enter(self, stream: EventStream) -> None:
        self._open.add(stream)
        if self._keeper is None or self._keeper.done():
            self._keeper = asyncio.create_task(self._keep_alive())

    async def _keep_alive(self) -> None:
        """Send a comment on each stream that had nothing to say for a while; ends with the last stream."""
        writing: set[asyncio.Task[None]] = set()
        while self._open:
            await asyncio.sleep(self._context.keep_alive / 4)
            late = monotonic() - self._context.keep_alive
            for stream in [one for one in self._open if one.written <= late and not one.is_writing]:
                writing.add(task := asyncio.create_task(stream.write(b":\n\n")))
                task.add_done_callback(writing.discard)

    # --- long poll ---

    async def _poll(
        self,
        principal: Principal,
        name: str,
        start: Start,
        writer: Writer,
        query: Mapping[str, str],
        send: Send,
        form: str,
        task: asyncio.Task[None],
    ) -> None:
        wait = number_of(query, "wait", POLL_SECONDS, 0, MOST_POLL_SECONDS)
        limit = int(number_of(query, "limit", POLL_EVENTS, 1, MOST_POLL_EVENTS))
        service = self._context.service
        if start.is_ahead:
            oldest = service.oldest_of(principal.tenant, name)
            raise GONE("no message has reached this place; start again at the oldest", oldest=oldest)
        reader = await reader_at(start, principal.tenant, name, service)
        try:
            found = await _read_within(reader, limit, wait)
            next_id = reader.position.id
        except asyncio.CancelledError:
            reason = self._context.streams.reason(task)
            if reason is None:
                raise
            task.uncancel()
            raise NOT_READY(reason, retry_after=1) if reason == STOPS else UNAUTHORIZED(reason) from None
        finally:
            reader.close()
        if isinstance(found, Reset):
            raise GONE("retention removed events after this place", oldest=found.oldest)
        texts = b"[" + b",".join(map(writer, found)) + b"]"
        link = f'</subscribers/{quote(name, safe="")}/events?after={next_id}>; rel="next"'.encode()
        body = texts if form == BATCH_JSON else b'{"events":%b,"next":"%b"}' % (texts, next_id.encode())
        await send_answer(send, 200, body, form.encode(), [(b"link", link), (b"cache-control", b"no-store")])


async def _read_within(reader: EventReader, limit: int, seconds: float) -> list[Event] | Reset:
    """Return events that are there, or those that come within some seconds."""
    found = await reader.read(limit, wait=False)
    if found or not seconds:
        return found
    try:
        async with asyncio.timeout(seconds):
            return await reader.read(limit)
    except TimeoutError:
        return []


async def cancel_when_gone(receive: Receive, task: asyncio.Task[None]) -> None:
    """Cancel a task once the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    task.cancel()


def _form(accept: str, query: Mapping[str, str], name: str) -> tuple[str, Writer]:
    """Return "sse" or the media type of a poll, and the writer of events."""
    form = query.get("format", "events")
    if form not in ("events", "cloudevents"):
        raise BAD_PARAMETER(f"format: need events or cloudevents, got {form!r:.60}", attribute="format")
    writer = event_json if form == "events" else cloudevent_json(name)
    if "text/event-stream" in accept:
        return "sse", writer
    if BATCH_JSON in accept:
        return BATCH_JSON, cloudevent_json(name)
    if "application/json" in accept:
        return "application/json", writer
    if "*/*" in accept or "text/*" in accept:
        return "sse", writer
    raise NOT_ACCEPTABLE(f"need text/event-stream, application/json or {BATCH_JSON}")
