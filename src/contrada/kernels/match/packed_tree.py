"""Packed tree over boxes: items in Hilbert order, FAN children per node, built bottom-up in one pass.

A box of level 1 covers FAN items, a box of level 2 covers FAN boxes of level 1, up to a level of at most FAN boxes. The
levels are stored one after another in one array. Node i of level m covers the items from i << (FAN_SHIFT * m) on.
"""

import numpy as np

from contrada.codes import FAN, FAN_SHIFT
from contrada.jit import allocating_kernel, entry, kernel

HILBERT_BITS = 16


@kernel
def hilbert_key(x, y):
    """Return the position of a cell of a 2**16 by 2**16 grid on the Hilbert curve.

    Without branches: half of them would be mispredicted.
    """
    key = swapped = inverted = np.int64(0)
    for shift in range(HILBERT_BITS - 1, -1, -1):
        bx = (x >> shift) & 1 ^ inverted
        by = (y >> shift) & 1 ^ inverted
        exchanged = (bx ^ by) & swapped
        bx ^= exchanged
        by ^= exchanged
        key = key << 2 | (3 * bx ^ by)
        inverted ^= bx & ~by
        swapped ^= by ^ 1
    return key


@entry("f8[2] i8[1]!")
def hilbert_keys(bounds, keys):
    """Set keys[i] to the position of the centre of box i on the Hilbert curve over all centres."""
    x0 = y0 = np.inf
    x1 = y1 = -np.inf
    for i in range(len(bounds)):
        x = 0.5 * bounds[i, 0] + 0.5 * bounds[i, 2]
        y = 0.5 * bounds[i, 1] + 0.5 * bounds[i, 3]
        x0 = min(x0, x)
        y0 = min(y0, y)
        x1 = max(x1, x)
        y1 = max(y1, y)
    top = (1 << HILBERT_BITS) - 1.0
    sx = top / (x1 - x0) if x1 > x0 else 0.0
    sy = top / (y1 - y0) if y1 > y0 else 0.0
    for i in range(len(bounds)):
        x = (0.5 * bounds[i, 0] + 0.5 * bounds[i, 2] - x0) * sx
        y = (0.5 * bounds[i, 1] + 0.5 * bounds[i, 3] - y0) * sy
        keys[i] = hilbert_key(np.int64(min(max(x, 0.0), top)), np.int64(min(max(y, 0.0), top)))


@kernel
def tree_size(items):
    """Return the number of nodes on all levels."""
    total = 0
    count = items
    while count > FAN:
        count = (count + FAN - 1) >> FAN_SHIFT
        total += count
    return total


@kernel
def fill_starts(items, starts):
    """Set starts[m] to the first node of level m (from 1 on); return the number of levels."""
    levels = 0
    count = items
    at = 0
    while count > FAN:
        count = (count + FAN - 1) >> FAN_SHIFT
        levels += 1
        starts[levels] = at
        at += count
    starts[levels + 1] = at
    return levels


@kernel
def fill_level(source, s0, count, nodes, n0):
    """Write the boxes of runs of FAN boxes of source[s0:s0 + count] to nodes[n0:]; return their number."""
    made = (count + FAN - 1) >> FAN_SHIFT
    for k in range(made):
        for axis in range(2):
            low = np.inf
            high = -np.inf
            for c in range(k << FAN_SHIFT, min((k + 1) << FAN_SHIFT, count)):
                low = min(low, source[s0 + c, axis])
                high = max(high, source[s0 + c, axis + 2])
            nodes[n0 + k, axis] = low
            nodes[n0 + k, axis + 2] = high
    return made


@allocating_kernel
def make_nodes(bounds):
    """Return the boxes of all nodes over the items, which are in order."""
    nodes = np.empty((tree_size(len(bounds)), 4))
    if len(bounds) <= FAN:
        return nodes
    at = 0
    count = fill_level(bounds, 0, len(bounds), nodes, 0)
    while count > FAN:
        made = fill_level(nodes, at, count, nodes, at + count)
        at += count
        count = made
    return nodes


@entry("f8[2]")
def build_nodes(bounds):
    """Return the boxes of all nodes over the items, which are in order."""
    return make_nodes(bounds)


@entry("i4[1] u1[1] i4[1]! u1")
def build_lists(entry_offsets, masks, rows, bit):
    """Return the count of entries with `bit` in their mask before each run, and their rows (`rows` itself if all)."""
    items = len(entry_offsets) - 1
    runs = (items + FAN - 1) >> FAN_SHIFT
    before = np.empty(runs + 1, np.int32)
    count = 0
    for k in range(runs):
        before[k] = count
        for e in range(entry_offsets[k << FAN_SHIFT], entry_offsets[min((k + 1) << FAN_SHIFT, items)]):
            if masks[e] & bit:
                count += 1
    before[runs] = count
    if count == len(rows):
        return before, rows
    listed = np.empty(count, np.int32)
    count = 0
    for e in range(len(rows)):
        if masks[e] & bit:
            listed[count] = rows[e]
            count += 1
    return before, listed


@entry("u1[1] i8")
def build_node_masks(masks, count):
    """Return, for each of `count` nodes, the union of the masks of the items below it."""
    made = np.empty(count, np.uint8)
    at = 0
    below = len(masks)
    first = 0  # first node of the level below; the items are no level
    while below > FAN:
        nodes = (below + FAN - 1) >> FAN_SHIFT
        for k in range(nodes):
            union = np.uint8(0)
            for c in range(k << FAN_SHIFT, min((k + 1) << FAN_SHIFT, below)):
                union |= masks[c] if at == 0 else made[first + c]
            made[at + k] = union
        first = at
        at += nodes
        below = nodes
    return made


def _positions():
    """Return, for each byte, the positions of its set bits, then their number in the last column."""
    table = np.zeros((256, 9), np.uint8)
    for byte in range(256):
        places = [k for k in range(8) if byte >> k & 1]
        table[byte, : len(places)] = places
        table[byte, 8] = len(places)
    return table


POSITIONS = _positions()


@kernel
def list_byte(byte, row, out, count):
    """Append the rows of the set bits of `byte`, whose bit 0 is `row`, to `out`; without branches."""
    for place in range(8):
        out[count + place] = row + np.int64(POSITIONS[byte, place])
    return count + np.int64(POSITIONS[byte, 8])


@kernel
def list_bits(bitmap, words, first_row, out, start, count):
    """Write the rows of the `count` set bits, in order, to `out` from `start` on; return the end.

    `out` has room for 8 more rows. `words` are the bytes of `bitmap`, eight at a time: if few bits are set, words
    without any are skipped.
    """
    end = start
    if count > len(bitmap) << 2:
        for k in range(len(bitmap)):
            end = list_byte(np.int64(bitmap[k]), first_row + (k << 3), out, end)
        return end
    for w in range(len(words)):
        word = words[w]
        if word != np.uint64(0):
            for k in range(8):
                byte = np.int64((word >> np.uint64(8 * k)) & np.uint64(255))
                end = list_byte(byte, first_row + (w << 6) + (k << 3), out, end)
    return end


@entry("u1[1] u8[1] i8 i8[1]!")
def list_marks(bitmap, words, first_row, out):
    """Write the rows whose bits are set to `out`, which has room for 8 more; return their number."""
    return list_bits(bitmap, words, first_row, out, np.int64(0), np.int64(len(out) - 8))
