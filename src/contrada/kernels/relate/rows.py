"""Relate one region to chosen regions of a column without copying them; `relate_pairs` does so for all regions."""

import numpy as np

from contrada.jit import entry, kernel
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
    most_rings,
    relate_bits,
)
from contrada.kernels.relate.small import MAX_SMALL_VERTICES
from contrada.kernels.relate.touch_nodes import STOPS, UNTIL_SETTLED, is_decided

SMALL_POLYGON_GRID_MIN_REGIONS = 100  # from this number on a grid pays off even for a message with few vertices


@kernel
def most_chosen_rings(regions, chosen):
    """Return the largest number of rings of any chosen region."""
    most = 1
    for k in range(len(chosen)):
        most = max(most, np.int64(regions[chosen[k] + 1] - regions[chosen[k]]))
    return most


@entry("f8[2] i8[1] i4[1] u1[1] f8[2] f8[2]! i8[1] f8[2] i8[1] i4[1] u1[1] f8[2] f8[2]! i8[1] i8[1] u1[1] u1[1]!")
def relate_chosen(
    a_xy, a_rings, a_regions, a_flags, a_bounds, a_boxes, a_chains,
    b_xy, b_rings, b_regions, b_flags, b_bounds, b_boxes, b_chains,
    chosen, masks, out,
):  # fmt: skip
    """Write the relation of a's only region to region chosen[k] of b to out[k]; inputs are as in `relate_pairs`.

    If `masks` has one mask per chosen region, out[k] is only certain to be in masks[k] or not: the search stops there.
    """
    a = RegionColumn(a_xy, a_rings, a_flags, a_boxes)
    b = RegionColumn(b_xy, b_rings, b_flags, b_boxes)
    i = np.int64(0)
    a0 = np.int64(a_regions[0])
    a1 = np.int64(a_regions[1])
    work = make_work(most_rings(a_regions), most_chosen_rings(b_regions, chosen))
    few = a1 - a0 == 1 and a_rings[a1] - a_rings[a0] <= MAX_SMALL_VERTICES
    size = np.int64(0) if few and len(chosen) < SMALL_POLYGON_GRID_MIN_REGIONS else np.int64(grid_size(len(chosen)))
    grid = build_grid(a.xy, a.rings, a0, a1 if size > 0 else a0, a_bounds, i, size)  # no cells if size is 0
    if size > 0 and a_chains[0] < 0:
        fill_chain(a.xy, a.rings, a0, a1, work.boxes, np.int64(0))
    tree = EdgeTree(ZERO, 0.0, work.boxes, grid.edges)  # no tree yet
    left = build_after(a, a0, a1, a_chains[0])
    for k in range(len(chosen)):
        j = chosen[k]
        bits = box_bits(a_bounds, i, b_bounds, j)
        if bits < 0:
            out[k] = 0
            continue
        stops = STOPS[masks[k]] if len(masks) > 0 else UNTIL_SETTLED
        if is_decided(bits, stops):
            out[k] = RELATION[bits & 15]
            continue
        if size > 0:
            if left < 0 and tree.leaves == 0:
                tree = build_tree(a.xy, a.rings, a0, a1, a_bounds, i)
            bits = gridded_bits(
                a, a0, a1, a_chains[0], a_bounds, b, b_regions, b_bounds, b_chains, j, grid, tree, bits, stops, work
            )
            left -= work.found[COUNTER_ROW, 0]
        elif few:
            bits = few_bits(a, a0, a_bounds, b, b_regions, b_bounds, b_chains, j, bits, work)
        else:
            bits = relate_bits(
                a, a0, a1, a_chains[0], a_bounds, i, b, np.int64(b_regions[j]), np.int64(b_regions[j + 1]),
                b_chains[j], b_bounds, j, bits, stops, work,
            )  # fmt: skip
        out[k] = RELATION[bits & 15]
