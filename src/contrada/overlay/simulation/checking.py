"""Check the invariants of a simulated overlay at rest, which no single peer can see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from contrada.overlay.peer import Peer
from contrada.overlay.protocol import PeerId
from contrada.overlay.sketch import entry_of


def faults(peers: Mapping[PeerId, Peer]) -> list[str]:
    """Return all faults of the tree of these peers; empty if it is one balanced tree with tight boxes.

    There is one root. Every peer's parent has it among its children, at its level and with its current box. Every node
    has itself and m to M children (a root at least two). Every peer is below the root.
    """
    found = []
    roots = [id for id, peer in peers.items() if peer.state.parent is None]
    if len(roots) != min(1, len(peers)):
        found.append(f"{len(roots)} roots: {roots[:5]}")
    for id, peer in peers.items():
        found += [f"peer {id}: {fault}" for fault in _faults_of(peer, peers)]
    reached = _reachable(peers, roots)
    if len(reached) != len(peers):
        found.append(f"{len(peers) - len(reached)} peers are not below the root")
    return found


def _faults_of(peer: Peer, peers: Mapping[PeerId, Peer]) -> Iterator[str]:
    """Yield the faults of the nodes of one peer."""
    yield from _link_faults(peer, peers)
    state = peer.state
    for level in range(1, state.top + 1):
        table = state.nodes[level]
        is_root = level == state.top and state.parent is None
        least = 2 if is_root else state.rules.least
        if not least <= len(table) <= state.rules.most:
            yield f"{len(table)} children at level {level}"
        if state.id not in table:
            yield f"not its own child at level {level}"
        known, right = state.entries[level], entry_of(state.rules, level, state.own, table)
        if known.box != right.box:
            yield f"the box of level {level} is not that of its children"
        if known.parts != right.parts:
            yield f"the sketch of level {level} is not that of its children"
        for child, entry in table.items():
            other = peers.get(child)
            if other is not None and other.state.top >= level - 1 and entry != other.state.entries[level - 1]:
                yield f"child {child} at level {level} is not known as it is"


def _link_faults(peer: Peer, peers: Mapping[PeerId, Peer]) -> Iterator[str]:
    """Yield where a peer and a neighbour disagree about who is whose parent."""
    state = peer.state
    for level in range(1, state.top + 1):
        for child in state.nodes[level]:
            other = peers.get(child)
            if other is None:
                yield f"child {child} at level {level} is gone"
            elif child != state.id and (other.state.top != level - 1 or other.state.parent != state.id):
                yield f"child {child} at level {level} has its top at {other.state.top} below {other.state.parent}"
    if state.parent is None:
        return
    above = peers.get(state.parent)
    if above is None:
        yield f"parent {state.parent} is gone"
    elif above.state.top <= state.top or state.id not in above.state.nodes[state.top + 1]:
        yield f"parent {state.parent} does not know it at level {state.top}"


def disagrees(peers: Mapping[PeerId, Peer], id: PeerId) -> bool:
    """Return True if a peer and a neighbour disagree about who is whose parent: a quick form of `faults`."""
    return id in peers and any(True for _ in _link_faults(peers[id], peers))


def _reachable(peers: Mapping[PeerId, Peer], roots: list[PeerId]) -> set[PeerId]:
    """Return the peers below `roots`."""
    reached = set(roots)
    waiting = list(roots)
    for id in waiting:  # which grows meanwhile
        below = {child for table in peers[id].state.nodes for child in table if child in peers} - reached
        reached |= below
        waiting += below
    return reached
