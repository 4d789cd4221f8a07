"""The state of one peer: the nodes it holds, its parent, and the notes it is about to send."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

import msgspec

from contrada.overlay.children import Children
from contrada.overlay.interest import Interest
from contrada.overlay.keeping import KeptMessages
from contrada.overlay.protocol import MAX_HOPS, AnyNote, ChildEntry, Key, NodeNote, PeerId, Publication, Sent, Table
from contrada.overlay.rules import Rules
from contrada.overlay.sketch import entry_of, merged

MAX_CONTACTS = 32


class PeerState:
    """A peer holds its leaf and the nodes of levels 1 to `top`; each of these has the peer itself as a child.

    `nodes[k]` holds the children of the node of level k (a leaf has none), `entries[k]` what a parent knows of it.
    `parent` is the parent of the highest node; None means that the peer is a root. `heirs[k]` is the peer to which the
    node of level k was handed over.
    """

    def __init__(self, id: PeerId, interest: Interest, rules: Rules, seed: int = 0) -> None:
        self.id = id
        self.interest = interest
        self.rules = rules
        self.own = interest.box
        self.nodes: list[Table] = [{}]
        parts = merged(list(interest.boxes), rules.sketch) if rules.sketch and len(interest.boxes) > 1 else ()
        self.entries = [ChildEntry(self.own, self.own, parts)]
        self.parent: PeerId | None = None
        self.seeking: PeerId | None = None  # the peer asked to find a parent
        self.heirs: dict[int, PeerId] = {}
        self.has_left = False
        self.out: list[Sent] = []
        self.deliveries: list[Publication] = []
        self.seen: dict[Key, int] = {}
        self.kept = KeptMessages(rules)
        self.now = 0.0  # time of the note that is being handled
        self.joined = -math.inf  # when the peer joined the overlay; earlier messages are not for it
        self.bootstrap: tuple[PeerId, ...] = ()
        self.kin: tuple[PeerId, ...] = ()  # the parent's parent and children, as last heard
        self.contacts: dict[PeerId, None] = {}  # peers from anywhere in the tree, learnt by gossip
        self.heard: dict[tuple[int, PeerId], float] = {}
        self.parent_heard: float | None = None
        self.rng = random.Random(f"{seed}/{id}")
        self._children: dict[int, Children] = {}

    @property
    def top(self) -> int:
        """The level of the highest node."""
        return len(self.nodes) - 1

    @property
    def is_whole(self) -> bool:
        """True if the highest node may be an inner node: it is a leaf, or has enough children."""
        return self.top == 0 or len(self.nodes[-1]) >= self.rules.least

    def children_at(self, level: int) -> Children:
        """Return the children of the node of `level` as arrays, rebuilt if the table has changed."""
        table = self.nodes[level]
        known = self._children.get(level)
        if known is None or not known.is_of(table):
            known = self._children[level] = Children(table)
        return known

    def send(self, to: PeerId, note: AnyNote) -> None:
        """Queue a note, to be sent after this step."""
        self.out.append((to, note))

    def follow(self, parent: PeerId | None) -> None:
        """Set the parent, or None."""
        if parent != self.parent:
            self.parent = parent
            self.parent_heard = None
            self.kept.start_list()
        self.seeking = None

    def push(self, table: Table) -> None:
        """Add a node on top, with the children in `table` and this peer's node below."""
        node = {**table, self.id: self.entries[-1]}
        self.nodes.append(node)
        self.entries.append(entry_of(self.rules, self.top, self.own, node))

    def truncate(self, level: int) -> list[Table]:
        """Drop the nodes from `level` up; return their children."""
        tables = self.nodes[level:]
        del self.nodes[level:]
        del self.entries[level:]
        return tables

    def hand_over(self, level: int, highest: int, heir: PeerId) -> None:
        """Record which peer holds the nodes of these levels now."""
        self.heirs |= dict.fromkeys(range(level, highest + 1), heir)

    def heir_of(self, level: int, hops: int) -> PeerId | None:
        """Return the peer to which a note about `level` is passed on; None if unknown or after MAX_HOPS."""
        heir = self.heirs.get(level)
        return None if heir == self.id or hops >= MAX_HOPS else heir

    def pass_on(self, note: NodeNote, level: int) -> bool:
        """Pass a note about a node that was handed over to its new holder; return False if that is unknown."""
        heir = self.heir_of(level, note.hops)
        if heir is not None:
            self.send(heir, msgspec.structs.replace(note, hops=note.hops + 1))
        return heir is not None

    def known(self) -> list[PeerId]:
        """Return all peers to contact when the parent is gone."""
        return [each for each in (*self.bootstrap, *self.kin, *self.contacts) if each != self.id]

    def learn(self, peers: Iterable[PeerId]) -> None:
        """Add contacts; beyond MAX_CONTACTS random ones are dropped."""
        for peer in peers:
            if peer != self.id:
                self.contacts[peer] = None
        while len(self.contacts) > MAX_CONTACTS:
            del self.contacts[self.rng.choice(list(self.contacts))]
