"""Requests to one server, tried again while it cannot be reached, with answers as types."""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeVar
from urllib.parse import quote
from weakref import WeakSet

import aiohttp
import msgspec
from yarl import URL

from contrada.client.backoff import FIRST_SECONDS, MOST_SECONDS, Backoff, retry_after_of
from contrada.client.errors import ClientError, ProblemError, ProtocolError, UnreachableError
from contrada.errors import ArgumentError

DEFAULT_URL = "http://127.0.0.1:8080"
PATIENCE = 60.0  # seconds that a request is tried
IDLE = 60.0  # seconds without a sign of life; streams of the server say something every 15
AGAIN = (408, 429, 502, 503, 504)  # statuses after which the same request may succeed
LOST = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, aiohttp.http.HttpProcessingError, TimeoutError)

T = TypeVar("T")


class Closing(Protocol):
    """Something that is closed with the connection."""

    async def close(self) -> None:
        """Close it."""


class ServerConnection:
    """Where a server is, the key to it, and how long to try.

    Without `url` and `key` the variables CONTRADA_URL and CONTRADA_KEY have them. `ca` is a PEM file of certificates
    that are trusted in place of those of the system.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        patience: float = PATIENCE,
        idle: float = IDLE,
        ca: str | os.PathLike[str] | None = None,
        first_wait: float = FIRST_SECONDS,
        most_wait: float = MOST_SECONDS,
    ) -> None:
        self.url = (url or os.environ.get("CONTRADA_URL") or DEFAULT_URL).rstrip("/")
        if not self.url.startswith(("http://", "https://")):
            raise ArgumentError(f"url: need http:// or https://, got {self.url!r:.80}")
        self._key = key or os.environ.get("CONTRADA_KEY")
        self.patience, self._idle = patience, idle
        self._trusted = None if ca is None else _trusted(ca)
        self._waits = first_wait, most_wait
        self._session: aiohttp.ClientSession | None = None
        self.streams: WeakSet[Closing] = WeakSet()  # that are closed with the connection

    def backoff(self) -> Backoff:
        """Return new waiting times."""
        return Backoff(*self._waits)

    async def close(self) -> None:
        """Close all connections."""
        for stream in list(self.streams):
            await stream.close()
        if self._session is not None:
            await self._session.close()

    async def open(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        body: Any = None,
    ) -> aiohttp.ClientResponse:
        """Send a request once; return the answer without its body, whatever its status is."""
        if self._session is None:  # made here, since it belongs to the running event loop
            # The time without data is limited, not that of the whole answer: a stream has no end.
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._idle, sock_read=self._idle)
            connector = aiohttp.TCPConnector(ssl=True if self._trusted is None else self._trusted)
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()
            )
        own = {} if self._key is None else {"Authorization": f"Bearer {self._key}"}
        url = URL(self.url + path, encoded=True)
        if query:
            url = url.with_query(query)
        return await self._session.request(method, url, headers=own | dict(headers), data=body, allow_redirects=False)

    async def request(
        self,
        kind: type[T],
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        is_repeatable: bool = True,
        also: tuple[int, ...] = (),
    ) -> T:
        """Send a request until it is answered; return the answer as a type.

        It is sent again while the server cannot be reached or asks for patience, for as long as `patience` allows. One
        that is not repeatable is not sent again where it may have been carried out. Raises ProblemError for a status
        of 400 and above that is not in `also`, UnreachableError if there was no answer.
        """
        backoff, end = self.backoff(), time.monotonic() + self.patience
        while True:
            wait = 0.0
            error: ClientError
            try:
                async with await self.open(method, path, query=query, headers=headers, body=body) as response:
                    data = await response.read()
                if response.status < 300 or response.status in also:
                    return decoded(data, kind)
                error = problem_of_answer(response, data)
                if response.status not in AGAIN:
                    raise error
                wait = retry_after_of(response.headers.get("Retry-After"))
            except LOST as lost:
                error = UnreachableError(f"{self.url}: {describe(lost)}")
                if not is_repeatable and not isinstance(lost, aiohttp.ClientConnectorError):
                    raise error from lost
            wait = backoff.seconds(wait)
            if time.monotonic() + wait > end:
                raise error
            await asyncio.sleep(wait)


def _trusted(ca: str | os.PathLike[str]) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:  # also one of TLS
        raise ArgumentError(f"ca: cannot read certificates from {os.fspath(ca)!r:.200}: {error}") from error


def describe(error: BaseException) -> str:
    """Return what was lost, in words, also of an error without text."""
    return str(error) or type(error).__name__


def decoded(data: bytes | str, kind: type[T]) -> T:
    """Return JSON as a type; raise ProtocolError if it is something else."""
    if kind is type(None):
        return None
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise ProtocolError(f"the answer cannot be read: {error}; it begins with {data[:80]!r}") from error


def problem_of_answer(response: aiohttp.ClientResponse, data: bytes) -> ProblemError:
    """Return the error that an answer tells; one of a proxy may have no problem details."""
    members: dict[str, Any] = {}
    if response.content_type.endswith("json"):
        with suppress(msgspec.MsgspecError):
            members = msgspec.json.decode(data, type=dict[str, Any])
    title, detail = (str(members.pop(name, "")) for name in ("title", "detail"))
    members.pop("status", None)
    return ProblemError(response.status, title or response.reason or "", detail, members)


def path_of(*names: str) -> str:
    """Return a path of names, encoded; a name may hold slashes.

    >>> path_of("subscriptions", "via roma/7"), path_of("subscriptions", "..", "pause")
    ('/subscriptions/via%20roma%2F7', '/subscriptions/%2E%2E/pause')
    """
    # A lone surrogate goes as bytes that are not UTF-8, which the server refuses.
    texts = (name.encode("utf-8", "surrogatepass") for name in names)
    return "".join("/" + ("%2E" * len(text) if set(text) == {ord(".")} else quote(text, safe="")) for text in texts)
