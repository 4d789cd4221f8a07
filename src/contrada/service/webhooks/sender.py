"""Senders: one POST to an endpoint. HttpSender does it with aiohttp and reaches only addresses that it may."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeAlias

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from contrada.service.access.addresses import AddressPolicy, RefusedAddressError
from contrada.service.deliveries.outcomes import REASON_CHARACTERS, Outcome

ANSWER_BYTES = 4_096  # of an answer's body; the connection is closed if there is more

log = logging.getLogger(__name__)

Resolve: TypeAlias = Callable[[str, int], Sequence[tuple[int, str]]]  # address families and addresses of a host


class Sender(Protocol):
    """Sends one request; never raises for what the other side does."""

    def check_url(self, url: str) -> object:
        """Raise a ContradaError if a URL alone shows that nothing can be sent to it."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Send a body and return what became of it."""

    async def close(self) -> None:
        """Close all connections."""


class Timeouts(NamedTuple):
    """Seconds that an attempt may take."""

    connect: float = 5.0
    total: float = 30.0


DEFAULT_TIMEOUTS = Timeouts()
PUBLIC_ADDRESSES = AddressPolicy()


class HttpSender:
    """Sends with one aiohttp session: connections are kept, redirects not followed, cookies not stored.

    Every connection is checked by the address that it goes to, whatever DNS answered before. At most `connections` are
    in use at a time. Names are kept for `names_kept` seconds; they are looked up in threads of their own, so that slow
    name servers hold up nothing else.
    """

    def __init__(
        self,
        *,
        addresses: AddressPolicy = PUBLIC_ADDRESSES,
        connections: int = 640,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve | None = None,
        names_kept: int = 10,
        agent: str = "contrada",
    ) -> None:
        self._addresses, self._timeouts = addresses, timeouts
        self._resolver = _ThreadResolver(resolve or _look_up)
        self._connector = addresses.connector(
            limit=connections,
            ttl_dns_cache=names_kept,
            resolver=self._resolver,
            ssl=True if tls is None else tls,
        )
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            timeout=aiohttp.ClientTimeout(total=timeouts.total, sock_connect=timeouts.connect),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,  # nobody reads the answer, and a small one may unpack to a large one
            headers={"User-Agent": agent, "Accept-Encoding": "identity"},
            trust_env=False,
        )

    def check_url(self, url: str) -> object:
        """Raise a Problem if a URL is malformed or names an address that may not be reached."""
        return self._addresses.check_url(url)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Send a body."""
        try:
            async with self._session.post(_url(url), data=body, headers=headers, allow_redirects=False) as response:
                await _drain(response)
                return Outcome(response.status, retry_after=response.headers.get("Retry-After"))
        except TimeoutError:
            return Outcome(0, f"no answer within {self._timeouts.total:g} s ({self._timeouts.connect:g} s to connect)")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Outcome(0, _reason(error))

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()
        await self._resolver.close()


class _ThreadResolver(AbstractResolver):
    """Looks names up in threads of its own."""

    def __init__(self, look_up: Resolve, threads: int = 16) -> None:
        self._look_up = look_up
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="contrada-names")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, self._look_up, host, port)
        return [
            ResolveResult(hostname=host, host=address, port=port, family=kind, proto=0, flags=socket.AI_NUMERICHOST)
            for kind, address in found
        ]

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int) -> list[tuple[int, str]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return [(family, str(address[0])) for family, _, _, _, address in found]


@lru_cache(maxsize=4_096)
def _url(url: str) -> URL:
    return URL(url)


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read a short body so that the connection can be used again. A longer one, or a fault in it, closes it."""
    left = ANSWER_BYTES
    try:
        while left > 0 and (data := await response.content.read(left)):
            left -= len(data)
    except (aiohttp.ClientError, TimeoutError, OSError):
        response.close()


def _reason(error: Exception) -> str:
    """Return an error of a connection for the owner of the endpoint, without addresses.

    Addresses would show how names resolve in the network of the server.
    """
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        text = f"TLS: {error}"
    elif isinstance(error, aiohttp.ClientConnectorDNSError):
        text = "the host name cannot be looked up"
    elif isinstance(error, aiohttp.ClientConnectorError):
        text = _connection_reason(error.os_error)
    elif isinstance(error, aiohttp.ServerDisconnectedError):
        text = "the endpoint closed the connection without an answer"
    else:
        text = f"{type(error).__name__}: {error}"
    return text[:REASON_CHARACTERS]


def _connection_reason(error: OSError) -> str:
    log.info("a webhook cannot connect: %s", error)
    if isinstance(error, RefusedAddressError) or "webhooks may not call" in str(error):  # of several, a common error
        return "webhooks may not reach the address of this host"
    return f"cannot connect: {os.strerror(error.errno) if error.errno else 'no address answers'}"
