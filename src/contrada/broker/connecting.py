"""Connections to neighbours: greeting, resuming, comparing what both sides hold, closing."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from contrada.broker import frames, subscribing
from contrada.broker.advertising import concerns, forget_advertisement
from contrada.broker.comparing import BUCKETS, bucket_digests, bucket_of, difference
from contrada.broker.effects import CloseLink
from contrada.broker.forwarding import LinkOptions
from contrada.broker.link import Link, Phase
from contrada.broker.state import State
from contrada.broker.telling import apply_change, digest_told
from contrada.broker.topology import cycle_through, forget_paths, learn_paths, paths_behind
from contrada.errors import BrokerError
from contrada.model import Predicate


def link_up(state: State, name: str, options: LinkOptions) -> None:
    """A connection to a neighbour is there: greet it."""
    link = state.links.get(name)
    if link is None:
        link = state.new_link(name, options)  # it is not in step, so what it should hold is only noted
        for entry, predicate in state.entries.predicates():
            if concerns(state, link, predicate):
                apply_change(state, link, link.forwarding.add(entry.number, predicate))
        for number, advertisement in state.advertisements.items():
            change = link.advertising.add(number, advertisement.predicate)
            apply_change(state, link, change, frames.Advertise)
        state.note_link(link)
    link.forget_connection()
    link.phase = Phase.GREETING
    sent = link.sent if link.is_in_step else frames.NOT_IN_STEP
    position = link.incarnation, link.received, sent, link.acknowledged
    behind = paths_behind(state, link)
    link.greeted = {path[-1] for path in behind}
    state.send(link, frames.LinkHello(frames.VERSION, state.id, state.incarnation, *position, behind))


def greet(state: State, link: Link, hello: frames.LinkHello) -> None:
    """Answer a neighbour's greeting: both directions resume where they were, or compare what is held."""
    if link.phase is not Phase.GREETING:
        raise BrokerError("a second hello")
    if hello.version != frames.VERSION:
        raise BrokerError(f"the neighbour speaks version {hello.version}, this broker {frames.VERSION}")
    if hello.broker != link.name:
        raise BrokerError(f"the neighbour is {hello.broker!r:.60}, not {link.name!r:.60}")
    check_paths(link, hello.behind)
    if (link.name,) not in hello.behind:
        raise BrokerError("a hello without a path to the neighbour itself")
    cycle = cycle_through(state, link, hello.behind)
    if cycle is not None:
        close(state, link, cycle[1], removed=True)
        return
    is_known = hello.knows == state.incarnation and hello.incarnation == link.incarnation
    outward = is_known and link.is_in_step and link.acknowledged <= hello.received <= link.sent
    inward = is_known and hello.sent != frames.NOT_IN_STEP and hello.acknowledged <= link.received <= hello.sent
    link.phase, link.incarnation = Phase.UP, hello.incarnation
    forget_paths(state, link, link.paths.keys() - {path[-1] for path in hello.behind})
    learn_paths(state, link, hello.behind)
    if outward:
        _resume(state, link, hello.received)
    else:
        fall_out_of_step(state, link)
    if not inward:
        link.received = link.answered = 0
        link.is_heard = False
        state.send(link, frames.Held(bucket_digests(_held(state, link))))
    state.note_link(link)


def check_paths(link: Link, paths: tuple[tuple[str, ...], ...]) -> None:
    """Raise BrokerError unless paths begin at the neighbour."""
    if any(not path or path[0] != link.name for path in paths):
        raise BrokerError("a path that does not begin at the neighbour")


def _resume(state: State, link: Link, received: int) -> None:
    """Send again what did not arrive."""
    acknowledge(state, link, received)
    for command in link.outbox:
        state.send(link, command)


def acknowledge(state: State, link: Link, number: int) -> None:
    """Forget commands that arrived.

    The store may learn it later: when the link comes back, the neighbour says again what it has received.
    """
    if not link.acknowledged <= number <= link.sent:
        raise BrokerError(f"acknowledges {number}; commands {link.acknowledged + 1} to {link.sent} are on their way")
    while link.outbox and link.outbox[0].number <= number:
        state.note_later(None, "outbox", link.name, link.outbox.popleft().number)
    if number > link.acknowledged:
        link.acknowledged = number
        state.note_later(link.record(), "link", link.name)


def fall_out_of_step(state: State, link: Link) -> None:
    """Count from 1 again; messages that did not arrive wait until the neighbour holds what it should."""
    kept = [command for command in link.outbox if isinstance(command, frames.Publish | frames.Refuse)]
    for command in link.outbox:
        state.note(None, "outbox", link.name, command.number)
    link.outbox.clear()
    link.sent = link.acknowledged = 0
    link.is_in_step = False
    for command in kept:
        _, *fields = structs.astuple(command)
        state.command(link, type(command), *fields)


def _held(state: State, link: Link) -> Iterator[tuple[int, int]]:
    """Yield ids and digests of what a neighbour told; what could not be taken is not among it, and tried again."""
    for id, row in link.rows.items():
        yield id, state.entries[row].digest
    for id, number in link.advertised.items():
        yield id, state.advertisements[number].digest


def _told(state: State, link: Link) -> dict[int, tuple[type[frames.Subscribe], Predicate, int]]:
    """Return what a neighbour should hold, by id."""
    found: dict[int, tuple[type[frames.Subscribe], Predicate, int]] = {}
    for kind, forwarding in ((frames.Advertise, link.advertising), (frames.Subscribe, link.forwarding)):
        for id, predicate in forwarding.told():
            found[id] = kind, predicate, digest_told(state, id, predicate)
    return found


def take_held(state: State, link: Link, held: frames.Held) -> None:
    """Take the digests of what a neighbour holds."""
    if link.is_in_step or len(held.digests) != BUCKETS:
        raise BrokerError("digests that nobody asked for, or of other buckets")
    link.held = held.digests
    link.asked.clear()
    link.shown.clear()
    compare(state, link)


def show(state: State, link: Link, asked: frames.Show) -> None:
    """Show a neighbour what is held from it in some buckets."""
    if link.is_heard or not all(0 <= bucket < BUCKETS for bucket in asked.buckets):
        raise BrokerError("asks for what is in step already, or for unknown buckets")
    chosen = set(asked.buckets)
    held = [(id, digest) for id, digest in _held(state, link) if bucket_of(digest) in chosen]
    state.send(link, frames.Shown(asked.buckets, tuple(id for id, _ in held), tuple(digest for _, digest in held)))


def take_shown(state: State, link: Link, shown: frames.Shown) -> None:
    """Take what a neighbour holds in the buckets that it was asked for."""
    is_fair = set(shown.buckets) <= link.asked - link.shown.keys() and len(shown.ids) == len(shown.digests)
    if not is_fair or not {bucket_of(digest) for digest in shown.digests} <= set(shown.buckets):
        raise BrokerError("shows what nobody asked for")
    link.shown.update((bucket, {}) for bucket in shown.buckets)
    for id, digest in zip(shown.ids, shown.digests, strict=True):
        link.shown[bucket_of(digest)][id] = digest
    compare(state, link)


def compare(state: State, link: Link) -> None:
    """Compare what a neighbour should hold with what it holds; send the difference as soon as that is known.

    Nothing happens before the neighbour has said what it holds, and before this broker knows itself what it should
    hold: after a loss of state, before all others have told.
    """
    if link.held is None or link.is_in_step or not state.is_released(link):
        return
    apply_change(state, link, link.forwarding.settle())  # only notes: what it should hold must be there first
    told = _told(state, link)
    digests = bucket_digests((id, digest) for id, (_, _, digest) in told.items())
    differing = {bucket for bucket in range(BUCKETS) if digests[bucket] != link.held[bucket]}
    unknown = differing - link.asked
    if unknown:
        link.asked |= unknown
        state.send(link, frames.Show(tuple(sorted(unknown))))
    elif differing <= link.shown.keys():
        _send_difference(state, link, told, differing)


def _send_difference(
    state: State, link: Link, told: dict[int, tuple[type[frames.Subscribe], Predicate, int]], differing: set[int]
) -> None:
    """Make a neighbour hold what it should; then come the messages that waited for this."""
    own = {id: digest for id, (_, _, digest) in told.items() if bucket_of(digest) in differing}
    theirs = {id: digest for bucket in differing for id, digest in link.shown[bucket].items()}
    found = difference(own, theirs)
    waiting = link.waiting
    link.waiting, link.held, link.is_in_step = [], None, True
    for number in range(len(waiting)):
        state.note(None, "waiting", link.name, number + 1)
    for old, new in found.rename:
        state.command(link, frames.Rename, old, new)
    for id in found.add:
        kind, predicate, digest = told[id]
        state.command(link, kind, id, predicate, digest)
    state.command(link, frames.InStep)
    for id in found.remove:
        state.command(link, frames.Unsubscribe, id)
    behind = paths_behind(state, link)
    state.command(link, frames.Reach, behind)
    gone = link.greeted - {path[-1] for path in behind}
    if gone:
        state.command(link, frames.Unreach, tuple(sorted(gone)))
    for waited, fields in waiting:
        state.command(link, waited, *fields)
    state.note_link(link)


def answer(state: State, link: Link) -> None:
    """Acknowledge what arrived since the last time."""
    if link.phase is Phase.UP and link.received > link.answered:
        link.answered = link.received
        state.send(link, frames.LinkAck(link.received))


def close(state: State, link: Link, reason: str, removed: bool = False) -> None:
    """Close a link with a reason; with `removed` for good."""
    frame = frames.Close(reason, removed)
    if link.phase is not Phase.DOWN:
        state.send(link, frame)
    take_close(state, link, frame)


def take_close(state: State, link: Link, frame: frames.Close) -> None:
    """Close the connection that a Close frame ended, whichever side sent it; with `removed` forget the link."""
    state.add_effect(CloseLink(link.name, frame.reason, frame.removed))
    link.forget_connection()
    if frame.removed:
        _forget_link(state, link)


def _forget_link(state: State, link: Link) -> None:
    """Forget a neighbour and everything that came from it."""
    forget_paths(state, link, list(link.paths))
    del state.links[link.name]
    for kind in ("link", "paths"):
        state.note(None, kind, link.name)
    for command in link.outbox:
        state.note(None, "outbox", link.name, command.number)
    for number in range(len(link.waiting)):
        state.note(None, "waiting", link.name, number + 1)
    for forwarding in (link.forwarding, link.advertising):
        for id, _ in forwarding.told():
            state.note(None, "forwarded", link.name, id)
    for id, row in link.rows.items():
        state.note(None, "theirs", link.name, id)
        subscribing.remove(state, row)
    for number in link.advertised.values():
        forget_advertisement(state, number)


def shed(state: State, link: Link, reason: str) -> None:
    """Drop the older half of the messages that wait for a neighbour, and count them.

    A connection is closed with the reason. What the neighbour should hold is compared when the link comes back, so
    commands about subscriptions need not be kept either.
    """
    if link.phase is not Phase.DOWN:
        close(state, link, reason)
    fall_out_of_step(state, link)
    waiting, kept = link.waiting, link.waiting[(len(link.waiting) + 1) // 2 :]
    link.dropped += sum(
        len(fields[0]) for kind, fields in waiting[: len(waiting) - len(kept)] if kind is frames.Publish
    )
    for number in range(len(waiting)):
        state.note(None, "waiting", link.name, number + 1)
    for number, (kind, fields) in enumerate(kept, 1):
        state.note((kind.__name__, fields), "waiting", link.name, number)
    link.waiting = kept
    state.note_link(link)
