"""Route messages: down to every child whose box the message meets, and up to the root.

Messages that do not arrive are sent again with the heartbeats (`contrada.overlay.keeping`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

import numpy as np
import numpy.typing as npt

from contrada.overlay.boxes import Box
from contrada.overlay.keeping import RESENT_PER_HEARTBEAT, KeptPublication
from contrada.overlay.protocol import MAX_HOPS, Ack, Beat, Down, Key, PeerId, Publication, Up
from contrada.overlay.state import PeerState

GRACE_PERIODS = 0.5  # since a message came, before it is sent again


def up(peer: PeerState, note: Up) -> None:
    """Handle a message from below, or published here: send it to all other children it meets, and to the parent."""
    if note.level is not None and note.level >= peer.top and peer.pass_on(note, note.level + 1):
        return
    publication = note.publication
    done = _remember(peer, publication, peer.top, note.age)
    if note.child is not None:
        peer.kept.add_holder(publication.key, note.child)
    if done is None:
        return
    _spread(peer, publication, peer.top, done, note.child, note.age)
    if peer.parent is not None and done < 0 and note.hops < MAX_HOPS:
        peer.send(peer.parent, Up(publication, peer.top, peer.id, 0, note.age))


def down(peer: PeerState, sender: PeerId, note: Down) -> None:
    """Handle a message from above, for the node of a level and all below."""
    level, top = note.level, len(peer.nodes) - 1
    if level > top:
        if peer.pass_on(note, level):
            return
        level = top
    done = _remember(peer, note.publication, level, note.age)
    if not note.hops:  # a note that was passed on comes from a peer that does not keep it
        peer.kept.add_holder(note.publication.key, sender)
    if done is None:
        peer.kept.list_again(note.publication.key)
    elif level > 0:
        _spread(peer, note.publication, level, done, None, note.age)


def _remember(peer: PeerState, publication: Publication, level: int, age: float) -> int | None:
    """Return the level up to which a message was spread before, -1 for a new one; None if nothing is left to do."""
    seen = peer.seen
    done = seen.get(publication.key, -1)
    if level <= done:
        return None
    seen[publication.key] = level
    born = peer.now - age
    if done < 0 and peer.rules.kept:
        peer.kept.keep(publication, born, peer.now)
    elif len(seen) > peer.rules.remembered and not peer.rules.kept:
        del seen[next(iter(seen))]
    if done < 0 and born >= peer.joined and peer.interest.matches(publication):
        peer.deliveries.append(publication)
    return done


def _spread(
    peer: PeerState, publication: Publication, level: int, done: int, source: PeerId | None, age: float
) -> None:
    """Send a message to the children, from `level` down, whose boxes it meets, except to `source`."""
    own, out = peer.id, peer.out
    where = _array_of(publication.where)
    for k in range(level, max(done, 0), -1):
        note = Down(publication, k - 1, 0, age)
        reaches_own = False
        for child in peer.children_at(k).met_by(where):
            if child == own:
                reaches_own = True
            elif child != source:
                out.append((child, note))
        if not reaches_own:
            break


def send_again(peer: PeerState, child: PeerId, note: Beat) -> tuple[Key, ...]:
    """Send a child what it lacks, by the list in its heartbeat; return the keys of listed messages this peer lacks."""
    if not peer.rules.kept:
        return ()
    # A leaf needs no messages from before it joined; a peer with nodes needs them for others. The heartbeat was on its
    # way for a time that is not known, but below `patience`.
    since = -math.inf if note.level else peer.now - note.age - peer.rules.patience
    owed = peer.kept.owed_to(child, note.entry, note.got, since)
    for one in _settled(peer, owed):
        peer.send(child, Down(one.publication, note.level, 0, peer.now - one.born))
    return tuple(key for key in note.got if key not in peer.seen)


def send_up_again(peer: PeerState, parent: PeerId, note: Ack) -> None:
    """Send the parent the messages that it lacks, by its answer to a heartbeat."""
    for one in _settled(peer, peer.kept.take_answer(note.upto, note.lacks)):
        peer.send(parent, Up(one.publication, peer.top, peer.id, 0, peer.now - one.born))


def _settled(peer: PeerState, messages: list[KeptPublication]) -> Iterator[KeptPublication]:
    """Yield messages that came long enough ago that a note about them is not still on its way."""
    settled = peer.now - GRACE_PERIODS * peer.rules.period
    return islice((one for one in messages if one.arrived <= settled), RESENT_PER_HEARTBEAT)


def send_unshared(peer: PeerState, to: PeerId) -> None:
    """Send `to` the messages that no neighbour is known to have, before this peer leaves."""
    for one in peer.kept.untold():
        if not one.holders:
            peer.send(to, Up(one.publication, None, None, 0, peer.now - one.born))


@lru_cache(maxsize=16)
def _array_of(box: Box) -> npt.NDArray[np.float64]:
    """Return a message's box as an array; cached, because many simulated peers route the same message in turn."""
    return np.array(box)
