"""Edge trees (kernels/relate/edge_tree.py) of the large items of a tree of constraints (search.py).

Comparing one message with all edges of a large region takes no longer than reading that region did, but every further
message takes that time again. So comparisons with large items are counted across calls. Once they have taken longer
than building a tree takes, the kernel requests a tree from the caller (index/edge_trees.py).
"""

from typing import Any, NamedTuple

import numpy as np

from contrada.codes import TREE_REQUESTED
from contrada.jit import kernel
from contrada.kernels.match.tables import EDGE_TREE, TREE
from contrada.kernels.relate.edge_tree import BUILD_AFTER, EdgeTree, rounding_of
from contrada.kernels.runtime.pointers import reader

EDGE_TREE_SIZE = EDGE_TREE.size


class ItemTrees(NamedTuple):
    """Table of addresses of each large item's tree (0 if it has none), and the comparisons made with each item.

    `spent` has one more number at its end. An item that needs a tree has TREE_REQUESTED in place of its comparisons;
    then that last number is 1.
    """

    trees: Any
    spent: Any


class EdgeTreeArrays(NamedTuple):
    """Arrays of an edge tree."""

    nodes: Any
    edges: Any


item_trees_at = reader(TREE, ItemTrees)
edge_tree_at = reader(EDGE_TREE, EdgeTreeArrays)


@kernel
def are_wanted(trees):
    """Return True if any item needs a tree."""
    return trees.spent[len(trees.spent) - 1] != 0


@kernel
def spend_on(trees, k, comparisons, vertices):
    """Count comparisons with large item k, which has `vertices` vertices; request a tree once they are many."""
    if trees.spent[k] == TREE_REQUESTED:
        return
    trees.spent[k] += comparisons
    if trees.spent[k] > BUILD_AFTER * vertices:
        trees.spent[k] = TREE_REQUESTED
        trees.spent[len(trees.spent) - 1] = 1


@kernel
def has_tree(trees, k):
    """Return True if large item k has a tree; another thread may be writing its addresses at this moment."""
    for place in range(EDGE_TREE_SIZE):
        if trees.trees[k, place] == 0:
            return False
    return True


@kernel
def item_tree(trees, k, items, bounds):
    """Return the tree of large item k, which has one."""
    arrays = edge_tree_at(trees.trees[k])
    return EdgeTree(len(arrays.nodes) >> 1, rounding_of(bounds, np.int64(items.large[k])), arrays.nodes, arrays.edges)
