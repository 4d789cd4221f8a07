"""A CR-tree whose nodes know their operators: the future work that [SPATIAL] names, taken to its end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import Point, Region, Relation, RelationSet
from contrada.papers.spatial.crtree import CRTree, Split, mask_of

WITHIN = 1 << Relation.INSIDE | 1 << Relation.COVERED_BY | 1 << Relation.EQUALS
DISJOINT = 1 << Relation.DISJOINT


class OperatorTree:
    """Constraints in three CR-trees, so that constraints that hold for most messages share no node with others.

    One holds constraints with `disjoint`, which most messages satisfy; one those that ask for a message within their
    region, which few satisfy and whose nodes are skipped unless their box covers the message's; one all others. It
    is what a split by operators ends in, if insertion keeps to it.

    >>> tree = OperatorTree()
    >>> tree.insert(7, Relation.INSIDE, Region.box(0, 0, 4, 4))
    >>> tree.insert(8, Relation.DISJOINT, Region.box(8, 8, 9, 9))
    >>> tree.match(Region.box(1, 1, 2, 2)).tolist()
    [7, 8]
    """

    def __init__(self, split: Split = "quadratic", minimum: int = 4, maximum: int = 10) -> None:
        self.trees = {name: CRTree(split, minimum, maximum) for name in ("most", "few", "others")}
        self.trees["few"].is_within = True

    def __len__(self) -> int:
        return sum(map(len, self.trees.values()))

    @property
    def work(self) -> NDArray[np.int64]:
        """Nodes visited and boxes of constraints compared, by all searches."""
        work: NDArray[np.int64] = np.sum([tree.work for tree in self.trees.values()], axis=0)
        return work

    def insert(self, row: int, relations: RelationSet | Relation | int, region: Region) -> None:
        """Add a constraint to the tree of its operators."""
        mask = mask_of(relations)
        name = "most" if mask & DISJOINT else "few" if not mask & ~WITHIN else "others"
        self.trees[name].insert(row, mask, region)

    def match(self, value: Region | Point) -> NDArray[np.int64]:
        """Return the rows of the constraints that a message's value satisfies, sorted."""
        found: NDArray[np.int64] = np.sort(np.concatenate([tree.match(value) for tree in self.trees.values()]))
        return found

    def count_evaluated(self, value: Region | Point) -> int:
        """Return how many constraints boxes leave to evaluation."""
        return sum(tree.count_evaluated(value) for tree in self.trees.values())
