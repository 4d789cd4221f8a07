"""Search the Z-curve, larger cells first, and the entry points for Python."""

import numpy as np

from contrada.codes import Z_BLOCKS_LISTED, Z_LEVELS, Z_SMALL
from contrada.jit import entry, kernel
from contrada.kernels.cover.arrays import GraphArrays, ZCurveArrays
from contrada.kernels.cover.dominance import COMPARISONS, NODES, ONE, covers
from contrada.kernels.cover.relation_graph import replay
from contrada.kernels.cover.z_curve import add_to_z, drop_from_z, z_has_room
from contrada.kernels.cover.z_keys import key_bit, may_dominate, write_key


@kernel
def end_before(z, place):
    """Return the end of a stretch that runs up to `place`: after the last point before it."""
    width = z.rows.shape[1]
    if place % width > 0 or place == 0:
        return place
    turn = place // width - 1
    return turn * width + np.int64(z.counts[z.directory[turn]])


@kernel
def halve(z, begin, end, depth):
    """Return the first place of a cell's stretch whose key has the halving bit; the stretch has both kinds of keys."""
    width = z.rows.shape[1]
    low, high = begin // width, (end - 1) // width + 1  # block `low` begins with 0, block `high` with 1
    while high - low > 1:
        middle = (low + high) // 2
        if key_bit(z.keys, z.directory[middle], 0, depth):
            high = middle
        else:
            low = middle
    block = z.directory[low]
    first = begin % width if low == begin // width else 0
    last = (end - 1) % width + 1 if low == (end - 1) // width else np.int64(z.counts[block])
    while first < last:
        middle = (first + last) // 2
        if key_bit(z.keys, block, middle, depth):
            last = middle
        else:
            first = middle + 1
    return low * width + first if first < z.counts[block] else (low + 1) * width


@kernel
def size_of(z, begin, end):
    """Return the number of points of a stretch; more than any small one for a stretch over more than two blocks."""
    width = z.rows.shape[1]
    first, last = begin // width, (end - 1) // width
    if first == last:
        return end - begin
    if last - first > 1:
        return 2 * width + 1
    return np.int64(z.counts[z.directory[first]]) - begin % width + end - last * width


@kernel
def compare_stretch(z, begin, end, level, larger, queries, at, before, wanted, out, found, counters):
    """Compare the points of a stretch, by their keys and then in full; return the number of rows found so far."""
    width = z.rows.shape[1]
    d = z.points.shape[1]
    place = begin
    while place < end and found < wanted:
        turn = place // width
        block = np.int64(z.directory[turn])
        stop = min(end - turn * width, np.int64(z.counts[block]))
        for k in range(place - turn * width, stop):
            counters[COMPARISONS] += 1
            if may_dominate(z.keys, block, k, z.query, d, level, z.state[Z_LEVELS], larger):
                row = np.int64(z.rows[block, k])
                if covers(z.points, z.arrivals, row, queries, at, before):
                    out[found] = row
                    found += 1
                    if found == wanted:
                        break
        place = (turn + 1) * width
    return found


@kernel
def report_stretch(z, begin, end, wanted, out, found):
    """Append the rows of a cell that lies wholly in the query, without comparisons; return the number found so far."""
    width = z.rows.shape[1]
    place = begin
    while place < end and found < wanted:
        turn = place // width
        block = np.int64(z.directory[turn])
        stop = min(end - turn * width, np.int64(z.counts[block]))
        for k in range(place - turn * width, stop):
            if found < wanted:
                out[found] = z.rows[block, k]
                found += 1
        place = (turn + 1) * width
    return found


@kernel
def push(z, tail, begin, end, depth, inside):
    """Append a cell to the ring buffer; return the new end."""
    z.cells[tail, 0], z.cells[tail, 1], z.cells[tail, 2] = begin, end, depth
    z.insides[tail] = inside
    return tail + 1 if tail + 1 < len(z.insides) else 0


@kernel
def push_halves(z, tail, begin, end, depth, inside):
    """Append the halves of a cell that meet the query to the ring buffer; if there is only one, its halves instead."""
    width = z.rows.shape[1]
    d = z.points.shape[1]
    depths = d * z.state[Z_LEVELS]
    first_block, last_block = np.int64(z.directory[begin // width]), np.int64(z.directory[(end - 1) // width])
    first, last = begin % width, (end - 1) % width
    while depth < depths:
        dimension = ONE << np.uint64(d - 1 - depth % d)
        asked = key_bit(z.query, 0, 0, depth)
        low, high = key_bit(z.keys, first_block, first, depth), key_bit(z.keys, last_block, last, depth)
        if low != high:
            middle = halve(z, begin, end, depth)
            larger = inside if asked else inside | dimension
            tail = push(z, tail, middle, end, depth + 1, larger)
            if not asked or inside & dimension:
                tail = push(z, tail, begin, end_before(z, middle), depth + 1, inside)
            return tail
        if asked and not low and not inside & dimension:
            return tail
        if low and not asked:
            inside |= dimension
        depth += 1
    return push(z, tail, begin, end, depth, inside)


@kernel
def search_z(z, queries, at, before, wanted, out, counters):
    """Find rows that cover a query. A queue puts larger cells first, and the upper half of each cell first.

    The last point of a cell is the most likely to dominate, so it is compared at once and removed from the cell.
    Halvings that leave all points of a cell on one side make no cells.
    """
    listed = z.state[Z_BLOCKS_LISTED]
    if listed == 0:
        return 0
    d = z.points.shape[1]
    width = z.rows.shape[1]
    depths = d * z.state[Z_LEVELS]
    whole = ~np.uint64(0) >> np.uint64(64 - d)
    write_key(z.lows, z.scales, z.state[Z_LEVELS], queries, at, z.wholes, z.query)
    head = np.int64(0)
    tail = push(z, head, np.int64(0), end_before(z, listed * width), np.int64(0), np.uint64(0))
    found = 0
    while head != tail and found < wanted:
        begin, end, depth = z.cells[head, 0], z.cells[head, 1], z.cells[head, 2]
        inside = z.insides[head]
        head = head + 1 if head + 1 < len(z.insides) else 0
        counters[NODES] += 1
        if inside == whole:
            found = report_stretch(z, begin, end, wanted, out, found)
            continue
        if depth == depths or size_of(z, begin, end) <= z.state[Z_SMALL]:
            found = compare_stretch(
                z, begin, end, depth // d, inside, queries, at, before, wanted, out, found, counters
            )  # fmt: skip
            continue
        found = compare_stretch(
            z, end - 1, end, depth // d, inside, queries, at, before, wanted, out, found, counters
        )  # fmt: skip
        end = end_before(z, end - 1)
        tail = push_halves(z, tail, begin, end, depth, inside)
    return found


@entry(ZCurveArrays, "i8", checked=False)
def z_add(z, row):
    """Add a row whose point and arrival are already written."""
    add_to_z(z, row)


@entry(ZCurveArrays, "i8", checked=False)
def z_drop(z, row):
    """Drop a row."""
    drop_from_z(z, row)


@entry(ZCurveArrays, "f8[2] i8 i8[1]! i8[1]!", checked=False)
def z_search(z, query, before, out, counters):
    """Write rows that cover the only point of `query` to `out`, as many as fit; return their number."""
    return search_z(z, query, 0, before, len(out), out, counters)


@entry(ZCurveArrays, GraphArrays, "i8[1] i8[1]! i8[1]!")
def z_replay(z, graph, commands, log, tally):
    """Run commands; see `replay`."""
    replay(z, search_z, add_to_z, drop_from_z, z_has_room, graph, commands, log, tally)
