"""StrictPoset: the covering relationships without those that follow from others, as in Siena."""

from __future__ import annotations

from contrada.papers.cover.complete_graph import CompleteGraph


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
