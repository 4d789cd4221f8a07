"""Finding a place in the tree: peers join, subtrees move, and trees with two roots merge."""

from __future__ import annotations

import msgspec

from contrada.overlay.protocol import MAX_HOPS, Adopted, Join, Leave, Orphaned, PeerId, Place, Replace, Report, Yield
from contrada.overlay.routing import send_unshared
from contrada.overlay.state import PeerState
from contrada.overlay.structure import closest, order_of, seek, settle, vacate


def join(peer: PeerState, note: Join) -> None:
    """Pass a join request up to the root; at the root, find a place for the node."""
    if note.peer == peer.id:
        return  # came back to the sender: same tree
    above = peer.parent if peer.parent is not None else peer.seeking
    if above is not None:
        if note.hops < MAX_HOPS and above != note.peer:
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
        seek(peer, note.peer)  # the lower tree joins the higher one


def _meet_equal(peer: PeerState, note: Join) -> None:
    """Merge two roots of equal height: under a new root, or, if one has too few children, by taking it apart."""
    if note.is_whole and peer.is_whole:
        if order_of(peer.id) < order_of(note.peer):
            peer.push({note.peer: note.entry})
            _tell_adopted(peer, note)
            settle(peer, peer.top)
        else:
            seek(peer, note.peer)
    elif (not peer.is_whole, order_of(peer.id)) < (not note.is_whole, order_of(note.peer)):
        peer.send(note.peer, Yield(peer.id))
    else:
        give_way(peer, note.peer)


def _tell_adopted(peer: PeerState, note: Join) -> None:
    previous = () if note.previous is None else (note.previous,)
    peer.send(note.peer, Adopted(note.level, note.peer, note.entry, peer.id, previous))


def give_way(peer: PeerState, root: PeerId) -> None:
    """Take the highest node apart: its children join the tree of `root`."""
    if peer.parent is not None or peer.top == 0 or root == peer.id:
        return
    level = peer.top - 1
    for child in peer.truncate(peer.top)[0]:
        if child != peer.id:
            peer.send(child, Orphaned(level, root, peer.id))
    seek(peer, root)


def descend(peer: PeerState, note: Join, at: int) -> None:
    """Pass a new node down to its level, to the child that fits best at each level."""
    while at > note.level + 1:
        child = closest(peer, at, note)
        at -= 1
        if child != peer.id:
            peer.send(child, Place(note, at))
            return
    peer.learn((note.peer,))
    peer.nodes[at][note.peer] = note.entry
    _tell_adopted(peer, note)
    settle(peer, at, note.reinserted)


def place(peer: PeerState, note: Place) -> None:
    """Continue a descent; if the node was handed over, pass it on, else start again at the root."""
    if note.join.peer == peer.id:
        return
    if note.join.level < note.at <= peer.top:
        descend(peer, note.join, note.at)
    else:
        again = msgspec.structs.replace(note.join, hops=note.join.hops + 1)
        heir = peer.heir_of(note.at, note.join.hops)
        if heir is not None:
            peer.send(heir, Place(again, note.at))
        elif note.join.hops < MAX_HOPS:
            join(peer, again)


def adopted(peer: PeerState, note: Adopted) -> None:
    """Accept a parent: the first one, or one to which the previous parent has handed the node."""
    if peer.top < note.level and peer.pass_on(note, note.level):
        return
    parent = note.parent
    is_wrong = peer.top != note.level or parent == peer.id or peer.has_left
    if is_wrong or peer.parent not in (None, parent, *note.previous):
        peer.send(parent, Leave(note.level, note.child))
        return
    peer.follow(parent)
    peer.learn((parent,))
    entry = peer.entries[-1]
    if note.child != peer.id:
        peer.send(parent, Replace(note.level, note.child, peer.id, parent, entry))
    elif entry != note.entry:
        peer.send(parent, Report(note.level, peer.id, parent, entry))


def report(peer: PeerState, note: Report) -> None:
    """Update the entry of a child that has changed, and adopt the new nodes beside it."""
    level = note.level + 1
    if level > peer.top:
        peer.pass_on(note, level)
        return
    table = peer.nodes[level]
    if note.child in table:
        table[note.child] = note.entry
        _claim(peer, note.child, note)
    for child, entry in note.added.items():
        table[child] = entry
        peer.send(child, Adopted(note.level, child, entry, peer.id, (note.parent,)))
    settle(peer, level, note.reinserted)


def replace(peer: PeerState, note: Replace) -> None:
    """Replace a child by the peer to which it has handed its node."""
    level = note.level + 1
    if level > peer.top:
        peer.pass_on(note, level)
        return
    table = peer.nodes[level]
    if note.old in table and note.old != peer.id:
        del table[note.old]
        table[note.new] = note.entry
        _claim(peer, note.new, note)
        settle(peer, level)


def _claim(peer: PeerState, child: PeerId, note: Report | Replace) -> None:
    """Tell a child whose note is for another parent, the previous holder of the node, who its parent is.

    The child was already told when the node changed hands, under its name of that time. The peer with that name may
    hold another node of the same level by now, and take the note for its own.
    """
    if note.parent != peer.id != child:
        peer.send(child, Adopted(note.level, child, note.entry, peer.id, (note.parent,)))


def leave(peer: PeerState, note: Leave) -> None:
    """Remove a child."""
    level = note.level + 1
    if level > peer.top:
        peer.pass_on(note, level)
    elif note.child != peer.id and peer.nodes[level].pop(note.child, None) is not None:
        settle(peer, level)


def orphaned(peer: PeerState, note: Orphaned) -> None:
    """Find a new parent, or become the root."""
    if peer.top < note.level:
        peer.pass_on(note, note.level)
    elif peer.top == note.level and peer.parent in (None, note.previous) and not peer.has_left:
        peer.follow(None)
        if note.via is not None:
            seek(peer, note.via)
        elif peer.top:
            settle(peer, peer.top)  # a root needs two children


def depart(peer: PeerState) -> None:
    """Leave the overlay: hand over all nodes; notes that still arrive are passed on."""
    near = vacate(peer, 1)
    if near is not None:
        send_unshared(peer, near)
    peer.follow(near)
    peer.has_left = True
