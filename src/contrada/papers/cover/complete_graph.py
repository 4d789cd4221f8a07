"""The graph G_* of [COVER], with every covering relationship, and the strict poset, without those that follow."""

from __future__ import annotations

from numpy.typing import ArrayLike

from contrada.covering.members import Key, Subscribed, Unsubscribed
from contrada.papers.cover.point_index import PointIndex
from contrada.papers.cover.relation_graph import RelationGraph

BEFORE_ALL_ARRIVALS = -1  # before every arrival, so that equal points do not count


class CompleteGraph(RelationGraph):
    """Subscriptions with edges to all that they cover; removing needs no index, adding queries for all relationships.

    The points that a new point covers are those that cover it in `mirror`, an index of the negated points.

    >>> from contrada.papers.cover import KdTree
    >>> graph = CompleteGraph(KdTree(2), KdTree(2))
    >>> graph.subscribe("a", [1, 1]).forward, graph.subscribe("b", [2, 2]).forward, graph.subscribe("c", [1, 0])
    (True, True, Subscribed(forward=False, covered_by=('a', 'b'), withdraw=()))
    >>> sorted(graph.edges())
    [('a', 'c'), ('b', 'a'), ('b', 'c')]
    >>> graph.unsubscribe("b")                              # a was forwarded before b came, and still covers c
    Unsubscribed(forward=(), withdraw=True)
    """

    def __init__(self, index: PointIndex, mirror: PointIndex) -> None:
        """Make an empty graph on two empty indexes of the same dimensions."""
        super().__init__(index)
        self._mirror = mirror

    def subscribe(self, key: Key, point: ArrayLike) -> Subscribed:
        """Add a subscription; it is forwarded if nothing covers it."""
        self._members.require_new(key)
        checked = self._index.checked(point)
        covers = set(self._index.find_covers(checked, None).tolist())
        covered = set(self._mirror.find_covers(-checked, None, before=BEFORE_ALL_ARRIVALS).tolist())
        row = self._members.add(key, checked)
        self._index.add(row, checked, self._members[row].arrival)
        self._mirror.add(row, -checked, self._members[row].arrival)
        self._insert(row, covers, covered)
        return Subscribed(not covers, self._members.keys(sorted(covers)))

    def unsubscribe(self, key: Key) -> Unsubscribed:
        """Remove a subscription; those that nothing else covers are forwarded, unless they were before."""
        row = self._members.row(key)
        self._index.remove(row)
        self._mirror.remove(row)
        uncovered = [orphan for orphan in sorted(self._delete(row)) if orphan not in self._members.forwarded]
        self._members.forwarded.update(uncovered)
        return Unsubscribed(self._members.keys(uncovered), self._members.remove(row))

    def _insert(self, row: int, covers: set[int], covered: set[int]) -> None:
        """Add a node with its edges; without covers it is forwarded."""
        self._parents[row], self._children[row] = set(), dict.fromkeys(covered)
        self._link(row, covers)
        for child in covered:
            self._parents[child].add(row)


class StrictPoset(CompleteGraph):
    """The Hasse diagram of G_*: edges from each subscription to those directly below it.

    >>> from contrada.papers.cover import KdTree
    >>> poset = StrictPoset(KdTree(1), KdTree(1))
    >>> for key, size in ("low", 1), ("high", 3), ("middle", 2): _ = poset.subscribe(key, [size])
    >>> sorted(poset.edges())
    [('high', 'middle'), ('middle', 'low')]
    >>> poset.unsubscribe("middle").forward, sorted(poset.edges())
    ((), [('high', 'low')])
    """

    def _insert(self, row: int, covers: set[int], covered: set[int]) -> None:
        """Add a node between the lowest nodes that cover it and the highest nodes that it covers."""
        lowest = {cover for cover in covers if not self._children[cover].keys() & covers}
        highest = {child for child in covered if not self._parents[child] & covered}
        for cover in lowest:
            for child in self._children[cover].keys() & highest:  # now implied by the path through the new node
                del self._children[cover][child]
                self._parents[child].discard(cover)
        super()._insert(row, lowest, highest)

    def _delete(self, row: int) -> list[int]:
        """Delete a node; nodes above it get edges to nodes below it, unless another path leads there."""
        parents, children = self._parents[row], set(self._children[row])
        super()._delete(row)
        for parent in parents:
            for child in children - self._below(parent, children):
                self._children[parent][child] = None
                self._parents[child].add(parent)
        return [child for child in children if not self._parents[child]]

    def _below(self, top: int, wanted: set[int]) -> set[int]:
        """Return those of `wanted` that a path from `top` reaches."""
        found: set[int] = set()
        seen = {top}
        stack = [top]
        while stack and len(found) < len(wanted):
            for child in self._children[stack.pop()]:
                if child in wanted:
                    found.add(child)
                if child not in seen:
                    seen.add(child)
                    stack.append(child)
        return found
