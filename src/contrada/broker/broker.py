"""Broker: commands in, effects out; no clock, no sockets, no disk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from contrada.arguments import checks_methods
from contrada.broker import advertising, connecting, frames, routing, subscribing, taking
from contrada.broker.effects import Effect, RecordKey
from contrada.broker.forwarding import LinkOptions
from contrada.broker.link import Link, Phase
from contrada.broker.messages import Messages
from contrada.broker.records import restored
from contrada.broker.routing import ClientMatches
from contrada.broker.saved_entries import TABLE, SavedEntries, write_columns
from contrada.broker.seen import DEFAULT_WINDOW, SeenIds
from contrada.broker.state import State
from contrada.broker.telling import apply_change
from contrada.broker.topology import cycle_through, forget_paths, learn_paths
from contrada.broker.wire import decode
from contrada.cql2.queries import Asked
from contrada.errors import BrokerError, UnknownKeyError
from contrada.matching.names import Name
from contrada.model import Predicate

COMMANDS_PER_ACK = 64  # at most; the rest is acknowledged on the next tick
DEFAULT_OPTIONS = LinkOptions()


class LinkView(NamedTuple):
    """A link as others may see it: what it forwards, suppresses, keeps until the neighbour has it, and dropped."""

    neighbour: str
    phase: str
    told: int
    suppressed: int
    taken: int
    unacknowledged: int
    behind: tuple[str, ...]
    dropped: int


@checks_methods(
    "subscribe", "unsubscribe", "advertise", "unadvertise", "publish", "link_up", "link_down", "unlink", "shed"
)
class Broker:
    """One broker of an acyclic network.

    Every command returns effects, to be done in order. `incarnation` is any number that the broker has not had before:
    it changes when the broker starts without its state. A broker that lost its state is given the neighbours that it
    had as `expected`; it keeps messages until they have told it what they want. Ids of the latest `window` messages are
    remembered, and none of those is delivered or forwarded twice.

    >>> import pyarrow as pa
    >>> broker = Broker("north", incarnation=1)
    >>> [type(effect).__name__ for effect in broker.subscribe("ann", "floods", "severity >= 3")]
    ['Persist']
    >>> messages = pa.table({"severity": [1, 4]})
    >>> deliver = broker.publish(messages, ids=["m1", "m2"])[-1]
    >>> deliver.client, deliver.ids, deliver.keys
    ('ann', ('m2',), (('floods',),))
    """

    def __init__(
        self,
        id: str,
        incarnation: int,
        *,
        expected: Collection[str] = (),
        window: int = DEFAULT_WINDOW,
        advertises: bool = False,
    ) -> None:
        self._state = State(id, incarnation, SeenIds(window), advertises)
        self._state.expected = set(expected)
        self._state.note_self()

    @classmethod
    def restore(
        cls,
        records: Mapping[RecordKey, Any],
        *,
        window: int = DEFAULT_WINDOW,
        advertises: bool = False,
        saved: SavedEntries | None = None,
        live: Collection[int] = (),
        id: str | None = None,
        relays_early: bool = False,
    ) -> Broker:
        """Return the broker that made `records` durable; its links are down.

        With a `saved` table, `records` need not hold the subscriptions that it has; `live` are the numbers of all
        subscriptions that have a record. `id` is a new name, for a broker that no neighbour knows by the old one.

        `relays_early` says that the host sends on what a neighbour published before that is durable. Neighbours may
        then have commands with numbers that are not in `records`, so each link compares what both sides hold when it
        comes back, in place of going on by numbers.
        """
        broker = cls.__new__(cls)
        state = broker._state = restored(records, window, advertises, saved, live, id)
        for link in state.links.values() if relays_early else ():
            if link.is_in_step:
                connecting.fall_out_of_step(state, link)
                state.note_link(link)
        return broker

    def save_table(self, directory: Path) -> None:
        """Save the table to a new directory; another thread may call this while commands go on.

        `save_entries`, called between commands, completes it for `SavedEntries.open`.
        """
        self._state.entries.save_table(directory / TABLE)

    def save_entries(self, directory: Path) -> None:
        """Complete what `save_table` has begun."""
        write_columns(directory, self._state.entries, self._state.interfaces)

    @property
    def id(self) -> str:
        """The name of the broker in the network."""
        return self._state.id

    def __len__(self) -> int:
        """Return the number of subscriptions, of clients and of neighbours."""
        return len(self._state.entries)

    # --- commands of clients ---

    def subscribe(self, client: str, key: Name, what: Asked) -> list[Effect]:
        """Add a client's subscription, or replace the one with the same key."""
        subscribing.subscribe(self._state, client, key, what)
        return self._state.take_effects()

    def unsubscribe(self, key: Name) -> list[Effect]:
        """Remove a client's subscription; raise UnknownKeyError for an unknown key."""
        subscribing.unsubscribe(self._state, key)
        return self._state.take_effects()

    def advertise(self, client: str, key: Name, what: Asked) -> list[Effect]:
        """Announce what a client will publish, or replace the announcement with the same key."""
        advertising.advertise(self._state, client, key, what)
        return self._state.take_effects()

    def unadvertise(self, key: Name) -> list[Effect]:
        """Remove an announcement; raise UnknownKeyError for an unknown key."""
        advertising.unadvertise(self._state, key)
        return self._state.take_effects()

    def publish(
        self, messages: Any, ids: Sequence[str], publisher: str | None = None, payloads: Sequence[bytes] = ()
    ) -> list[Effect]:
        """Publish rows of an Arrow table; a message whose id was seen before goes nowhere.

        `payloads`, one for each message or none, travel with the messages, and no broker reads them.
        """
        routing.publish(self._state, publisher, Messages.of(messages, ids, payloads))
        return self._state.take_effects()

    def match(self, messages: Any) -> ClientMatches:
        """Find the clients' subscriptions that messages satisfy; unlike `publish` this routes and remembers nothing.

        `messages` is an Arrow table, or a list of mappings, which is quicker for a few.

        >>> broker = Broker("north", incarnation=1)
        >>> effects = broker.subscribe("ann", "floods", "severity >= 3")
        >>> broker.match([{"severity": 1}, {"severity": 4}]).keys
        [[], ['floods']]
        """
        return routing.match(self._state, messages)

    # --- commands of the host ---

    def link_up(self, neighbour: str, options: LinkOptions = DEFAULT_OPTIONS) -> list[Effect]:
        """A connection to a neighbour is there; `options` count when the link is new."""
        if neighbour == self.id:
            raise BrokerError(f"broker {self.id!r} cannot be its own neighbour")
        connecting.link_up(self._state, neighbour, options)
        return self._state.take_effects()

    def link_down(self, neighbour: str) -> list[Effect]:
        """The connection to a neighbour is gone; what it has not acknowledged is kept."""
        self._link(neighbour).forget_connection()
        return self._state.take_effects()

    def unlink(self, neighbour: str, reason: str = "the link was removed") -> list[Effect]:
        """Remove a link for good, on both sides if the neighbour can be reached."""
        connecting.close(self._state, self._link(neighbour), reason, removed=True)
        return self._state.take_effects()

    def shed(self, neighbour: str, reason: str = "too much waits for the neighbour") -> list[Effect]:
        """Drop the older half of the messages that wait for a neighbour; `links` counts them as dropped.

        An open connection is closed with the reason. When the link comes back, both sides compare what they hold.
        """
        connecting.shed(self._state, self._link(neighbour), reason)
        return self._state.take_effects()

    def stop_waiting(self) -> list[Effect]:
        """After a loss of state: do not wait any longer for neighbours that do not come back."""
        self._state.expected.clear()
        self._state.note_self()
        routing.release(self._state)
        return self._state.take_effects()

    def tick(self) -> list[Effect]:
        """Some time has passed: acknowledge, and merge what is to be merged."""
        for link in self._state.links.values():
            connecting.answer(self._state, link)
            apply_change(self._state, link, link.forwarding.settle())
        return self._state.take_effects()

    def receive(self, neighbour: str, frame: frames.Frame | bytes) -> list[Effect]:
        """Take a frame from a neighbour. A bad one closes the link with a reason and changes nothing else.

        Frames that arrive after a link was closed are ignored.
        """
        link = self._state.links.get(neighbour)
        if link is not None and link.phase is not Phase.DOWN:
            try:
                self._take(link, decode(frame) if isinstance(frame, bytes) else frame)
            except BrokerError as error:
                connecting.close(self._state, link, str(error))
        return self._state.take_effects()

    # --- views ---

    @property
    def is_alone(self) -> bool:
        """Whether the broker has no neighbours, and waits for none: then `match` finds all that `publish` does."""
        return not (self._state.links or self._state.expected)

    @property
    def expected(self) -> tuple[str, ...]:
        """The neighbours that have still to tell what a lost state held."""
        return tuple(sorted(self._state.expected))

    @property
    def dropped(self) -> int:
        """The number of messages that were dropped because too many waited for a neighbour, by all links."""
        return sum(link.dropped for link in self._state.links.values())

    def links(self) -> list[LinkView]:
        """Return the links: what each forwards and suppresses."""
        found = []
        for link in self._state.links.values():
            told = sum(1 for _ in link.forwarding.told())
            sizes = told, len(link.forwarding) - told, len(link.rows), len(link.outbox) + len(link.waiting)
            found.append(LinkView(link.name, link.phase.value, *sizes, tuple(sorted(link.paths)), link.dropped))
        return found

    def predicates(self) -> Iterator[Predicate]:
        """Yield the predicates in the table, of clients and of neighbours, in the order in which they arrived."""
        return (predicate for _, predicate in self._state.entries.predicates())

    # --- frames ---

    def _link(self, neighbour: str) -> Link:
        if neighbour not in self._state.links:
            raise UnknownKeyError(f"broker {self.id!r} has no link to {neighbour!r:.60}")
        return self._state.links[neighbour]

    def _take(self, link: Link, frame: frames.Frame) -> None:
        """Take a frame; raise BrokerError, before anything changes, if it is wrong."""
        state = self._state
        if isinstance(frame, frames.LinkHello):
            connecting.greet(state, link, frame)
        elif isinstance(frame, frames.Close):
            connecting.take_close(state, link, frame)
        elif link.phase is not Phase.UP:
            raise BrokerError("a frame before the greeting")
        elif isinstance(frame, frames.LinkCommand):
            self._take_command(link, frame)
        else:
            _SIGNALS[type(frame)](state, link, frame)

    def _take_command(self, link: Link, command: frames.LinkCommand) -> None:
        """Take the next command of a neighbour; one that was taken before changes nothing."""
        if command.number <= link.received:
            return
        if command.number != link.received + 1:
            raise BrokerError(f"command {command.number} follows command {link.received}")
        _COMMANDS[type(command)](self._state, link, command)
        link.received = command.number
        if link.received - link.answered >= COMMANDS_PER_ACK:
            connecting.answer(self._state, link)
        if self._state.links.get(link.name) is link:  # a command may close a cycle, and remove the link
            self._state.note_link(link)


def _reach(state: State, link: Link, command: frames.Reach) -> None:
    connecting.check_paths(link, command.paths)
    while (cycle := cycle_through(state, link, command.paths)) is not None:
        connecting.close(state, *cycle, removed=True)
        if cycle[0] is link:
            return
    learn_paths(state, link, command.paths)


def _in_step(state: State, link: Link, _: frames.InStep) -> None:
    link.is_heard = True
    if link.name in state.expected:
        state.expected.discard(link.name)
        state.note_self()
        routing.release(state)


def _publish(state: State, link: Link, command: frames.Publish) -> None:
    if len(command.ids) != len(command.messages):
        raise BrokerError(f"publish: {len(command.ids)} ids for {len(command.messages)} messages")
    if len(command.payloads) not in (0, len(command.ids)):
        raise BrokerError(f"publish: {len(command.payloads)} payloads for {len(command.ids)} messages")
    routing.take(state, link, Messages(command.ids, command.messages.batch, command.payloads))


_SIGNALS: dict[type[Any], Callable[[State, Link, Any], None]] = {
    frames.LinkAck: lambda state, link, frame: connecting.acknowledge(state, link, frame.number),
    frames.Held: connecting.take_held,
    frames.Show: connecting.show,
    frames.Shown: connecting.take_shown,
}
_COMMANDS: dict[type[Any], Callable[[State, Link, Any], None]] = {
    frames.Subscribe: taking.take_subscription,
    frames.Advertise: taking.take_advertisement,
    frames.Unsubscribe: taking.drop,
    frames.Rename: taking.rename,
    frames.InStep: _in_step,
    frames.Refuse: taking.pass_refusal,
    frames.Reach: _reach,
    frames.Unreach: lambda state, link, command: forget_paths(state, link, command.brokers),
    frames.Publish: _publish,
}
