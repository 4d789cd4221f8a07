"""Search the k-d tree from the rightmost leaf on, and the entry points for Python."""

import numpy as np

from contrada.codes import KD_ROOT
from contrada.jit import entry, kernel
from contrada.kernels.cover.arrays import GraphArrays, KdTreeArrays
from contrada.kernels.cover.dominance import COMPARISONS, NODES, NONE, ONE, covers
from contrada.kernels.cover.kd_tree import FIRST, LAST, LEAF, add_to_kd, drop_from_kd, kd_has_room
from contrada.kernels.cover.point_ranks import HIGH_BITS, LOW_BITS, rank_point
from contrada.kernels.cover.relation_graph import replay


@kernel
def report_subtree(t, top, wanted, out, found, counters):
    """Append the rows below a node wholly in the query, without comparisons; return the number found so far."""
    node = top
    came_from = NONE  # walk by the parents, since the search is using the stack
    while found < wanted:
        if t.dimensions[node] == LEAF:
            if node != top:
                counters[NODES] += 1
            block = np.int64(t.children[node, FIRST])
            while block != NONE and found < wanted:
                place = 0
                while place < t.counts[block] and found < wanted:
                    out[found] = t.rows[block, place]
                    found += 1
                    place += 1
                block = np.int64(t.nexts[block])
        elif came_from != t.children[node, FIRST]:
            is_back = came_from == t.children[node, LAST]
            if not is_back and node != top:
                counters[NODES] += 1
            came_from = node
            node = np.int64(t.children[node, FIRST if is_back else LAST])
            continue
        if node == top:
            break
        came_from = node
        node = np.int64(t.parents[node])
    return found


@kernel
def mark_alive(t, block, words, inside):
    """Mark the points of a block whose ranks reach the query's, outside `inside` dimensions; False if none does."""
    for word in range(words):
        t.alive[word] = HIGH_BITS
    for step in range(len(t.order)):
        i = t.order[step]
        if inside >> np.uint64(i) & ONE:
            continue
        ranks = np.uint64(t.query_ranks[0, i]) * LOW_BITS
        left = np.uint64(0)
        for word in range(words):
            alive = t.alive[word] & ((t.signatures[block, i, word] | HIGH_BITS) - ranks)
            t.alive[word] = alive
            left |= alive
        if left == 0:
            return False
    return True


@kernel
def search_bucket(t, leaf, inside, queries, at, before, wanted, out, found, counters):
    """Append the rows of a bucket that cover a query; return the number found so far."""
    block = np.int64(t.children[leaf, FIRST])
    while block != NONE and found < wanted:
        count = np.int64(t.counts[block])
        words = (count + 7) >> 3
        counters[COMPARISONS] += count
        if mark_alive(t, block, words, inside):
            place = 0
            while place < count and found < wanted:
                if t.alive[place >> 3] >> np.uint64(8 * (place & 7) + 7) & ONE:
                    row = np.int64(t.rows[block, place])
                    if covers(t.points, t.arrivals, row, queries, at, before):
                        out[found] = row
                        found += 1
                place += 1
        block = np.int64(t.nexts[block])
    return found


@kernel
def rank_query(t, queries, at):
    """Rank a query and order its dimensions by descending rank: few points reach a high rank."""
    rank_point(t.thresholds, queries, at, t.query_ranks, 0)
    for i in range(t.points.shape[1]):
        j = i
        while j > 0 and t.query_ranks[0, t.order[j - 1]] < t.query_ranks[0, i]:
            t.order[j] = t.order[j - 1]
            j -= 1
        t.order[j] = i


@kernel
def search_kd(t, queries, at, before, wanted, out, counters):
    """Find rows that cover a query: start at the rightmost leaf and backtrack to the left.

    `inside` has a bit for every dimension in which all points below a node are larger than the query.
    """
    if t.state[KD_ROOT] == NONE:
        return 0
    d = t.points.shape[1]
    whole = ~np.uint64(0) >> np.uint64(64 - d)
    rank_query(t, queries, at)
    t.stack[0] = t.state[KD_ROOT]
    t.insides[0] = 0
    height = 1
    found = 0
    while height > 0 and found < wanted:
        height -= 1
        node, inside = np.int64(t.stack[height]), t.insides[height]
        counters[NODES] += 1
        while t.dimensions[node] != LEAF and inside != whole:
            i = np.int64(t.dimensions[node])
            if t.splits[node] >= queries[at, i]:
                t.stack[height] = t.children[node, FIRST]
                t.insides[height] = inside
                height += 1
                inside |= ONE << np.uint64(i)
            node = np.int64(t.children[node, LAST])
            counters[NODES] += 1
        if inside == whole:
            found = report_subtree(t, node, wanted, out, found, counters)
        else:
            found = search_bucket(t, node, inside, queries, at, before, wanted, out, found, counters)
    return found


@entry(KdTreeArrays, "i8", checked=False)
def kd_add(t, row):
    """Add a row whose point and arrival are already written."""
    add_to_kd(t, row)


@entry(KdTreeArrays, "i8", checked=False)
def kd_drop(t, row):
    """Drop a row."""
    drop_from_kd(t, row)


@entry(KdTreeArrays, "f8[2] i8 i8[1]! i8[1]!", checked=False)
def kd_search(t, query, before, out, counters):
    """Write rows that cover the only point of `query` to `out`, as many as fit; return their number."""
    return search_kd(t, query, 0, before, len(out), out, counters)


@entry(KdTreeArrays, GraphArrays, "i8[1] i8[1]! i8[1]!")
def kd_replay(t, graph, commands, log, tally):
    """Run commands; see `replay`."""
    replay(t, search_kd, add_to_kd, drop_from_kd, kd_has_room, graph, commands, log, tally)
