"""Dominance of points, to which the covering of rectangles is reduced, with a rule for equal points.

A point covers another if it is at least as large in every dimension; of equal points the earlier covers the later.
Covering is therefore a strict order, and two equal points never cover each other.

Every index of this folder is a NamedTuple of arrays whose first two are the points of all rows and their arrival
numbers. Searches take a query as a row of an array of points, and `before`, the arrival of the query: an equal point
counts if it arrived before that. Searches write at most `wanted` rows to `out`, return their number, and count work.
"""

import numpy as np

from contrada.jit import kernel

NODES, COMPARISONS = 0, 1  # places in counters: parts of an index visited, points compared
NONE = -1
ONE = np.uint64(1)


@kernel
def is_equal(points, row, queries, at):
    """Return True if a point equals a query in every dimension."""
    for i in range(points.shape[1]):
        if points[row, i] != queries[at, i]:
            return False
    return True


@kernel
def came_first(points, arrivals, row, queries, at, before):
    """Return True if a point that dominates a query covers it: it arrived before the query, or they are not equal."""
    return arrivals[row] < before or not is_equal(points, row, queries, at)


@kernel
def covers(points, arrivals, row, queries, at, before):
    """Return True if a row covers a query; stops at the first dimension in which it does not."""
    for i in range(points.shape[1]):
        if points[row, i] < queries[at, i]:
            return False
    return came_first(points, arrivals, row, queries, at, before)
