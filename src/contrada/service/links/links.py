"""Links: the connections of a server to its neighbours, made by calling or by being called."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from msgspec import structs

from contrada.cancelling import end_tasks
from contrada.errors import ContradaError
from contrada.service.engine import BusyError
from contrada.service.links import linking
from contrada.service.links.calling import DEFAULT_PACE, CallPace, LinkCaller
from contrada.service.links.connection import LinkConnection, LinkPeer
from contrada.service.links.greeting import LinkError
from contrada.service.links.link_state import LinkEnd, LinkFrame
from contrada.service.links.naming import NAME
from contrada.service.links.views import LinkCall, NetworkView
from contrada.service.service import Service

BUSY_SECONDS = 0.05  # until a frame for which the engine had no room is tried again

log = logging.getLogger("contrada.service")


class CalledBroker(NamedTuple):
    """A broker to call: its URL, and a key of its own with the scope `link`."""

    url: str
    key: str


class LinkPlan(NamedTuple):
    """The links that a server makes itself, for one of its tenants.

    A tenant without state takes no messages before the neighbours `expected` have told what they want, but waits for
    at most `patience` seconds.
    """

    calls: Sequence[CalledBroker] = ()
    tenant: str = "default"
    expected: Sequence[str] = ()
    patience: float = 60.0


class Links:
    """The connections to neighbours by tenant and name. Between two brokers there is one connection at a time."""

    def __init__(
        self,
        service: Service,
        plan: LinkPlan,
        *,
        pace: CallPace = DEFAULT_PACE,
        trusted: ssl.SSLContext | None = None,
    ) -> None:
        self._service, self._plan, self.pace = service, plan, pace
        self._callers = [
            LinkCaller(*one, plan.tenant, service.name, self.hold, pace=pace, trusted=trusted) for one in plan.calls
        ]
        self._open: dict[tuple[str, str], LinkConnection] = {}
        self._tasks: list[asyncio.Task[None]] = []

    # --- life ---

    async def start(self) -> None:
        """Keep the broker's name, begin to wait for neighbours that are expected, and call."""
        service, plan = self._service, self._plan
        service.carry_by(self._carry)
        with suppress(ContradaError):  # a store that takes nothing now is asked again at the next start
            await service.write_here([(NAME, "", service.name.encode())])
        if plan.expected and await service.do(partial(_expect, plan)):
            self._tasks.append(asyncio.create_task(self._stop_waiting()))
        self._tasks += [asyncio.create_task(caller.run()) for caller in self._callers]

    async def stop(self) -> None:
        """End calls and connections."""
        for connection in list(self._open.values()):
            connection.fail("the broker stops")
        await end_tasks(*self._tasks)

    async def _stop_waiting(self) -> None:
        await asyncio.sleep(self._plan.patience)
        tenant = self._plan.tenant
        missing = await self._service.do(lambda core, change: linking.stop_waiting(core, change, tenant))
        if missing:
            log.warning("tenant %s goes on without its neighbours %s", tenant, ", ".join(missing))

    # --- connections ---

    async def hold(self, connection: LinkConnection) -> str:
        """Serve a connection until it ends; return why. Raise LinkError if there is a better one."""
        if self._service.following is not None:
            raise LinkError("servers that share a log have no links")
        peer = connection.peer
        place = peer.tenant, peer.neighbour
        old = self._open.get(place)
        if old is not None:
            if not _replaces(peer, old.peer):
                raise LinkError(f"the brokers are linked by a connection that {old.peer.caller!r} made")
            old.fail("another connection has taken the place of this one")
        self._open[place] = connection
        try:
            await self._service.do(lambda core, change: linking.link_up(core, change, *place, connection))
            return await connection.run(self._take)
        finally:
            if self._open.get(place) is connection:
                del self._open[place]
            with suppress(ContradaError):
                await self._service.do(lambda core, change: linking.link_down(core, change, *place, connection))

    async def _take(self, connection: LinkConnection, frame: bytes) -> None:
        """Hand a frame to the engine; the connection fails if that does."""
        tenant, neighbour = connection.peer.tenant, connection.peer.neighbour

        def work(core: Any, change: Any) -> None:
            linking.receive(core, change, tenant, neighbour, connection, frame)

        def done(future: asyncio.Future[Any]) -> None:
            connection.taken(len(frame))
            error = future.exception()
            if error is not None:
                connection.fail(str(error) if isinstance(error, LinkError) else "the broker cannot take frames now")

        while True:
            try:
                self._service.submit(work, done)
                return
            except BusyError:
                await asyncio.sleep(BUSY_SECONDS)

    def _carry(self, outgoing: Sequence[LinkFrame | LinkEnd] | None) -> None:
        """Send what a transaction has for neighbours; None: the core was thrown away, so all links begin anew."""
        if outgoing is None:
            for connection in self._open.values():
                connection.fail("the broker cannot take frames now")
            return
        for item in outgoing:
            if isinstance(item, LinkFrame):
                item.connection.send(item.data)
            else:
                item.connection.end(item.reason)

    # --- views ---

    def __len__(self) -> int:
        """Return the number of connections."""
        return len(self._open)

    def calls(self) -> list[LinkCall]:
        """Return the links that this server makes by calling."""
        return [caller.view() for caller in self._callers]

    @property
    def failed_calls(self) -> int:
        """The number of calls that ended, or did not succeed, since the start."""
        return sum(caller.attempts - (caller.view().state == "connected") for caller in self._callers)

    async def view(self) -> NetworkView:
        """Return all links."""
        view: NetworkView = await self._service.do(linking.network_view)
        return structs.replace(view, calls=self.calls())

    async def remove(self, tenant: str, neighbour: str) -> None:
        """Remove a link for good; raise UnknownKeyError if there is none."""
        await self._service.do(lambda core, change: linking.unlink(core, change, tenant, neighbour))


def _expect(plan: LinkPlan, core: Any, change: Any) -> tuple[str, ...]:
    return linking.expect(core, change, plan.tenant, plan.expected)


def _replaces(new: LinkPeer, old: LinkPeer) -> bool:
    """Return True if a new connection takes the place of an old one between the same brokers.

    Of connections that both brokers made, that of the lesser name stays; of those that one made, the latest.
    """
    return new.caller <= old.caller
