"""KdTree: the adaptive k-d tree of [COVER], section IV.C; points in buckets are compared by one-byte ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada.errors import CoveringError
from contrada.papers.cover.point_index import NOBODY, PointIndex, nobody, room_for_points

OVERFLOW, UNDERFLOW = 128, 40
RANK_LEVELS = 64  # of ranks, as in kernels/cover/point_ranks.py
MIN_RANKED_POINTS = 64  # fewer points get no ranks
NODES_USED, BLOCKS_USED = 1, 3  # positions in `state`, as in kernels/cover/kd_tree.py


class KdTree(PointIndex):
    """All points in buckets at the leaves; a full bucket is split at the median of the next dimension.

    A bucket below the underflow limit is merged with its sibling if that is a leaf and both fit. Points that no
    dimension distinguishes stay in one bucket, however many. A tree that has become deep, because points arrived in
    order, is rebuilt, at most once for each quarter of them.

    >>> tree = KdTree(2)
    >>> tree.add(0, [3, 1])
    >>> tree.add(1, [2, 5])
    >>> tree.find_covers([2, 2]).tolist()
    [1]
    """

    _name = "kd"

    def __init__(self, dimensions: int, overflow: int = OVERFLOW, underflow: int | None = None) -> None:
        """Make an empty tree; the default underflow limit is about a third of the overflow limit."""
        underflow = (overflow * UNDERFLOW) // OVERFLOW if underflow is None else underflow
        if not 0 <= underflow <= overflow or overflow < 1:
            raise CoveringError(f"need 0 <= underflow <= overflow and overflow >= 1; got {underflow} and {overflow}")
        self.overflow, self.underflow = overflow, underflow
        self._parts = 8
        super().__init__(dimensions)

    def _empty(self, room: int) -> tuple[NDArray[Any], ...]:
        # Buckets are usually half full; if not, `_has_room` asks for more parts.
        self._parts = parts = max(2 * self._parts, 4 * room // self.overflow)
        d, words = self.dimensions, (self.overflow + 7) // 8
        return (
            *room_for_points(room, d),
            nobody(parts),
            np.zeros(parts),
            nobody(parts, 2),
            nobody(parts),
            nobody(parts),
            nobody(parts),
            np.zeros((parts, d, words), np.uint64),
            nobody(parts, self.overflow),
            nobody(parts),
            nobody(parts),
            nobody(parts),
            nobody(room),
            nobody(room),
            np.array([NOBODY, 0, NOBODY, 0, NOBODY, self.overflow, self.underflow, 0, MIN_RANKED_POINTS, 0], np.int64),
            nobody(parts),
            np.zeros(parts, np.uint64),
            np.zeros(words, np.uint64),
            np.full((d, RANK_LEVELS - 1), np.inf),
            np.zeros((room, d), np.uint8),
            np.zeros((1, d), np.uint8),
            np.zeros(d, np.int64),
            np.zeros(room, np.int64),
            np.zeros(room),
        )

    def _has_room(self) -> bool:
        state = self._arrays[15]
        return bool(max(state[NODES_USED], state[BLOCKS_USED]) + 3 <= self._parts)
