"""LinkCaller: call a broker, again and again with growing pauses, and serve the link while it is there."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import aiohttp

from contrada.errors import ContradaError
from contrada.service.access.keys import digest_of
from contrada.service.deliveries.retries import RetryPolicy
from contrada.service.links.connection import PING_SECONDS, SILENT_PINGS, LinkConnection, LinkPeer
from contrada.service.links.greeting import LinkKey
from contrada.service.links.meeting import ClientWire, meet_called
from contrada.service.links.pieces import PIECE_BYTES
from contrada.service.links.views import LinkCall

PATH = "/link"
GREETING_SECONDS = 10.0  # until a greeting must be over, at most
STEADY_SECONDS = 10.0  # that a connection must last for the pauses to begin anew
LOST = (aiohttp.ClientError, OSError, TimeoutError, ContradaError)

log = logging.getLogger("contrada.service")


class CallPace(NamedTuple):
    """Seconds: the first and the longest pause between calls, and the time between signs of life."""

    first: float = 0.5
    most: float = 30.0
    ping: float = PING_SECONDS

    @property
    def greeting(self) -> float:
        """The seconds until a greeting must be over."""
        return min(GREETING_SECONDS, SILENT_PINGS * self.ping)


DEFAULT_PACE = CallPace()


class LinkCaller:
    """One link that this broker makes by calling `url`, for a tenant, with a key of the called broker.

    `hold` serves a connection until it ends. `trusted` is what a `wss://` URL is checked with.
    """

    def __init__(
        self,
        url: str,
        key: str,
        tenant: str,
        own: str,
        hold: Callable[[LinkConnection], Awaitable[str]],
        *,
        pace: CallPace = DEFAULT_PACE,
        trusted: ssl.SSLContext | None = None,
    ) -> None:
        self._url, self._key, self._tenant, self._own = url.rstrip("/"), LinkKey(digest_of(key)), tenant, own
        self._hold, self._pace, self._trusted = hold, pace, trusted
        self._policy = RetryPolicy(first=pace.first, longest=pace.most)
        self._state, self._neighbour, self._reason = "calling", None, None
        self.attempts = 0
        self.failures = 0  # in a row

    _state: str
    _neighbour: str | None
    _reason: str | None

    def view(self) -> LinkCall:
        """Return how the link is."""
        return LinkCall(self._url, self._tenant, self._state, self._neighbour, self.attempts, self._reason)

    async def run(self) -> None:
        """Call for ever."""
        loop = asyncio.get_running_loop()
        connector = aiohttp.TCPConnector(ssl=True if self._trusted is None else self._trusted)
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
            while True:
                self._state, start = "calling", loop.time()
                self.attempts += 1
                try:
                    self._reason = await self._call(session)
                except LOST as error:
                    self._reason = str(error) or type(error).__name__
                except Exception as error:  # a bug must not end the link for good
                    log.exception("the link to %s failed", self._url)
                    self._reason = type(error).__name__
                self.failures = 1 if loop.time() - start >= STEADY_SECONDS else self.failures + 1
                self._state = "waiting"
                pause = self._policy.delay(self.failures, (1 + random.random()) / 2)
                log.warning("link to %s: %s; calling again in %.1f s", self._url, self._reason, pause)
                await asyncio.sleep(pause)

    async def _call(self, session: aiohttp.ClientSession) -> str:
        """Call once; return why the connection ended."""
        async with asyncio.timeout(self._pace.greeting):
            socket = await session.ws_connect(
                self._url + PATH,
                max_msg_size=2 * PIECE_BYTES,
                compress=0,
                timeout=aiohttp.ClientWSTimeout(ws_close=1.0),
            )
        async with socket:
            wire = ClientWire(socket)
            async with asyncio.timeout(self._pace.greeting):
                met = await meet_called(wire, self._own, self._key)
            peer = LinkPeer(self._tenant, met.broker, self._own)
            self._state, self._neighbour, self._reason = "connected", met.broker, None
            log.info("link to %s: connected with broker %s", self._url, met.broker)
            piece = min(met.piece, PIECE_BYTES)
            return await self._hold(LinkConnection(wire, peer, piece=piece, ping=self._pace.ping))
