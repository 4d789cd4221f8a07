"""EdgeTrees: edge trees for the large regions of a packed tree, built when matching requests them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import TREE_REQUESTED
from contrada.forking import BUILDING, make_lock
from contrada.index.items import Items
from contrada.kernels.match.tables import EDGE_TREE

_LOCK = make_lock(BUILDING)  # one lock for all, as building is rare


class EdgeTrees:
    """Counts the comparisons that matching spends on each large region, and holds the trees of the expensive regions.

    A tree (kernels/relate/edge_tree.py) limits a message to the edges near it, however thin the parts of a region are.
    A tree takes 40 to 72 bytes per edge, so only regions that need one have one. Kernels know trees by addresses, so
    the trees are kept as long as this object.
    """

    __slots__ = ("_items", "_kept", "spent", "tables")

    def __init__(self, items: Items) -> None:
        """Start with no comparisons counted for the large items of `items`."""
        self._items = items
        self._kept: dict[int, dict[str, NDArray[np.float64] | NDArray[np.int64]]] = {}
        large = len(items.large)
        self.tables = np.zeros((large, EDGE_TREE.size), np.int64)
        self.spent = np.zeros(large + 1, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of all trees built so far."""
        return sum(array.nbytes for arrays in list(self._kept.values()) for array in arrays.values())

    def build_wanted(self) -> None:
        """Build the trees that kernels requested; the last count is 1 while there are requests."""
        items = self._items
        with _LOCK:
            self.spent[-1] = 0
            for k in np.flatnonzero(self.spent[:-1] == TREE_REQUESTED).tolist():
                if k not in self._kept:
                    nodes, edges = kernels.build_edge_tree(*items[:3], items.bounds, int(items.large[k]))
                    self._kept[k] = {"nodes": nodes, "edges": edges}
                    self.tables[k] = EDGE_TREE.addresses(self._kept[k])
