"""What the engine's thread does for links: connections that come and go, frames of neighbours, and views.

A connection is any object that stands for it: frames of one that another has replaced change nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any

from contrada.broker.broker import Broker, LinkView
from contrada.errors import UnknownKeyError
from contrada.service.core import Core
from contrada.service.links.backlogs import Backlog
from contrada.service.links.greeting import LinkError
from contrada.service.links.views import LinkStatus, NetworkView, RefusedOnTheWay, TenantNetwork
from contrada.service.store.message_store import StoreChange


def link_up(core: Core, change: StoreChange, tenant: str, neighbour: str, connection: Any) -> None:
    """A connection to a neighbour is there."""
    core.links.connections[tenant, neighbour] = connection
    core.apply(tenant, core.open_broker(tenant).link_up(neighbour), change)
    core.follow_objects(tenant, change)


def receive(core: Core, change: StoreChange, tenant: str, neighbour: str, connection: Any, data: bytes) -> None:
    """Take a frame of a neighbour."""
    if core.links.connections.get((tenant, neighbour)) is not connection:
        raise LinkError("another connection has taken the place of this one")
    core.apply(tenant, core.open_broker(tenant).receive(neighbour, data), change, relays=True)
    core.bound_backlogs(tenant, change)
    core.follow_objects(tenant, change)  # the neighbour may have ended the last link


def link_down(core: Core, change: StoreChange, tenant: str, neighbour: str, connection: Any) -> None:
    """A connection to a neighbour is gone."""
    if core.links.connections.get((tenant, neighbour)) is not connection:
        return
    del core.links.connections[tenant, neighbour]
    with suppress(UnknownKeyError):  # the link may have been removed
        core.apply(tenant, core.open_broker(tenant).link_down(neighbour), change)


def unlink(core: Core, change: StoreChange, tenant: str, neighbour: str) -> None:
    """Remove a link for good, with what waits for the neighbour."""
    broker = core.broker(tenant)
    if broker is None:
        raise UnknownKeyError(f"tenant {tenant!r:.80} has no link to {neighbour!r:.80}")
    core.apply(tenant, broker.unlink(neighbour), change)
    core.follow_objects(tenant, change)


def expect(core: Core, change: StoreChange, tenant: str, neighbours: Collection[str]) -> tuple[str, ...]:
    """Let a tenant that has no state wait for neighbours; return those for which it waits now."""
    is_new = core.broker(tenant) is None
    broker = core.open_broker(tenant, neighbours)
    if is_new:
        core.apply(tenant, broker.tick(), change)  # which makes it durable that it waits
    return broker.expected


def stop_waiting(core: Core, change: StoreChange, tenant: str) -> tuple[str, ...]:
    """Wait no longer; return the neighbours that have not come."""
    broker = core.broker(tenant)
    if broker is None or not broker.expected:
        return ()
    missing = broker.expected
    core.apply(tenant, broker.stop_waiting(), change)
    return missing


def tick_links(core: Core, change: StoreChange) -> None:
    """Time has passed: acknowledge what neighbours have sent."""
    for tenant, broker in core.networks():
        core.apply(tenant, broker.tick(), change)


def network_view(core: Core, change: StoreChange) -> NetworkView:
    """Return the links of all tenants."""
    refused = []
    for (tenant, number), reason in core.links.refusals.items():
        owner = core.catalog.owners[number]
        if owner is not None:
            refused.append(RefusedOnTheWay(tenant, owner.key, reason))
    return NetworkView(core.name, [_of_tenant(core, *one) for one in core.networks()], refused)


def _of_tenant(core: Core, tenant: str, broker: Broker) -> TenantNetwork:
    links = [_status(link, core.links.backlogs.of(tenant, link.neighbour)) for link in broker.links()]
    brokers = sorted({broker.id, *(name for link in links for name in link.behind)})
    return TenantNetwork(tenant, brokers, links, list(broker.expected))


def _status(link: LinkView, backlog: Backlog) -> LinkStatus:
    return LinkStatus(
        link.neighbour, link.phase, link.told, link.suppressed, link.taken, link.unacknowledged, backlog.bytes,
        link.dropped, list(link.behind),
    )  # fmt: skip
