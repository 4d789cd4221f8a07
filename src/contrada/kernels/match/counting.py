"""Counting algorithm: find the constraints a message satisfies, then the filters whose constraints all hold.

The production matcher is compared with this reference. Every satisfied constraint is counted for every filter that has
it. The filters of constraints that are found together are adjacent in one row, so satisfied constraints are listed as
stretches of that row. Counters run down from the number of constraints of a filter, so a satisfied filter is at 0.
Counters are one byte each where that suffices, since memory access dominates the cost of counting. Positions are
unsigned in the counting loops: a third of their time went into testing whether a position counts from the end.
"""

import numpy as np

from contrada.codes import BLOCK, BLOCK_SHIFT
from contrada.jit import entry, kernel
from contrada.kernels.match.ranks import MessageArrays, clear_ranks, fill_ranks, level_at, slot_at
from contrada.kernels.match.tables import COUNTED
from contrada.kernels.runtime.gil_gate import wait_at
from contrada.kernels.runtime.pointers import reader

PARTS_PER_SLOT = 8  # numbers per slot in `parts`
RESET_SINGLY_BELOW_ONE_IN = 32  # below 1/32 of the filters counted, resetting these beats copying all counters
CHECK_DECIDED_FROM_ONE_IN = 2  # from 1/2 of the subscribers decided on, checking `decided` before counting pays off


index_at = reader(COUNTED, "CountedLeaves")


@kernel
def list_leaves(index, first, stop, listed, count):
    """List the filters of leaves first..stop; extend the last stretch if they follow it."""
    start = index.offsets[first]
    if count > 0 and listed[2 * count - 1] == start:
        listed[2 * count - 1] = index.offsets[stop]
        return count
    listed[2 * count] = start
    listed[2 * count + 1] = index.offsets[stop]
    return count + 1


@kernel
def list_constant(index, at, listed, count):
    """List filters for constant or pattern `at`, which the value equals or matches."""
    for k in range(index.true_offsets[at], index.true_offsets[at + 1]):
        count = list_leaves(index, index.true[k], index.true[k] + 1, listed, count)
    return count


@kernel
def list_block(index, block, first, span, size, b, rank, listed, count):
    """List the intervals of block `b` that contain `rank`."""
    if index.blocks[b, 0] > rank or index.blocks[b, 3] < rank:
        return count
    start = block << BLOCK_SHIFT
    stop = min(start + BLOCK, size)
    if index.blocks[b, 1] <= rank and index.blocks[b, 2] >= rank:
        return list_leaves(index, first + start, first + stop, listed, count)
    for k in range(start, stop):  # no branch: whether an interval holds is hard to predict
        listed[2 * count] = index.offsets[first + k]
        listed[2 * count + 1] = index.offsets[first + k + 1]
        low = index.spans[2 * (span + k)]
        high = index.spans[2 * (span + k) + 1]
        count += np.int64(low <= rank) & np.int64(rank <= high)
    return count


@kernel
def list_intervals(index, slot, rank, listed, count):
    """List the intervals of a slot that contain `rank`, block by block."""
    first = index.parts[PARTS_PER_SLOT * slot]
    size = index.parts[PARTS_PER_SLOT * slot + 1] - first
    span = index.parts[PARTS_PER_SLOT * slot + 2]
    first_block = index.parts[PARTS_PER_SLOT * slot + 3]
    blocks = (size + BLOCK - 1) >> BLOCK_SHIFT
    tops = (blocks + BLOCK - 1) >> BLOCK_SHIFT
    for top in range(tops):
        t = first_block + blocks + top
        if index.blocks[t, 0] > rank or index.blocks[t, 3] < rank:
            continue
        start = top << BLOCK_SHIFT
        stop = min(start + BLOCK, blocks)
        if index.blocks[t, 1] <= rank and index.blocks[t, 2] >= rank:
            last = first + min(stop << BLOCK_SHIFT, size)
            count = list_leaves(index, first + (start << BLOCK_SHIFT), last, listed, count)
            continue
        for block in range(start, stop):
            count = list_block(index, block, first, span, size, first_block + block, rank, listed, count)
    return count


@kernel
def list_negations(index, slot, rank, listed, count):
    """List the "not equal" constraints of a slot, except those that name the constant that the value equals."""
    following = index.parts[PARTS_PER_SLOT * slot + 4]
    last = index.parts[PARTS_PER_SLOT * slot + 5]
    k = np.int64(0)
    end = np.int64(0)
    if rank & 1:
        at = index.base[slot] + (np.int64(rank) >> 1)
        k = np.int64(index.false_offsets[at])
        end = np.int64(index.false_offsets[at + 1])
    while following < last:
        stop = np.int64(index.false[k]) if k < end else last
        if following < stop:
            count = list_leaves(index, following, stop, listed, count)
        following = stop + 1
        k += 1
    return count


@kernel
def list_unlike(index, slot, satisfied, listed, count):
    """List the constraints that ask for text that does not match a pattern."""
    first = index.parts[PARTS_PER_SLOT * slot + 5]
    base = index.parts[PARTS_PER_SLOT * slot + 7] - first
    for leaf in range(first, index.parts[PARTS_PER_SLOT * slot + 6]):
        if satisfied[index.unlike[base + leaf]] == 0:
            count = list_leaves(index, leaf, leaf + 1, listed, count)
    return count


@kernel
def list_scalars(level, index, messages, ranks, satisfied, found, patterns, listed, count):
    """List the filters of the scalar constraints that the only message satisfies; return the number of stretches."""
    for j in range(messages.offsets[0], messages.offsets[1]):
        slot = slot_at(level, messages.values[j, 0])
        if slot < 0:
            continue
        rank = ranks[slot]
        if rank & 1:
            count = list_constant(index, index.base[slot] + (np.int64(rank) >> 1), listed, count)
        count = list_intervals(index, slot, rank, listed, count)
        count = list_negations(index, slot, rank, listed, count)
        count = list_unlike(index, slot, satisfied, listed, count)
    for k in range(patterns):
        slot = np.int64(0)
        while level.text_base[slot + 1] <= found[k]:
            slot += 1
        count = list_constant(index, index.base[slot] + found[k] - level.text_base[slot], listed, count)
    return count


@kernel
def count_filters(index, listed, stretches, counters, out):
    """Count down the listed filters, write satisfied ones to `out`; return their number and the count-downs made."""
    count = np.int64(0)
    steps = np.int64(0)
    for k in range(stretches):
        steps += listed[2 * k + 1] - listed[2 * k]
        for e in range(np.uint64(listed[2 * k]), np.uint64(listed[2 * k + 1])):
            f = np.uint64(index.filters[e])
            left = counters[f] - 1
            counters[f] = left
            if left == 0:
                out[count] = f
                count += 1
    return count, steps


@kernel
def count_subscribers(index, listed, stretches, counters, decided, out):
    """Count down filters of undecided subscribers; return the numbers of subscribers, count-downs and stretches used.

    Checking `decided` costs more than counting while few subscribers are decided, so the check starts once half of them
    are. After all are decided, the remaining stretches are skipped.
    """
    count = np.int64(0)
    steps = np.int64(0)
    done = np.int64(0)
    while done < stretches and count < len(decided):
        k = done
        done += 1
        steps += listed[2 * k + 1] - listed[2 * k]
        looks = count * CHECK_DECIDED_FROM_ONE_IN >= len(decided)
        for e in range(np.uint64(listed[2 * k]), np.uint64(listed[2 * k + 1])):
            if looks and decided[np.uint64(index.subscribers[e])] != 0:
                continue
            f = np.uint64(index.filters[e])
            left = counters[f] - 1
            counters[f] = left
            if left == 0 and decided[index.subscribers[e]] == 0:
                decided[index.subscribers[e]] = 1
                out[count] = index.subscribers[e]
                count += 1
    for k in range(count):
        decided[out[k]] = 0
    return count, steps, done


@kernel
def set_back(index, listed, stretches, steps, needs, counters):
    """Reset the counters to `needs`."""
    if steps * RESET_SINGLY_BELOW_ONE_IN > len(counters):
        for f in range(len(counters)):
            counters[f] = needs[f]
        return
    for k in range(stretches):
        for e in range(np.uint64(listed[2 * k]), np.uint64(listed[2 * k + 1])):
            f = np.uint64(index.filters[e])
            counters[f] = needs[f]


@kernel
def count_message(level, index, messages, regions, needs, counters, decided, ranks, satisfied, found, listed, out):
    """Count for one message; `out` gets filters, or subscribers if `decided` has room for them."""
    patterns = fill_ranks(level, messages, np.int64(0), ranks, satisfied, found)
    stretches = np.int64(0)
    for k in range(len(regions)):
        stretches = list_leaves(index, regions[k], regions[k] + 1, listed, stretches)
    stretches = list_scalars(level, index, messages, ranks, satisfied, found, patterns, listed, stretches)
    clear_ranks(level, messages, np.int64(0), ranks, satisfied, found, patterns)
    if len(decided) > 0:
        count, steps, stretches = count_subscribers(index, listed, stretches, counters, decided, out)
    else:
        count, steps = count_filters(index, listed, stretches, counters, out)
    set_back(index, listed, stretches, steps, needs, counters)
    return count


@entry(
    "i8[1] i8[1] i8[1] i8[2] u1[1] f8[2] i8[1] u1[1] u1[1]! u1[1]! i4[1]! u1[1]! i4[1]! i4[1]! i8[1]! i8[1]",
    checked=False,
)
def count_bytes(
    scalars, table, m_offsets, m_values, m_blob, m_boxes, regions,
    needs, counters, decided, ranks, satisfied, found, listed, out, gate,
):  # fmt: skip
    """Write the filters, or subscribers, that a message satisfies to `out` in no order; return their number.

    `regions` are the leaves of the spatial constraints that the message satisfies. Before and after the call,
    `counters` equals `needs`, `decided` and `satisfied` are 0 and `ranks` are ABSENT. `listed` has room for two numbers
    per leaf, plus two.
    """
    messages = MessageArrays(m_offsets, m_values, m_blob, m_boxes)
    count = count_message(
        level_at(scalars), index_at(table), messages, regions, needs, counters, decided, ranks, satisfied, found,
        listed, out,
    )  # fmt: skip
    wait_at(gate)
    return count


@entry(
    "i8[1] i8[1] i8[1] i8[2] u1[1] f8[2] i8[1] i4[1] i4[1]! u1[1]! i4[1]! u1[1]! i4[1]! i4[1]! i8[1]! i8[1]",
    checked=False,
)
def count_integers(
    scalars, table, m_offsets, m_values, m_blob, m_boxes, regions,
    needs, counters, decided, ranks, satisfied, found, listed, out, gate,
):  # fmt: skip
    """Do the work of count_bytes if some filter has more constraints than a byte holds."""
    messages = MessageArrays(m_offsets, m_values, m_blob, m_boxes)
    count = count_message(
        level_at(scalars), index_at(table), messages, regions, needs, counters, decided, ranks, satisfied, found,
        listed, out,
    )  # fmt: skip
    wait_at(gate)
    return count
