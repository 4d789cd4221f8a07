"""Simulate a network of brokers: random delays, links that are cut, brokers that crash; equal seeds give equal runs.

Time is virtual and nothing runs beside anything else: a heap holds what happens next. Frames of a connection arrive in
order in each direction, frames of different connections in any order. Nothing happens on its own in a quiet network:
a broker gets a tick only some time after another command.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from contrada.broker.broker import Broker
from contrada.broker.effects import CloseLink, Deliver, Effect, Persist, RecordKey, Send
from contrada.broker.forwarding import LinkOptions
from contrada.broker.frames import Frame, LinkCommand, Publish
from contrada.broker.record_bytes import record_bytes, record_value
from contrada.broker.seen import DEFAULT_WINDOW
from contrada.broker.simulation.connection import Connection, Wire
from contrada.broker.simulation.counting import Counts, LinkCounts, MissingMessage, kept_messages, seen_messages
from contrada.broker.wire import decode, encode
from contrada.cql2.queries import Asked
from contrada.errors import BrokerError, UnknownKeyError
from contrada.matching.names import Name

MAX_EVENTS_PER_RUN = 50_000_000  # more mean a fault of the protocol
DEFAULT_OPTIONS = LinkOptions()


class _Host:
    """A broker and what its host keeps for it; `broker` is None after a crash."""

    def __init__(self, broker: Broker) -> None:
        self.broker: Broker | None = broker
        self.store: dict[RecordKey, Any] = {}
        self.unwritten: list[tuple[RecordKey, Any]] = []  # records that can wait; a crash loses them
        self.connections: dict[str, Connection] = {}  # those that the broker believes in, by neighbour
        self.subscriptions: dict[Name, tuple[str, Asked]] = {}  # clients repeat them after a loss of state
        self.advertisements: dict[Name, tuple[str, Asked]] = {}
        self.crash_after: int | None = None  # crash after so many effects of the next command
        self.has_tick = False


class NetworkSimulator:
    """A network of brokers in virtual time.

    A frame takes between the two `delay`s in seconds, as does the news that a connection is up or down. A broker gets
    a tick at most `tick` seconds after a command. With `wire` every frame is encoded and decoded, and so are the
    records of a broker that restarts; `sizes` only counts encoded bytes. Without `durable` no records are kept, which
    saves memory; a broker can then only lose its state. With `relays_early` hosts pass on what neighbours publish
    before it is durable.

    >>> import pyarrow as pa
    >>> from contrada.broker.simulation.topologies import chain
    >>> network = NetworkSimulator(seed=1)
    >>> network.build(chain(3))
    >>> network.subscribe("b2", "ann", "floods", "severity >= 3")
    >>> network.run()
    >>> network.publish("b0", pa.table({"severity": [1, 4]}), ["m1", "m2"])
    >>> network.run()
    >>> list(network.delivered)
    [('ann', 'm2')]
    >>> counts = network.counts
    >>> counts.messages, counts.entries, counts.false_positives
    (2, 3, 0)
    """

    def __init__(
        self,
        seed: int = 0,
        delay: tuple[float, float] = (0.01, 0.05),
        options: LinkOptions = DEFAULT_OPTIONS,
        *,
        advertises: bool = False,
        wire: bool = False,
        sizes: bool = False,
        tick: float = 1.0,
        window: int = DEFAULT_WINDOW,
        durable: bool = True,
        relays_early: bool = False,
    ) -> None:
        self.rng = random.Random(seed)
        self.now = 0.0
        self.settled_at = 0.0  # when a broker last took a control command
        self.delivered: dict[tuple[str, str], list[float]] = {}  # times by client (of one broker) and message id
        self.closed: list[tuple[float, str, CloseLink]] = []  # links that brokers closed: when, and by which
        self.link_counts: dict[tuple[str, str], LinkCounts] = {}  # by sender and receiver
        self.watch: Callable[[str, list[Effect]], None] | None = None  # called with the effects of every command
        self._delay, self._options, self._tick = delay, options, tick
        self._settings: dict[str, Any] = {"window": window, "advertises": advertises}
        self._decodes, self._encodes, self._is_durable = wire, wire or sizes, durable
        self._relays_early = relays_early
        self._hosts: dict[str, _Host] = {}
        self._wires: dict[frozenset[str], Wire] = {}
        self._incarnations = itertools.count(1)
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._sequence = itertools.count()  # breaks ties, so that functions are never compared
        self._at_risk: list[MissingMessage] = []  # what brokers kept for others when they lost their state
        self._lost = self._matched = self._false_positives = self._deliveries = 0

    # --- views ---

    @property
    def brokers(self) -> dict[str, Broker]:
        """The brokers that are running, by id."""
        return {id: host.broker for id, host in self._hosts.items() if host.broker is not None}

    @property
    def links(self) -> list[tuple[str, str]]:
        """The links that were made and not removed, cut ones included."""
        return [wire.ends for wire in self._wires.values()]

    @property
    def counts(self) -> Counts:
        """Everything counted so far."""
        links = self.link_counts.values()
        sums = {field.name: sum(getattr(link, field.name) for link in links) for field in fields(LinkCounts)}
        return Counts(
            **sums,
            lost=self._lost, entries=sum(map(len, self.brokers.values())), matched=self._matched,
            false_positives=self._false_positives, deliveries=self._deliveries, missing=len(self.missing),
        )  # fmt: skip

    @property
    def missing(self) -> list[MissingMessage]:
        """Messages that only a broker had which lost its state: the next broker on their way has not got them."""
        nexts = {one.neighbour or one.broker for one in self._at_risk}
        seen = {id: seen_messages(self.records(id).items()) for id in nexts}
        return [one for one in self._at_risk if one.message not in seen[one.neighbour or one.broker]]

    def records(self, id: str) -> Mapping[RecordKey, Any]:
        """Return what a broker has made durable."""
        return self._host(id).store

    # --- the network ---

    def add(self, id: str) -> None:
        """Add a broker."""
        if id in self._hosts:
            raise BrokerError(f"there is a broker {id!r} already")
        self._hosts[id] = _Host(Broker(id, next(self._incarnations), **self._settings))

    def link(self, a: str, b: str, options: LinkOptions | None = None) -> None:
        """Link two brokers; `options` default to those of the network."""
        self._host(a), self._host(b)
        wire = self._wires.setdefault(frozenset((a, b)), Wire((a, b), options or self._options))
        self._connect(wire)

    def build(self, links: Iterable[tuple[str, str]]) -> None:
        """Add brokers and links, and run until the network is quiet."""
        for a, b in links:
            for id in (a, b):
                if id not in self._hosts:
                    self.add(id)
            self.link(a, b)
        self.run()

    def unlink(self, a: str, b: str) -> None:
        """Remove a link at `a`; `b` learns it from `a`."""
        self._wire(a, b)
        self._do(a, self._broker(a).unlink(b))

    # --- clients ---

    def subscribe(self, broker: str, client: str, key: Name, what: Asked) -> None:
        """Subscribe a client at a broker, or replace its subscription with the same key."""
        self._do(broker, self._broker(broker).subscribe(client, key, what))
        self._hosts[broker].subscriptions[key] = client, what

    def unsubscribe(self, broker: str, key: Name) -> None:
        """Remove a client's subscription."""
        self._do(broker, self._broker(broker).unsubscribe(key))
        del self._hosts[broker].subscriptions[key]

    def advertise(self, broker: str, client: str, key: Name, what: Asked) -> None:
        """Announce what a client will publish."""
        self._do(broker, self._broker(broker).advertise(client, key, what))
        self._hosts[broker].advertisements[key] = client, what

    def unadvertise(self, broker: str, key: Name) -> None:
        """Remove an announcement."""
        self._do(broker, self._broker(broker).unadvertise(key))
        del self._hosts[broker].advertisements[key]

    def publish(self, broker: str, messages: Any, ids: Sequence[str], publisher: str | None = None) -> None:
        """Publish messages in columns at a broker."""
        self._do(broker, self._broker(broker).publish(messages, ids, publisher))

    # --- faults ---

    def cut(self, a: str, b: str) -> None:
        """Cut a link: frames on their way are lost from a random moment on, before each end learns of the cut."""
        wire = self._wire(a, b)
        wire.is_cut = True
        self._break(wire)

    def heal(self, a: str, b: str) -> None:
        """Connect a link again that was cut, or that one of its brokers closed."""
        wire = self._wire(a, b)
        wire.is_cut = False
        self._connect(wire)

    def crash(self, id: str, after: int | None = None) -> None:
        """Stop a broker; its records stay.

        With `after` it stops during its next command, after Persist and so many of the effects that follow; with -1
        before Persist, if the command is a publication of a neighbour.
        """
        host = self._host(id)
        if after is not None and host.broker is not None:
            host.crash_after = after
            return
        host.broker, host.crash_after = None, None
        host.unwritten.clear()
        host.connections.clear()
        for wire in self._wires_of(id):
            self._break(wire)

    def restart(self, id: str) -> None:
        """Start a broker from its records; one that runs crashes first."""
        if not self._is_durable:
            raise BrokerError("a simulator with durable=False keeps no records")
        self.crash(id)
        host = self._host(id)
        if host.store:
            records = self._read_records(host.store)
            host.broker = Broker.restore(records, **self._settings, relays_early=self._relays_early)
        else:  # it has never had a command
            host.broker = Broker(id, next(self._incarnations), **self._settings)
        self._reconnect(id)

    def _read_records(self, store: Mapping[RecordKey, Any]) -> Mapping[RecordKey, Any]:
        if not self._decodes:
            return store
        return {key: record_value(key, record_bytes(key, value)) for key, value in store.items()}

    def lose(self, id: str) -> None:
        """Start a broker without its records; its clients subscribe and advertise again at once."""
        self.crash(id)
        host = self._host(id)
        self._at_risk += kept_messages(id, host.store)
        host.store.clear()
        expected = [wire.other(id) for wire in self._wires_of(id)]
        host.broker = Broker(id, next(self._incarnations), expected=expected, **self._settings)
        for key, (client, what) in host.subscriptions.items():
            self._do(id, host.broker.subscribe(client, key, what))
        for key, (client, what) in host.advertisements.items():
            self._do(id, host.broker.advertise(client, key, what))
        self._reconnect(id)

    def stop_waiting(self, id: str) -> None:
        """Let a broker that lost its state go on without neighbours that have not come back."""
        self._do(id, self._broker(id).stop_waiting())

    def inject(self, a: str, b: str, frame: Frame | bytes) -> None:
        """Let `b` receive a frame from `a` now that `a` has never sent."""
        self._do(b, self._broker(b).receive(a, frame))

    # --- time ---

    def run(self, until: float | None = None) -> None:
        """Let time pass up to `until`; without it, until the network is quiet."""
        for _ in range(MAX_EVENTS_PER_RUN):
            if not self._heap or (until is not None and self._heap[0][0] > until):
                break
            self.now, _, happen, arguments = heapq.heappop(self._heap)
            happen(*arguments)
        else:
            raise BrokerError(f"the network is not quiet after {MAX_EVENTS_PER_RUN:,} events")
        self.now = self.now if until is None else max(self.now, until)

    def _at(self, time: float, happen: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self._heap, (time, next(self._sequence), happen, arguments))

    def _later(self) -> float:
        least, most = self._delay
        return self.now + (least if least == most else self.rng.uniform(least, most))

    # --- hosts and wires ---

    def _host(self, id: str) -> _Host:
        if id not in self._hosts:
            raise UnknownKeyError(f"unknown broker {id!r:.60}")
        return self._hosts[id]

    def _broker(self, id: str) -> Broker:
        broker = self._host(id).broker
        if broker is None:
            raise BrokerError(f"broker {id!r} has crashed")
        return broker

    def _wire(self, a: str, b: str) -> Wire:
        if frozenset((a, b)) not in self._wires:
            raise UnknownKeyError(f"no link between {a!r:.60} and {b!r:.60}")
        return self._wires[frozenset((a, b))]

    def _wires_of(self, id: str) -> Iterator[Wire]:
        return (wire for wire in list(self._wires.values()) if id in wire.ends)

    def _reconnect(self, id: str) -> None:
        """After a start: connect the links again, and remove those at the broker that are gone meanwhile."""
        for link in self._broker(id).links():
            if frozenset((id, link.neighbour)) not in self._wires:
                self._do(id, self._broker(id).unlink(link.neighbour))
        for wire in self._wires_of(id):
            self._connect(wire)

    def _connect(self, wire: Wire) -> None:
        """Connect a link unless it is connected, cut, or has an end that is down."""
        if wire.connection is not None or wire.is_cut or any(self._hosts[end].broker is None for end in wire.ends):
            return
        ups = {end: max(self._later(), wire.free_at.get(end, 0.0)) for end in wire.ends}
        wire.connection = Connection(ups)
        for end, time in ups.items():
            self._at(time, self._up, wire, wire.connection, end)

    def _up(self, wire: Wire, connection: Connection, end: str) -> None:
        if connection.is_over:
            return
        other = wire.other(end)
        self._hosts[end].connections[other] = connection
        self._do(end, self._broker(end).link_up(other, wire.options))

    def _break(self, wire: Wire) -> None:
        """End the connection of a link; each end that is running learns it later."""
        connection = wire.connection
        if connection is None:
            return
        connection.is_over, wire.connection = True, None
        for end in wire.ends:
            if self._hosts[end].connections.get(wire.other(end)) is connection:
                wire.free_at[end] = self._later()
                connection.lose_from(end, self.rng.uniform(self.now, wire.free_at[end]))
                self._at(wire.free_at[end], self._down, connection, end, wire.other(end))

    def _down(self, connection: Connection, end: str, other: str) -> None:
        host = self._hosts[end]
        if host.connections.get(other) is not connection:
            return
        del host.connections[other]
        broker = self._broker(end)
        is_removed = frozenset((end, other)) not in self._wires
        self._do(end, broker.unlink(other) if is_removed else broker.link_down(other))

    def _close(self, id: str, effect: CloseLink) -> None:
        """A broker closes a link: frames that it sent before still arrive, then the other end learns it."""
        self.closed.append((self.now, id, effect))
        connection = self._hosts[id].connections.pop(effect.neighbour, None)
        key = frozenset((id, effect.neighbour))
        wire = self._wires.pop(key, None) if effect.removed else self._wires.get(key)
        if connection is None or connection.is_over:
            return
        connection.is_over = True
        if wire is not None:
            wire.connection = None
            wire.free_at[effect.neighbour] = connection.arrival(effect.neighbour, self._later())
        time = connection.arrival(effect.neighbour, self._later())
        self._at(time, self._down, connection, effect.neighbour, id)

    # --- commands and effects ---

    def _do(self, id: str, effects: list[Effect], arrived: Sequence[str] = ()) -> None:
        """Do what a command of a broker asks for; `arrived` are the ids of messages that came from a neighbour."""
        host = self._hosts[id]
        if arrived and self._relays_early:
            effects = self._relay(host, id, effects)
        if arrived and host.crash_after is not None and host.crash_after < 0:
            self.crash(id)
            return
        if self.watch is not None:
            self.watch(id, effects)
        self._count_matching(effects, arrived)
        if not host.has_tick:
            host.has_tick = True
            self._at(self.now + self._tick * (0.5 + self.rng.random() / 2), self._give_tick, id)
        for effect in effects:
            if isinstance(effect, Persist):
                self._persist(host, effect)
            elif isinstance(effect, Deliver):  # the host delivers what is durable, also after a crash
                for message in effect.ids:
                    self._deliveries += 1
                    self.delivered.setdefault((effect.client, message), []).append(self.now)
            elif host.crash_after is not None and host.crash_after <= 0:
                self.crash(id)
            elif host.broker is not None:
                host.crash_after = None if host.crash_after is None else host.crash_after - 1
                if isinstance(effect, Send):
                    self._send(host, id, effect)
                elif isinstance(effect, CloseLink):
                    self._close(id, effect)
        if host.crash_after is not None:
            self.crash(id)

    def _relay(self, host: _Host, id: str, effects: list[Effect]) -> list[Effect]:
        """Send publications on; return the other effects."""
        later: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.frame, Publish):
                self._send(host, id, effect)
            else:
                later.append(effect)
        return later

    def _persist(self, host: _Host, effect: Persist) -> None:
        if not self._is_durable:
            return
        host.unwritten += effect.records
        if not effect.can_wait:
            self._write(host)

    def _write(self, host: _Host) -> None:
        for key, value in host.unwritten:
            if value is None:
                host.store.pop(key, None)
            else:
                host.store[key] = value
        host.unwritten.clear()

    def _send(self, host: _Host, id: str, effect: Send) -> None:
        to, frame = effect
        data = encode(frame) if self._encodes else b""
        counts = self.link_counts.get((id, to))
        if counts is None:
            counts = self.link_counts[id, to] = LinkCounts()
        counts.add(frame, len(data))
        connection = host.connections.get(to)
        if connection is None or connection.is_over:
            self._lost += 1
            return
        self._at(connection.arrival(to, self._later()), self._arrive, connection, id, to, frame, data)

    def _arrive(self, connection: Connection, sender: str, to: str, frame: Frame, data: bytes) -> None:
        host = self._hosts[to]
        if host.broker is None or host.connections.get(sender) is not connection or connection.is_lost(to, self.now):
            self._lost += 1
            return
        is_publication = isinstance(frame, Publish)
        if isinstance(frame, LinkCommand) and not is_publication:
            self.settled_at = self.now
        received = host.broker.receive(sender, decode(data) if self._decodes else frame)
        self._do(to, received, frame.ids if isinstance(frame, Publish) else ())

    def _give_tick(self, id: str) -> None:
        host = self._hosts[id]
        host.has_tick = False
        if host.broker is not None:
            self._write(host)
            effects = host.broker.tick()
            if effects:
                self._do(id, effects)

    def _count_matching(self, effects: list[Effect], arrived: Sequence[str]) -> None:
        """Count messages that are new at a broker, and those from a neighbour that it has no use for."""
        if not effects or not isinstance(effects[0], Persist):
            return
        records = effects[0].records
        new = seen_messages(records)
        if not new:
            return
        self._matched += len(new)
        used: set[Any] = set()
        for key, value in records:
            if key[0] == "outbox" and isinstance(value, Publish):
                used.update(value.ids)
            elif key[0] == "waiting" and value is not None and value[0] == "Publish":
                used.update(value[1][0])
        for effect in effects:
            if isinstance(effect, Deliver):
                used.update(effect.ids)
        self._false_positives += len((new & set(arrived)) - used)
