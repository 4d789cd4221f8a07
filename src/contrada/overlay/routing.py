"""Dissemination: down to every child whose box the message meets, and up until the root."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from contrada.overlay.boxes import Box
from contrada.overlay.protocol import MOST_HOPS, Down, PeerId, Publication, Up
from contrada.overlay.state import PeerState


def up(peer: PeerState, note: Up) -> None:
    """A message from below, or published here: to all other children that want it, and to the parent."""
    if note.level is not None and note.level >= peer.top and peer.pass_on(note, note.level + 1):
        return
    publication = note.publication
    done = _remember(peer, publication, peer.top)
    if done is None:
        return
    _spread(peer, publication, peer.top, done, note.child)
    if peer.parent is not None and done < 0 and note.hops < MOST_HOPS:
        peer.send(peer.parent, Up(publication, peer.top, peer.id))


def down(peer: PeerState, note: Down) -> None:
    """A message from above, for the node of a level and all below."""
    level, top = note.level, len(peer.nodes) - 1
    if level > top:
        if peer.pass_on(note, level):
            return
        level = top
    done = _remember(peer, note.publication, level)
    if done is not None and level > 0:
        _spread(peer, note.publication, level, done, None)


def _remember(peer: PeerState, publication: Publication, level: int) -> int | None:
    """The level up to which a message was spread before, -1 if not at all; None if nothing is left to do."""
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
    """Send a message to the children, of a level and below, whose boxes it meets, but not where it came from."""
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
    """A message's box as kernels take it: it is looked at by many peers of a simulation one after the other."""
    return np.array(box)
