"""Heartbeats and time-outs: detect dead neighbours, and repair differences between what two neighbours believe."""

from __future__ import annotations

from contrada.overlay.protocol import Ack, Adopted, Beat, Disown, PeerId
from contrada.overlay.routing import send_again, send_up_again
from contrada.overlay.state import PeerState
from contrada.overlay.structure import seek, settle

GOSSIPED_CONTACTS = 3  # sent with a heartbeat
REMIND_AFTER_PERIODS = 1.5  # periods without a heartbeat before a child is reminded of its parent


def tick(peer: PeerState, now: float) -> None:
    """Do the periodic work of a peer: check its nodes, and send its parent a heartbeat."""
    if peer.has_left:
        return
    for key in peer.kept.expire(now):
        peer.seen.pop(key, None)
    if peer.parent == peer.id:
        peer.follow(None)
    _drop_the_dead(peer, now)
    for level in range(1, peer.top + 1):
        if level <= peer.top:  # the loop may lower `top`
            settle(peer, level)
    if peer.parent is not None:
        if peer.parent_heard is None:
            peer.parent_heard = now
        if now - peer.parent_heard > peer.rules.patience:
            peer.follow(None)
    if peer.parent is None:
        peer.seeking = None
        seek(peer, None)  # another root may exist
    else:
        got, upto = peer.kept.list_new()
        age = now - peer.joined
        peer.send(peer.parent, Beat(peer.top, peer.entries[-1], _some_contacts(peer), got, upto, age))


def _drop_the_dead(peer: PeerState, now: float) -> None:
    """Remove children that were silent longer than `patience`; remind children that are late."""
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
            if now - last > REMIND_AFTER_PERIODS * peer.rules.period:
                peer.send(child, Adopted(level - 1, child, entry, peer.id))
    peer.heard = heard
    peer.kept.forget_links({child for _, child in heard})


def _some_contacts(peer: PeerState) -> tuple[PeerId, ...]:
    known = list(peer.contacts)
    return (*peer.rng.sample(known, min(GOSSIPED_CONTACTS, len(known))), peer.id)


def beat(peer: PeerState, sender: PeerId, note: Beat, now: float) -> None:
    """Handle a heartbeat of a child; disown a sender that is no child."""
    peer.learn(note.contacts)
    level = note.level + 1
    if level > peer.top or sender not in peer.nodes[level] or sender == peer.id:
        peer.send(sender, Disown(note.level))
        return
    peer.heard[level, sender] = now
    table = peer.nodes[level]
    kin = [child for child in table if child != sender]
    above = [] if peer.parent is None else [peer.parent]
    lacks = send_again(peer, sender, note)
    peer.send(sender, Ack(note.level, (*above, *kin, *_some_contacts(peer)), note.upto, lacks))
    if table[sender] != note.entry:
        table[sender] = note.entry
        settle(peer, level)


def ack(peer: PeerState, sender: PeerId, note: Ack, now: float) -> None:
    """Handle the parent's answer to a heartbeat."""
    peer.learn(note.contacts[-GOSSIPED_CONTACTS - 1 :])
    if sender == peer.parent and note.level == peer.top:
        peer.parent_heard = now
        peer.kin = tuple(each for each in note.contacts if each != peer.id)
        send_up_again(peer, sender, note)


def disown(peer: PeerState, sender: PeerId, note: Disown, now: float) -> None:
    """Find another parent: the parent does not know this peer as a child."""
    if sender == peer.parent and note.level == peer.top:
        peer.follow(None)
        seek(peer, None)
