"""Relation graph G_k of [COVER], section III, as arrays on top of any index; runs sequences of commands compiled.

Edge (row, j) is the j-th edge into a row; `parents[row, j]` is its source. The edges out of a row form a doubly linked
list from `heads[row]`, linked by `nexts` and `prevs`, whose members are numbered row * k + j. These numbers take 64
bits, rows 32.
"""

import numpy as np

from contrada.codes import (
    COMPARISONS_S,
    COMPARISONS_U,
    DONE,
    FORWARDED_S,
    FORWARDED_U,
    NODES_S,
    NODES_U,
    QUERIES_S,
    QUERIES_U,
    SENT,
    WITHDRAWN,
)
from contrada.jit import kernel
from contrada.kernels.cover.dominance import COMPARISONS, NODES, NONE


@kernel
def link(g, parent, row, j):
    """Add edge j into a row."""
    k = g.parents.shape[1]
    edge = row * k + j
    head = np.int64(g.heads[parent])
    g.parents[row, j] = parent
    g.nexts[row, j] = head
    g.prevs[row, j] = NONE
    if head != NONE:
        g.prevs[head // k, head % k] = edge
    g.heads[parent] = edge


@kernel
def unlink(g, row, j):
    """Remove edge j into a row from its parent's list."""
    k = g.parents.shape[1]
    before, after = np.int64(g.prevs[row, j]), np.int64(g.nexts[row, j])
    if before == NONE:
        g.heads[g.parents[row, j]] = after
    else:
        g.nexts[before // k, before % k] = after
    if after != NONE:
        g.prevs[after // k, after % k] = before
    g.parents[row, j] = NONE


@kernel
def is_orphan(g, row):
    """Return True if no edge leads into a row."""
    for j in range(g.parents.shape[1]):
        if g.parents[row, j] != NONE:
            return False
    return True


@kernel
def delete_node(g, row):
    """Delete a node with its edges; write the rows that lost their last parent to g.orphans and return their number."""
    k = g.parents.shape[1]
    for j in range(k):
        if g.parents[row, j] != NONE:
            unlink(g, row, j)
    count = 0
    edge = np.int64(g.heads[row])
    while edge != NONE:
        child, j = edge // k, edge % k
        edge = np.int64(g.nexts[child, j])
        g.parents[child, j] = NONE
        if is_orphan(g, child):
            g.orphans[count] = child
            count += 1
    g.heads[row] = NONE
    return count


@kernel
def attach(index, search, g, row, before):
    """Find covers of a row in the index, and link the row to them; return their number."""
    found = search(index, index.points, row, before, len(g.covers), g.covers, g.counters)
    for j in range(found):
        link(g, g.covers[j], row, j)
    return found


@kernel
def forward(g, row, log, tally):
    """Record that a row is forwarded."""
    g.forwarded[row] = 1
    log[tally[SENT]] = row
    tally[SENT] += 1


@kernel
def replay(index, search, add, drop, has_room, g, commands, log, tally):
    """Run commands from tally[DONE] on: row r subscribes (r) or unsubscribes (-1 - r). Stop if the index is full.

    `log` lists forwarded rows in order. The arrival of a row is the position of its command.
    """
    for time in range(tally[DONE], len(commands)):
        if not has_room(index):
            return
        g.counters[NODES] = 0
        g.counters[COMPARISONS] = 0
        tally[DONE] += 1
        if commands[time] >= 0:
            row = commands[time]
            index.arrivals[row] = time
            if attach(index, search, g, row, time) == 0:
                forward(g, row, log, tally)
                tally[FORWARDED_S] += 1
            add(index, row)
            tally[QUERIES_S] += 1
            tally[NODES_S] += g.counters[NODES]
            tally[COMPARISONS_S] += g.counters[COMPARISONS]
            continue
        row = -1 - commands[time]
        drop(index, row)
        count = delete_node(g, row)
        for at in range(count):
            orphan = g.orphans[at]
            if attach(index, search, g, orphan, index.arrivals[orphan]) == 0:
                forward(g, orphan, log, tally)
                tally[FORWARDED_U] += 1
        tally[QUERIES_U] += count
        tally[NODES_U] += g.counters[NODES]
        tally[COMPARISONS_U] += g.counters[COMPARISONS]
        if g.forwarded[row]:
            g.forwarded[row] = 0
            tally[WITHDRAWN] += 1
