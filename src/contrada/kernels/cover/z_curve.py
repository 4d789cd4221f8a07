"""Points in Z-curve order, [COVER], section IV.D: a query visits the cells that it meets, larger cells first.

Points are in blocks, sorted within and across blocks; a directory lists the blocks in order. A place in the order is
the position of its block in the directory (its turn) times the block width, plus the position in the block: places have
gaps, but ascend. The points of a cell are adjacent; a binary search for the first key with the splitting bit finds
where a cell halves.
"""

import numpy as np

from contrada.codes import MIN_UNIVERSE_POINTS, Z_BLOCKS_FREE, Z_BLOCKS_LISTED, Z_BLOCKS_USED, Z_LEVELS, Z_LIVE, Z_ROOM
from contrada.jit import kernel
from contrada.kernels.cover.dominance import NONE
from contrada.kernels.cover.z_keys import is_before, write_key

MIN_HALF_EXTENT = 1e-290  # minimum half extent of a universe that is divided: below, scales would overflow


@kernel
def new_block(z, turn):
    """Return an empty block at `turn` of the directory."""
    block = z.state[Z_BLOCKS_FREE]
    if block == NONE:
        block = z.state[Z_BLOCKS_USED]
        z.state[Z_BLOCKS_USED] = block + 1
    else:
        z.state[Z_BLOCKS_FREE] = -2 - z.counts[block]
    z.counts[block] = 0
    for later in range(z.state[Z_BLOCKS_LISTED], turn, -1):
        z.directory[later] = z.directory[later - 1]
        z.turns[z.directory[later]] = later
    z.directory[turn] = block
    z.turns[block] = turn
    z.state[Z_BLOCKS_LISTED] += 1
    return block


@kernel
def free_block(z, block):
    """Remove an empty block from the directory."""
    listed = z.state[Z_BLOCKS_LISTED] - 1
    for turn in range(z.turns[block], listed):
        z.directory[turn] = z.directory[turn + 1]
        z.turns[z.directory[turn]] = turn
    z.state[Z_BLOCKS_LISTED] = listed
    z.counts[block] = -2 - z.state[Z_BLOCKS_FREE]
    z.state[Z_BLOCKS_FREE] = block


@kernel
def copy_entry(z, block, place, to_block, to_place):
    """Copy a key and its row to another place."""
    row = z.rows[block, place]
    z.rows[to_block, to_place] = row
    z.blocks[row] = to_block
    for word in range(z.keys.shape[2]):
        z.keys[to_block, to_place, word] = z.keys[block, place, word]


@kernel
def block_for(z):
    """Return the last block whose first key is not larger than the key in `query`, or the first block."""
    low, high = np.int64(0), z.state[Z_BLOCKS_LISTED]
    while high - low > 1:
        middle = (low + high) // 2
        if is_before(z.query, 0, 0, z.keys, z.directory[middle], 0):
            high = middle
        else:
            low = middle
    return np.int64(z.directory[low])


@kernel
def place_for(z, block):
    """Return where the key in `query` belongs in a block, after equal keys."""
    low, high = 0, np.int64(z.counts[block])
    while low < high:
        middle = (low + high) // 2
        if is_before(z.query, 0, 0, z.keys, block, middle):
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def insert_row(z, row):
    """Insert a row at its place; a full block is halved first."""
    write_key(z.lows, z.scales, z.state[Z_LEVELS], z.points, row, z.wholes, z.query)
    width = z.rows.shape[1]
    block = block_for(z) if z.state[Z_BLOCKS_LISTED] > 0 else new_block(z, np.int64(0))
    place = place_for(z, block)
    if z.counts[block] == width:
        half = width // 2
        other = new_block(z, np.int64(z.turns[block]) + 1)
        for at in range(half, width):
            copy_entry(z, block, at, other, at - half)
        z.counts[block] = half
        z.counts[other] = width - half
        if place > half:
            block, place = other, place - half
    for at in range(np.int64(z.counts[block]), place, -1):
        copy_entry(z, block, at - 1, block, at)
    z.rows[block, place] = row
    z.blocks[row] = block
    for word in range(z.keys.shape[2]):
        z.keys[block, place, word] = z.query[0, 0, word]
    z.counts[block] += 1


@kernel
def choose_universe(z):
    """Fit the universe to the current points and insert all of them again."""
    d = z.points.shape[1]
    for i in range(d):
        low, high = np.inf, -np.inf
        for row in range(len(z.blocks)):
            if z.blocks[row] != NONE and abs(z.points[row, i]) < np.inf:
                low = min(low, z.points[row, i])
                high = max(high, z.points[row, i])
        z.lows[i] = low if low < np.inf else 0.0
        half = 0.5 * high - 0.5 * low if low < high else 0.0
        z.scales[i] = (1 << z.state[Z_LEVELS]) / half if half > MIN_HALF_EXTENT else 0.0
    z.state[Z_BLOCKS_LISTED], z.state[Z_BLOCKS_USED], z.state[Z_BLOCKS_FREE] = 0, 0, NONE
    for row in range(len(z.blocks)):
        if z.blocks[row] != NONE:
            insert_row(z, row)
    z.state[Z_ROOM] = max(MIN_UNIVERSE_POINTS, z.state[Z_LIVE])


@kernel
def z_has_room(z):
    """Return True if there is room to add a row, and then to insert all rows again into blocks at least half full."""
    half = z.rows.shape[1] // 2
    return z.state[Z_BLOCKS_USED] + 2 <= len(z.counts) and z.state[Z_LIVE] // half + 3 <= len(z.counts)


@kernel
def add_to_z(z, row):
    """Add a row; after as many additions as there were points, refit the universe."""
    insert_row(z, row)
    z.state[Z_LIVE] += 1
    z.state[Z_ROOM] -= 1
    if z.state[Z_ROOM] <= 0:
        choose_universe(z)


@kernel
def drop_from_z(z, row):
    """Remove a row."""
    block = np.int64(z.blocks[row])
    place = 0
    while z.rows[block, place] != row:
        place += 1
    count = z.counts[block] - 1
    for at in range(place, count):
        copy_entry(z, block, at + 1, block, at)
    z.counts[block] = count
    z.blocks[row] = NONE
    z.state[Z_LIVE] -= 1
    if count == 0:
        free_block(z, block)
