"""Route messages: to the clients whose subscriptions they satisfy, and to the neighbours beyond which somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.broker.advertising import advertised_table
from contrada.broker.connecting import compare
from contrada.broker.effects import Deliver, RejectedMessages
from contrada.broker.frames import Publish
from contrada.broker.link import Link
from contrada.broker.messages import MessageRows, Messages
from contrada.broker.state import State
from contrada.errors import ContradaError
from contrada.geometry import Rejection
from contrada.geometry.faults import FaultCode
from contrada.matching.names import Name

NO_ROWS = np.empty(0, np.int64)


def publish(state: State, publisher: str | None, messages: Messages) -> None:
    """Route a client's messages; with advertisements only those that it has announced."""
    places: Sequence[int] = range(len(messages.ids))
    if state.advertises:
        places = _announced(state, publisher, messages)
        messages = messages.chosen(np.array(places, np.int64))
    take(state, None, messages, publisher, places)


class ClientMatches(NamedTuple):
    """The keys of the clients' subscriptions that each message satisfies, and the messages that cannot be matched."""

    keys: list[list[Name]]
    rejected: list[Rejection]


def match(state: State, messages: Any) -> ClientMatches:
    """Match messages in an Arrow table, or a list of mappings one by one."""
    found, rejected = (_matched_singly if isinstance(messages, list) else _matched_together)(state, messages)
    keys = state.entries.keys
    wanted = [[key for row in rows.tolist() if (key := keys[row]) is not None] for rows in found]
    return ClientMatches(wanted, rejected)


def _matched_together(state: State, messages: pa.Table) -> tuple[list[NDArray[np.int64]], list[Rejection]]:
    try:
        answer = state.entries.match(messages)
    except ContradaError as error:  # of the table as a whole
        bad = [Rejection(row, str(error), FaultCode.VALUE) for row in range(len(messages))]
        return [NO_ROWS] * len(bad), bad
    found = [answer.rows[start:stop] for start, stop in pairwise(answer.offsets.tolist())]
    return found, list(answer.rejected)


def _matched_singly(state: State, messages: list[Any]) -> tuple[list[NDArray[np.int64]], list[Rejection]]:
    found: list[NDArray[np.int64]] = []
    rejected: list[Rejection] = []
    for row, message in enumerate(messages):
        try:
            found.append(state.entries.match_one(message))
        except ContradaError as error:
            found.append(NO_ROWS)
            rejected.append(Rejection(row, str(error), FaultCode.VALUE))
    return found, rejected


def _announced(state: State, publisher: str | None, messages: Messages) -> Sequence[int]:
    """Return which messages satisfy an advertisement of their publisher; the others are rejected."""
    interface = None if publisher is None else state.clients.get(publisher, -1)
    answer = advertised_table(state, interface).match_many(messages.columns)
    is_announced = np.diff(answer.offsets) > 0
    if is_announced.all():
        return range(len(messages.ids))
    known = {item.row: item for item in answer.rejected}
    reason = "the publisher has no advertisement that the message satisfies"
    rows = np.flatnonzero(~is_announced).tolist()
    bad = tuple(known.get(row) or Rejection(row, reason, FaultCode.VALUE) for row in rows)
    state.add_effect(RejectedMessages(publisher, bad))
    kept: list[int] = np.flatnonzero(is_announced).tolist()
    return kept


def take(
    state: State,
    link: Link | None,
    messages: Messages,
    publisher: str | None = None,
    places: Sequence[int] | None = None,
) -> None:
    """Route messages from a neighbour, or from a client; while this broker does not know whom to, keep them.

    `places` are the rows that the messages had in the publisher's batch, by default those that they have here.
    """
    is_released = not state.expected if link is None else state.is_released(link)
    if is_released:
        _route(state, link, messages, publisher, range(len(messages.ids)) if places is None else places)
        return
    state.hold(None if link is None else link.name, messages)


def release(state: State) -> None:
    """Go on with what waited for neighbours to tell what a lost state held."""
    for link in state.links.values():
        compare(state, link)
    for held in state.take_held():
        origin = None if held.neighbour is None else state.links.get(held.neighbour)
        take(state, origin, Messages(held.ids, held.rows.batch, held.payloads))


def _route(state: State, origin: Link | None, messages: Messages, publisher: str | None, places: Sequence[int]) -> None:
    """Match messages that are new here, and send them where they are wanted.

    The id of a rejected message is not remembered: the message may come again, corrected.
    """
    fresh = state.seen.fresh(messages.ids)
    if not fresh:
        return
    if len(fresh) < len(messages.ids):
        messages = messages.chosen(np.array(fresh))
    columns = messages.columns
    if isinstance(columns, list):
        found, bad = _matched_singly(state, columns)
    else:
        found, bad = _matched_together(state, pa.Table.from_batches([columns]))
    ids = messages.ids
    if bad:
        rejected = {item.row for item in bad}
        ids = tuple(id for row, id in enumerate(ids) if row not in rejected)
        rows = tuple(item._replace(row=places[fresh[item.row]]) for item in bad)
        state.add_effect(RejectedMessages(publisher, rows))
    if ids:
        _note_seen(state, ids)
    if any(map(len, found)):
        _send(state, origin, messages, found)


def _send(state: State, origin: Link | None, messages: Messages, found: list[NDArray[np.int64]]) -> None:
    """Deliver messages to the clients and pass them to the neighbours that want them, but not back to `origin`."""
    links = {link.interface: link for link in state.links.values()}
    keys = state.entries.keys
    for interface, wanted, rows, starts in _by_interface(state, found):
        link = links.get(interface)
        if link is None:
            asking = [tuple([keys[row] for row in rows[start:stop]]) for start, stop in pairwise(starts)]
            state.add_effect(Deliver(state.interfaces[interface], messages, tuple(wanted.tolist()), tuple(asking)))
        elif link is not origin:
            chosen = MessageRows(messages.columns, wanted)
            state.command(link, Publish, messages.ids_of(wanted), chosen, messages.payloads_of(wanted))


class Wanted(NamedTuple):
    """The messages that an interface wants.

    The subscriptions in `rows[starts[i] : starts[i + 1]]` ask for `messages[i]`; other interfaces have the same `rows`.
    """

    interface: int
    messages: NDArray[np.int64]
    rows: list[int]
    starts: list[int]


def _by_interface(state: State, found: list[NDArray[np.int64]]) -> Iterator[Wanted]:
    """Yield the messages that each interface wants; messages and the rows that ask for one of them rise."""
    size, asking = len(found), np.concatenate(found)
    pairs = np.arange(size).repeat([len(rows) for rows in found])
    pairs += state.entries.interfaces_of(asking).astype(np.int64) * size  # interface and message in one number
    order = pairs.argsort(kind="stable")
    pairs, rows = pairs[order], asking[order].tolist()
    starts = _run_starts(pairs)
    interfaces, messages = np.divmod(pairs[starts[:-1]], size)
    for first, last in pairwise(_run_starts(interfaces)):
        yield Wanted(int(interfaces[first]), messages[first:last], rows, starts[first : last + 1])


def _run_starts(numbers: NDArray[np.int64]) -> list[int]:
    """Return where each run of equal numbers begins, and then their count.

    >>> _run_starts(np.array([7, 7, 9]))
    [0, 2, 3]
    """
    return [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]


def _note_seen(state: State, ids: tuple[str, ...]) -> None:
    """Add ids to those seen, in memory and for the store."""
    number, forgotten = state.seen.add(ids)
    state.note(ids, "seen", number)
    for old in forgotten:
        state.note(None, "seen", old)
