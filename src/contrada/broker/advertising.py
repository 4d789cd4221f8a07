"""Advertisements: publishers announce what they will publish, and subscriptions travel only towards them."""

from __future__ import annotations

import msgspec

from contrada.broker.frames import Advertise
from contrada.broker.link import Link
from contrada.broker.state import Advertisement, State, is_unchanged
from contrada.broker.telling import apply_change
from contrada.broker.wire import digest_of
from contrada.cql2.queries import Asked, bound_predicate
from contrada.errors import BrokerError, UnknownKeyError
from contrada.matching.names import Name, check_name
from contrada.matching.table import ForwardingTable
from contrada.model import Filter, Predicate
from contrada.model.implication import are_compared, conflicts


class AdvertisementRecord(msgspec.Struct, frozen=True):
    """What must be durable of an advertisement; interfaces are numbered anew at each start, so it names its owner."""

    owner: str
    advertisement: Advertisement


def may_intersect(one: Predicate, other: Predicate) -> bool:
    """Return False only if no message satisfies both predicates.

    >>> from contrada.cql2 import parse
    >>> may_intersect(parse("severity >= 3"), parse("severity < 3 OR kind = 'flood'"))
    True
    >>> may_intersect(parse("severity >= 3"), parse("severity < 3 AND kind = 'flood'"))
    False
    """
    return any(_filters_may_intersect(a, b) for a in one.filters for b in other.filters)


def _filters_may_intersect(one: Filter, other: Filter) -> bool:
    if not are_compared(one, other):
        return True
    return not any(conflicts(a, b) for a in one.constraints for b in other.constraints if a.attribute == b.attribute)


def concerns(state: State, link: Link, predicate: Predicate) -> bool:
    """Return True if messages that satisfy a predicate may come from a neighbour."""
    if not state.advertises:
        return True
    return any(may_intersect(state.advertisements[number].predicate, predicate) for number in link.advertised.values())


def advertise(state: State, client: str, key: Name, what: Asked) -> None:
    """Add or replace a client's advertisement."""
    if not state.advertises:
        raise BrokerError(f"broker {state.id!r} does not use advertisements")
    predicate = bound_predicate(what)
    check_name("key", key)
    check_name("client", client)
    interface, digest = state.interface_of_client(client), digest_of(predicate, is_advertisement=True)
    old = state.advertised.get(key)
    known = None if old is None else state.advertisements[old]
    if is_unchanged(known, interface, digest, f"an advertisement with the key {key!r}"):
        return
    number = state.new_number()
    add_advertisement(state, Advertisement(number, interface, predicate, digest, key=key))
    state.advertised[key] = number
    if old is not None:
        forget_advertisement(state, old)


def unadvertise(state: State, key: Name) -> None:
    """Remove a client's advertisement."""
    number = state.advertised.pop(key, None)
    if number is None:
        raise UnknownKeyError(f"no advertisement has the key {key!r}")
    forget_advertisement(state, number)


def add_advertisement(state: State, advertisement: Advertisement) -> None:
    """Add an advertisement, pass it on, and send subscriptions towards it.

    `advertised` of the link that it came from has its number already.
    """
    number, predicate = advertisement.number, advertisement.predicate
    keep_advertisement(state, advertisement)
    for link in state.links.values():
        if link.interface != advertisement.interface:
            apply_change(state, link, link.advertising.add(number, predicate), Advertise)
            continue
        for entry, asked in state.entries.predicates():
            is_new = entry.interface != link.interface and entry.number not in link.forwarding
            if is_new and may_intersect(predicate, asked):
                apply_change(state, link, link.forwarding.add(entry.number, asked))


def keep_advertisement(state: State, advertisement: Advertisement) -> None:
    """Keep an advertisement, a new one or one that has changed."""
    state.advertisements[advertisement.number] = advertisement
    state.announced_tables.clear()
    owner = state.interfaces[advertisement.interface]
    state.note(AdvertisementRecord(owner, advertisement), "advertisement", advertisement.number)


def forget_advertisement(state: State, number: int) -> None:
    """Forget an advertisement; subscriptions that concern no other one are withdrawn from where it came.

    `advertised` of the link that it came from has it no longer.
    """
    gone = state.advertisements.pop(number)
    state.announced_tables.clear()
    state.note(None, "advertisement", number)
    for link in state.links.values():
        if link.interface != gone.interface:
            if number in link.advertising:
                apply_change(state, link, link.advertising.remove(number), Advertise)
            continue
        for entry, asked in state.entries.predicates():
            if entry.number in link.forwarding and not concerns(state, link, asked):
                apply_change(state, link, link.forwarding.remove(entry.number))


def advertised_table(state: State, interface: int | None) -> ForwardingTable:
    """Return a table of what a client has advertised; without a client, of what all clients have.

    It is kept until an advertisement comes or goes.
    """
    if interface in state.announced_tables:
        return state.announced_tables[interface]
    table = state.announced_tables[interface] = ForwardingTable()
    for advertisement in state.advertisements.values():
        if advertisement.theirs < 0 and interface in (None, advertisement.interface):
            table.subscribe(0, advertisement.predicate)
    return table
