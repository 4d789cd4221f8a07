"""Peer addresses, who may connect, opening and closing connections, and limits on their number."""

from __future__ import annotations

import asyncio
import ssl
from asyncio import StreamReader, StreamWriter
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from contrada.errors import OverlayError
from contrada.limits import limit, variable

HANDSHAKE_SECONDS, CLOSING_SECONDS = 5.0, 1.0
MAX_HOST_CHARACTERS = 253  # of a DNS name
DIAL_WINDOW_SECONDS = 60.0


@dataclass(frozen=True)
class Door:
    """Who may connect: peers with the secret, peers with a certificate, or, without both, everyone.

    A side gives up if the other one takes more than `handshake_seconds` for a frame of the handshake. The side that
    accepted a connection closes it if no whole frame comes for `silent_seconds`.
    """

    secret: bytes | None = None
    server_tls: ssl.SSLContext | None = None
    client_tls: ssl.SSLContext | None = None
    handshake_seconds: float = HANDSHAKE_SECONDS
    silent_seconds: float = 90.0


def address_of(text: str) -> tuple[str, int]:
    """Return host and port of an address; raise OverlayError if it is invalid.

    >>> address_of("127.0.0.1:7000"), address_of("[::1]:80")
    (('127.0.0.1', 7000), ('::1', 80))
    """
    host, colon, port = text.rpartition(":")
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65535
    if not colon or not host or not is_port:
        raise OverlayError(f"address: need HOST:PORT, got {_shown(text)}")
    host = host.removeprefix("[").removesuffix("]")
    try:
        host.encode("idna")  # as asyncio does; empty and overlong labels raise
        is_name = len(host) <= MAX_HOST_CHARACTERS and host.isprintable() and not any(map(str.isspace, host))
    except UnicodeError:
        is_name = False
    if not is_name:
        raise OverlayError(f"address: need HOST:PORT, got {_shown(host)} as the host")
    return host, int(port)


def peer_address(peer: object) -> tuple[str, int]:
    """Return host and port of a peer; raise OverlayError unless its name is an address to connect to."""
    if not isinstance(peer, str):
        raise OverlayError(f"peer: need an address HOST:PORT, got {_shown(str(peer))}")
    host, port = address_of(peer)
    if not port:
        raise OverlayError(f"peer address: need a port from 1 to 65535, got {_shown(peer)}")
    return host, port


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def tls_options(context: ssl.SSLContext | None) -> dict[str, Any]:
    """Return the arguments of asyncio's functions for connections with or without TLS."""
    return {} if context is None else {"ssl": context, "ssl_handshake_timeout": HANDSHAKE_SECONDS}


async def connect(to: object, door: Door) -> tuple[StreamReader, StreamWriter]:
    """Open a connection to a peer; raise ConnectionError with the reason if that fails."""
    host, port = peer_address(to)
    try:
        return await asyncio.open_connection(host, port, **tls_options(door.client_tls))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ConnectionError(f"{to} cannot be reached: {reason}") from error


async def closed(writer: StreamWriter) -> None:
    """Close a connection in any state."""
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(CLOSING_SECONDS):
            await writer.wait_closed()


class Dials:
    """Count the connections opened in the last DIAL_WINDOW_SECONDS."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()

    def refusal(self, now: float, links: int) -> str | None:
        """Return why no connection may be opened beside `links` open ones; None, and count it, if one may."""
        while self._times and now - self._times[0] >= DIAL_WINDOW_SECONDS:
            self._times.popleft()
        if links >= limit("peer_links"):
            return f"{links:,} connections are open, the limit ({variable('peer_links')})"
        if len(self._times) >= limit("peer_dials"):
            return f"{len(self._times):,} connections were opened in a minute, the limit ({variable('peer_dials')})"
        self._times.append(now)
        return None


def check_guest(host: str, guests: Counter[str]) -> None:
    """Raise OverlayError if a connection from `host` is one too many of `guests`, counted by host with this one."""
    others, own = guests.total() - 1, guests[host] - 1
    if others >= limit("guests"):
        raise OverlayError(f"{others:,} connections are accepted, the limit ({variable('guests')})")
    if own >= limit("host_guests"):
        raise OverlayError(f"{own:,} connections from {host} are accepted, the limit ({variable('host_guests')})")
