"""What `GET /network` tells."""

from __future__ import annotations

import msgspec


class LinkStatus(msgspec.Struct, frozen=True):
    """A link: the subscriptions that it forwards, suppresses and takes from the neighbour, and what waits for it.

    `behind` are the brokers that are reached through it; `dropped` counts messages that gave way to later ones.
    """

    neighbour: str
    phase: str
    forwards: int
    suppresses: int
    takes: int
    unacknowledged: int
    unacknowledged_bytes: int
    dropped: int
    behind: list[str]


class TenantNetwork(msgspec.Struct, frozen=True):
    """The network of a tenant: all brokers, the links of this one, and the neighbours that it waits for."""

    tenant: str
    brokers: list[str]
    links: list[LinkStatus]
    waits_for: list[str]


class RefusedOnTheWay(msgspec.Struct, frozen=True):
    """A subscription that a broker on the way cannot take: nothing from beyond that broker reaches it."""

    tenant: str
    key: str
    reason: str


class LinkCall(msgspec.Struct, frozen=True):
    """A link that this server makes by calling: whether it is connected, and why the last attempt ended."""

    url: str
    tenant: str
    state: str
    neighbour: str | None
    attempts: int
    reason: str | None


class NetworkView(msgspec.Struct, frozen=True):
    """The links of a server."""

    name: str
    tenants: list[TenantNetwork]
    refused: list[RefusedOnTheWay]
    calls: list[LinkCall] = []
