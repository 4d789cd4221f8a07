"""Uvicorn for this service: slow request heads are cut off, and streams end before the server waits for requests.

Streams and sockets write events to their connection at once where the server is this one: a scope has the function for
it among its extensions, under the name WRITE. It returns False, and writes nothing, if the client has to catch up first
or has gone.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from contrada.service.http.context import Context
from contrada.service.problems import Problem

HEAD_SECONDS = 10.0  # until the head of a request must be complete
CONTINUE = b"HTTP/1.1 100 "  # begins what is no answer: the client should send its body
WRITE = "contrada.write"
UNSENT_BYTES = 32 << 10  # of a stream that wait in the server while more is written at once
HEAD_BYTES = 64 << 10  # that may have come before the head is complete, besides what came with its beginning


class PartWriter:
    """Writes parts of an answer of unknown length, which has begun and goes on, to a connection."""

    __slots__ = ("_transport",)

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def __call__(self, data: bytes) -> bool:
        """Write a part, unless the client has to catch up or has gone."""
        transport = self._transport
        if transport.get_write_buffer_size() > UNSENT_BYTES or transport.is_closing():
            return False
        transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        return True


class AnswerTransport:
    """Writes the head of an answer together with the first part of its body, which every answer but to HEAD has.

    Uvicorn writes them one by one, so that both sides handle two packets.
    """

    __slots__ = ("_head", "_transport", "is_closing")

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._head: bytes | None = None  # empty once it is written
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        """Write data; a head waits for the body."""
        if self._head is None:
            if data.startswith(CONTINUE):
                self._transport.write(data)
            else:
                self._head = data
            return
        head, self._head = self._head, b""
        self._transport.write(head + data if head else data)

    def close(self) -> None:
        """Write what waits, and close the connection."""
        self._transport.write(self._head or b"")
        self._transport.close()


class GuardedProtocol(HttpToolsProtocol):
    """HTTP that closes a connection whose request head is not complete in `head_seconds` or `head_bytes`.

    The parser keeps an incomplete head in memory, however long it is.
    """

    head_seconds = HEAD_SECONDS
    head_bytes = HEAD_BYTES

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._guard: asyncio.TimerHandle | None = None
        self._extensions = {WRITE: PartWriter(transport)}
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """End waiting."""
        self._release()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; refuse a head that goes on and on."""
        watched = self._guard
        super().data_received(data)
        if watched is not None and watched is self._guard:  # no head has begun or ended with these bytes
            self._size += len(data)
            if self._size > self.head_bytes:
                self._refuse_head()

    def _refuse_head(self) -> None:
        self._release()
        problem = Problem(431, "Request header fields too large", f"the head has more than {self.head_bytes:,} bytes")
        body = problem.body()
        head = {**problem.headers(), "Content-Length": str(len(body)), "Connection": "close"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        self.transport.write(f"HTTP/1.1 431 {problem.title}\r\n{lines}\r\n".encode() + body)
        self.transport.close()

    def on_message_begin(self) -> None:
        """Begin to wait for the head of a request."""
        self._watch()
        super().on_message_begin()
        self.scope["extensions"] = self._extensions  # type: ignore[typeddict-item]

    def on_headers_complete(self) -> None:
        """End waiting: the head is there."""
        self._release()
        super().on_headers_complete()
        cycle: Any = self.cycle  # None before the first request, such as a handshake
        if cycle is not None and cycle.scope is self.scope and self.scope["method"] != "HEAD":
            cycle.transport = AnswerTransport(self.transport)

    def _watch(self) -> None:
        self._release()
        self._size = 0
        self._guard = self.loop.call_later(self.head_seconds, self.transport.close)

    def _release(self) -> None:
        if self._guard is not None:
            self._guard.cancel()
            self._guard = None


class PushingSocket(WebSocketsSansIOProtocol):
    """WebSockets without compression whose frames of text may be written at once."""

    async def run_asgi(self) -> None:
        """Run the application."""
        self.scope["extensions"][WRITE] = self.write_texts  # type: ignore[assignment]
        await super().run_asgi()

    def write_texts(self, texts: list[bytes]) -> bool:
        """Write a frame for each text."""
        if not self.writable.is_set() or self.close_sent or self.transport.is_closing():
            return False
        self.transport.write(b"".join([part for text in texts for part in (frame_head(len(text)), text)]))
        return True


def frame_head(size: int) -> bytes:
    """Return what comes before a text of so many bytes in a frame of a server.

    >>> frame_head(5), frame_head(300)
    (b'\\x81\\x05', b'\\x81~\\x01,')
    """
    if size < 126:
        return bytes((0x81, size))
    return b"\x81\x7e" + size.to_bytes(2, "big") if size < 1 << 16 else b"\x81\x7f" + size.to_bytes(8, "big")


class Listener(uvicorn.Server):
    """Uvicorn that ends streams before it waits for requests to end, and leaves signals to its caller."""

    def __init__(self, config: uvicorn.Config, context: Context) -> None:
        super().__init__(config)
        self._context = context

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End streams, then everything else."""
        await self._context.end_streams()
        await super().shutdown(sockets)
