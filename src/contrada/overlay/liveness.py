"""Heartbeats and time-outs: neighbours that are gone are noticed, and what two neighbours believe is made the same."""

from __future__ import annotations

from contrada.overlay.protocol import Ack, Adopted, Beat, Disown, PeerId
from contrada.overlay.state import PeerState
from contrada.overlay.structure import seek, settle

GOSSIP = 3  # contacts in a heartbeat
REMINDED = 1.5  # periods without a heartbeat until a child is told who its parent is


def tick(peer: PeerState, now: float) -> None:
    """What a peer does once in a period: look after its nodes, and tell its parent that it lives."""
    if peer.has_left:
        return
    if peer.parent == peer.id:
        peer.follow(None)
    _drop_the_dead(peer, now)
    for level in range(1, peer.top + 1):
        if level <= peer.top:  # it may have become less
            settle(peer, level)
    if peer.parent is not None:
        if peer.parent_heard is None:
            peer.parent_heard = now
        if now - peer.parent_heard > peer.rules.patience:
            peer.follow(None)
    if peer.parent is None:
        peer.seeking = None
        seek(peer, None)  # there may be another root
    else:
        peer.send(peer.parent, Beat(peer.top, peer.entry(peer.top), _some_contacts(peer)))


def _drop_the_dead(peer: PeerState, now: float) -> None:
    """Forget children that were not heard of for long; remind those that are late."""
    heard: dict[tuple[int, PeerId], float] = {}
    for level in range(1, peer.top + 1):
        for child, entry in list(peer.nodes[level].items()):
            if child == peer.id:
                continue
            last = peer.heard.get((level, child), now)
            if now - last > peer.rules.patience:
                del peer.nodes[level][child]
                continue
            heard[level, child] = last
            if now - last > REMINDED * peer.rules.period:
                peer.send(child, Adopted(level - 1, child, entry, peer.id))
    peer.heard = heard


def _some_contacts(peer: PeerState) -> tuple[PeerId, ...]:
    known = list(peer.contacts)
    return (*peer.rng.sample(known, min(GOSSIP, len(known))), peer.id)


def beat(peer: PeerState, sender: PeerId, note: Beat, now: float) -> None:
    """A child lives; if it is none, it is told."""
    peer.learn(note.contacts)
    level = note.level + 1
    if level > peer.top or sender not in peer.nodes[level] or sender == peer.id:
        peer.send(sender, Disown(note.level))
        return
    peer.heard[level, sender] = now
    table = peer.nodes[level]
    kin = [child for child in table if child != sender]
    above = [] if peer.parent is None else [peer.parent]
    peer.send(sender, Ack(note.level, (*above, *kin, *_some_contacts(peer))))
    if table[sender] != note.entry:
        table[sender] = note.entry
        settle(peer, level)


def ack(peer: PeerState, sender: PeerId, note: Ack, now: float) -> None:
    """The parent lives."""
    peer.learn(note.contacts[-GOSSIP - 1 :])
    if sender == peer.parent and note.level == peer.top:
        peer.parent_heard = now
        peer.kin = tuple(each for each in note.contacts if each != peer.id)


def disown(peer: PeerState, sender: PeerId, note: Disown) -> None:
    """The parent is none: find another."""
    if sender == peer.parent and note.level == peer.top:
        peer.follow(None)
        seek(peer, None)
