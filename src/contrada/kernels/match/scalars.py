"""Find the filters of a level whose numbers, times, booleans and text a message satisfies.

Each filter is reached through one constraint. The entry under that constraint has the bounds of two more, coarse enough
that four entries fit into a cache line: most reached filters are ruled out without reading their records.
"""

import numpy as np

from contrada.codes import (
    A_POINT,
    ABSENT,
    ASKS_SHIFT,
    BLOCK,
    BLOCK_SHIFT,
    BY_INTERVAL_FROM,
    BY_PRESENCE_FROM,
    BY_PRESENCE_TO,
    FILTER_MASK,
    FIRST_BLOCK,
    FIRST_SPAN,
    INTERVAL,
    MAX_LANE,
    OTHERS_PER_SLOT,
    SET,
    SHIFTED_RANK_LIMIT,
    SLOT_MASK,
    SLOT_SHIFTS,
)
from contrada.jit import allocating_kernel, entry, kernel
from contrada.kernels.match.ranks import MessageArrays, clear_ranks, fill_ranks, level_at, slot_at
from contrada.kernels.match.residual import (
    cells_that_pay,
    checks_at,
    keep_around,
    keep_passing,
    keep_unconstrained,
)
from contrada.kernels.match.tables import RESIDUAL, SCRATCH
from contrada.kernels.relate.contacts import RegionColumn, make_work
from contrada.kernels.relate.grid import Grid, build_grid
from contrada.kernels.relate.regions import most_rings
from contrada.kernels.runtime.gil_gate import enter, leave
from contrada.kernels.runtime.pointers import reader
from contrada.kernels.runtime.prefetch import PREFETCH_STEPS, prefetch

FREE_BITS = np.uint64(0x8000800080008000)  # top bit of every lane
SLOT_0, SLOT_1 = SLOT_SHIFTS
BYTE, HALF = np.uint64(255), np.uint64(32)
AT_RING_COUNT = RESIDUAL.at("ring_count")
scratch_at = reader(SCRATCH, "Scratch")
BIT_PRIME = 19  # the powers of two up to the 18th differ modulo 19
MAX_EXAMINED_REGIONS = 4096  # regions examined to choose a grid size for all


@kernel
def is_member(level, number, rank):
    """Return True if `rank` belongs to set `number`."""
    low = level.set_offsets[number]
    stop = level.set_offsets[number + 1]
    high = stop
    while low < high:
        middle = (low + high) >> 1
        if level.set_ranks[middle] < rank:
            low = middle + 1
        else:
            high = middle
    return low < stop and level.set_ranks[low] == rank


@kernel
def holds(level, code, low, high, ranks, satisfied):
    """Return True if the message satisfies a record."""
    rank = ranks[code & SLOT_MASK]
    if rank < 0:
        return False
    asks = code >> ASKS_SHIFT
    if asks < SET:
        return (low <= rank <= high) != (asks != INTERVAL)
    if asks < SET + 2:
        return is_member(level, low, rank) != (asks != SET)
    return (satisfied[low] != 0) != (asks & 1 != 0)


@kernel
def all_hold(level, row, first, ranks, satisfied):
    """Return True if the message satisfies the records of filter `row`, from record `first` on."""
    for k in range(level.offsets[row] + first, level.offsets[row + 1]):
        if not holds(level, level.records[k, 0], level.records[k, 1], level.records[k, 2], ranks, satisfied):
            return False
    return True


@kernel
def shift_of(level, slot):
    """Return the shift of a slot's ranks that makes them, plus one, fit into a lane."""
    width = 2 * (level.equal_base[slot + 1] - level.equal_base[slot])
    shift = np.int64(0)
    while width >> shift >= SHIFTED_RANK_LIMIT:
        shift += 1
    return shift


@kernel
def word_of(rank):
    """Return a shifted rank, and its distance to MAX_LANE, in two lanes whose free bits are set."""
    value = np.int64(rank) + 1
    return np.uint64(0x80008000 | value | (MAX_LANE - value) << 16)


@kernel
def coarsen(level, messages, i, ranks, words):
    """Write the shifted ranks of message i to `words`, in the form that entries are compared with."""
    for j in range(messages.offsets[i], messages.offsets[i + 1]):
        slot = slot_at(level, messages.values[j, 0])
        if slot >= 0:
            words[slot] = word_of(np.int64(ranks[slot]) >> shift_of(level, slot))


@kernel
def clear_coarse(level, messages, i, words):
    """Undo what coarsen did."""
    for j in range(messages.offsets[i], messages.offsets[i + 1]):
        slot = slot_at(level, messages.values[j, 0])
        if slot >= 0:
            words[slot] = word_of(ABSENT)


@kernel
def reach(level, e, words, out, count):
    """List the filter of entry `e`, unless a bound in the entry rules the message out.

    There is no branch, because whether bounds hold is hard to predict. If subtraction leaves all free bits set, no lane
    of the message is less than that of the entry. A listed filter need not be satisfied.
    """
    at = np.uint64(e)  # unsigned: no test whether the position counts from the end
    first = level.entries[at, np.uint64(0)]
    asked = words[(first >> SLOT_0) & BYTE] | words[(first >> SLOT_1) & BYTE] << HALF
    out[np.uint64(count)] = np.int64(first & FILTER_MASK)
    return count + np.int64((asked - level.entries[at, np.uint64(1)]) & FREE_BITS == FREE_BITS)


@kernel
def keep_satisfied(level, rows, start, stop, first, ranks, satisfied):
    """Keep the filters of rows[start:stop] whose records, from record `first` on, hold; return their end."""
    for k in range(start, stop):
        prefetch(level.offsets, rows[k])
    for k in range(start, min(start + PREFETCH_STEPS, stop)):
        prefetch(level.records, np.int64(level.offsets[rows[k]]))
    kept = start
    for k in range(start, stop):
        if k + PREFETCH_STEPS < stop:
            prefetch(level.records, np.int64(level.offsets[rows[k + PREFETCH_STEPS]]))
        row = rows[k]
        if all_hold(level, row, first, ranks, satisfied):
            rows[kept] = row
            kept += 1
    return kept


@kernel
def near_bits(level, g, first, stop, messages, i):
    """Return a bit for each box of group g that meets the box of message i; only for boxes first..stop of its row.

    There is no branch, and boxes are compared as doubles: then the compiler compares eight of them at once.
    """
    b, g = level.boxes, np.uint64(g)
    x0, y0, x1, y1 = messages.boxes[i, 0], messages.boxes[i, 1], messages.boxes[i, 2], messages.boxes[i, 3]
    bits = np.int32(0)
    for k in range(BLOCK):
        is_apart = (b[g, k] > x1) | (b[g, BLOCK + k] > y1) | (b[g, 2 * BLOCK + k] < x0) | (b[g, 3 * BLOCK + k] < y0)
        bits |= np.int32(not is_apart) << np.int32(k)
    return np.int64(bits) & ((np.int64(1) << min(stop, BLOCK)) - (np.int64(1) << max(first, 0)))


def _places():
    """Return the place of a single bit, by its value modulo BIT_PRIME."""
    table = np.zeros(BIT_PRIME, np.uint8)
    for place in range(BLOCK):
        table[(1 << place) % BIT_PRIME] = place
    return table


PLACES_OF_BITS = _places()


@kernel
def place_of_bit(bits):
    """Return the place of the lowest set bit of a group."""
    return np.int64(PLACES_OF_BITS[(bits & -bits) % BIT_PRIME])


@kernel
def reach_near(level, e, stop, messages, i, words, out, count):
    """List filters of entries e..stop, which are in the order of their regions, and whose boxes meet the message's.

    Boxes of entries, of 16 entries and of 256 entries are in groups of 16.
    """
    if len(level.boxes) == 0:
        for k in range(e, stop):
            count = reach(level, k, words, out, count)
        return count
    if e >= stop:
        return count
    blocks = (np.int64(len(level.entries)) + BLOCK - 1) >> BLOCK_SHIFT
    tops = blocks + ((blocks + BLOCK - 1) >> BLOCK_SHIFT)
    first, last = e >> 2 * BLOCK_SHIFT, (stop - 1) >> 2 * BLOCK_SHIFT
    for group in range(first >> BLOCK_SHIFT, (last >> BLOCK_SHIFT) + 1):
        at = group << BLOCK_SHIFT
        top_bits = near_bits(level, tops + group, first - at, last + 1 - at, messages, i)
        while top_bits:
            top = at + place_of_bit(top_bits)
            top_bits &= top_bits - 1
            from_block = top << BLOCK_SHIFT
            block_bits = near_bits(
                level, blocks + top, (e >> BLOCK_SHIFT) - from_block,
                ((stop - 1) >> BLOCK_SHIFT) + 1 - from_block, messages, i,
            )  # fmt: skip
            while block_bits:
                block = from_block + place_of_bit(block_bits)
                block_bits &= block_bits - 1
                from_entry = block << BLOCK_SHIFT
                bits = near_bits(level, block, e - from_entry, stop - from_entry, messages, i)
                while bits:
                    count = reach(level, from_entry + place_of_bit(bits), words, out, count)
                    bits &= bits - 1
    return count


@kernel
def reach_if_near(level, e, messages, i, words, out, count):
    """List the filter of entry `e` as `reach` does, unless its box is apart from that of message i."""
    listed = reach(level, e, words, out, count)
    if len(level.boxes) == 0:
        return listed
    b = level.boxes
    g, k = e >> BLOCK_SHIFT, e & (BLOCK - 1)
    is_apart = (
        (b[g, k] > messages.boxes[i, 2])
        | (b[g, BLOCK + k] > messages.boxes[i, 3])
        | (b[g, 2 * BLOCK + k] < messages.boxes[i, 0])
        | (b[g, 3 * BLOCK + k] < messages.boxes[i, 1])
    )
    return count if is_apart else listed


@kernel
def reach_equal(level, slot, number, messages, i, words, out, count):
    """List filters that are reached through a constant that the value equals, or a pattern that it matches."""
    at = level.equal_base[slot] + number
    e = np.int64(level.equal_offsets[at])
    stop = np.int64(level.equal_offsets[at + 1])
    return reach_near(level, e, stop, messages, i, words, out, count)


@kernel
def is_outside(blocks, b, rank):
    """Return True if no interval of block b contains `rank`."""
    return blocks[b, 0] > rank or blocks[b, 3] < rank


@kernel
def reach_intervals(level, slot, rank, messages, i, words, out, count):
    """List filters that are reached through an interval that contains `rank`, block by block."""
    at = OTHERS_PER_SLOT * slot
    first = level.others[at + BY_INTERVAL_FROM]
    last = level.others[at + BY_PRESENCE_FROM]
    first_block = level.others[at + FIRST_BLOCK]
    span = 2 * level.others[at + FIRST_SPAN]
    blocks = (last - first + BLOCK - 1) >> BLOCK_SHIFT
    tops = (blocks + BLOCK - 1) >> BLOCK_SHIFT
    for top in range(tops):
        if is_outside(level.blocks, first_block + blocks + top, rank):
            continue
        for block in range(top << BLOCK_SHIFT, min((top + 1) << BLOCK_SHIFT, blocks)):
            b = first_block + block
            if is_outside(level.blocks, b, rank):
                continue
            is_whole = level.blocks[b, 1] <= rank and level.blocks[b, 2] >= rank
            for k in range(block << BLOCK_SHIFT, min((block + 1) << BLOCK_SHIFT, last - first)):
                if is_whole or level.spans[span + 2 * k] <= rank <= level.spans[span + 2 * k + 1]:
                    count = reach_if_near(level, first + k, messages, i, words, out, count)
    return count


@kernel
def reach_slot(level, slot, rank, messages, i, words, out, count):
    """List filters that are reached through a slot whose value has the rank `rank`."""
    if rank & 1:
        count = reach_equal(level, slot, np.int64(rank) >> 1, messages, i, words, out, count)
    at = OTHERS_PER_SLOT * slot
    if level.others[at + BY_PRESENCE_FROM] > level.others[at + BY_INTERVAL_FROM]:
        count = reach_intervals(level, slot, rank, messages, i, words, out, count)
    return count


@kernel
def reach_all(level, messages, i, ranks, words, satisfied, found, patterns, out, count):
    """List all filters that are reached here and whose scalar constraints message i satisfies."""
    first = count
    coarsen(level, messages, i, ranks, words)
    for j in range(messages.offsets[i], messages.offsets[i + 1]):
        slot = slot_at(level, messages.values[j, 0])
        if slot >= 0:
            count = reach_slot(level, slot, ranks[slot], messages, i, words, out, count)
    for k in range(patterns):
        slot = np.int64(0)
        while level.text_base[slot + 1] <= found[k]:
            slot += 1
        number = found[k] - level.text_base[slot]
        count = reach_equal(level, slot, number, messages, i, words, out, count)
    count = keep_satisfied(level, out, first, count, np.int64(1), ranks, satisfied)
    first = count
    for j in range(messages.offsets[i], messages.offsets[i + 1]):
        slot = slot_at(level, messages.values[j, 0])
        if slot >= 0:
            at = OTHERS_PER_SLOT * slot
            for e in range(level.others[at + BY_PRESENCE_FROM], level.others[at + BY_PRESENCE_TO]):
                count = reach_if_near(level, e, messages, i, words, out, count)
    nearby = level.others[len(level.others) - 1]
    count = reach_near(level, nearby, np.int64(len(level.entries)), messages, i, words, out, count)
    clear_coarse(level, messages, i, words)
    return keep_satisfied(level, out, first, count, np.int64(0), ranks, satisfied)


@allocating_kernel
def keep_related(m, m_regions, m_bounds, m_chains, region_of, m_boxes, further, start, stop, out, ends):
    """Keep in `out` those filters of messages `start` to `stop` whose spatial constraints in `further` hold.

    Allocates only here: most messages reach no filter.
    """
    checks = checks_at(further)
    work = make_work(most_rings(m_regions), further[AT_RING_COUNT])
    listed = np.empty(MAX_EXAMINED_REGIONS, np.int32)
    no_grid = Grid(np.int64(0), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, work.marks, listed, listed, listed, ends)
    last = np.int64(0)  # end of the message before, as it was
    kept = np.int64(0)
    for i in range(start, stop):
        first = kept
        for k in range(last, ends[i]):
            out[kept] = out[k]
            kept += 1
        last = ends[i]
        r = region_of[i]
        if kept == first:
            pass
        elif r == A_POINT:
            kept = keep_around(m_boxes[i, 0], m_boxes[i, 1], checks, out, first, kept, work)
        elif r < 0:
            kept = keep_unconstrained(checks, out, first, kept)
        else:
            grid = no_grid
            size = cells_that_pay(m_bounds, r, checks, out, first, kept, listed)
            if size > 0:
                grid = build_grid(m.xy, m.rings, np.int64(m_regions[r]), np.int64(m_regions[r + 1]), m_bounds, r, size)
            kept = keep_passing(m, m_regions, m_bounds, m_chains, r, checks, out, first, kept, grid, work)
        ends[i] = kept


@entry(
    "i8[1] i8[1] i8[2] u1[1] f8[2] f8[2] i8[1] i4[1] u1[1] f8[2] f8[2]! i8[1] i8[1] i8[1]"
    " i8[1] i8[1] i8 i8[1] i8[1]! i8[1]!",
    checked=False,
)
def match_scalars(
    table, m_offsets, m_values, m_blob, m_boxes,
    r_xy, r_rings, r_regions, r_flags, r_bounds, r_boxes, r_chains, region_of, further,
    row_offsets, rows, start, scratch, out, ends,
):  # fmt: skip
    """Write the filters that messages satisfy to `out`: from those reached elsewhere, and all that are reached here.

    Filters are named by their places here. Message k, from `start` on, has reached the filters
    rows[row_offsets[k]:row_offsets[k + 1]]; ends[k] gets the end of its filters in `out`. Returns the first k that was
    not matched because `out` might not have had room for its filters. Of the arrays in the table `scratch`, `ranks` and
    `words` are ABSENT and `satisfied` is 0 before and after the call; `found` has room for every pattern.

    If `further`, the table of spatial constraints at one place (residual.py), is not empty, these are checked too:
    message k has region region_of[k] there, or a point (A_POINT), which is its box, or nothing if region_of[k] is
    negative.
    """
    ranks, satisfied, found, words, gate = scratch_at(scratch)
    enter(gate)
    level = level_at(table)
    messages = MessageArrays(m_offsets, m_values, m_blob, m_boxes)
    count = np.int64(0)
    stop = len(ends)
    for i in range(start, stop):
        if len(out) - count < row_offsets[i + 1] - row_offsets[i] + len(level.entries):
            stop = i
            break
        first = count
        patterns = fill_ranks(level, messages, i, ranks, satisfied, found)
        for k in range(row_offsets[i], row_offsets[i + 1]):
            out[count] = rows[k]
            count += 1
        count = keep_satisfied(level, out, first, count, np.int64(0), ranks, satisfied)
        count = reach_all(level, messages, i, ranks, words, satisfied, found, patterns, out, count)
        clear_ranks(level, messages, i, ranks, satisfied, found, patterns)
        ends[i] = count
    if len(further) > 0 and count > 0:
        m = RegionColumn(r_xy, r_rings, r_flags, r_boxes)
        keep_related(m, r_regions, r_bounds, r_chains, region_of, m_boxes, further, start, stop, out, ends)
    leave(gate)
    return stop


@entry("i8[1] i8[1] i8[2] u1[1] f8[2] i4[1]! u1[1]! i4[1]! i4[2]!")
def rank_messages(table, m_offsets, m_values, m_blob, m_boxes, ranks, satisfied, found, out):
    """Write the ranks of message i in every slot to out[i], ABSENT without a value."""
    level = level_at(table)
    messages = MessageArrays(m_offsets, m_values, m_blob, m_boxes)
    for i in range(len(out)):
        patterns = fill_ranks(level, messages, i, ranks, satisfied, found)
        for slot in range(len(level.forms)):
            out[i, slot] = ranks[slot]
        clear_ranks(level, messages, i, ranks, satisfied, found, patterns)
