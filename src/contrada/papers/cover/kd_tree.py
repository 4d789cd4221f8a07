"""KdTree: the adaptive k-d tree of [COVER], section IV.C; points in buckets are compared by one-byte ranks."""

from __future__ import annotations

import numpy as np

from contrada.codes import KD_BLOCKS_USED, KD_NODES_USED, MIN_RANKED_POINTS, RANK_LEVELS
from contrada.errors import CoveringError
from contrada.kernels.cover.arrays import KdTreeArrays
from contrada.papers.cover.point_index import NOBODY, PointIndex, nobody, room_for_points

OVERFLOW, UNDERFLOW = 128, 40


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

    @property
    def depth(self) -> int:
        """The largest depth of a node, in use or freed: the tree is at most that deep."""
        return int(self._arrays.depths.max())

    def _empty(self, room: int) -> KdTreeArrays:
        # Buckets are usually half full; if not, `_has_room` asks for more parts.
        self._parts = parts = max(2 * self._parts, 4 * room // self.overflow)
        d, words = self.dimensions, (self.overflow + 7) // 8
        state = [NOBODY, 0, NOBODY, 0, NOBODY, self.overflow, self.underflow, 0, MIN_RANKED_POINTS, 0]
        return KdTreeArrays(
            *room_for_points(room, d),
            dimensions=nobody(parts),
            splits=np.zeros(parts),
            children=nobody(parts, 2),
            parents=nobody(parts),
            depths=nobody(parts),
            sizes=nobody(parts),
            signatures=np.zeros((parts, d, words), np.uint64),
            rows=nobody(parts, self.overflow),
            counts=nobody(parts),
            nexts=nobody(parts),
            leaves=nobody(parts),
            blocks=nobody(room),
            places=nobody(room),
            state=np.array(state, np.int64),
            stack=nobody(parts),
            insides=np.zeros(parts, np.uint64),
            alive=np.zeros(words, np.uint64),
            thresholds=np.full((d, RANK_LEVELS - 1), np.inf),
            ranks=np.zeros((room, d), np.uint8),
            query_ranks=np.zeros((1, d), np.uint8),
            order=np.zeros(d, np.int64),
            moving=np.zeros(room, np.int64),
            values=np.zeros(room),
        )

    def _has_room(self) -> bool:
        state = self._arrays.state
        return bool(max(state[KD_NODES_USED], state[KD_BLOCKS_USED]) + 3 <= self._parts)
