"""Restore a broker from the records that it had made durable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from msgspec import structs

from contrada.broker import frames
from contrada.broker.advertising import concerns
from contrada.broker.change import LinkChange
from contrada.broker.effects import RecordKey
from contrada.broker.entries import Entry
from contrada.broker.forwarding import Forwarding
from contrada.broker.link import Link
from contrada.broker.saved_entries import SavedEntries
from contrada.broker.seen import SeenIds
from contrada.broker.state import State
from contrada.broker.telling import apply_change
from contrada.errors import BrokerError
from contrada.model import Predicate

Parts = Mapping[str, Mapping[Any, Any]]  # records by kind, and by the rest of their keys


def restored(
    records: Mapping[RecordKey, Any],
    window: int,
    advertises: bool,
    saved: SavedEntries | None,
    live: Collection[int],
    id: str | None,
) -> State:
    """Return the state that was made durable; links are down.

    With `saved` the records of subscriptions that it holds are not needed; those that are not `live` any more are
    removed from it. `id` is the name of the broker now, None if that has not changed.
    """
    parts: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
    for (kind, *rest), value in records.items():
        parts[str(kind)][tuple(rest)] = value
    if () not in parts["broker"]:
        raise BrokerError("the records have no broker")
    own = parts["broker"][()]
    state = State(own.id if id is None else id, own.incarnation, SeenIds(window), advertises)
    state.counter, state.expected = own.counter, set(own.expected)
    for (name,), record in sorted(parts["link"].items(), key=lambda item: item[1].interface):
        _restore_link(state, name, record, parts)
    if saved is not None:
        _restore_saved(state, saved, frozenset(live))
    subscriptions = _restore_subscriptions(state, parts)
    _restore_advertisements(state, parts)
    for link in state.links.values():
        _restore_forwarding(state, link, subscriptions, {id for name, id in parts["forwarded"] if name == link.name})
    for (number,), ids in sorted(parts["seen"].items()):
        state.seen.add(ids, number)
    state.held = {place: held for (place,), held in sorted(parts["held"].items())}
    return state


def _restore_link(state: State, name: str, record: Any, parts: Parts) -> None:
    """Restore a link, but not what was told over it."""
    link = state.new_link(name, record.options)
    for field in ("incarnation", "received", "acknowledged", "is_in_step", "is_heard", "dropped"):
        setattr(link, field, getattr(record, field))
    link.refused = set(record.refused)
    link.paths = {path[-1]: path for path in parts["paths"].get((name,), ())}
    link.outbox.extend(command for _, command in _of_link(parts["outbox"], name))
    link.sent = link.acknowledged + len(link.outbox)
    link.waiting = [(getattr(frames, kind), fields) for _, (kind, fields) in _of_link(parts["waiting"], name)]


def _of_link(records: Mapping[Any, Any], name: str) -> list[tuple[int, Any]]:
    """Return the numbered records of a link, in order."""
    return sorted(
        ((number, value) for (owner, number), value in records.items() if owner == name), key=lambda one: one[0]
    )


def _restore_saved(state: State, saved: SavedEntries, live: frozenset[int]) -> None:
    """Take the table as it was saved, without what is gone."""
    for name in saved.names:
        if name not in state.links:
            state.interface_of_client(name)
    links = {name: link.interface for name, link in state.links.items()}
    state.entries = saved.entries(defaultdict(int, state.clients | links))
    state.rows = {key: row for row, key in enumerate(state.entries.keys) if key is not None}
    for number in saved.numbers - live:
        row = state.entries.row_of(number)
        assert row is not None
        state.rows.pop(state.entries.keys[row], None)
        state.entries.remove(row)


def _restore_subscriptions(state: State, parts: Parts) -> dict[int, tuple[int, Predicate]]:
    """Restore the table; return interfaces and predicates by number, if there are links that ask for them."""
    theirs = {number: id for (_, id), number in parts["theirs"].items()}
    found = {}
    if state.links:
        _restore_theirs(state, theirs)
        found = {entry.number: (entry.interface, predicate) for entry, predicate in state.entries.predicates()}
    for (number,), record in sorted(parts["subscription"].items()):
        link = state.links.get(record.owner) if record.key is None else None
        interface = state.interface_of_client(record.owner) if link is None else link.interface
        found[number] = interface, record.predicate
        entry = Entry(number, record.digest, theirs.get(number, -1), interface)
        row = state.entries.add(entry, record.predicate, record.key)
        if link is None:
            state.rows[record.key] = row
        else:
            link.rows[theirs[number]] = row
    state.entries.pack()
    return found


def _restore_theirs(state: State, theirs: Mapping[int, int]) -> None:
    """Give the neighbours' subscriptions of a saved table the ids that they have now."""
    links = {link.interface: link for link in state.links.values()}
    for number, id in theirs.items():
        row = state.entries.row_of(number)
        if row is not None:
            state.entries.rename(row, id)
            links[state.entries[row].interface].rows[id] = row


def _restore_advertisements(state: State, parts: Parts) -> None:
    """Restore advertisements, under the interfaces that their owners have now."""
    for (number,), record in sorted(parts["advertisement"].items()):
        advertisement, link = record.advertisement, None
        if advertisement.key is None:
            link = state.links[record.owner]
            link.advertised[advertisement.theirs] = number
        else:
            state.advertised[advertisement.key] = number
        interface = state.interface_of_client(record.owner) if link is None else link.interface
        state.advertisements[number] = structs.replace(advertisement, interface=interface)


def _restore_forwarding(
    state: State, link: Link, subscriptions: Mapping[int, tuple[int, Predicate]], told: set[int]
) -> None:
    """Restore what concerns a neighbour and what it was told.

    What was told comes first, then the rest, each in the order of arrival: then the same subscriptions cover the same
    others as before. Should there be a difference all the same, the neighbour is told.
    """
    concerned = {
        number: predicate
        for number, (interface, predicate) in subscriptions.items()
        if interface != link.interface and concerns(state, link, predicate)
    }
    announced = {
        number: advertisement.predicate
        for number, advertisement in state.advertisements.items()
        if advertisement.interface != link.interface
    }
    _refill(state, link, link.forwarding, concerned, told - announced.keys(), frames.Subscribe)
    _refill(state, link, link.advertising, announced, told & announced.keys(), frames.Advertise)


def _refill(
    state: State,
    link: Link,
    forwarding: Forwarding,
    predicates: Mapping[int, Predicate],
    told: set[int],
    kind: type[frames.LinkCommand],
) -> None:
    """Add predicates to an empty Forwarding, those that were told first."""
    for number in sorted(predicates, key=lambda number: (number not in told, number)):
        forwarding.add(number, predicates[number])
    forwarding.settle()
    now = dict(forwarding.told())
    forward = tuple((id, now[id]) for id in sorted(now.keys() - told))
    apply_change(state, link, LinkChange(forward, tuple(sorted(told - now.keys()))), kind)
