"""ZCurve: points sorted along the Z-curve, [COVER], section IV.D."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contrada.codes import MIN_UNIVERSE_POINTS, Z_BLOCKS_USED, Z_LIVE
from contrada.kernels.cover.arrays import ZCurveArrays
from contrada.papers.cover.point_index import NOBODY, PointIndex, nobody, room_for_points

BLOCK_POINTS = 64
SMALL_CELL_POINTS = 64  # a cell with at most this many is compared, not divided
WORD_DIMENSIONS = 4  # per 64-bit word of a key: 15 bits or more per dimension
MAX_BITS_PER_DIMENSION = 52  # integers that a double and its successor hold


def cell_key(cell: Sequence[int], bits: int) -> int:
    """Return the key of a cell from its integer coordinates of `bits` bits: their bits interleaved, after a leading 1.

    >>> cell_key([0b011, 0b101], 3) == 0b1_01_10_11     # the paper's example: position 27, behind the 1
    True
    >>> cell_key([0, 0], 1), cell_key([0, 0], 2)        # cells of two sizes in one corner
    (4, 16)
    """
    key = 1
    for level in reversed(range(bits)):
        for coordinate in cell:
            key = key << 1 | (coordinate >> level & 1)
    return key


class ZCurve(PointIndex):
    """Points sorted by their keys along the Z-curve; a search visits the cells that it meets, larger ones first.

    >>> curve = ZCurve(2)
    >>> curve.add(0, [3, 1])
    >>> curve.add(1, [2, 5])
    >>> curve.find_covers([2, 2]).tolist()
    [1]
    """

    _name = "z"

    def __init__(self, dimensions: int, small: int = SMALL_CELL_POINTS) -> None:
        """Make an empty curve; cells of at most `small` points are compared one by one."""
        self.small = small
        self._parts = 8
        super().__init__(dimensions)

    @property
    def words(self) -> int:
        """The number of 64-bit words in a key."""
        return max(2, -(-self.dimensions // WORD_DIMENSIONS))

    @property
    def bits(self) -> int:
        """The number of bits per dimension in a key."""
        return min(MAX_BITS_PER_DIMENSION, (64 * self.words - 1) // self.dimensions)

    def _empty(self, room: int) -> ZCurveArrays:
        self._parts = parts = max(2 * self._parts, 2 * room // BLOCK_POINTS)
        d = self.dimensions
        return ZCurveArrays(
            *room_for_points(room, d),
            lows=np.zeros(d),
            scales=np.zeros(d),
            directory=nobody(parts),
            keys=np.zeros((parts, BLOCK_POINTS, self.words), np.uint64),
            rows=nobody(parts, BLOCK_POINTS),
            counts=nobody(parts),
            turns=nobody(parts),
            blocks=nobody(room),
            query=np.zeros((1, 1, self.words), np.uint64),
            wholes=np.zeros(d, np.uint64),
            cells=np.zeros((room + 2, 3), np.int64),
            insides=np.zeros(room + 2, np.uint64),
            state=np.array([0, 0, NOBODY, 0, MIN_UNIVERSE_POINTS, self.bits, self.small], np.int64),
        )

    def _has_room(self) -> bool:
        state = self._arrays.state
        return bool(max(state[Z_BLOCKS_USED] + 2, state[Z_LIVE] // (BLOCK_POINTS // 2) + 3) <= self._parts)
