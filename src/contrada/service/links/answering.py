"""`GET /link`: the WebSocket by which another broker calls this one."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from contrada.errors import ContradaError
from contrada.service.access.open_streams import STOPS
from contrada.service.http.context import Context
from contrada.service.http.faults import problem_from
from contrada.service.http.sockets import GOING_AWAY, POLICY, refuse
from contrada.service.http.wire import Receive, Scope, Send
from contrada.service.links.calling import PATH
from contrada.service.links.connection import LinkConnection, LinkPeer
from contrada.service.links.greeting import LinkError
from contrada.service.links.links import Links
from contrada.service.links.meeting import close_reason, meet_caller
from contrada.service.links.pieces import PIECE_BYTES
from contrada.service.problems import Problem

__all__ = ["PATH", "LinkSockets"]


class ServerWire:
    """The WebSocket of a caller, as ASGI has it."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send

    async def send(self, data: bytes | str) -> None:
        """Send a message."""
        await self._send({"type": "websocket.send", "text" if isinstance(data, str) else "bytes": data})

    async def receive(self) -> bytes | str:
        """Return the next message."""
        message = await self._receive()
        if message["type"] != "websocket.receive":
            raise LinkError(f"the neighbour closed the connection: {message.get('reason') or message.get('code')}")
        data: bytes | str | None = message.get("bytes")
        return message["text"] if data is None else data

    async def close(self, reason: str) -> None:
        """Close the socket."""
        await self.end(POLICY, reason)

    async def end(self, code: int, reason: str) -> None:
        """Close the socket with a code; nothing happens if it is closed."""
        with suppress(OSError, RuntimeError):
            await self._send({"type": "websocket.close", "code": code, "reason": close_reason(reason).decode()})


class LinkSockets:
    """Serves the calls of other brokers."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        await receive()  # websocket.connect
        try:
            links = self._context.links
        except Problem as problem:
            await refuse(send, problem)
            return
        await send({"type": "websocket.accept"})
        wire = ServerWire(receive, send)
        with self._context.streams.held(None) as task:
            code, reason = await self._end_of(wire, links, task)
            await wire.end(code, reason)

    async def _end_of(self, wire: ServerWire, links: Links, task: asyncio.Task[None]) -> tuple[int, str]:
        """Serve a connection; return how it ends."""
        try:
            return POLICY, await self._serve(wire, links)
        except TimeoutError:
            return POLICY, "no greeting came in time"
        except asyncio.CancelledError:
            task.uncancel()
            reason = self._context.streams.reason(task) or STOPS
            return (GOING_AWAY if reason == STOPS else POLICY), reason
        except (ContradaError, OSError) as error:
            return POLICY, str(error)
        except Exception as error:
            return POLICY, f"id {problem_from(error).members.get('id')}"

    async def _serve(self, wire: ServerWire, links: Links) -> str:
        context, service = self._context, self._context.service
        if context.settings.server.wrap:
            return "this server wraps attributes at the date line (server.wrap), so it has no links"
        piece = min(PIECE_BYTES, context.settings.limits.body_bytes)
        async with asyncio.timeout(links.pace.greeting):
            keys = context.gate.ring.holders("link", context.gate.clock())
            caller, principal = await meet_caller(wire, service.name, keys, piece)
        peer = LinkPeer(principal.tenant, caller, caller)
        with context.gate.connection(principal), context.streams.held(principal):
            return await links.hold(LinkConnection(wire, peer, ping=links.pace.ping))
