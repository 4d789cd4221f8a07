"""Relate regions of one column to regions of another, row by row or for lists of rows, without copying them.

What is prepared for a region of the first column, a grid and a tree of its edges, serves all pairs that follow it
with the same region.
"""

import numpy as np

from contrada.jit import allocating_kernel, entry, kernel
from contrada.kernels.relate.chains import COUNTER_ROW, fill_chain
from contrada.kernels.relate.contacts import RegionColumn, make_work
from contrada.kernels.relate.edge_tree import ZERO, EdgeTree, build_tree
from contrada.kernels.relate.grid import build_grid, grid_size
from contrada.kernels.relate.regions import (
    RELATION,
    box_bits,
    build_after,
    few_bits,
    gridded_bits,
    relate_bits,
)
from contrada.kernels.relate.small import MAX_SMALL_VERTICES
from contrada.kernels.relate.touch_nodes import STOPS, UNTIL_SETTLED, is_decided

SMALL_POLYGON_GRID_MIN_REGIONS = 100  # of so many listed regions on, a grid pays even for a polygon of few vertices


@kernel
def row_at(rows, regions, k):
    """Return the row of pair k: rows[k]; without rows k itself, or the only row."""
    if len(rows) > 0:
        return rows[k]
    return np.int64(k) if len(regions) > 2 else ZERO


@kernel
def most_rings_in(regions, rows, start, stop):
    """Return the largest number of rings of the regions of pairs start..stop."""
    most = 1
    for k in range(start, stop if len(rows) > 0 or len(regions) > 2 else start + 1):
        i = row_at(rows, regions, k)
        most = max(most, np.int64(regions[i + 1] - regions[i]))
    return most


@kernel
def stops_at(masks, k):
    """Return the states of bits that decide pair k: all bits without masks."""
    return STOPS[masks[k]] if len(masks) > 0 else UNTIL_SETTLED


@kernel
def relate_run(
    a, a_regions, a_bounds, a_chains, i, is_few, b, b_regions, b_bounds, b_chains, b_rows, masks, start, stop, work, out
):
    """Relate region i of a to the regions of pairs start..stop of b, one after another."""
    a0 = np.int64(a_regions[i])
    a1 = np.int64(a_regions[i + 1])
    for k in range(start, stop):
        j = row_at(b_rows, b_regions, k)
        bits = box_bits(a_bounds, i, b_bounds, j)
        if bits < 0:
            out[k] = 0
            continue
        stops = stops_at(masks, k)
        if not is_decided(bits, stops):
            if is_few:
                bits = few_bits(a, a0, a_bounds, i, b, b_regions, b_bounds, b_chains, j, bits, work)
            else:
                bits = relate_bits(
                    a, a0, a1, a_chains[i], a_bounds, i, b, np.int64(b_regions[j]), np.int64(b_regions[j + 1]),
                    b_chains[j], b_bounds, j, bits, stops, work,
                )  # fmt: skip
        out[k] = RELATION[bits & 15]


@allocating_kernel
def relate_run_gridded(
    a, a_regions, a_bounds, a_chains, i, b, b_regions, b_bounds, b_chains, b_rows, masks, start, stop, size, work, out
):
    """Relate region i of a to many: a grid of size x size cells over it decides most vertices by a look-up."""
    a0 = np.int64(a_regions[i])
    a1 = np.int64(a_regions[i + 1])
    grid = build_grid(a.xy, a.rings, a0, a1, a_bounds, i, size)
    if a_chains[i] < 0:
        fill_chain(a.xy, a.rings, a0, a1, work.boxes, ZERO)
    tree = EdgeTree(ZERO, 0.0, work.boxes, grid.edges)  # no tree yet
    left = build_after(a, a0, a1, a_chains[i])
    for k in range(start, stop):
        j = row_at(b_rows, b_regions, k)
        bits = box_bits(a_bounds, i, b_bounds, j)
        if bits < 0:
            out[k] = 0
            continue
        stops = stops_at(masks, k)
        if not is_decided(bits, stops):
            if left < 0 and tree.leaves == 0:
                tree = build_tree(a.xy, a.rings, a0, a1, a_bounds, i)
            bits = gridded_bits(
                a, a0, a1, a_chains[i], a_bounds, i, b, b_regions, b_bounds, b_chains, j, grid, tree, bits, stops, work
            )
            left -= work.found[COUNTER_ROW, 0]
        out[k] = RELATION[bits & 15]


@entry(
    "f8[2] i8[1] i4[1] u1[1] f8[2] f8[2]! i8[1] f8[2] i8[1] i4[1] u1[1] f8[2] f8[2]! i8[1]"
    " i8[1] i8[1] u1[1] i8 i8 u1[1]!",
    interpreted=True,
)
def relate_rows(
    a_xy, a_rings, a_regions, a_flags, a_bounds, a_boxes, a_chains,
    b_xy, b_rings, b_regions, b_flags, b_bounds, b_boxes, b_chains,
    a_rows, b_rows, masks, start, stop, out,
):  # fmt: skip
    """Write the relation of region a_rows[k] of a to region b_rows[k] of b to out[k], start <= k < stop.

    Where a list of rows is empty, the region is that of row k, or the only one. If there are masks, out[k] is only
    certain to be in masks[k] or not: the search stops there.
    """
    a = RegionColumn(a_xy, a_rings, a_flags, a_boxes)
    b = RegionColumn(b_xy, b_rings, b_flags, b_boxes)
    work = make_work(most_rings_in(a_regions, a_rows, start, stop), most_rings_in(b_regions, b_rows, start, stop))
    k = start
    while k < stop:
        i = row_at(a_rows, a_regions, k)
        end = k + 1
        if len(a_rows) > 0:
            while end < stop and a_rows[end] == i:
                end += 1
        elif len(a_regions) == 2:
            end = stop
        is_few = a_regions[i + 1] - a_regions[i] == 1 and (
            a_rings[a_regions[i + 1]] - a_rings[a_regions[i]] <= MAX_SMALL_VERTICES
        )
        size = np.int64(grid_size(end - k))
        if is_few and (len(b_rows) == 0 or end - k < SMALL_POLYGON_GRID_MIN_REGIONS):
            size = ZERO
        if size > 0:
            relate_run_gridded(
                a, a_regions, a_bounds, a_chains, i, b, b_regions, b_bounds, b_chains, b_rows, masks, k, end, size,
                work, out,
            )  # fmt: skip
        else:
            relate_run(
                a, a_regions, a_bounds, a_chains, i, is_few, b, b_regions, b_bounds, b_chains, b_rows, masks, k, end,
                work, out,
            )  # fmt: skip
        k = end
