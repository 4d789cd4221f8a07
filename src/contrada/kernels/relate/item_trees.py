"""Edge trees (edge_tree.py) of the large items of a tree of constraints (packed.py).

Comparing one message with all edges of a large region takes no longer than reading that region did, but every further
message takes that time again. So comparisons with large items are counted across calls. Once they have taken longer
than building a tree takes, the kernel requests a tree from the caller (index/edge_trees.py).
"""

from typing import Any, NamedTuple

import numpy as np

from contrada.jit import inlined_kernel, kernel
from contrada.kernels.relate.edge_tree import BUILD_AFTER, EdgeTree, count_leaves, rounding_of
from contrada.kernels.relate.sweep import count_edges
from contrada.kernels.runtime.pointers import counters_at, places_at, tree_nodes_at

TREE_REQUESTED = np.int64(-1)


class ItemTrees(NamedTuple):
    """Addresses of the nodes and edges of each large item's tree (0 if none), and the comparisons made with each item.

    `spent` has one more number at its end. An item that needs a tree has TREE_REQUESTED in place of its comparisons;
    then that last number is 1.
    """

    places: Any
    spent: Any


@inlined_kernel
def item_trees_at(table, items):
    """Return the trees of the items from the table of addresses (index/packed.py makes it)."""
    return ItemTrees(places_at(table[38], len(items.large)), counters_at(table[39], len(items.large) + 1))


@inlined_kernel
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


@inlined_kernel
def has_tree(trees, k):
    """Return True if large item k has a tree; another thread may be writing the addresses at this moment."""
    return trees.places[k, 0] != 0 and trees.places[k, 1] != 0


@inlined_kernel
def item_tree(trees, k, items, bounds):
    """Return the tree of large item k, which has one."""
    item = np.int64(items.large[k])
    count = count_edges(items.column.rings, np.int64(items.regions[item]), np.int64(items.regions[item + 1]))
    leaves = np.int64(count_leaves(count))
    nodes = tree_nodes_at(trees.places[k, 0], 2 * leaves)
    return EdgeTree(leaves, rounding_of(bounds, item), nodes, counters_at(trees.places[k, 1], count))
