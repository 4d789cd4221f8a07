"""RelationGraph: the graph G_k of [COVER], section III, on any index that answers cov_k."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from numpy.typing import ArrayLike

from contrada.covering.members import Key, Subscribed, SubscriptionGraph, Unsubscribed
from contrada.errors import CoveringError
from contrada.papers.cover.point_index import PointIndex, SearchWork


class GraphWork(NamedTuple):
    """The cost of one kind of command: index queries, nodes or blocks visited, points compared."""

    queries: int = 0
    nodes: int = 0
    comparisons: int = 0


class RelationGraph(SubscriptionGraph):
    """Subscriptions with edges from covering to covered ones, at most k into each; those without any are forwarded.

    As printed, except that of equal subscriptions only the earlier covers the later: otherwise two equal ones whose
    common cover is removed would cover each other, and neither would be forwarded.

    >>> from contrada.papers.cover import KdTree, Range, rectangle_point
    >>> graph = RelationGraph(KdTree(2))
    >>> def prices(low, high): return rectangle_point({"price": Range(low, high)}, ["price"])
    >>> graph.subscribe("wide", prices(0, 100))
    Subscribed(forward=True, covered_by=(), withdraw=())
    >>> graph.subscribe("narrow", prices(20, 30))
    Subscribed(forward=False, covered_by=('wide',), withdraw=())
    >>> graph.unsubscribe("wide")
    Unsubscribed(forward=('narrow',), withdraw=True)
    """

    def __init__(self, index: PointIndex, k: int = 1) -> None:
        """Make an empty graph on an empty index."""
        if k < 1:
            raise CoveringError(f"k: need a number of at least 1, got {k}")
        self.k = k
        self._index = index
        super().__init__()
        self._parents: dict[int, set[int]] = {}
        self._children: dict[int, dict[int, None]] = {}  # in the order of the edges
        self.subscribe_work = GraphWork()
        self.unsubscribe_work = GraphWork()

    def subscribe(self, key: Key, point: ArrayLike) -> Subscribed:
        """Add a subscription; it is forwarded if nothing covers it."""
        self._members.require_new(key)
        start = self._index.work
        covers = self._index.find_covers(point, self.k, self._members.next_arrival).tolist()
        row = self._members.add(key, point)
        self._index.add(row, point, self._members[row].arrival)
        self._parents[row], self._children[row] = set(), {}
        self._link(row, covers)
        self.subscribe_work = self._spent(self.subscribe_work, start, 1)
        return Subscribed(not covers, self._members.keys(covers))

    def unsubscribe(self, key: Key) -> Unsubscribed:
        """Remove a subscription; those that only it covered are queried again, and forwarded if uncovered."""
        row = self._members.row(key)
        start = self._index.work
        self._index.remove(row)
        orphans = self._delete(row)
        uncovered = []
        for orphan in orphans:
            member = self._members[orphan]
            covers = self._index.find_covers(member.item, self.k, member.arrival).tolist()
            self._link(orphan, covers)
            if not covers:
                uncovered.append(orphan)
        self.unsubscribe_work = self._spent(self.unsubscribe_work, start, len(orphans))
        return Unsubscribed(self._members.keys(uncovered), self._members.remove(row))

    def _link(self, row: int, covers: Collection[int]) -> None:
        """Add edges into a row; without covers it is forwarded."""
        for cover in covers:
            self._parents[row].add(cover)
            self._children[cover][row] = None
        if not covers:
            self._members.forwarded.add(row)

    def _delete(self, row: int) -> list[int]:
        """Delete a node with its edges; return the rows that have no incoming edge left."""
        for parent in self._parents.pop(row):
            del self._children[parent][row]
        children = self._children.pop(row)
        for child in children:
            self._parents[child].discard(row)
        return [child for child in children if not self._parents[child]]

    def _spent(self, so_far: GraphWork, start: SearchWork, queries: int) -> GraphWork:
        nodes, comparisons = (now - before for now, before in zip(self._index.work, start, strict=True))
        return GraphWork(so_far.queries + queries, so_far.nodes + nodes, so_far.comparisons + comparisons)
