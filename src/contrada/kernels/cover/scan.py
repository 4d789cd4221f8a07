"""Scan of unordered points, block by block, until enough of them cover: the reference for every index.

A block holds its points column by column. Comparing row by row with an exit at the first failing dimension takes four
times as long: the branch that ends a row cannot be predicted.
"""

import numpy as np

from contrada.jit import entry, kernel
from contrada.kernels.cover.arrays import GraphArrays, ScanArrays
from contrada.kernels.cover.dominance import COMPARISONS, NODES, NONE, came_first
from contrada.kernels.cover.relation_graph import replay

COUNT = 0  # place in state: points in the scan
LANES = 8  # points compared at a time


@kernel
def write_place(s, place, row):
    """Write a row to a place."""
    width = s.rows.shape[1]
    block, at = place // width, place % width
    s.rows[block, at] = row
    s.places[row] = place
    for i in range(s.points.shape[1]):
        s.coordinates[block, i, at] = s.points[row, i]


@kernel
def add_to_scan(s, row):
    """Append a row."""
    write_place(s, s.state[COUNT], row)
    s.state[COUNT] += 1


@kernel
def scan_has_room(s):
    """Return True: there is a place for every row."""
    return True


@kernel
def drop_from_scan(s, row):
    """Remove a row; the last row takes its place."""
    width = s.rows.shape[1]
    last = s.state[COUNT] - 1
    write_place(s, np.int64(s.places[row]), np.int64(s.rows[last // width, last % width]))
    s.places[row] = NONE
    s.state[COUNT] = last


@kernel
def mark_alive(s, block, count, queries, at):
    """Mark the points of a block that dominate a query, column by column until none is left; return False if none does.

    Places up to the next multiple of LANES are compared too, so that no vector is cut short; their marks mean nothing.
    """
    width = (count + LANES - 1) // LANES * LANES
    for place in range(width):
        s.alive[place] = 1
    for i in range(s.points.shape[1]):
        value = queries[at, i]
        left = 0
        for place in range(width):
            s.alive[place] &= s.coordinates[block, i, place] >= value
            left |= s.alive[place]
        if left == 0:
            return False
    return True


@kernel
def search_scan(s, queries, at, before, wanted, out, counters):
    """Find rows that cover a query."""
    width = s.rows.shape[1]
    found = 0
    block = 0
    left = s.state[COUNT]
    while left > 0 and found < wanted:
        count = min(left, width)
        counters[NODES] += 1
        counters[COMPARISONS] += count
        if mark_alive(s, block, count, queries, at):
            place = 0
            while place < count and found < wanted:
                if s.alive[place] != 0:
                    row = s.rows[block, place]
                    if came_first(s.points, s.arrivals, row, queries, at, before):
                        out[found] = row
                        found += 1
                place += 1
        left -= width
        block += 1
    return found


@entry(ScanArrays, "i8", checked=False)
def scan_add(s, row):
    """Add a row whose point and arrival are already written."""
    add_to_scan(s, row)


@entry(ScanArrays, "i8", checked=False)
def scan_drop(s, row):
    """Drop a row."""
    drop_from_scan(s, row)


@entry(ScanArrays, "f8[2] i8 i8[1]! i8[1]!", checked=False)
def scan_search(s, query, before, out, counters):
    """Write rows that cover the only point of `query` to `out`, as many as fit; return their number."""
    return search_scan(s, query, 0, before, len(out), out, counters)


@entry(ScanArrays, GraphArrays, "i8[1] i8[1]! i8[1]!")
def scan_replay(s, graph, commands, log, tally):
    """Run commands; see `replay`."""
    replay(s, search_scan, add_to_scan, drop_from_scan, scan_has_room, graph, commands, log, tally)
