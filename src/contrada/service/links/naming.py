"""The name of a broker in the network: given by a setting, or made once and kept in the store."""

from __future__ import annotations

import secrets

from contrada.errors import ContradaError
from contrada.service.links.greeting import check_broker_name
from contrada.service.store.message_store import MessageStore

NAME = "broker-name"  # kind of the record
LINK_KEY = '["link",'  # what names of the records of links begin with, after the tenant


def broker_name(store: MessageStore, wanted: str = "") -> str:
    """Return the wanted name, the one that a store keeps, or a new one.

    A broker that neighbours know by another name keeps that: to them it would be a new broker, and what waits for the
    old one would wait for ever.
    """
    kept = store.record(NAME, "")
    if not wanted:
        return f"broker-{secrets.token_hex(6)}" if kept is None else kept.decode()
    check_broker_name(wanted)
    if kept is not None and kept.decode() != wanted and _has_links(store):
        raise ContradaError(
            f"server.name: neighbours know this broker as {kept.decode()!r}; remove its links before it becomes"
            f" {wanted!r}"
        )
    return wanted


def _has_links(store: MessageStore) -> bool:
    return any(name.partition("\0")[2].startswith(LINK_KEY) for name in store.names("broker"))
