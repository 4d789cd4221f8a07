"""LinkConnection: frames to and from one neighbour over one connection, until either side ends it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

from contrada.cancelling import end_tasks
from contrada.errors import ContradaError
from contrada.service.links.greeting import LinkError
from contrada.service.links.pieces import PIECE_BYTES, PieceJoiner, pieces_of

PING_SECONDS = 10.0  # between signs of life
SILENT_PINGS = 3  # a neighbour that is silent for as many is gone
IN_FLIGHT_BYTES = 8 << 20  # of frames that wait for the engine, besides the last one


class LinkWire(Protocol):
    """A WebSocket, of either side."""

    async def send(self, data: bytes | str) -> None:
        """Send a message; raise OSError if the connection is gone."""

    async def receive(self) -> bytes | str:
        """Return the next message; raise LinkError or OSError if there is none."""

    async def close(self, reason: str) -> None:
        """Close the connection."""


class LinkPeer(NamedTuple):
    """The other end of a connection: the tenant whose link it is, the neighbour, and who of both has called."""

    tenant: str
    neighbour: str
    caller: str


class LinkConnection:
    """A connection after the greeting. `take` is called with each frame, in order, and the connection.

    `piece` is the most bytes that the other side takes in one message.
    """

    def __init__(self, wire: LinkWire, peer: LinkPeer, *, piece: int = PIECE_BYTES, ping: float = PING_SECONDS) -> None:
        self.peer = peer
        self._wire, self._piece, self._ping = wire, piece, ping
        self._frames: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._end: str | None = None  # why it ends once everything is sent
        self._heard = 0.0
        self._in_flight = 0
        self._less = asyncio.Event()
        self._failure: asyncio.Future[str] | None = None

    # --- for the owner ---

    def send(self, frame: bytes) -> None:
        """Queue a frame."""
        self._frames.append(frame)
        self._wake.set()

    def end(self, reason: str) -> None:
        """Close the connection once everything that is queued is sent."""
        self._end = self._end or reason
        self._wake.set()

    def fail(self, reason: str) -> None:
        """Close the connection now."""
        if self._failure is None:  # it does not run yet
            self.end(reason)
        elif not self._failure.done():
            self._failure.set_result(reason)

    async def run(self, take: Callable[[LinkConnection, bytes], Awaitable[None]]) -> str:
        """Carry frames both ways; return why that ended."""
        loop = asyncio.get_running_loop()
        self._heard, self._failure = loop.time(), loop.create_future()
        work = [self._read(take), self._write(), self._watch()]
        tasks: list[asyncio.Future[str]] = [*(asyncio.create_task(one) for one in work), self._failure]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            reason = _reason_of(done)
        finally:
            await end_tasks(*tasks)
        with suppress(OSError, LinkError, TimeoutError):
            async with asyncio.timeout(self._ping):
                await self._wire.close(reason)
        return reason

    # --- both ways ---

    async def _read(self, take: Callable[[LinkConnection, bytes], Awaitable[None]]) -> str:
        joiner, loop = PieceJoiner(), asyncio.get_running_loop()
        while True:
            data = await self._wire.receive()
            self._heard = loop.time()
            if isinstance(data, str):
                raise LinkError("a message of text after the greeting")
            frame = joiner.add(data) if data else None
            if frame is not None:
                await self._room(len(frame))
                await take(self, frame)

    async def _room(self, size: int) -> None:
        """Wait while much waits for the engine; `taken` makes room again."""
        while self._in_flight > IN_FLIGHT_BYTES:
            self._less.clear()
            await self._less.wait()
        self._in_flight += size

    def taken(self, size: int) -> None:
        """The engine has dealt with a frame of so many bytes."""
        self._in_flight -= size
        self._less.set()

    async def _write(self) -> str:
        while True:
            while self._frames:
                for piece in pieces_of(self._frames.popleft(), self._piece):
                    await self._wire.send(piece)
            if self._end is not None:
                return self._end
            self._wake.clear()
            await self._wake.wait()

    async def _watch(self) -> str:
        """Send signs of life; return once the neighbour gives none for long."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._ping)
            if loop.time() - self._heard > SILENT_PINGS * self._ping:
                return f"nothing was heard for {SILENT_PINGS * self._ping:g} s"
            if not self._frames:
                await self._wire.send(b"")


def _reason_of(done: set[asyncio.Future[str]]) -> str:
    """Return why a connection ended."""
    for task in done:
        error = task.exception()
        if error is None:
            return task.result()
        if not isinstance(error, OSError | ContradaError | TimeoutError):
            raise error
        return str(error) or type(error).__name__
    return "ended"
