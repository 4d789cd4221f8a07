"""Scan: unordered points, all compared; the reference for the other indexes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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

    def _empty(self, room: int) -> tuple[NDArray[Any], ...]:
        blocks = room // BLOCK_POINTS + 1
        return (
            *room_for_points(room, self.dimensions),
            np.zeros((blocks, self.dimensions, BLOCK_POINTS)),
            nobody(blocks, BLOCK_POINTS),
            nobody(room),
            np.zeros(BLOCK_POINTS, np.int64),
            np.zeros(1, np.int64),
        )

    def _has_room(self) -> bool:
        return True  # blocks grow with the rows
