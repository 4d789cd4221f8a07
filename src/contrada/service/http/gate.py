"""Gate: who makes a request, and whether there is room for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from contrada.service.access.keys import JWT_PREFIX, KeyRing, Principal, bearer
from contrada.service.access.rates import OpenConnections, Rates
from contrada.service.access.tokens import StreamTokens
from contrada.service.clocks import SteadyClock
from contrada.service.problems import UNAUTHORIZED
from contrada.service.settings import Settings

PUBLIC = "\0public"  # no tenant and no key has this name


class Gate:
    """Keys, tokens, rates and connections of one server.

    Keys and tokens of an identity provider end by the wall clock, stream tokens by a steady one: whoever sets the clock
    back does not lengthen their short life.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        limits = settings.limits
        self.clock, self.steady = clock, SteadyClock(clock)
        self.ring = KeyRing()
        self.tokens = StreamTokens(seconds=settings.access.stream_token_seconds)
        self.connections = OpenConnections(limits.connections, limits.tenant_connections)
        self._jwt = None
        if settings.jwt.enabled:
            from contrada.service.access.jwt import JwtVerifier  # loads a library that few servers need

            self._jwt = JwtVerifier(settings.jwt)
        self._public = settings.map.public if settings.map.enabled else None
        self._rates = Rates(limits.requests_per_second, limits.burst)

    async def principal(self, headers: Mapping[str, str]) -> Principal:
        """Return who makes a request, and count it; raise a Problem (401 or 429) if it is not let in."""
        header = headers.get("authorization")
        if header is None and self._public is not None:
            raise UNAUTHORIZED("without a key the map is read-only; the request needs Authorization: Bearer KEY")
        return await self.holder(bearer(None if header is None else header.encode("latin-1")))

    async def holder(self, presented: bytes) -> Principal:
        """Return who presents a key or a token of the identity provider, and count the request."""
        found = self.ring.find(presented, self.clock())
        if found is None and self._jwt is not None and presented.count(b".") == 2:
            found = await self._jwt.principal(presented, self.clock())
        if found is None:
            raise UNAUTHORIZED("the key is unknown, expired or revoked")
        if self._rates.rate is not None:
            self._rates.take((found.tenant, found.name), time.monotonic())
        return found

    async def watcher(self, headers: Mapping[str, str]) -> Principal:
        """Return who looks at the map: the holder of a key, or without one everybody if it is public."""
        if "authorization" in headers or self._public is None:
            found = await self.principal(headers)
            found.require("subscribe")
            return found
        if self._rates.rate is not None:
            self._rates.take(PUBLIC, time.monotonic())
        return Principal(self._public, frozenset(), PUBLIC, is_public=True)

    async def consumer(self, headers: Mapping[str, str], query: Mapping[str, str], subscriber: str) -> Principal:
        """Return who asks for the events of a subscriber, by a key or by a stream token in the query."""
        if "token" not in query:
            found = await self.principal(headers)
            found.require("subscribe")
            return found
        return self.token_holder(query["token"], subscriber)

    def token_holder(self, token: str, subscriber: str) -> Principal:
        """Return who presents a stream token of a subscriber."""
        grant = self.tokens.check(token, subscriber, self.steady())
        is_ended = grant.key_expires is not None and grant.key_expires <= self.clock()
        is_key = not grant.key.startswith(JWT_PREFIX)
        if is_ended or (is_key and not self.ring.is_valid(grant.tenant, grant.key, self.clock())):
            raise UNAUTHORIZED("the key that made the stream token has expired or was revoked")
        return Principal(grant.tenant, frozenset(("subscribe",)), grant.key, grant.key_expires)

    def connection(self, principal: Principal) -> AbstractContextManager[None]:
        """Count an open stream while a block runs; public screens take no room from the consumers of the tenant."""
        return self.connections.hold(PUBLIC if principal.is_public else principal.tenant)
