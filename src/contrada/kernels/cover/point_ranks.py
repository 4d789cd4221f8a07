"""Convert coordinates to one-byte ranks among thresholds: if a point dominates another, so do its ranks.

Thresholds are quantiles of the points of an index, so that ranks distinguish the points present. Ranks take at most
seven bits: if the eighth bit is set in every byte of a word of ranks, subtracting a word of other ranks clears it
exactly in the bytes that are smaller, and no byte borrows from the next.
"""

import numpy as np

from contrada.codes import RANK_LEVELS
from contrada.jit import allocating_kernel, kernel

MAX_SAMPLED_POINTS = 1024  # sample size for thresholds
HIGH_BITS = np.uint64(0x8080808080808080)
LOW_BITS = np.uint64(0x0101010101010101)
BYTE = np.uint64(0xFF)


@kernel
def rank_point(thresholds, points, at, ranks, to):
    """Write the number of thresholds that a point reaches in each dimension, by a binary search without branches."""
    for i in range(points.shape[1]):
        value = points[at, i]
        low = 0
        step = RANK_LEVELS >> 1
        while step > 0:
            low += step * (thresholds[i, low + step - 1] <= value)
            step >>= 1
        ranks[to, i] = low


@kernel
def write_rank(words, block, i, place, rank):
    """Write the rank of one point into the words of a block."""
    shift = np.uint64(place & 7) << np.uint64(3)
    word = words[block, i, place >> 3]
    words[block, i, place >> 3] = (word & ~(BYTE << shift)) | (np.uint64(rank) << shift)


@allocating_kernel
def choose_thresholds(points, rows, count, thresholds):
    """Write quantiles of the first `count` rows to `thresholds`."""
    stride = count // MAX_SAMPLED_POINTS + 1
    size = (count - 1) // stride + 1
    values = np.empty(size)
    for i in range(points.shape[1]):
        for at in range(size):
            values[at] = points[rows[at * stride], i]
        values.sort()
        for level in range(1, RANK_LEVELS):
            thresholds[i, level - 1] = values[level * size // RANK_LEVELS]
