"""What peers say to each other. Leaves are level 0, and a node of level k has children of level k - 1.

Every note is a small frozen struct, checked by its schema when it comes over a wire. Notes about a level that a peer
has handed over are passed on to whom it was handed to.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from contrada.overlay.boxes import Box

PeerId = int | str
MOST_HOPS = 64  # of a note that is passed on: no tree is so high, so that only a fault of the tree goes further


class ChildEntry(NamedTuple):
    """What a parent knows of a child: the box of the child's node, and the box of the child's own subscriptions.

    With sketches also a few boxes that together cover all that the node has below it; none means the box itself.
    """

    box: Box
    own: Box
    parts: tuple[Box, ...] = ()


Table = dict[PeerId, ChildEntry]


class Note(msgspec.Struct, frozen=True, tag=True):
    """A message of the protocol."""


class Join(Note, frozen=True):
    """Find a parent for a peer's node: climbs to the root from wherever it is sent to."""

    peer: PeerId
    level: int
    entry: ChildEntry
    is_whole: bool  # the node has enough children to be an inner node
    previous: PeerId | None = None  # who gave the node away; else the peer asks for itself
    reinserted: int = 0  # a bit for every level whose overflow has been met by reinsertion already
    hops: int = 0


class Place(Note, frozen=True):
    """A join on its way down: choose a child of your node at this level, or take the node in."""

    join: Join
    at: int


class Adopted(Note, frozen=True):
    """I am the parent of your node: this is what I know of it."""

    level: int
    child: PeerId
    entry: ChildEntry
    parent: PeerId
    previous: tuple[PeerId, ...] = ()  # your parent before, if it gave you to me, or who was to have you
    hops: int = 0


class Report(Note, frozen=True):
    """My node has changed, or was split: these are new nodes beside it."""

    level: int
    child: PeerId
    parent: PeerId
    entry: ChildEntry
    added: Table = {}
    reinserted: int = 0
    hops: int = 0


class Take(Note, frozen=True):
    """Hold these nodes, from this level up: one after a split, all that I had when you replace me."""

    level: int
    heir: PeerId
    tables: list[Table]
    parent: PeerId | None
    previous: PeerId
    is_split: bool
    hops: int = 0


class Replace(Note, frozen=True):
    """I hold the node that was another's, and believe that you hold the one above it."""

    level: int
    old: PeerId
    new: PeerId
    parent: PeerId
    entry: ChildEntry
    hops: int = 0


class Leave(Note, frozen=True):
    """Forget this child of yours."""

    level: int
    child: PeerId
    hops: int = 0


class Orphaned(Note, frozen=True):
    """You have no parent any more; find one through this peer, or be the root."""

    level: int
    via: PeerId | None
    previous: PeerId
    hops: int = 0


class Yield(Note, frozen=True):
    """There is another root, and your tree is to go into its tree in pieces."""

    root: PeerId


class Beat(Note, frozen=True):
    """I live, and this is my node: from child to parent."""

    level: int
    entry: ChildEntry
    contacts: tuple[PeerId, ...] = ()


class Ack(Note, frozen=True):
    """I live, and you are my child; these are peers to turn to when I am gone."""

    level: int
    contacts: tuple[PeerId, ...] = ()


class Disown(Note, frozen=True):
    """You are no child of mine."""

    level: int


class Publication(msgspec.Struct, frozen=True):
    """A message on its way: where it lies among the dimensions, and what it says."""

    key: str | int
    where: Box
    body: Any = None


class Up(Note, frozen=True):
    """A message from a child, or from whoever publishes."""

    publication: Publication
    level: int | None = None  # of the child that it came from
    child: PeerId | None = None
    hops: int = 0


class Down(Note, frozen=True):
    """A message for a child's node of this level."""

    publication: Publication
    level: int
    hops: int = 0


AnyNote = (
    Join | Place | Adopted | Report | Take | Replace | Leave | Orphaned | Yield | Beat | Ack | Disown | Up | Down
)  # fmt: skip
Sent = tuple[PeerId, AnyNote]
