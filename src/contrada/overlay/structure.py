"""The shape of the tree as one peer sees it: overflow, underflow, and which peer holds a node."""

from __future__ import annotations

import msgspec

from contrada import kernels
from contrada.overlay.boxes import largest, nearest, rows_of
from contrada.overlay.protocol import Adopted, Join, Leave, Orphaned, PeerId, Replace, Report, Table, Take
from contrada.overlay.sketch import entry_of
from contrada.overlay.state import PeerState


def settle(peer: PeerState, level: int, reinserted: int = 0) -> None:
    """Repair the nodes from `level` up after one has changed, and report to the parent."""
    before = peer.entries[-1], peer.top
    added: Table = {}
    k = level
    while k <= peer.top:
        has_parent = k < peer.top or peer.parent is not None
        peer.nodes[k][peer.id] = peer.entries[k - 1]
        count = len(peer.nodes[k])
        is_split = False
        if count > peer.rules.most:
            if has_parent and peer.rules.reinserts and not reinserted >> k & 1:
                reinserted |= 1 << k
                _reinsert(peer, k, reinserted)
            else:
                is_split = True
                added = _split(peer, k, added)
        elif has_parent and count < peer.rules.least:  # each child, and the peer's own node below, finds a new parent
            near = vacate(peer, k)
            peer.follow(None)
            seek(peer, near)
            return
        elif count == 1 and not has_parent:  # a root needs two children
            peer.truncate(k)
            if k > 1 and len(peer.nodes[k - 1]) == 1:
                settle(peer, k - 1)
            return
        if not _renew(peer, k) and not is_split:
            break
        k += 1
    if peer.parent is not None and (added or (peer.entries[-1], peer.top) != before):
        peer.send(peer.parent, Report(peer.top, peer.id, peer.parent, peer.entries[-1], added, reinserted))
    for each in range(min(k, peer.top), level - 1, -1):
        _promote(peer, each)


def _renew(peer: PeerState, level: int) -> bool:
    """Recompute the entry of a node; return whether it has changed."""
    entry = entry_of(peer.rules, level, peer.own, peer.nodes[level])
    if entry == peer.entries[level]:
        return False
    peer.entries[level] = entry
    if level < peer.top:
        peer.nodes[level + 1][peer.id] = entry
    return True


def _split(peer: PeerState, level: int, added: Table) -> Table:
    """Split a node; another peer gets one half. Return the new nodes that the parent of the top must adopt."""
    table = peer.nodes[level]
    children = list(table)
    split = getattr(kernels, f"split_{peer.rules.split}")
    groups = split(rows_of([entry.box for entry in table.values()]), peer.rules.least)
    mine = groups[children.index(peer.id)]
    kept = {child: table[child] for child, group in zip(children, groups, strict=True) if group == mine}
    given = {child: table[child] for child, group in zip(children, groups, strict=True) if group != mine}
    heir = best_cover(peer, given)
    entry = entry_of(peer.rules, level, given[heir].own, given)
    peer.nodes[level] = kept
    is_top = level == peer.top
    if is_top and peer.parent is not None:
        peer.send(heir, Take(level, heir, [given], peer.parent, peer.id, True))
        return {**added, heir: entry}
    peer.send(heir, Take(level, heir, [given], peer.id, peer.id, True))
    if is_top:
        _renew(peer, level)
        peer.push({heir: entry})
    else:
        peer.nodes[level + 1][heir] = entry
    peer.send(heir, Adopted(level, heir, entry, peer.id))
    return added


def _reinsert(peer: PeerState, level: int, reinserted: int) -> None:
    """Give away the outermost children, to be placed again from the root; the nearest of them first."""
    table = peer.nodes[level]
    children = [child for child in table if child != peer.id]
    order = kernels.order_by_distance(rows_of([table[child].box for child in (*children, peer.id)]))
    climb = peer.parent if peer.parent is not None else peer.id
    for child in [children[k] for k in order.tolist() if k < len(children)][-peer.rules.reinserted_count :]:
        # A child is whole: only roots may have fewer than `least` children.
        peer.send(climb, Join(child, level - 1, table.pop(child), True, peer.id, reinserted))


def best_cover(peer: PeerState, table: Table) -> PeerId:
    """Return the child that should hold a node: the one with the largest box; the first of equals."""
    by_own = peer.rules.cover == "own"
    return list(table)[largest([entry.own if by_own else entry.box for entry in table.values()])]


def _promote(peer: PeerState, level: int) -> None:
    """Hand a node, and all nodes above it, to a child that covers it better."""
    table = peer.nodes[level]
    heir = best_cover(peer, {peer.id: table[peer.id]} | table)  # the holder first: it wins ties
    if heir == peer.id:
        return
    highest, parent = peer.top, peer.parent
    tables = peer.truncate(level)
    peer.hand_over(level, highest, heir)
    peer.follow(heir)
    peer.send(heir, Take(level, heir, tables, parent, peer.id, False))


def take(peer: PeerState, note: Take) -> None:
    """Take over nodes that another peer has given away."""
    if peer.top != note.level - 1 or peer.has_left:
        heir = peer.heir_of(note.level - 1, note.hops)
        if peer.top < note.level - 1 and heir is not None:
            peer.hand_over(note.level, note.level + len(note.tables) - 1, heir)
            peer.send(heir, msgspec.structs.replace(note, hops=note.hops + 1))
        return
    for k, given in enumerate(note.tables):
        table = dict(given)
        table.pop(note.heir if k == 0 else note.previous, None)
        peer.push(table)
    peer.follow(note.parent if note.parent != peer.id else None)
    if not note.is_split and peer.parent is not None:
        peer.send(peer.parent, Replace(peer.top, note.previous, peer.id, peer.parent, peer.entries[-1]))
    for k in range(note.level, peer.top + 1):
        for child, entry in peer.nodes[k].items():
            if child != peer.id:
                peer.send(child, Adopted(k - 1, child, entry, peer.id, (note.previous, note.heir)))
    settle(peer, note.level)


def vacate(peer: PeerState, level: int) -> PeerId | None:
    """Give up all nodes from `level` up, and remove the peer from their children; return a peer near them now.

    The lowest node with enough children left goes, with all above it, to the child that covers it best. The children of
    nodes below find new parents, each with its whole subtree at its level.
    """
    highest = peer.top
    tables = peer.truncate(level)
    orphans: list[tuple[int, PeerId]] = []
    heir: PeerId | None = None
    for at, table in enumerate(tables):
        table.pop(peer.id, None)
        is_root = peer.parent is None and at == len(tables) - 1
        if len(table) >= (2 if is_root else peer.rules.least):
            heir = best_cover(peer, table)
            peer.send(heir, Take(level + at, heir, tables[at:], peer.parent, peer.id, False))
            peer.hand_over(level + at, highest, heir)
            break
        orphans += [(level + at - 1, child) for child in table]
    if heir is None and peer.parent is not None:
        heir = peer.parent
        peer.send(heir, Leave(highest, peer.id))
    if heir is None and orphans:  # the last child of the highest level becomes the root
        heir = orphans[-1][1]
    for at, child in orphans:
        peer.send(child, Orphaned(at, None if child == heir else heir, peer.id))
    return heir


def seek(peer: PeerState, via: PeerId | None) -> None:
    """Find a parent for the highest node through `via`, or through a random known peer.

    Until a parent is found, join requests that arrive here are passed on to `via`: a temporary root would gather a tree
    of its own.
    """
    peer.seeking = None if via == peer.id else via
    if via is None or via == peer.id:
        known = peer.known()
        via = peer.rng.choice(known) if known else None
    if via is not None:
        peer.contacts.pop(via, None)  # a live peer will be heard of again
        peer.send(via, Join(peer.id, peer.top, peer.entries[-1], peer.is_whole))


def order_of(peer: PeerId) -> tuple[bool, PeerId]:
    """Return a sort key of peers, for decisions that two peers must make alike."""
    return isinstance(peer, str), peer


def closest(peer: PeerState, level: int, join: Join) -> PeerId:
    """Return the child of a node that fits a new node best."""
    table = peer.nodes[level]
    # R* minimizes overlap where the children are the lowest nodes, and area above.
    by_overlap = peer.rules.choose == "rstar" and level == 2
    return list(table)[nearest([entry.box for entry in table.values()], join.entry.box, by_overlap)]
