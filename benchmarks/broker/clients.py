"""Publishers and consumers on raw sockets: they cost so little that the server is what is measured.

Consumers keep what arrives with its time and read it after the run. Everything runs on one event loop in one process.
"""

import asyncio
import base64
import os
import struct
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self

import msgspec

from benchmarks.broker.process import KEY
from benchmarks.broker.work import Event, owner_name

STALLED_SECONDS = 20.0  # without a delivery: the rest is missing
CREDIT = 1_000_000
PACE_SECONDS = 0.001  # between looks at what is due

_event = msgspec.json.Decoder().decode


class Arrival(NamedTuple):
    """An event, and when it came."""

    event: Event
    at: float


class Tally:
    """Counts deliveries of all consumers; `reached` waits for a number of them, unless none comes for `patience`."""

    def __init__(self, patience: float = STALLED_SECONDS) -> None:
        self.count, self._patience = 0, patience
        self._goal, self._done = 0, asyncio.Event()

    def add(self, count: int) -> None:
        """Take deliveries."""
        self.count += count
        if self.count >= self._goal:
            self._done.set()

    async def reached(self, goal: int) -> None:
        """Wait until so many deliveries have come, or none came for a while."""
        self._goal = goal
        while self.count < goal:
            before = self.count
            self._done.clear()
            try:
                await asyncio.wait_for(self._done.wait(), self._patience)
            except TimeoutError:
                if self.count == before:
                    return


class Consumer(asyncio.Protocol):
    """One consumer. `marker` stands once in each delivery, and deliveries end with `end` unless they are cut."""

    marker, end = b"\ndata: ", b"\n\n\r\n"

    def __init__(self, owner: int, tally: Tally, opened: Callable[[], None]) -> None:
        self.owner, self._tally, self._opened = owner, tally, opened
        self._parts: list[tuple[float, bytes]] = []
        self._tail = b""
        self._is_open = False

    def connection_made(self, transport: Any) -> None:
        """Ask for events."""
        self.transport = transport
        transport.write(self.request())

    def request(self) -> bytes:
        """Return the request, for events from now on."""
        return stream_request(owner_name(self.owner))

    def data_received(self, data: bytes) -> None:
        """Keep what came, and count deliveries."""
        if not self._is_open:
            self._begin(data)
            return
        self._parts.append((time.perf_counter(), data))
        if self._tail:
            data = self._tail + data
        if found := data.count(self.marker):
            self._tally.add(found)
        self._tail = b"" if data.endswith(self.end) else data[1 - len(self.marker) :]

    def _begin(self, data: bytes) -> None:
        """Take the head of the answer, and the first line that says that the stream is open."""
        self._tail += data
        if b"retry: " in self._tail:
            assert self._tail.startswith(b"HTTP/1.1 200"), self._tail[:200]
            self._is_open, self._tail = True, b""
            self._opened()

    def take(self) -> Iterator[Arrival]:
        """Yield the events that came, and forget them."""
        parts, self._parts = self._parts, []
        rest = b""
        for at, data in parts:
            rest += data
            *lines, rest = rest.split(b"\n")
            for line in lines:
                if line.startswith(b"data: "):
                    yield arrival(line[6:], at)


def arrival(data: bytes, at: float) -> Arrival:
    """Return an event by the number that its message carries and the key of its subscription."""
    found = _event(data)
    message = found["message"]
    return Arrival(((message.get("properties") or message)["n"], int(found["key"][1:])), at)


class SocketConsumer(Consumer):
    """A consumer over a WebSocket."""

    marker = b'"op":"event"'
    end = b"}"

    def request(self) -> bytes:
        """Return the handshake."""
        key = base64.b64encode(os.urandom(16)).decode()
        return (
            "GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {key}\r\nAuthorization: Bearer {KEY}\r\n\r\n"
        ).encode()

    def _begin(self, data: bytes) -> None:
        self._tail += data
        if b"\r\n\r\n" in self._tail:
            assert self._tail.startswith(b"HTTP/1.1 101"), self._tail[:200]
            self._is_open, self._tail = True, b""
            name = owner_name(self.owner)
            text = b'{"op":"receive","subscriber":"%b","from":"now","credit":%d}' % (name.encode(), CREDIT)
            self.transport.write(masked(text) + masked(b'{"op":"ping","ref":"open"}'))

    def data_received(self, data: bytes) -> None:
        """Keep what came; the first frame answers the ping, after which the server delivers."""
        if self._is_open and not self._parts and not self._tail and b'"op":"pong"' in data:
            self._opened()
            return
        super().data_received(data)

    def take(self) -> Iterator[Arrival]:
        """Yield the events that came, and forget them."""
        parts, self._parts = self._parts, []
        rest = b""
        for at, data in parts:
            rest += data
            while (frame := unframed(rest)) is not None:
                text, rest = frame
                yield arrival(text, at)


def stream_request(name: str) -> bytes:
    """Return a request for the events of a subscriber from now on."""
    head = f"GET /subscribers/{name}/events?from=now HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
    return f"{head}Accept: text/event-stream\r\n\r\n".encode()


CONSUMERS: dict[str, type[Consumer]] = {"SSE": Consumer, "WebSocket": SocketConsumer}


def masked(text: bytes) -> bytes:
    """Return a frame of text of a client, masked with zeros, which leave it as it is."""
    assert len(text) < 126
    return bytes([0x81, 0x80 | len(text)]) + bytes(4) + text


def unframed(data: bytes) -> tuple[bytes, bytes] | None:
    """Return the text of the first frame of a server, and the rest; None if the frame is not whole."""
    if len(data) < 10:
        return None
    size, start = data[1], 2
    if size == 126:
        (size,), start = struct.unpack_from("!H", data, 2), 4
    elif size == 127:
        (size,), start = struct.unpack_from("!Q", data, 2), 10
    return (data[start : start + size], data[start + size :]) if len(data) >= start + size else None


async def connect(port: int, kind: type[Consumer], owners: int | range, tally: Tally) -> list[Consumer]:
    """Open a consumer for each owner, 50 at a time; return when all receive."""
    owners = range(owners) if isinstance(owners, int) else owners
    loop, found, left = asyncio.get_running_loop(), [], len(owners)
    all_open = asyncio.Event()

    def opened() -> None:
        nonlocal left
        left -= 1
        if not left:
            all_open.set()

    for start in range(0, len(owners), 50):
        made = [
            loop.create_connection(lambda owner=owner: kind(owner, tally, opened), "127.0.0.1", port)  # type: ignore[misc]
            for owner in owners[start : start + 50]
        ]
        found += [protocol for _, protocol in await asyncio.gather(*made)]
    await asyncio.wait_for(all_open.wait(), 60)
    return found


def close(consumers: Sequence[Consumer]) -> None:
    """Close all connections."""
    for consumer in consumers:
        consumer.transport.abort()


def post(body: bytes, kind: str) -> bytes:
    """Return a request that publishes."""
    head = f"POST /messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Type: {kind}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Sent(NamedTuple):
    """When each request was due, and the seconds until all were answered."""

    at: list[float]
    seconds: float


class Publisher(asyncio.Protocol):
    """One connection of a pool: a request follows when the last one was answered."""

    def __init__(self, pool: "PublisherPool") -> None:
        self._pool, self._answer = pool, b""

    def connection_made(self, transport: Any) -> None:
        """Wait for a request."""
        self.transport = transport
        self._pool.idle.append(self)

    def data_received(self, data: bytes) -> None:
        """Take an answer: a JSON object, which ends with the only brace that ends it."""
        self._answer += data
        if self._answer.endswith(b"}"):
            answer, self._answer = self._answer, b""
            self._pool.answered(self, answer)


class PublisherPool:
    """Sends requests over connections that are free; every answer must be 201 and have `answer` in it."""

    def __init__(self, answer: bytes = b"") -> None:
        self.idle: list[Publisher] = []
        self._waiting: deque[bytes] = deque()
        self._answer, self._left = answer, 0
        self._finished = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def connected(cls, port: int, connections: int, answer: bytes = b"") -> AsyncIterator[Self]:
        """Yield a pool with open connections."""
        pool, loop = cls(answer), asyncio.get_running_loop()
        made = [loop.create_connection(lambda: Publisher(pool), "127.0.0.1", port) for _ in range(connections)]
        publishers = [protocol for _, protocol in await asyncio.gather(*made)]
        yield pool
        for publisher in publishers:
            publisher.transport.close()

    async def send(self, requests: Sequence[bytes], rate: float | None = None) -> Sent:
        """Send requests as quickly as they are answered, or at a rate whatever the answers do."""
        self._left = len(requests)
        self._finished.clear()
        start = time.perf_counter()
        due: list[float] = []
        while len(due) < len(requests):
            now = time.perf_counter()
            stop = len(requests) if rate is None else min(len(requests), 1 + int(rate * (now - start)))
            self._waiting.extend(requests[len(due) : stop])
            due += [now] * (stop - len(due))
            while self.idle and self._waiting:
                self.idle.pop().transport.write(self._waiting.popleft())
            if rate is not None:
                await asyncio.sleep(PACE_SECONDS)
        await asyncio.wait_for(self._finished.wait(), 300)
        return Sent(due, time.perf_counter() - start)

    def answered(self, publisher: Publisher, data: bytes) -> None:
        """Take an answer, and send the next request that waits."""
        assert data.startswith(b"HTTP/1.1 201"), data[:500]
        assert self._answer in data, data[:500]
        if self._waiting:
            publisher.transport.write(self._waiting.popleft())
        else:
            self.idle.append(publisher)
        self._left -= 1
        if not self._left:
            self._finished.set()
