"""Trees of edges (edge_tree.py) of the large items of a tree of constraints (packed.py).

One message that is compared with all edges of a large region takes no longer than reading that region did; many
messages take that time each. So comparisons with large items are counted from call to call. Where they have taken
longer than building takes, the caller is asked for a tree (index/edge_trees.py).
"""

from typing import Any, NamedTuple

import numpy as np

from contrada.jit import inlined_kernel, kernel
from contrada.kernels.relate.edge_tree import BUILD_AFTER, EdgeTree, count_leaves, rounding_of
from contrada.kernels.relate.sweep import count_edges
from contrada.kernels.runtime.pointers import counters_at, places_at, tree_nodes_at

WANTED = np.int64(-1)


class ItemTrees(NamedTuple):
    """For each large item the addresses of its tree's nodes and edges, or 0, and the comparisons made with it.

    An item that should get a tree has WANTED in place of the comparisons; then the last number, one more, is 1.
    """

    places: Any
    spent: Any


@inlined_kernel
def item_trees_at(table, items):
    """The trees of the items, from the table of addresses that they come from (index/packed.py makes it)."""
    return ItemTrees(places_at(table[38], len(items.large)), counters_at(table[39], len(items.large) + 1))


@inlined_kernel
def are_wanted(trees):
    """True if an item should get a tree."""
    return trees.spent[len(trees.spent) - 1] != 0


@kernel
def spend_on(trees, k, comparisons, vertices):
    """Count comparisons with large item number k, which has that many vertices; ask for a tree once they are many."""
    if trees.spent[k] == WANTED:
        return
    trees.spent[k] += comparisons
    if trees.spent[k] > BUILD_AFTER * vertices:
        trees.spent[k] = WANTED
        trees.spent[len(trees.spent) - 1] = 1


@inlined_kernel
def has_tree(trees, k):
    """True if large item number k has a tree; another thread may just be writing the addresses."""
    return trees.places[k, 0] != 0 and trees.places[k, 1] != 0


@inlined_kernel
def item_tree(trees, k, items, bounds):
    """The tree of large item number k, which has one."""
    item = np.int64(items.large[k])
    count = count_edges(items.column.rings, np.int64(items.regions[item]), np.int64(items.regions[item + 1]))
    leaves = np.int64(count_leaves(count))
    nodes = tree_nodes_at(trees.places[k, 0], 2 * leaves)
    return EdgeTree(leaves, rounding_of(bounds, item), nodes, counters_at(trees.places[k, 1], count))
