"""Simulate many peers in one process; runs with equal seeds are equal.

Without a network every note arrives at once, in the order of sending, and every call ends when no note is left: the
paper's setting. Notes of one call may still overtake each other on different paths; if that leaves two neighbours that
disagree, heartbeats pass until they agree. With a network time passes: notes are delayed, lost, doubled and reordered,
peers send heartbeats, and calls only start what `run` continues.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from contrada.errors import OverlayError, UnknownKeyError
from contrada.overlay.boxes import check_box
from contrada.overlay.interest import Interest, Rectangles
from contrada.overlay.peer import Peer
from contrada.overlay.protocol import AnyNote, Down, PeerId, Publication, Sent, Up
from contrada.overlay.rules import Rules
from contrada.overlay.simulation.checking import disagrees, faults
from contrada.overlay.simulation.corruption import corrupt
from contrada.overlay.simulation.network import Network

CONTACTS_PER_PEER = 3  # given to a new peer if there is a network
# Per period, a root gets new contacts with this probability, as from a list of well-known addresses.
INTRODUCTION_PROBABILITY = 0.1
MAX_NOTES_PER_CALL = 10_000_000  # more mean a fault of the protocol
MAX_HEARTBEATS_PER_CALL = 100  # likewise


@dataclass(slots=True)
class MessageSpread:
    """The spread of one message: hops to each peer it reached, and the peers that wanted it when published."""

    publication: Publication
    reached: dict[PeerId, int]
    wanted: frozenset[PeerId]
    published: float = 0.0
    delivered: dict[PeerId, int] = field(default_factory=dict)  # how often to each peer
    holders: set[PeerId] = field(default_factory=set)  # live peers that it reached; counted with a network only
    is_extinct: bool = False  # all its holders vanished while it was on its way

    @property
    def missed(self) -> frozenset[PeerId]:
        """Peers that wanted the message and did not get it: false negatives."""
        return self.wanted - self.delivered.keys()

    @property
    def repeated(self) -> int:
        """The number of deliveries to peers that had got the message before."""
        return sum(self.delivered.values()) - len(self.delivered)

    @property
    def bothered(self) -> int:
        """The number of peers that got the message without wanting it: false positives."""
        return len(self.reached.keys() - self.wanted)


class Simulator:
    """An overlay of many peers.

    >>> simulator = Simulator(Rules(2, 4))
    >>> ids = [simulator.add([(float(k), float(k + 3))]) for k in range(20)]
    >>> simulator.check()
    >>> spread = simulator.publish((7.5, 7.5))
    >>> sorted(spread.wanted), sorted(spread.missed)
    ([5, 6, 7], [])
    """

    def __init__(self, rules: Rules | None = None, seed: int = 0, network: Network | None = None) -> None:
        rules = Rules() if rules is None else rules
        self.rules = rules if network is not None else replace(rules, kept=0)  # without a network nothing is lost
        self.seed = seed
        self.network = network
        self.rng = random.Random(seed)
        self.now = 0.0
        self.peers: dict[PeerId, Peer] = {}
        self.notes = 0
        self.heartbeats = 0  # periods that passed, without a network, until neighbours agreed
        self.watch: Callable[[float, PeerId, PeerId, AnyNote], None] | None = None  # called for every note that arrives
        self._roots: set[PeerId] = set()  # roots after the last call, without a network
        self._next = itertools.count()
        self._queue: deque[tuple[PeerId, PeerId, AnyNote, int]] = deque()
        self._heap: list[tuple[float, int, PeerId, PeerId, AnyNote | None, int]] = []
        self._sequence = itertools.count()  # breaks ties, so notes are never compared
        self._spreads: dict[str | int, MessageSpread] = {}
        self._publications = itertools.count()
        self._ids: list[PeerId] = []  # live peers in any order, and the index of each in it: to draw one at random
        self._places: dict[PeerId, int] = {}

    # --- peers ---

    def add(self, subscriptions: Interest | Iterable[Sequence[float]], via: PeerId | None = None) -> PeerId:
        """Add a peer with boxes, or another interest; it joins through `via`, by default through a random peer."""
        interest = Rectangles(subscriptions) if isinstance(subscriptions, Iterable) else subscriptions
        id = next(self._next)
        peer = Peer(id, interest, self.rules, self.seed)
        contacts = self._random_contacts() if via is None else [via]
        if contacts:
            check_box(interest.box, len(self._peer(contacts[0]).state.own) // 2)
        self.peers[id] = peer
        self._places[id] = len(self._ids)
        self._ids.append(id)
        if self.network is not None:  # so that heartbeats of peers do not coincide
            self._schedule(self.now + self.rng.random() * self.rules.period, id, id, None, 0)
        if contacts:
            self._send(id, peer.join(*contacts, now=self.now), 0)
        self._calm()
        return id

    def _random_contacts(self) -> list[PeerId]:
        """Return the contacts of a new peer; without a network one is enough."""
        count = 1 if self.network is None else CONTACTS_PER_PEER
        return list(dict.fromkeys(self.random_id() for _ in range(min(count, len(self._ids)))))

    def remove(self, id: PeerId) -> None:
        """Let a peer leave properly."""
        sent = self._peer(id).leave()
        self.crash(id)
        self._send(id, sent, 0)
        self._calm()

    def crash(self, id: PeerId) -> None:
        """Let a peer vanish without notice."""
        self._peer(id)
        del self.peers[id]
        if self.network is not None:
            self._bury(id)
        place, last = self._places.pop(id), self._ids.pop()
        if last != id:
            self._ids[place] = last
            self._places[last] = place

    def _bury(self, id: PeerId) -> None:
        """Record which messages have no holder any more; a copy that is still on its way may save one."""
        for spread in self._spreads.values():
            if id in spread.holders:
                spread.holders.discard(id)
                if not spread.holders and self.now - spread.published <= self.rules.retention:
                    spread.is_extinct = True

    def corrupt(self, id: PeerId) -> None:
        """Corrupt what a peer believes about its neighbours."""
        corrupt(self._peer(id).state, [other for other in self._ids if other != id], self.rng)

    def _peer(self, id: PeerId) -> Peer:
        if id not in self.peers:
            raise UnknownKeyError(f"unknown peer {id!r:.60}")
        return self.peers[id]

    def random_id(self) -> PeerId:
        """Return a random live peer."""
        return self._ids[int(self.rng.random() * len(self._ids))]

    @property
    def root(self) -> PeerId:
        """The root of the highest tree (at rest the only one); without any root, the highest peer."""
        if not self.peers:
            raise OverlayError("the overlay has no peers")
        return max(self.peers.values(), key=lambda peer: (peer.state.parent is None, peer.state.top)).id

    # --- messages ---

    def publish(self, where: Sequence[float], at: PeerId | None = None, body: object = None) -> MessageSpread:
        """Publish a message with box `where` (a point is a box without extent), at peer `at` or a random one."""
        source = self.random_id() if at is None else at
        box = check_box(where, len(self._peer(source).state.own) // 2)
        publication = Publication(next(self._publications), box, body)
        wanted = frozenset(id for id, peer in self.peers.items() if peer.state.interest.matches(publication))
        return self.send_out(publication, source, wanted)

    def send_out(self, publication: Publication, source: PeerId, wanted: frozenset[PeerId]) -> MessageSpread:
        """Publish a message for known `wanted` peers: asking every peer takes longer than routing."""
        spread = MessageSpread(publication, {source: 0}, wanted, self.now)
        self._spreads[publication.key] = spread
        peer = self._peer(source)
        self._send(source, peer.publish(publication, self.now), 1)
        self._record(peer, spread, 0)
        self._drain()
        if self.network is None:
            del self._spreads[publication.key]
        return spread

    # --- time ---

    def run(self, seconds: float) -> None:
        """Let time pass."""
        if self.network is None:
            raise OverlayError("run needs a network")
        end = self.now + seconds
        while self._heap and self._heap[0][0] <= end:
            self._step()
        self.now = end

    def run_until_sound(self, most: float, every: float = 0.5) -> float | None:
        """Let time pass until the tree is sound, and long enough that no old note can break it.

        Return the seconds until it was sound for good, or None if that took longer than `most` seconds.
        """
        start = since = self.now
        while since - start <= most:
            if faults(self.peers):
                since = self.now + every
            elif self.now - since > self.rules.patience:
                return since - start
            self.run(every)
        return None

    def _step(self) -> None:
        self.now, _, to, sender, note, depth = heapq.heappop(self._heap)
        peer = self.peers.get(to)
        if peer is None:
            return
        if note is None:
            self._schedule(self.now + self.rules.period, to, to, None, 0)
            if peer.state.parent is None and self.rng.random() < INTRODUCTION_PROBABILITY:
                peer.state.learn(self._random_contacts())
            self._send(to, peer.tick(self.now), 0)
        else:
            self._arrive(peer, sender, note, depth)

    def _calm(self) -> None:
        """Without a network: deliver notes until none is left and all peers concerned agree with their neighbours."""
        touched = self._roots
        self._drain(touched)
        if self._is_at_one(touched):
            return
        for _ in range(MAX_HEARTBEATS_PER_CALL):
            self.heartbeats += 1
            self.now += self.rules.period
            for id, peer in list(self.peers.items()):
                self._send(id, peer.tick(self.now), 0)
                self._drain()
            if self._is_at_one(self.peers):
                return
        raise OverlayError(f"the peers still disagree after {MAX_HEARTBEATS_PER_CALL} heartbeats")

    def _is_at_one(self, ids: Iterable[PeerId]) -> bool:
        """Return True if these peers agree with their neighbours, and at most one of them is a root."""
        roots = {id for id in ids if id in self.peers and self.peers[id].state.parent is None}
        self._roots = roots
        return len(roots) < 2 and not any(disagrees(self.peers, id) for id in ids)

    def _drain(self, touched: set[PeerId] | None = None) -> None:
        """Without a network: deliver notes until none is left; add the receivers to `touched`."""
        queue, peers = self._queue, self.peers
        before = self.notes
        while queue:
            to, sender, note, depth = queue.popleft()
            if touched is not None:
                touched.add(to)
            peer = peers.get(to)
            if peer is not None:
                self._arrive(peer, sender, note, depth)
                if self.notes - before > MAX_NOTES_PER_CALL:
                    raise OverlayError(f"the peers still send notes after {MAX_NOTES_PER_CALL:,} notes")

    def _arrive(self, peer: Peer, sender: PeerId, note: AnyNote, depth: int) -> None:
        self.notes += 1
        if self.watch is not None:
            self.watch(self.now, sender, peer.id, note)
        sent = peer.handle(sender, note, self.now)
        state = peer.state
        kind = type(note)
        if kind is Down or kind is Up:
            spread = self._spreads.get(note.publication.key)  # type: ignore[union-attr]
            if spread is not None:
                self._record(peer, spread, depth)
            state.deliveries.clear()
        if sent:
            self._send(state.id, sent, depth + 1)

    def _record(self, peer: Peer, spread: MessageSpread, depth: int) -> None:
        """Record that a message reached a peer, and whether it was delivered."""
        id = peer.id
        spread.reached.setdefault(id, depth)
        for _ in peer.take_deliveries():  # of this message: a note holds one
            spread.delivered[id] = spread.delivered.get(id, 0) + 1
        if self.network is not None and spread.publication.key in peer.state.seen:
            spread.holders.add(id)
            spread.is_extinct = False

    def _send(self, sender: PeerId, sent: list[Sent], depth: int) -> None:
        if self.network is None:
            self._queue.extend([(to, sender, note, depth) for to, note in sent])
            return
        for to, note in sent:
            for delay in self.network.delays(self.rng):
                self._schedule(self.now + delay, to, sender, note, depth)

    def _schedule(self, time: float, to: PeerId, sender: PeerId, note: AnyNote | None, depth: int) -> None:
        heapq.heappush(self._heap, (time, next(self._sequence), to, sender, note, depth))

    def inject(self, to: PeerId, sender: PeerId, note: AnyNote) -> None:
        """Deliver a note that no peer has sent."""
        self._send(sender, [(to, note)], 0)
        self._drain()

    # --- checks ---

    def faults(self) -> list[str]:
        """Return the faults of the tree; empty if it is sound and at rest."""
        return faults(self.peers)

    def check(self) -> None:
        """Raise OverlayError unless the tree is sound and at rest."""
        found = self.faults()
        if found:
            raise OverlayError("; ".join(found[:10]))
