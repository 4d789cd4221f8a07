"""RelationGraph: the graph G_k of [COVER], section III, on any index that answers cov_k."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from contrada.covering.members import Key, Subscribed, SubscriptionGraph, Unsubscribed
from contrada.errors import CoveringError
from contrada.papers.cover.point_index import SearchWork


class CoverIndex(Protocol):
    """The index that a graph needs; items may be points or anything else that the index can compare."""

    @property
    def work(self) -> SearchWork:
        """The work of all searches so far."""

    def add(self, row: int, item: Any, arrival: int) -> None:
        """Add an item."""

    def remove(self, row: int) -> None:
        """Remove an item."""

    def find_covers(self, item: Any, k: int | None, before: int) -> Any:
        """Return up to `k` rows that cover `item`; of equal items only those that arrived before `before`."""


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

    def __init__(self, index: CoverIndex, k: int = 1) -> None:
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

    def subscribe(self, key: Key, item: Any) -> Subscribed:
        """Add a subscription; it is forwarded if nothing covers it."""
        self._members.require_new(key)
        start = self._index.work
        covers = self._find(item, self._members.next_arrival)
        row = self._members.add(key, item)
        self._index.add(row, item, self._members[row].arrival)
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
            covers = self._find(member.item, member.arrival)
            self._link(orphan, covers)
            if not covers:
                uncovered.append(orphan)
        self.unsubscribe_work = self._spent(self.unsubscribe_work, start, len(orphans))
        return Unsubscribed(self._members.keys(uncovered), self._members.remove(row))

    def _find(self, item: Any, arrival: int) -> list[int]:
        return [int(row) for row in self._index.find_covers(item, self.k, arrival)]

    def _link(self, row: int, covers: list[int]) -> None:
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
        orphans = []
        for child in self._children.pop(row):
            self._parents[child].discard(row)
            if not self._parents[child]:
                orphans.append(child)
        return orphans

    def _spent(self, so_far: GraphWork, start: SearchWork, queries: int) -> GraphWork:
        now = self._index.work
        return GraphWork(
            so_far.queries + queries,
            so_far.nodes + now.nodes - start.nodes,
            so_far.comparisons + now.comparisons - start.comparisons,
        )
