"""State: what a broker knows, shared by the modules that answer commands, and the effects that they collect."""

from __future__ import annotations

from typing import Any

import msgspec

from contrada.broker.effects import Effect, Persist, RecordKey, Send
from contrada.broker.entries import Entries, Entry
from contrada.broker.forwarding import LinkOptions, forwarding_of
from contrada.broker.frames import Frame, LinkCommand, Publish, Refuse
from contrada.broker.link import Link, Phase
from contrada.broker.messages import MessageRows, Messages
from contrada.broker.seen import SeenIds
from contrada.errors import KeyInUseError
from contrada.matching.names import Name
from contrada.matching.table import ForwardingTable
from contrada.model import Predicate

INCARNATION_BITS = 30  # a number has these bits of its broker's incarnation, then COUNTER_BITS
COUNTER_BITS = 32


class Advertisement(msgspec.Struct, frozen=True):
    """What a publisher or a neighbour may send: `theirs` is the id of a neighbour, `key` the key of a client."""

    number: int
    interface: int
    predicate: Predicate
    digest: int
    theirs: int = -1
    key: Name | None = None


class BrokerRecord(msgspec.Struct, frozen=True):
    """What must be durable of a broker as a whole."""

    id: str
    incarnation: int
    counter: int
    expected: tuple[str, ...]


class HeldMessages(msgspec.Struct, frozen=True):
    """Messages that wait until this broker knows where to send them; `neighbour` is None for a client's."""

    neighbour: str | None
    ids: tuple[str, ...]
    rows: MessageRows
    payloads: tuple[bytes, ...] = ()


def is_unchanged(old: Entry | Advertisement | None, interface: int, digest: int, name: str) -> bool:
    """Return True if a client repeats what its key stands for; raise KeyInUseError if the key is another client's.

    `old` is what the key stands for, None if nothing; `name` is its name in the error.
    """
    if old is None:
        return False
    if old.interface != interface:
        raise KeyInUseError(f"another client has {name}")
    return old.digest == digest


class State:
    """A broker's knowledge. Every change is noted for the store, every frame goes out through `send`."""

    def __init__(self, id: str, incarnation: int, seen: SeenIds, advertises: bool) -> None:
        self.id, self.incarnation, self.advertises = id, incarnation, advertises
        self.counter = 0
        self.links: dict[str, Link] = {}
        self.interfaces: list[str] = []  # names of neighbours and clients
        self.clients: dict[str, int] = {}  # interfaces by client
        self.entries = Entries()
        self.rows: dict[Name, int] = {}  # of clients' subscriptions, by key
        self.advertisements: dict[int, Advertisement] = {}
        self.advertised: dict[Name, int] = {}  # numbers of clients' advertisements, by key
        self.announced_tables: dict[int | None, ForwardingTable] = {}  # by interface, while advertisements stay
        self.seen = seen
        self.expected: set[str] = set()  # neighbours that have not told yet what a lost state held
        self.held: dict[int, HeldMessages] = {}  # messages that wait for them, in the order of arrival
        self._records: list[tuple[RecordKey, Any]] = []
        self._can_wait = True  # whether the store may take these records later
        self._effects: list[Effect] = []

    # --- effects ---

    def note(self, value: Any, *key: str | int) -> None:
        """Note a record for the store; None deletes it."""
        self._records.append((key, value))
        self._can_wait = False

    def note_later(self, value: Any, *key: str | int) -> None:
        """Note a record whose loss does no harm."""
        self._records.append((key, value))

    def add_effect(self, effect: Effect) -> None:
        """Add an effect."""
        self._effects.append(effect)

    def take_effects(self) -> list[Effect]:
        """Return the effects since the last call; what must be durable comes first."""
        effects: list[Effect] = [Persist(tuple(self._records), self._can_wait)] if self._records else []
        effects += self._effects
        self._records, self._effects, self._can_wait = [], [], True
        return effects

    def send(self, link: Link, frame: Frame) -> None:
        """Send a frame that is not numbered, or send a command again."""
        self._effects.append(Send(link.name, frame))

    def command(self, link: Link, kind: type[LinkCommand], *fields: Any) -> None:
        """Give a neighbour a command; it is kept until acknowledged, and sent when the link is up."""
        if not link.is_in_step:
            if kind in (Publish, Refuse):  # all others follow from what is compared then
                link.waiting.append((kind, fields))
                self.note((kind.__name__, fields), "waiting", link.name, len(link.waiting))
            return
        link.sent += 1
        command: Any = kind(link.sent, *fields)
        link.outbox.append(command)
        self.note(command, "outbox", link.name, link.sent)
        if link.phase is Phase.UP:
            self._effects.append(Send(link.name, command))

    # --- numbers and interfaces ---

    def new_number(self) -> int:
        """Return a number that this broker has never used; another incarnation uses others."""
        self.counter += 1
        self.note_self()
        return (self.incarnation % (1 << INCARNATION_BITS) << COUNTER_BITS) + self.counter

    def note_self(self) -> None:
        """Note the broker for the store."""
        self.note(BrokerRecord(self.id, self.incarnation, self.counter, tuple(sorted(self.expected))), "broker")

    def hold(self, neighbour: str | None, messages: Messages) -> None:
        """Keep messages until this broker knows where to send them."""
        place = max(self.held, default=0) + 1
        self.held[place] = HeldMessages(neighbour, messages.ids, MessageRows(messages.columns), messages.payloads)
        self.note(self.held[place], "held", place)

    def take_held(self) -> list[HeldMessages]:
        """Return the messages that were kept, and keep them no longer."""
        for place in self.held:
            self.note(None, "held", place)
        held, self.held = list(self.held.values()), {}
        return held

    def interface_of_client(self, client: str) -> int:
        """Return the interface of a client, a new one for a new client."""
        if client not in self.clients:
            self.clients[client] = self._new_interface(client)
        return self.clients[client]

    def new_link(self, name: str, options: LinkOptions) -> Link:
        """Return a new link to a neighbour."""
        link = Link(name, self._new_interface(name), options, forwarding_of(options, self.new_number))
        self.links[name] = link
        return link

    def _new_interface(self, name: str) -> int:
        self.interfaces.append(name)
        return len(self.interfaces) - 1

    def note_link(self, link: Link) -> None:
        """Note a link for the store."""
        self.note(link.record(), "link", link.name)

    def is_released(self, link: Link) -> bool:
        """Return True unless a neighbour other than this one has still to tell what a lost state held."""
        return self.expected <= {link.name}
