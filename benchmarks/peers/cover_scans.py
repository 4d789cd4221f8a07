"""What covering is compared with: a compiled scan row by row, and a NumPy scan that narrows dimension by dimension."""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray


@numba.njit(error_model="numpy")  # type: ignore[untyped-decorator]
def _first_cover(packed: Any, count: int, query: Any, but: int) -> int:
    """The first of count points, without one, that is at least as large everywhere.

    A row ends at the first dimension that fails.
    """
    for at in range(count):
        is_above = True
        for i in range(packed.shape[1]):
            if packed[at, i] < query[i]:
                is_above = False
                break
        if is_above and at != but:
            return at
    return -1


@numba.njit(error_model="numpy")  # type: ignore[untyped-decorator]
def _run(points: Any, steps: Any, is_forwarded: Any) -> None:
    """G_1 on points without ties, live ones packed row by row; the last one takes the place of one that leaves."""
    n, d = points.shape
    packed = np.empty((n, d))
    rows = np.empty(n, np.int64)
    places = np.full(n, -1)
    parents = np.full(n, -1)
    live = 0
    for step in steps:
        if step >= 0:
            at = _first_cover(packed, live, points[step], -1)
            parents[step] = rows[at] if at >= 0 else -1
            is_forwarded[step] |= at < 0
            packed[live] = points[step]
            rows[live] = step
            places[step] = live
            live += 1
            continue
        row = -1 - step
        place = places[row]
        live -= 1
        packed[place] = packed[live]
        rows[place] = rows[live]
        places[rows[live]] = place
        for other in range(live):
            orphan = rows[other]
            if parents[orphan] == row:
                at = _first_cover(packed, live, points[orphan], other)
                parents[orphan] = rows[at] if at >= 0 else -1
                is_forwarded[orphan] |= at < 0


def row_scan(points: NDArray[np.float64], steps: NDArray[np.int64]) -> set[int]:
    """Return the rows that G_1 forwards at some time."""
    is_forwarded = np.zeros(len(points), np.bool_)
    _run(points, steps, is_forwarded)
    return set(np.flatnonzero(is_forwarded).tolist())


def numpy_search(
    columns: NDArray[np.float64], live: int, query: NDArray[np.float64], first: int
) -> NDArray[np.int64]:  # fmt: skip
    """All live points that are at least as large everywhere: some columns whole, then what is left column by column."""
    is_left = columns[0, :live] >= query[0]
    for i in range(1, first):
        is_left &= columns[i, :live] >= query[i]
    left = np.flatnonzero(is_left)
    for i in range(first, len(query)):
        if len(left) == 0:
            break
        left = left[columns[i].take(left) >= query[i]]
    return left


def numpy_run(points: NDArray[np.float64], steps: NDArray[np.int64], first: int) -> set[int]:
    """The rows that G_1 forwards at some time, on points without ties: live ones packed, covers found by NumPy."""
    columns = np.empty((points.shape[1], len(points)))
    rows: list[int] = []
    places: dict[int, int] = {}
    parents: dict[int, int] = {}
    children: dict[int, set[int]] = {}
    forwarded: set[int] = set()

    def attach(row: int) -> None:
        found = numpy_search(columns, len(rows), points[row], first)
        covers = [rows[place] for place in found.tolist() if rows[place] != row]
        if covers:
            parents[row] = covers[0]
            children[covers[0]].add(row)
        else:
            forwarded.add(row)

    for step in steps.tolist():
        if step >= 0:
            attach(step)
            columns[:, len(rows)] = points[step]
            places[step] = len(rows)
            rows.append(step)
            children[step] = set()
            continue
        row = -1 - step
        place, last = places.pop(row), rows.pop()
        if last != row:
            rows[place], places[last] = last, place
            columns[:, place] = points[last]
        if row in parents:
            children[parents.pop(row)].discard(row)
        for orphan in children.pop(row):
            del parents[orphan]
            attach(orphan)
    return forwarded
