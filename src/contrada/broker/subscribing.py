"""Subscriptions of clients and of neighbours: into the table, and on to the neighbours that they concern."""

from __future__ import annotations

import msgspec

from contrada.broker.advertising import concerns
from contrada.broker.entries import Entry
from contrada.broker.state import State, is_unchanged
from contrada.broker.telling import apply_change
from contrada.broker.wire import digest_of
from contrada.cql2.queries import Asked
from contrada.errors import UnknownKeyError
from contrada.matching.names import Name, check_name
from contrada.model import Predicate
from contrada.simplification.simplifying import compact_predicate


class SubscriptionRecord(msgspec.Struct, frozen=True):
    """What must be durable of a subscription, besides the id that a neighbour gave it; a client's has a key."""

    owner: str
    key: Name | None
    digest: int
    predicate: Predicate


def subscribe(state: State, client: str, key: Name, what: Asked) -> None:
    """Add or replace a client's subscription; one that is there already changes nothing."""
    predicate = compact_predicate(what)
    check_name("key", key)
    check_name("client", client)
    digest, interface = digest_of(predicate), state.interface_of_client(client)
    old = state.rows.get(key)
    known = None if old is None else state.entries[old]
    if is_unchanged(known, interface, digest, f"a subscription with the key {key!r}"):
        return
    row = add(state, interface, -1, digest, predicate, key)
    state.rows[key] = row
    if old is not None:
        remove(state, old)


def unsubscribe(state: State, key: Name) -> None:
    """Remove a client's subscription."""
    row = state.rows.pop(key, None)
    if row is None:
        raise UnknownKeyError(f"no subscription has the key {key!r}")
    remove(state, row)


def add(state: State, interface: int, theirs: int, digest: int, predicate: Predicate, key: Name | None = None) -> int:
    """Add a subscription, tell the neighbours that it concerns, and return its row."""
    number = state.new_number()
    row = state.entries.add(Entry(number, digest, theirs, interface), predicate, key)
    state.note(SubscriptionRecord(state.interfaces[interface], key, digest, predicate), "subscription", number)
    for link in state.links.values():
        if link.interface != interface and concerns(state, link, predicate):
            apply_change(state, link, link.forwarding.add(number, predicate), known={number: digest})
    return row


def remove(state: State, row: int) -> None:
    """Remove a subscription; neighbours are told first what it covered."""
    number = state.entries[row].number
    state.entries.remove(row)
    state.note(None, "subscription", number)
    for link in state.links.values():
        if number in link.forwarding:
            apply_change(state, link, link.forwarding.remove(number))
