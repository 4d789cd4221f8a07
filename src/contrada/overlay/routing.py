"""Route messages: down to every child whose box the message meets, and up to the root."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from contrada.overlay.boxes import Box
from contrada.overlay.protocol import MAX_HOPS, Down, PeerId, Publication, Up
from contrada.overlay.state import PeerState


def up(peer: PeerState, note: Up) -> None:
    """Handle a message from below, or published here: send it to all other children it meets, and to the parent."""
    if note.level is not None and note.level >= peer.top and peer.pass_on(note, note.level + 1):
        return
    publication = note.publication
    done = _remember(peer, publication, peer.top)
    if done is None:
        return
    _spread(peer, publication, peer.top, done, note.child)
    if peer.parent is not None and done < 0 and note.hops < MAX_HOPS:
        peer.send(peer.parent, Up(publication, peer.top, peer.id))


def down(peer: PeerState, note: Down) -> None:
    """Handle a message from above, for the node of a level and all below."""
    level, top = note.level, len(peer.nodes) - 1
    if level > top:
        if peer.pass_on(note, level):
            return
        level = top
    done = _remember(peer, note.publication, level)
    if done is not None and level > 0:
        _spread(peer, note.publication, level, done, None)


def _remember(peer: PeerState, publication: Publication, level: int) -> int | None:
    """Return the level up to which a message was spread before, -1 for a new one; None if nothing is left to do."""
    seen = peer.seen
    done = seen.get(publication.key, -1)
    if level <= done:
        return None
    seen[publication.key] = level
    if len(seen) > peer.rules.remembered:
        del seen[next(iter(seen))]
    if done < 0 and peer.interest.matches(publication):
        peer.deliveries.append(publication)
    return done


def _spread(peer: PeerState, publication: Publication, level: int, done: int, source: PeerId | None) -> None:
    """Send a message to the children, from `level` down, whose boxes it meets, except to `source`."""
    own, out = peer.id, peer.out
    where = _array_of(publication.where)
    for k in range(level, max(done, 0), -1):
        note = Down(publication, k - 1)
        reaches_own = False
        for child in peer.children_at(k).met_by(where):
            if child == own:
                reaches_own = True
            elif child != source:
                out.append((child, note))
        if not reaches_own:
            break


@lru_cache(maxsize=16)
def _array_of(box: Box) -> npt.NDArray[np.float64]:
    """Return a message's box as an array; cached, because many simulated peers route the same message in turn."""
    return np.array(box)
