"""How two brokers meet over a new connection: the greeting of either side, and WebSockets of clients as wires."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import aiohttp

from contrada.service.access.keys import Principal
from contrada.service.links.connection import LinkWire
from contrada.service.links.greeting import (
    GREETING_VERSION,
    CalledHello,
    CallerHello,
    CallerProof,
    GreetingRefusal,
    LinkError,
    LinkKey,
    check_greeting,
    decode_greeting,
    encode_greeting,
    holder_of,
    new_nonce,
)


class MetCaller(NamedTuple):
    """The name of a broker that has called, and the holder of its key."""

    broker: str
    principal: Principal


class MetCalled(NamedTuple):
    """The name of a broker that was called, and the bytes that it takes in one message."""

    broker: str
    piece: int


async def meet_called(wire: LinkWire, own: str, key: LinkKey) -> MetCalled:
    """Greet as the caller; raise LinkError unless the called broker knows the key."""
    hello = CallerHello(GREETING_VERSION, own, key.name, new_nonce())
    await wire.send(encode_greeting(hello))
    welcome = decode_greeting(CalledHello, await wire.receive())
    check_greeting(welcome.version, welcome.broker, own)
    key.check(welcome.proof, "called", hello, welcome.broker, welcome.nonce)
    await wire.send(encode_greeting(CallerProof(key.proof("caller", hello, welcome.broker, welcome.nonce))))
    return MetCalled(welcome.broker, welcome.piece)


async def meet_caller(wire: LinkWire, own: str, keys: Iterable[tuple[bytes, Principal]], piece: int) -> MetCaller:
    """Greet as the called broker; raise LinkError unless the caller knows one of the keys."""
    hello = decode_greeting(CallerHello, await wire.receive())
    try:
        check_greeting(hello.version, hello.broker, own)
        found = holder_of(hello.key, keys)
        if found is None:
            raise LinkError("the key is unknown, expired or revoked, or lacks the scope link")
    except LinkError as error:
        await wire.send(encode_greeting(GreetingRefusal(str(error))))
        raise
    (key, principal), nonce = found, new_nonce()
    proof = key.proof("called", hello, own, nonce)
    await wire.send(encode_greeting(CalledHello(GREETING_VERSION, own, nonce, proof, piece)))
    answer = decode_greeting(CallerProof, await wire.receive())
    key.check(answer.proof, "caller", hello, own, nonce)
    return MetCaller(hello.broker, principal)


class ClientWire:
    """The WebSocket of a caller."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def send(self, data: bytes | str) -> None:
        """Send a message."""
        await (self._socket.send_str(data) if isinstance(data, str) else self._socket.send_bytes(data))

    async def receive(self) -> bytes | str:
        """Return the next message."""
        message = await self._socket.receive()
        if message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT):
            data: bytes | str = message.data
            return data
        reason = message.extra if message.type is aiohttp.WSMsgType.CLOSE else message.data
        raise LinkError(f"the neighbour closed the connection: {reason or self._socket.close_code or 'lost'}")

    async def close(self, reason: str) -> None:
        """Close the socket."""
        await self._socket.close(message=close_reason(reason))


def close_reason(reason: str) -> bytes:
    """Return a reason as far as a close frame has room for it."""
    return reason.encode(errors="replace")[:123].decode(errors="ignore").encode()
