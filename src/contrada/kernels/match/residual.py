"""Keep the reached filters whose spatial constraints the message's region or point satisfies.

Scalars are checked before, so few filters are left, and one preparation of the message serves all of them.
"""

from typing import Any, NamedTuple

import numpy as np

from contrada.codes import DISJOINT, INSIDE, MEETS
from contrada.jit import kernel
from contrada.kernels.match.search import ITEMS_SOURCE
from contrada.kernels.match.spatial import SMALL_GRID, SMALL_GRID_CANDIDATES, are_large, base_of, candidate_bits
from contrada.kernels.match.tables import RESIDUAL
from contrada.kernels.relate.chains import fill_chain
from contrada.kernels.relate.edge_tree import ZERO, EdgeTree
from contrada.kernels.relate.regions import RELATION, box_bits
from contrada.kernels.relate.rings import IN, ON, locate
from contrada.kernels.relate.small import MAX_SMALL_VERTICES
from contrada.kernels.relate.touch_nodes import STOPS
from contrada.kernels.runtime.pointers import reader
from contrada.kernels.runtime.prefetch import prefetch

# A grid of GRID_SIZES[k] cells per side pays off from MIN_REGIONS[k] regions on, unless the regions are larger than its
# cells.
GRID_SIZES = np.array([SMALL_GRID, 32, 64, 256])
MIN_REGIONS = np.array([SMALL_GRID_CANDIDATES, 40, 200, 4000])


class ResidualArrays(NamedTuple):
    """Spatial constraints by filter, as arrays (tables.py describes each array)."""

    items: Any
    bounds: Any
    masks: Any
    offsets: Any
    first: Any


checks_at = reader(RESIDUAL, ResidualArrays, {"items": ITEMS_SOURCE})


@kernel
def limits(checks, row):
    """Return where the constraints of filter `row` begin and end."""
    k = row - checks.first
    if k < 0 or k >= len(checks.offsets) - 1:
        return np.int64(0), np.int64(0)
    return np.int64(checks.offsets[k]), np.int64(checks.offsets[k + 1])


@kernel
def keep_unconstrained(checks, rows, start, stop):
    """Keep the filters of rows[start:stop] without constraints, as the message has no region; return their end."""
    kept = start
    for k in range(start, stop):
        first, last = limits(checks, rows[k])
        if first == last:
            rows[kept] = rows[k]
            kept += 1
    return kept


@kernel
def keep_around(x, y, checks, rows, start, stop, work):
    """Keep the filters of rows[start:stop] whose constraints the message's point x, y satisfies; return their end."""
    c = checks.items.column
    kept = start
    for k in range(start, stop):
        first, last = limits(checks, rows[k])
        is_satisfied = True
        for place in range(first, last):
            b = checks.bounds
            relation = DISJOINT
            if b[place, 0] <= x <= b[place, 2] and b[place, 1] <= y <= b[place, 3]:
                c0 = np.int64(checks.items.regions[place])
                c1 = np.int64(checks.items.regions[place + 1])
                base = base_of(checks.items, c0, c1, place)
                side = locate(x, y, c.xy, c.rings, c0, c1, c.boxes, base, work.stack, work.found)
                relation = INSIDE if side == IN else (MEETS if side == ON else DISJOINT)
            if (np.int64(checks.masks[place]) >> relation) & 1 == 0:
                is_satisfied = False
                break
        if is_satisfied:
            rows[kept] = rows[k]
            kept += 1
    return kept


@kernel
def list_places(checks, rows, start, stop, listed):
    """List the places of the constraints of rows[start:stop], as far as `listed` has room; return their number."""
    for k in range(start, stop):
        prefetch(checks.offsets, min(max(rows[k] - checks.first, 0), len(checks.offsets) - 1))
    count = np.int64(0)
    for k in range(start, stop):
        first, last = limits(checks, rows[k])
        for place in range(first, last):
            if count == len(listed):
                return count
            prefetch(checks.bounds, place)
            prefetch(checks.masks, place)
            prefetch(checks.items.regions, place)
            listed[count] = place
            count += 1
    return count


@kernel
def cells_for(checks, listed, count, box):
    """Return the cells per side of the grid that pays off for the constraints at the listed places, 0 for none."""
    for k in range(len(GRID_SIZES) - 1, -1, -1):
        if count >= MIN_REGIONS[k]:
            if k > 0 and are_large(checks.bounds, listed, count, box, GRID_SIZES[k]):
                return GRID_SIZES[0]
            return GRID_SIZES[k]
    return np.int64(0)


@kernel
def relation_to(m, m0, m1, m_base, m_bounds, i, is_few, checks, place, grid, work):
    """Return the relation of message region i to a constraint's region, exact enough to decide the constraint."""
    if box_bits(m_bounds, i, checks.bounds, place) < 0:
        return DISJOINT
    stops = STOPS[checks.masks[place]]
    tree = EdgeTree(ZERO, 0.0, work.boxes, grid.edges)  # no tree
    bits = candidate_bits(
        m, m0, m1, m_base, m_bounds, i, is_few, checks.items, checks.bounds, place, grid, tree, stops, work
    )
    return np.int64(RELATION[bits & 15])


@kernel
def cells_that_pay(m_bounds, i, checks, rows, start, stop, listed):
    """Return the cells per side of the grid over message region i that pays off for rows[start:stop], 0 for none."""
    box = (m_bounds[i, 0], m_bounds[i, 1], m_bounds[i, 2], m_bounds[i, 3])
    count = list_places(checks, rows, start, stop, listed)
    return cells_for(checks, listed, count, box)


@kernel
def keep_passing(m, m_regions, m_bounds, m_chains, i, checks, rows, start, stop, grid, work):
    """Keep the filters of rows[start:stop] whose constraints message region i satisfies; return their end.

    The caller makes the grid over the region, or a grid of size 0: memory allocated in here would never be freed.
    """
    m0 = np.int64(m_regions[i])
    m1 = np.int64(m_regions[i + 1])
    m_base = m_chains[i]
    is_few = m1 - m0 == 1 and m.rings[m1] - m.rings[m0] <= MAX_SMALL_VERTICES
    if grid.size > 0 and m_base < 0:
        fill_chain(m.xy, m.rings, m0, m1, work.boxes, np.int64(0))
    kept = start
    for k in range(start, stop):
        first, last = limits(checks, rows[k])
        is_satisfied = True
        for place in range(first, last):
            relation = relation_to(m, m0, m1, m_base, m_bounds, i, is_few, checks, place, grid, work)
            if (np.int64(checks.masks[place]) >> relation) & 1 == 0:
                is_satisfied = False
                break
        if is_satisfied:
            rows[kept] = rows[k]
            kept += 1
    return kept
