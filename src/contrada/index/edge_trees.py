"""EdgeTrees: edge trees for the large regions of a packed tree, built when matching requests them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.forking import BUILDING, make_lock

_LOCK = make_lock(BUILDING)  # one lock for all, as building is rare


class EdgeTrees:
    """Counts the comparisons that matching spends on each large region, and holds the trees of the expensive regions.

    A tree (kernels/relate/edge_tree.py) limits a message to the edges near it, however thin the parts of a region are.
    A tree takes 40 to 72 bytes per edge, so only regions that need one have one. Kernels know trees by addresses, so
    the trees are kept as long as this object.
    """

    __slots__ = ("_items", "_kept", "places", "spent")

    def __init__(self, items: tuple[Any, ...]) -> None:
        """Start with no comparisons counted for the large items of `items` (`item_arrays` in packed.py)."""
        self._items = items
        self._kept: dict[int, tuple[NDArray[Any], ...]] = {}
        large = len(items[6])
        self.places = np.zeros((large, 2), np.int64)
        self.spent = np.zeros(large + 1, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of all trees built so far."""
        return sum(array.nbytes for arrays in list(self._kept.values()) for array in arrays)

    def build_wanted(self) -> None:
        """Build the trees that kernels requested; the last count is 1 while there are requests."""
        xy, rings, regions, _, bounds, _, large, *_ = self._items
        with _LOCK:
            self.spent[-1] = 0
            for k in np.flatnonzero(self.spent[:-1] < 0).tolist():
                if k not in self._kept:
                    nodes, edges = kernels.build_edge_tree(xy, rings, regions, bounds, int(large[k]))
                    self._kept[k] = nodes, edges
                    self.places[k] = nodes.ctypes.data, edges.ctypes.data


__all__ = ["EdgeTrees"]
