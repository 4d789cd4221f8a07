"""Take what a neighbour commands. Whatever is wrong with a command is found before anything changes."""

from __future__ import annotations

from msgspec import structs

from contrada.broker import subscribing
from contrada.broker.advertising import add_advertisement, forget_advertisement, keep_advertisement
from contrada.broker.effects import Refused
from contrada.broker.frames import Advertise, Refuse, Rename, Subscribe, Unsubscribe
from contrada.broker.link import Link
from contrada.broker.state import Advertisement, State
from contrada.errors import BrokerError, ContradaError


def take_subscription(state: State, link: Link, command: Subscribe) -> None:
    """Take a neighbour's subscription, or tell it why that cannot be done."""
    old = link.rows.get(command.id)
    if old is not None and state.entries[old].digest == command.digest:
        return
    try:
        row = subscribing.add(state, link.interface, command.id, command.digest, command.predicate)
    except ContradaError as error:  # such as another CRS: the link is fine, and so are other subscriptions
        link.refused.add(command.id)
        state.command(link, Refuse, command.id, str(error))
        return
    link.rows[command.id] = row
    link.refused.discard(command.id)
    state.note(state.entries[row].number, "theirs", link.name, command.id)
    if old is not None:
        subscribing.remove(state, old)


def take_advertisement(state: State, link: Link, command: Advertise) -> None:
    """Take a neighbour's advertisement."""
    if not state.advertises:
        raise BrokerError(f"broker {state.id!r} does not use advertisements")
    old = link.advertised.get(command.id)
    if old is not None and state.advertisements[old].digest == command.digest:
        return
    number = state.new_number()
    link.advertised[command.id] = number
    taken = Advertisement(number, link.interface, command.predicate, command.digest, theirs=command.id)
    add_advertisement(state, taken)
    if old is not None:
        forget_advertisement(state, old)


def drop(state: State, link: Link, command: Unsubscribe) -> None:
    """Forget a neighbour's subscription or advertisement."""
    if command.id in link.rows:
        state.note(None, "theirs", link.name, command.id)
        subscribing.remove(state, link.rows.pop(command.id))
    elif command.id in link.advertised:
        forget_advertisement(state, link.advertised.pop(command.id))
    elif command.id in link.refused:
        link.refused.discard(command.id)
    else:
        raise BrokerError(f"unsubscribe: unknown id {command.id}")


def rename(state: State, link: Link, command: Rename) -> None:
    """Change the id of something that a neighbour told."""
    if command.new in link.rows or command.new in link.advertised:
        raise BrokerError(f"rename: the id {command.new} is in use")
    if command.old in link.rows:
        row = link.rows[command.new] = link.rows.pop(command.old)
        state.entries.rename(row, command.new)
        state.note(None, "theirs", link.name, command.old)
        state.note(state.entries[row].number, "theirs", link.name, command.new)
    elif command.old in link.advertised:
        number = link.advertised[command.new] = link.advertised.pop(command.old)
        keep_advertisement(state, structs.replace(state.advertisements[number], theirs=command.new))
    else:
        raise BrokerError(f"rename: unknown id {command.old}")


def pass_refusal(state: State, link: Link, command: Refuse) -> None:
    """Tell whoever made a subscription that a broker on the way could not take it."""
    for number in link.forwarding.members(command.id):
        row = state.entries.row_of(number)
        if row is None:
            continue  # it has left meanwhile
        entry = state.entries[row]
        name = state.interfaces[entry.interface]
        if entry.theirs < 0:
            state.add_effect(Refused(name, state.entries.keys[row], command.reason))
        else:
            state.command(state.links[name], Refuse, entry.theirs, command.reason)
