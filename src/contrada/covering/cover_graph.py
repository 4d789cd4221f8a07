"""CoverGraph: the edges of the relation graph G_k of [COVER] between numbered subscriptions, in arrays.

Edge `k * child + j` is the j-th edge into a subscription; `_parents` has its source, or NONE. The edges out of a
subscription form a doubly linked list from `_heads`. An edge takes 12 bytes, a subscription 4.
"""

from __future__ import annotations

from array import array

NONE = -1


class CoverGraph:
    """Edges from subscriptions to subscriptions that they cover, at most `k` into each."""

    def __init__(self, k: int) -> None:
        self.k = k
        self._heads = array("i")
        self._parents, self._nexts, self._prevs = array("i"), array("i"), array("i")

    def make_room(self, number: int) -> None:
        """Make room for subscription `number`."""
        if number >= len(self._heads):
            more = number + 1 - len(self._heads) + len(self._heads) // 8  # some room for the next ones
            self._heads.extend([NONE] * more)
            for edges in (self._parents, self._nexts, self._prevs):
                edges.extend([NONE] * (self.k * more))

    def parents(self, number: int) -> list[int]:
        """Return the subscriptions that are known to cover one."""
        first = self.k * number
        return [parent for parent in self._parents[first : first + self.k] if parent != NONE]

    def children(self, number: int) -> list[int]:
        """Return the subscriptions that one is known to cover, the latest edge first."""
        found, edge = [], self._heads[number]
        while edge != NONE:
            found.append(edge // self.k)
            edge = self._nexts[edge]
        return found

    def link(self, parent: int, child: int) -> None:
        """Add an edge; the child has fewer than k parents."""
        edge = self._parents.index(NONE, self.k * child)
        head = self._heads[parent]
        self._parents[edge], self._nexts[edge], self._prevs[edge] = parent, head, NONE
        if head != NONE:
            self._prevs[head] = edge
        self._heads[parent] = edge

    def remove(self, number: int) -> list[int]:
        """Remove all edges of a subscription; return the subscriptions that lost their last parent."""
        for edge in range(self.k * number, self.k * number + self.k):
            if self._parents[edge] != NONE:
                self._unlink(edge)
        orphans, edge = [], self._heads[number]
        while edge != NONE:
            child, self._parents[edge] = edge // self.k, NONE
            edge = self._nexts[edge]
            if not self.parents(child):
                orphans.append(child)
        self._heads[number] = NONE
        return orphans

    def _unlink(self, edge: int) -> None:
        """Remove an edge from the list of its source."""
        before, after = self._prevs[edge], self._nexts[edge]
        if before == NONE:
            self._heads[self._parents[edge]] = after
        else:
            self._nexts[before] = after
        if after != NONE:
            self._prevs[after] = before
        self._parents[edge] = NONE

    def is_above(self, number: int, other: int) -> bool:
        """Return True if a path leads from `number` to `other`, or they are the same."""
        if number == other:
            return True
        found, todo = {other}, [other]
        while todo:
            for parent in self.parents(todo.pop()):
                if parent == number:
                    return True
                if parent not in found:
                    found.add(parent)
                    todo.append(parent)
        return False
