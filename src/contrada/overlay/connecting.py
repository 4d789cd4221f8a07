"""Addresses of peers, who may come in, how connections are opened and closed, and how many."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass

from contrada.errors import OverlayError
from contrada.limits import limit, variable
from contrada.overlay.wire import HANDSHAKE_SECONDS

CLOSING_SECONDS = 1.0
LONGEST_HOST = 253  # characters of a name in the DNS
MINUTE = 60.0


@dataclass(frozen=True)
class Door:
    """Who may come in: those who know a secret, those with a certificate, or, with neither, anybody."""

    secret: bytes | None = None
    server_tls: ssl.SSLContext | None = None
    client_tls: ssl.SSLContext | None = None


def address_of(text: str) -> tuple[str, int]:
    """Host and port.

    >>> address_of("127.0.0.1:7000"), address_of("[::1]:80")
    (('127.0.0.1', 7000), ('::1', 80))
    """
    host, colon, port = text.rpartition(":")
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65535
    if not colon or not host or not is_port:
        raise OverlayError(f"an address is HOST:PORT, not {_shown(text)}")
    host = host.removeprefix("[").removesuffix("]")
    try:
        host.encode("idna")  # as asyncio does; labels that are empty or too long are errors
        is_name = len(host) <= LONGEST_HOST and host.isprintable() and not any(map(str.isspace, host))
    except UnicodeError:
        is_name = False
    if not is_name:
        raise OverlayError(f"an address is HOST:PORT, and {_shown(host)} is no name of a host")
    return host, int(port)


def peer_address(peer: object) -> tuple[str, int]:
    """Host and port of a peer that can be connected to; an OverlayError if its name is none."""
    if not isinstance(peer, str):
        raise OverlayError(f"a peer is called by its address, not {_shown(str(peer))}")
    host, port = address_of(peer)
    if not port:
        raise OverlayError(f"nobody listens on port 0: {_shown(peer)}")
    return host, port


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


async def connect(to: object, door: Door) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection to a peer; a ConnectionError says why there is none."""
    host, port = peer_address(to)
    patience = None if door.client_tls is None else HANDSHAKE_SECONDS
    try:
        return await asyncio.open_connection(host, port, ssl=door.client_tls, ssl_handshake_timeout=patience)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ConnectionError(f"{to} cannot be reached: {reason}") from error


async def closed(writer: asyncio.StreamWriter) -> None:
    """Close a connection, whatever state it is in."""
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(CLOSING_SECONDS):
            await writer.wait_closed()


class Dials:
    """How often connections were opened in the last minute."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()

    def refusal(self, now: float, links: int) -> str | None:
        """Why no other connection may be opened now, beside so many; else None, and the connection is counted."""
        while self._times and now - self._times[0] >= MINUTE:
            self._times.popleft()
        if links >= limit("peer_links"):
            return f"{links:,} connections are open; the limit is {variable('peer_links')}"
        if len(self._times) >= limit("peer_dials"):
            return f"{len(self._times):,} connections were opened in a minute; the limit is {variable('peer_dials')}"
        self._times.append(now)
        return None


class Guests:
    """The connections that were accepted, by host."""

    def __init__(self) -> None:
        self._hosts: Counter[str] = Counter()

    def refusal(self, host: str) -> str | None:
        """Why no other connection of a host is accepted; None if it is."""
        if self._hosts.total() >= limit("guests"):
            return f"{self._hosts.total():,} connections are accepted; the limit is {variable('guests')}"
        if self._hosts[host] >= limit("host_guests"):
            return f"{self._hosts[host]:,} connections of {host} are accepted; the limit is {variable('host_guests')}"
        return None

    def add(self, host: str) -> None:
        """Count a connection."""
        self._hosts[host] += 1

    def remove(self, host: str) -> None:
        """Forget a connection."""
        self._hosts[host] -= 1
        if self._hosts[host] <= 0:
            del self._hosts[host]
