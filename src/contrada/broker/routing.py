"""Route messages: to the clients whose subscriptions they satisfy, and to the neighbours beyond which somebody asks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from msgspec import structs

from contrada.broker.advertising import advertised_table
from contrada.broker.connecting import compare
from contrada.broker.effects import Deliver, RejectedMessages
from contrada.broker.frames import Publish
from contrada.broker.link import Link
from contrada.broker.messages import Messages
from contrada.broker.state import State
from contrada.errors import ContradaError
from contrada.geometry import Rejection
from contrada.geometry.faults import FaultCode
from contrada.matching.answer import ManyMatches


def publish(state: State, publisher: str | None, messages: Messages) -> None:
    """Route a client's messages; with advertisements only those that it has announced."""
    if state.advertises:
        messages = _announced(state, publisher, messages)
    take(state, None, messages, publisher)


def _announced(state: State, publisher: str | None, messages: Messages) -> Messages:
    """Return the messages that satisfy an advertisement of their publisher; the others are rejected."""
    interface = None if publisher is None else state.clients.get(publisher, -1)
    answer = advertised_table(state, interface).match_many(messages.columns)
    is_announced = np.diff(answer.offsets) > 0
    if is_announced.all():
        return messages
    known = {item.row: item for item in answer.rejected}
    reason = "the publisher has no advertisement that the message satisfies"
    rows = np.flatnonzero(~is_announced).tolist()
    bad = tuple(known.get(row) or Rejection(row, reason, FaultCode.VALUE) for row in rows)
    state.add_effect(RejectedMessages(publisher, bad))
    return messages.chosen(np.flatnonzero(is_announced).tolist())


def take(state: State, link: Link | None, messages: Messages, publisher: str | None = None) -> None:
    """Route messages from a neighbour, or from a client; while this broker does not know whom to, keep them."""
    is_released = not state.expected if link is None else state.is_released(link)
    if is_released:
        _route(state, link, messages, publisher)
        return
    state.hold(None if link is None else link.name, messages)


def release(state: State) -> None:
    """Go on with what waited for neighbours to tell what a lost state held."""
    for link in state.links.values():
        compare(state, link)
    for neighbour, messages in map(structs.astuple, state.take_held()):
        take(state, None if neighbour is None else state.links.get(neighbour), messages)


def _route(state: State, origin: Link | None, messages: Messages, publisher: str | None) -> None:
    """Match messages that are new here, and send them where they are wanted."""
    fresh = state.seen.fresh(messages.ids)
    if not fresh:
        return
    messages = messages.chosen(fresh)
    _note_seen(state, messages.ids)
    try:
        answer = state.entries.match(messages.columns)
    except ContradaError as error:  # of the batch as a whole
        state.add_effect(
            RejectedMessages(publisher, tuple(Rejection(row, str(error), FaultCode.VALUE) for row in fresh))
        )
        return
    if answer.rejected:
        rows = tuple(item._replace(row=fresh[item.row]) for item in answer.rejected)
        state.add_effect(RejectedMessages(publisher, rows))
    if not len(answer.rows):
        return
    links = {link.interface: link for link in state.links.values()}
    for interface, found in _wanted(state, answer).items():
        link = links.get(interface)
        if link is None:
            keys = tuple(tuple(map(state.entries.keys.__getitem__, asking)) for asking in found.values())
            state.add_effect(Deliver(state.interfaces[interface], messages, tuple(found), keys))
        elif link is not origin:
            chosen = messages.chosen(list(found))
            state.command(link, Publish, chosen.ids, chosen.columns)


def _wanted(state: State, answer: ManyMatches) -> dict[int, dict[int, list[int]]]:
    """Return, for each interface, the messages that it wants and the rows of its subscriptions that ask for each."""
    wanted: dict[int, dict[int, list[int]]] = {}
    offsets, rows = answer.offsets.tolist(), answer.rows.tolist()
    interfaces = state.entries.interfaces_of(answer.rows).tolist()
    for message, (start, stop) in enumerate(pairwise(offsets)):
        for place in range(start, stop):
            wanted.setdefault(interfaces[place], {}).setdefault(message, []).append(rows[place])
    return wanted


def _note_seen(state: State, ids: tuple[str, ...]) -> None:
    """Add ids to those seen, in memory and for the store."""
    number, forgotten = state.seen.add(ids)
    state.note(ids, "seen", number)
    for old in forgotten:
        state.note(None, "seen", old)
