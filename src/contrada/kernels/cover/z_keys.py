"""Keys along the Z-curve: the bits of a point's cell, interleaved, after a leading 1.

The index's own universe maps every dimension monotonically to whole numbers of a few bits; coordinates outside are
moved to its border. Bit `depth` of a key, counted after the leading 1, halves the cells of all keys that agree so far,
in dimension `depth % d`. So a 1 followed by the first `depth` bits is the key of a cell of any size, from the universe
(1) to the cell of a single point. Keys are rows of 64-bit words, with the leading 1 at the top of the first word.
"""

import numpy as np

from contrada.jit import kernel
from contrada.kernels.cover.dominance import ONE

WORD = np.uint64(64)


@kernel
def write_key(lows, scales, levels, points, at, cells, keys):
    """Write the key of a point to keys[0, 0]; `cells` has room for a whole number per dimension."""
    d = points.shape[1]
    top = (1 << levels) - 1
    for i in range(d):
        cells[i] = 0
        half = 0.5 * points[at, i] - 0.5 * lows[i]  # half the distance, since the distance might overflow
        if half > 0.0 and scales[i] > 0.0:
            cell = half * scales[i]
            cells[i] = np.uint64(np.int64(cell)) if cell < top else top
    word = ONE
    bits = 1
    full = 0
    for level in range(levels - 1, -1, -1):
        shift = np.uint64(level)
        for i in range(d):
            word = word << ONE | (cells[i] >> shift & ONE)
            bits += 1
            if bits == 64:
                keys[0, 0, full] = word
                word = np.uint64(0)
                bits = 0
                full += 1
    if bits > 0:
        keys[0, 0, full] = word << np.uint64(64 - bits)


@kernel
def key_bit(keys, block, place, depth):
    """Return the bit of a key that halves cells of depth `depth`."""
    bit = depth + 1
    return keys[block, place, bit >> 6] >> np.uint64(63 - (bit & 63)) & ONE


@kernel
def key_level(keys, block, place, level, d):
    """Return the bits that halve a cell once in every dimension, the first dimension highest."""
    bit = 1 + level * d
    shift = np.uint64(bit & 63)
    field = keys[block, place, bit >> 6] << shift
    if (bit & 63) + d > 64:
        field |= keys[block, place, (bit >> 6) + 1] >> (WORD - shift)
    return field >> np.uint64(64 - d)


@kernel
def is_before(keys, block, place, others, other_block, other_place):
    """Return True if one key is smaller than another."""
    for word in range(keys.shape[2]):
        if keys[block, place, word] != others[other_block, other_place, word]:
            return keys[block, place, word] < others[other_block, other_place, word]
    return False


@kernel
def may_dominate(keys, block, place, query, d, first_level, levels, larger):
    """Return False if a key shows that its point is smaller than the query in some dimension; tests all at once.

    `larger` has the bits of dimensions in which the point is known to be larger, the first dimension highest.
    """
    for level in range(first_level, levels):
        ours = key_level(keys, block, place, level, d)
        theirs = key_level(query, 0, 0, level, d)
        if theirs & ~ours & ~larger:
            return False
        larger |= ours & ~theirs
    return True
