"""`GET /ws`: receive with credit and acknowledgements, and publish, over one WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from contrada.cancelling import end_tasks
from contrada.service.access.keys import Principal
from contrada.service.access.open_streams import STOPS
from contrada.service.feeds import Event, EventReader, Reset
from contrada.service.http.context import Context
from contrada.service.http.events import event_json, reader_at, start_of
from contrada.service.http.faults import problem_from
from contrada.service.http.frames import (
    AckFrame,
    ClientFrame,
    CreditFrame,
    ErrorFrame,
    HelloFrame,
    PingFrame,
    PongFrame,
    PublishedFrame,
    PublishFrame,
    ReceiveFrame,
    ResetFrame,
    StopFrame,
)
from contrada.service.http.listening import WRITE
from contrada.service.http.publishing import MessagePublisher, answer_of
from contrada.service.http.streams import Pace, is_much
from contrada.service.http.subscribers import position_of
from contrada.service.http.wire import Receive, Scope, Send, check_name, headers_of
from contrada.service.intake import Post
from contrada.service.problems import BAD_BODY, CONFLICT, FORBIDDEN, NOT_FOUND, UNAUTHORIZED, Problem

HELLO_SECONDS = 10.0
CONSUMERS = 100  # subscribers that one socket may receive
PUBLISHING = 64  # publish frames of one socket that may wait
GOING_AWAY, BAD_DATA, POLICY, INTERNAL, TRY_LATER = 1001, 1007, 1008, 1011, 1013
REASON_BYTES = 123  # of a close frame

_decode = msgspec.json.Decoder(ClientFrame).decode
_encode = msgspec.json.Encoder().encode


class Closed(Exception):  # the end of a socket, expected or not
    """The socket is to be closed, with a code and a reason; code 0 if the client has closed it."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


class Consumer:
    """The events of one subscriber on a socket; never more in flight than credit."""

    def __init__(self, reader: EventReader, subscriber: str, credit: int) -> None:
        self.reader, self.credit = reader, credit
        self._subscriber = subscriber
        self._head = b'{"op":"event","subscriber":%b,' % _encode(subscriber)
        self._more = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    def allow(self, count: int) -> None:
        """Take credit."""
        self.credit += count
        self._more.set()

    async def run(self, send: Send, write: Callable[[list[bytes]], bool] | None) -> None:
        """Send events while there is credit."""
        pace, sink = Pace(), None if write is None else partial(self._push, write)
        while True:
            if sink is not None:
                await self.reader.push(sink)
            while self.credit <= 0:
                self._more.clear()
                await self._more.wait()
            found = await self.reader.read(min(self.credit, pace.events))
            if isinstance(found, Reset):
                await send_text(send, _encode(ResetFrame(self._subscriber, found.oldest)))
                continue
            self.credit -= len(found)
            pace.adjust(sum(len(event.body) for event in found))
            for event in found:
                await send_text(send, self._text(event))

    def _push(self, write: Callable[[list[bytes]], bool], events: list[Event]) -> bool:
        """Send events without waiting, unless there is too little credit, or they are many, or the client is slow."""
        if len(events) > self.credit or is_much(events) or not write([self._text(event) for event in events]):
            return False
        self.credit -= len(events)
        return True

    def _text(self, event: Event) -> bytes:
        return self._head + event_json(event)[1:]


async def send_text(send: Send, data: bytes) -> None:
    """Send a frame of text."""
    await send({"type": "websocket.send", "text": data.decode()})


class Socket:
    """One connection after its handshake; a bad frame ends it, a command that fails is answered with an error."""

    def __init__(
        self, context: Context, publisher: MessagePublisher, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._context, self._publisher = context, publisher
        self._receive, self._send = receive, send
        self._write = scope.get("extensions", {}).get(WRITE)
        self._consumers: dict[str, Consumer] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(PUBLISHING)
        self._only: str | None = None  # the subscriber of a stream token

    # --- frames ---

    async def frame(self) -> ClientFrame:
        """Return the next frame; raise Closed if there is none, or a bad one."""
        message = await self._receive()
        if message["type"] != "websocket.receive":
            raise Closed(0)
        data = message.get("text") or message.get("bytes") or b""
        try:
            frame: ClientFrame = _decode(data)
            return frame
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            await self.fail(BAD_BODY(f"frame: {error}"))
            raise Closed(BAD_DATA, f"bad frame: {error}") from error

    async def hello(self) -> Principal:
        """Return who is there by the first frame."""
        try:
            frame = await asyncio.wait_for(self.frame(), HELLO_SECONDS)
        except TimeoutError as error:
            raise Closed(POLICY, "no hello came in time") from error
        try:
            if isinstance(frame, HelloFrame) and frame.key is not None:
                return await self._context.gate.holder(frame.key.encode("utf-8", "replace"))
            if isinstance(frame, HelloFrame) and frame.token is not None and frame.subscriber is not None:
                self._only = frame.subscriber
                return self._context.gate.token_holder(frame.token, frame.subscriber)
            raise UNAUTHORIZED("the first frame must be hello with a key, or with a token and its subscriber")
        except Problem as problem:
            await self.fail(problem)
            raise Closed(POLICY, problem.title) from problem

    async def fail(self, problem: Problem, ref: str | int | None = None, subscriber: str | None = None) -> None:
        """Send an error."""
        with suppress(OSError):  # the client has gone
            await send_text(self._send, _encode(ErrorFrame(problem.as_dict(), ref, subscriber)))

    # --- commands ---

    async def run(self, principal: Principal) -> None:
        """Serve until the client goes; raise Closed."""
        try:
            while True:
                frame = await self.frame()
                try:
                    await self._do(principal, frame)
                except Exception as error:
                    ref, subscriber = getattr(frame, "ref", None), getattr(frame, "subscriber", None)
                    await self.fail(problem_from(error), ref, subscriber)
        finally:
            await end_tasks(*self._tasks)

    async def _do(self, principal: Principal, frame: ClientFrame) -> None:
        match frame:
            case PublishFrame():
                principal.require("publish")
                await self._room.acquire()
                self._start(self._publish(principal, frame))
            case PingFrame(ref):
                await send_text(self._send, _encode(PongFrame(ref)))
            case HelloFrame():
                raise CONFLICT("hello comes first, and only without an Authorization header")
            case ReceiveFrame() | CreditFrame() | AckFrame() | StopFrame():
                principal.require("subscribe")
                check_name("subscriber", frame.subscriber)
                if self._only not in (None, frame.subscriber):
                    raise FORBIDDEN("the stream token is for another subscriber")
                await self._consume(principal, frame)

    async def _consume(self, principal: Principal, frame: ReceiveFrame | CreditFrame | AckFrame | StopFrame) -> None:
        name, service = frame.subscriber, self._context.service
        if isinstance(frame, ReceiveFrame):
            await self._begin(principal, frame)
        elif isinstance(frame, AckFrame):
            service.note_acknowledged(principal.tenant, name, await position_of(frame.id, service))
        elif (consumer := self._consumers.get(name)) is None:
            raise NOT_FOUND(f"this socket does not receive the events of {name!r:.80}")
        elif isinstance(frame, CreditFrame):
            consumer.allow(frame.count)
        elif consumer.task is not None:
            consumer.task.cancel()

    async def _begin(self, principal: Principal, frame: ReceiveFrame) -> None:
        name, service = frame.subscriber, self._context.service
        if name in self._consumers:
            raise CONFLICT(f"this socket receives the events of {name!r:.80} already")
        if len(self._consumers) >= CONSUMERS:
            raise CONFLICT(f"a socket receives the events of at most {CONSUMERS} subscribers")
        places = {"from": frame.first, "after": frame.after}
        oldest = service.oldest_of(principal.tenant, name)
        given = {place: str(value) for place, value in places.items() if value is not None}
        start = await start_of(given, None, service, oldest)
        if start.is_ahead:
            await send_text(self._send, _encode(ResetFrame(name, oldest)))
        reader = await reader_at(start, principal.tenant, name, service)
        consumer = self._consumers[name] = Consumer(reader, name, frame.credit)
        consumer.task = self._start(self._deliver(name, consumer))

    async def _deliver(self, name: str, consumer: Consumer) -> None:
        try:
            await consumer.run(self._send, self._write)
        except OSError:
            pass  # the client has gone
        except Exception as error:
            await self.fail(problem_from(error), subscriber=name)
        finally:
            consumer.reader.close()
            self._consumers.pop(name, None)

    async def _publish(self, principal: Principal, frame: PublishFrame) -> None:
        try:
            post = _post_of(frame)
            answer = answer_of(post, await self._publisher.publish(principal, post))
            members: Mapping[str, Any] = msgspec.structs.asdict(answer)
            await send_text(self._send, _encode(PublishedFrame(ref=frame.ref, **members)))
        except OSError:
            pass
        except Exception as error:
            await self.fail(problem_from(error), frame.ref)
        finally:
            self._room.release()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _post_of(frame: PublishFrame) -> Post:
    """Return the messages of a frame as a Post."""
    if (frame.messages is None) == isinstance(frame.message, msgspec.UnsetType):
        raise BAD_BODY("publish: need message or messages, and not both")
    if frame.messages is None:
        assert not isinstance(frame.message, msgspec.UnsetType)
        return Post("json", bytes(frame.message), frame.id)
    return Post("json", b"[" + b",".join(map(bytes, frame.messages)) + b"]", frame.id)


class Sockets:
    """Serves WebSockets."""

    def __init__(self, context: Context, publisher: MessagePublisher) -> None:
        self._context, self._publisher = context, publisher

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        await receive()  # websocket.connect
        try:
            if scope["path"] != "/ws":
                raise NOT_FOUND("WebSockets are at /ws")
            self._context.require_ready()
            headers = headers_of(scope)
            principal = await self._context.gate.principal(headers) if "authorization" in headers else None
        except Problem as problem:
            await refuse(send, problem)
            return
        await send({"type": "websocket.accept"})
        one = Socket(self._context, self._publisher, scope, receive, send)
        with self._context.streams.held(principal) as task:
            await _close(send, await self._end_of(one, principal, task))

    async def _end_of(self, one: Socket, principal: Principal | None, task: asyncio.Task[None]) -> Closed:
        """Serve a socket; return how it ends."""
        try:
            await self._serve(one, principal)
        except Closed as closed:
            return closed
        except Problem as problem:
            return Closed(TRY_LATER, problem.detail)
        except asyncio.CancelledError:
            task.uncancel()
            reason = self._context.streams.reason(task) or STOPS
            return Closed(GOING_AWAY if reason == STOPS else POLICY, reason)
        except OSError:
            pass  # the client has gone
        except Exception as error:
            return Closed(INTERNAL, f"id {problem_from(error).members.get('id')}")
        return Closed(0)

    async def _serve(self, one: Socket, principal: Principal | None) -> None:
        found = await one.hello() if principal is None else principal
        with self._context.gate.connection(found), self._context.streams.held(found):
            await one.run(found)


async def _close(send: Send, closed: Closed) -> None:
    if closed.code:
        reason = closed.reason.encode()[:REASON_BYTES].decode(errors="ignore")
        with suppress(OSError):  # the client has gone
            await send({"type": "websocket.close", "code": closed.code, "reason": reason})


async def refuse(send: Send, problem: Problem) -> None:
    """Answer a handshake with problem details."""
    head = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in problem.headers().items()]
    await send({"type": "websocket.http.response.start", "status": problem.status, "headers": head})
    await send({"type": "websocket.http.response.body", "body": problem.body()})
