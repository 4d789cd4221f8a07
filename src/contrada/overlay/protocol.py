"""The notes that peers exchange. Leaves are level 0; a node of level k has children of level k - 1.

Every note is a small frozen struct, checked against its schema when it arrives over a socket. A note about a node that
a peer has handed over is passed on to the new holder.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from contrada.overlay.boxes import Box

PeerId = int | str
Key = str | int  # of a message
MAX_HOPS = 64  # for a note that is passed on; no tree is that high, so more hops mean a broken tree


class ChildEntry(NamedTuple):
    """A parent's entry for a child: the box of the child's node, and the box of the child's own subscriptions.

    With sketches, `parts` holds a few boxes that together cover everything below the node; empty means `box`.
    """

    box: Box
    own: Box
    parts: tuple[Box, ...] = ()


Table = dict[PeerId, ChildEntry]


class Note(msgspec.Struct, frozen=True, tag=True):
    """A note of the protocol."""


class LevelNote(Note, frozen=True):
    """A note about the node of a level."""

    level: int


class Join(Note, frozen=True):
    """Find a parent for a peer's node; passed up to the root from any peer."""

    peer: PeerId
    level: int
    entry: ChildEntry
    is_whole: bool  # the node has enough children to be an inner node
    previous: PeerId | None = None  # the parent that gave the node away; None: the peer asks for itself
    reinserted: int = 0  # one bit per level that has already reinserted children
    hops: int = 0


class Place(Note, frozen=True):
    """A join on its way down: choose a child of the node at level `at`, or adopt the new node."""

    join: Join
    at: int


class Adopted(LevelNote, frozen=True):
    """The sender is the parent of the child's node, and has this entry for it."""

    child: PeerId
    entry: ChildEntry
    parent: PeerId
    previous: tuple[PeerId, ...] = ()  # earlier parents from which the sender took over the node
    hops: int = 0


class Report(LevelNote, frozen=True):
    """The sender's node has changed, or was split; `added` are new nodes beside it."""

    child: PeerId
    parent: PeerId
    entry: ChildEntry
    added: Table = {}
    reinserted: int = 0
    hops: int = 0


class Take(LevelNote, frozen=True):
    """Take over nodes from `level` up: one node after a split, or all nodes of a peer that is replaced."""

    heir: PeerId
    tables: list[Table]
    parent: PeerId | None
    previous: PeerId
    is_split: bool
    hops: int = 0


class Replace(LevelNote, frozen=True):
    """Peer `new` holds the node of peer `old`; sent to the supposed holder of the node above it."""

    old: PeerId
    new: PeerId
    parent: PeerId
    entry: ChildEntry
    hops: int = 0


class Leave(LevelNote, frozen=True):
    """Remove this child."""

    child: PeerId
    hops: int = 0


class Orphaned(LevelNote, frozen=True):
    """The receiver has no parent any more: find one through `via`, or become the root."""

    via: PeerId | None
    previous: PeerId
    hops: int = 0


class Yield(Note, frozen=True):
    """There is another root: take your root node apart and join its tree."""

    root: PeerId


class Beat(LevelNote, frozen=True):
    """Heartbeat from child to parent, with the child's entry, and a list of messages that the child has."""

    entry: ChildEntry
    contacts: tuple[PeerId, ...] = ()
    got: tuple[Key, ...] = ()  # messages that came since the last answered list
    upto: int = -1  # number of the last message in the list, for the answer
    age: float = 0.0  # seconds since the child joined the overlay


class Ack(LevelNote, frozen=True):
    """Answer to a heartbeat, with peers to contact if the parent dies, and the listed messages that it lacks."""

    contacts: tuple[PeerId, ...] = ()
    upto: int = -1  # as in the heartbeat
    lacks: tuple[Key, ...] = ()


class Disown(LevelNote, frozen=True):
    """The receiver is not a child of the sender."""


class Publication(msgspec.Struct, frozen=True):
    """A message to route: its box `where`, and its content."""

    key: Key
    where: Box
    body: Any = None


class Up(Note, frozen=True):
    """A message from a child, or from the publisher."""

    publication: Publication
    level: int | None = None  # of the child that sent it
    child: PeerId | None = None
    hops: int = 0
    age: float = 0.0  # seconds since it was published, without the time on its way between peers


class Down(Note, frozen=True):
    """A message for a child's node of this level."""

    publication: Publication
    level: int
    hops: int = 0
    age: float = 0.0


AnyNote = (
    Join | Place | Adopted | Report | Take | Replace | Leave | Orphaned | Yield | Beat | Ack | Disown | Up | Down
)  # fmt: skip
NodeNote = Adopted | Report | Replace | Leave | Orphaned | Up | Down  # about a node: passed on to its new holder
Sent = tuple[PeerId, AnyNote]
