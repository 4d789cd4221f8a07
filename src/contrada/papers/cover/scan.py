"""Scan: unordered points, all compared; the reference for the other indexes."""

from __future__ import annotations

import numpy as np

from contrada.kernels.cover.arrays import ScanArrays
from contrada.papers.cover.point_index import PointIndex, nobody, room_for_points

BLOCK_POINTS = 128


class Scan(PointIndex):
    """Points in blocks, compared dimension by dimension until none of a block is left or enough are found.

    >>> index = Scan(2)
    >>> index.add(0, [3, 1])
    >>> index.add(1, [2, 5])
    >>> index.find_covers([2, 1], k=2).tolist(), index.find_covers([2, 2]).tolist()
    ([0, 1], [1])
    """

    _name = "scan"

    def _empty(self, room: int) -> ScanArrays:
        blocks = room // BLOCK_POINTS + 1
        return ScanArrays(
            *room_for_points(room, self.dimensions),
            coordinates=np.zeros((blocks, self.dimensions, BLOCK_POINTS)),
            rows=nobody(blocks, BLOCK_POINTS),
            places=nobody(room),
            alive=np.zeros(BLOCK_POINTS, np.int64),
            state=np.zeros(1, np.int64),
        )
