"""Match circles against a packed tree: boxes find candidates, whose exact relations decide."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import DISJOINT, DISJOINT_BIT
from contrada.geometry import PointArray, RegionArray
from contrada.geometry.arrays import frozen, offsets_of, ranges
from contrada.geometry.circle import CircleArray
from contrada.geometry.relate import relate_rows
from contrada.index.items import boxes_of

CANDIDATES_AT_ONCE = 1 << 20


class ItemTree(Protocol):
    """Constraints on the values of a column, item by item (index/packed.py)."""

    column: RegionArray | PointArray
    nodes: NDArray[np.float64]
    offsets: NDArray[np.int32]
    masks: NDArray[np.uint8]
    rows: NDArray[np.int32]


def match_circles(
    tree: ItemTree, column: CircleArray, order: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many constraints the circles `order` of a column satisfy, and their rows, sorted by circle."""
    boxes, asked = frozen(boxes_of(tree.column)), frozen(column.bounds[order])
    # Rows that hold of a circle apart from their item: most of them are no candidates.
    apart = np.flatnonzero(tree.masks & DISJOINT_BIT)
    ends = np.empty(len(order), np.int64)
    listed = np.empty(max(len(boxes), min(CANDIDATES_AT_ONCE, len(boxes) * max(1, len(order)))), np.int32)
    counts: list[int] = []
    answers: list[NDArray[Any]] = [np.empty(0, np.int64)]
    start = 0
    while start < len(order):
        done = kernels.list_meeting(boxes, tree.nodes, asked, start, ends, listed)
        met = np.diff(ends[start:done], prepend=0)
        places = listed[: ends[done - 1]].astype(np.int64)
        codes = relate_rows(column, tree.column, np.repeat(order[start:done], met), places)
        entries = ranges(tree.offsets[places], tree.offsets[places + 1])
        sizes = tree.offsets[places + 1] - tree.offsets[places]
        codes = np.repeat(codes, sizes)
        holds = tree.masks[entries] >> codes & 1 == 1
        bounds = offsets_of(sizes)[offsets_of(met)].tolist()
        for first, last in pairwise(bounds):
            found = entries[first:last][holds[first:last]]
            if len(apart):
                fails = entries[first:last][codes[first:last] != DISJOINT]
                found = np.union1d(found, np.setdiff1d(apart, fails, assume_unique=True))
            answers.append(np.sort(tree.rows[found].astype(np.int64)))
            counts.append(len(found))
        start = done
    return np.array(counts, np.int64), np.concatenate(answers)
