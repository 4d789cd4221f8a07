"""Finding a place in the tree: joining, moving whole subtrees, and two roots that meet."""

from __future__ import annotations

import msgspec

from contrada.overlay.protocol import (
    MOST_HOPS,
    Adopted,
    ChildEntry,
    Join,
    Leave,
    Orphaned,
    PeerId,
    Place,
    Replace,
    Report,
    Yield,
)
from contrada.overlay.state import PeerState
from contrada.overlay.structure import closest, order_of, seek, settle, vacate


def join(peer: PeerState, note: Join) -> None:
    """Pass a node that looks for a parent on to the root; there, find its place."""
    if note.peer == peer.id:
        return  # its own tree
    above = peer.parent if peer.parent is not None else peer.seeking
    if above is not None:
        if note.hops < MOST_HOPS and above != note.peer:
            peer.send(above, msgspec.structs.replace(note, hops=note.hops + 1))
        return
    if note.level < peer.top:
        if note.is_whole:
            descend(peer, note, peer.top)
        else:
            peer.send(note.peer, Yield(peer.id))
    elif note.level == peer.top:
        _meet_equal(peer, note)
    else:
        seek(peer, note.peer)  # the lower tree goes into the higher one


def _meet_equal(peer: PeerState, note: Join) -> None:
    """Two roots of one height: both go under a new root, or one whose node is too small goes into the other."""
    if note.is_whole and peer.is_whole:
        if order_of(peer.id) < order_of(note.peer):
            peer.push({note.peer: note.entry})
            peer.send(
                note.peer,
                Adopted(note.level, note.peer, note.entry, peer.id, () if note.previous is None else (note.previous,)),
            )
            settle(peer, peer.top)
        else:
            seek(peer, note.peer)
    elif (not peer.is_whole, order_of(peer.id)) < (not note.is_whole, order_of(note.peer)):
        peer.send(note.peer, Yield(peer.id))
    else:
        give_way(peer, note.peer)


def give_way(peer: PeerState, root: PeerId) -> None:
    """Take the highest node apart: its children go into the tree of another root."""
    if peer.parent is not None or peer.top == 0 or root == peer.id:
        return
    level = peer.top - 1
    for child in peer.truncate(peer.top)[0]:
        if child != peer.id:
            peer.send(child, Orphaned(level, root, peer.id))
    seek(peer, root)


def descend(peer: PeerState, note: Join, at: int) -> None:
    """Take a new node down to its level, by the children that suit it best."""
    while at > note.level + 1:
        child = closest(peer, at, note)
        at -= 1
        if child != peer.id:
            peer.send(child, Place(note, at))
            return
    peer.learn((note.peer,))
    peer.nodes[at][note.peer] = note.entry
    peer.send(
        note.peer,
        Adopted(note.level, note.peer, note.entry, peer.id, () if note.previous is None else (note.previous,)),
    )
    settle(peer, at, note.reinserted)


def place(peer: PeerState, note: Place) -> None:
    """Go on with a descent; if the node is another's by now, begin again."""
    if note.join.peer == peer.id:
        return
    if note.join.level < note.at <= peer.top:
        descend(peer, note.join, note.at)
    else:
        again = msgspec.structs.replace(note.join, hops=note.join.hops + 1)
        heir = peer.heir_of(note.at, note.join.hops)
        if heir is not None:
            peer.send(heir, Place(again, note.at))
        elif note.join.hops < MOST_HOPS:
            join(peer, again)


def adopted(peer: PeerState, note: Adopted) -> None:
    """Accept a parent: the first one, or one that the parent so far has given the node to."""
    if peer.top < note.level and peer.pass_on(note, note.level):
        return
    parent = note.parent
    is_wrong = peer.top != note.level or parent == peer.id or peer.has_left
    if is_wrong or peer.parent not in (None, parent, *note.previous):
        peer.send(parent, Leave(note.level, note.child))
        return
    peer.follow(parent)
    peer.learn((parent,))
    entry = peer.entry(peer.top)
    if note.child != peer.id:
        peer.send(parent, Replace(note.level, note.child, peer.id, parent, entry))
    elif entry != note.entry:
        peer.send(parent, Report(note.level, peer.id, parent, entry))


def report(peer: PeerState, note: Report) -> None:
    """A child has changed: keep what it says, take in what is new beside it."""
    level = note.level + 1
    if level > peer.top:
        peer.pass_on(note, level)
        return
    table = peer.nodes[level]
    if note.child in table:
        table[note.child] = note.entry
        _claim(peer, note.level, note.child, note.entry, note.parent)
    for child, entry in note.added.items():
        table[child] = entry
        peer.send(child, Adopted(note.level, child, entry, peer.id, (note.parent,)))
    settle(peer, level, note.reinserted)


def replace(peer: PeerState, note: Replace) -> None:
    """A child has handed its node over to another peer."""
    level = note.level + 1
    if level > peer.top:
        peer.pass_on(note, level)
        return
    table = peer.nodes[level]
    if note.old in table and note.old != peer.id:
        del table[note.old]
        table[note.new] = note.entry
        _claim(peer, note.level, note.new, note.entry, note.parent)
        settle(peer, level)


def _claim(peer: PeerState, level: int, child: PeerId, entry: ChildEntry, believed: PeerId) -> None:
    """Tell a child that takes another peer for its parent, from whom the node was got, who is.

    The child was told so when the node changed hands, under the name that it had then; but whoever bore that name may
    hold another node of the same level by now, and take the word for its own.
    """
    if believed != peer.id != child:
        peer.send(child, Adopted(level, child, entry, peer.id, (believed,)))


def leave(peer: PeerState, note: Leave) -> None:
    """Forget a child."""
    level = note.level + 1
    if level > peer.top:
        peer.pass_on(note, level)
    elif note.child != peer.id and peer.nodes[level].pop(note.child, None) is not None:
        settle(peer, level)


def orphaned(peer: PeerState, note: Orphaned) -> None:
    """Find a new parent, or be the root."""
    if peer.top < note.level:
        peer.pass_on(note, note.level)
    elif peer.top == note.level and peer.parent in (None, note.previous) and not peer.has_left:
        peer.follow(None)
        if note.via is not None:
            seek(peer, note.via)
        elif peer.top:
            settle(peer, peer.top)  # a root needs two children


def depart(peer: PeerState) -> None:
    """Leave the overlay: hand over what the peer holds, and be gone; notes that still come are passed on from here."""
    near = vacate(peer, 1)
    peer.follow(near)
    peer.has_left = True
