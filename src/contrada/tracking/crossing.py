"""Crossings: regions that the segment between two fixes of a point passes through though neither fix matches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada import kernels
from contrada.cql2 import parse
from contrada.geometry import PointArray, Region, Relation
from contrada.geometry.arrays import frozen
from contrada.geometry.relate import relate_rows
from contrada.matching.batch import Integers
from contrada.model import Predicate
from contrada.model.evaluate import truth
from contrada.tracking.relating import column_of_wkb
from contrada.tracking.watch import Watch

APART, CROSSING = 0, 2  # codes of the kernel meet_segments; 1: touches the boundary, and no edge is cut properly
INSIDE_BIT, MEETS_BIT = 1 << Relation.INSIDE, 1 << Relation.MEETS
Pairs = tuple[Integers, Integers]
MessageReader = Callable[[int], Mapping[str, Any]]


class CrossingIndex:
    """The regions of subscriptions that ask for crossings, in a tree of boxes."""

    def __init__(self, watches: Mapping[int, Watch]) -> None:
        self._numbers = np.array(list(watches), np.int64)
        self._watches = list(watches.values())
        self._regions = column_of_wkb([watch.shape for watch in self._watches]).regions
        self._masks = np.array([watch.relations for watch in self._watches], np.uint8)
        bounds = self._regions.bounds
        self._tree = shapely.STRtree(shapely.box(*bounds.T))
        self._rests: dict[int, Predicate] = {}

    def crossed(self, segments: NDArray[np.float64], rows: Integers, message: MessageReader | None) -> Pairs:
        """Return the segments, by place, and the subscriptions that they cross.

        A segment is x, y of a fix and of the next one, which is in `rows`. Further constraints of a filter are tested
        on the message of the next one.
        """
        lows, highs = np.minimum(segments[:, :2], segments[:, 2:]), np.maximum(segments[:, :2], segments[:, 2:])
        moved = np.flatnonzero((lows != highs).any(axis=1))
        boxes = shapely.box(*lows[moved].T, *highs[moved].T)
        found, regions = self._tree.query(boxes)
        found, regions = moved[found], regions.astype(np.int64)
        kept = self._cross(segments, found, regions)
        pairs = [
            (segment, region)
            for segment, region in zip(found[kept].tolist(), regions[kept].tolist(), strict=True)
            if self._holds_rest(region, int(rows[segment]), message)
        ]
        places, numbers = np.array(pairs, np.int64).reshape(-1, 2).T
        return places, self._numbers[numbers]

    def _cross(self, segments: NDArray[np.float64], found: Integers, regions: Integers) -> NDArray[np.bool_]:
        """Return which pairs of a segment and a region cross: both ends do not match, and a place between does."""
        masks = self._masks[regions]
        kept = np.ones(len(found), bool)
        for end in (segments[:, :2], segments[:, 2:]):
            points = PointArray.of_checked(np.ascontiguousarray(end), None)
            kept &= masks >> relate_rows(points, self._regions, found, regions) & 1 == 0
        met = np.zeros(len(found), np.uint8)
        arrays = self._regions.arrays
        ends = frozen(np.ascontiguousarray(segments))
        kernels.meet_segments(
            ends, arrays.xy, arrays.ring_offsets, arrays.region_offsets, frozen(found), frozen(regions), met
        )
        kept &= (
            (met == CROSSING) & (masks & (INSIDE_BIT | MEETS_BIT) > 0)
            | (met > APART) & (masks & MEETS_BIT > 0)
            | ((met > APART) & (met < CROSSING) & (masks & INSIDE_BIT > 0))
        )
        for k in np.flatnonzero(kept & (met > APART) & (met < CROSSING) & (masks & MEETS_BIT == 0)).tolist():
            kept[k] = passes_inside(segments[found[k]].tolist(), self._regions[int(regions[k])])
        return kept

    def _holds_rest(self, place: int, row: int, message: MessageReader | None) -> bool:
        """Return True if the message of a row satisfies the other constraints of a filter."""
        text = self._watches[place].rest
        if not text:
            return True
        if message is None:
            return False
        if place not in self._rests:
            self._rests[place] = parse(text)
        values = message(row)
        return any(
            all(truth(constraint, values.get(constraint.attribute)) is True for constraint in part)
            for part in self._rests[place].filters
        )


def passes_inside(segment: list[float], region: Region) -> bool:
    """Return True if a segment has a point in the interior of a region, by rational arithmetic.

    Between two neighbouring places where the segment meets the boundary, all of it is inside, outside or on it.

    >>> square = Region.box(0, 0, 2, 2)
    >>> passes_inside([-1, 1, 1, -1], square), passes_inside([-1, -1, 3, 3], square)
    (False, True)
    """
    ax, ay, bx, by = map(Fraction, segment)
    dx, dy = bx - ax, by - ay
    edges = [tuple(map(Fraction, (*p, *q))) for ring in _rings(region) for p, q in itertools.pairwise(ring)]
    places = {Fraction(0), Fraction(1)}
    for px, py, qx, qy in edges:
        ex, ey = qx - px, qy - py
        turn = dx * ey - dy * ex
        if turn:
            places.add(((px - ax) * ey - (py - ay) * ex) / turn)
        elif (px - ax) * dy == (py - ay) * dx:
            places |= {_along(ax, ay, dx, dy, x, y) for x, y in ((px, py), (qx, qy))}
    ordered = sorted(place for place in places if 0 <= place <= 1)
    middles = [(one + other) / 2 for one, other in itertools.pairwise(ordered)]
    return any(_is_inside(ax + t * dx, ay + t * dy, edges) for t in middles)


def _rings(region: Region) -> list[list[list[float]]]:
    arrays = region._column.arrays
    first, last = arrays.region_offsets.tolist()
    offsets = arrays.ring_offsets[first : last + 1].tolist()
    return [arrays.xy[one:other].tolist() for one, other in itertools.pairwise(offsets)]


def _along(ax: Fraction, ay: Fraction, dx: Fraction, dy: Fraction, x: Fraction, y: Fraction) -> Fraction:
    return (x - ax) / dx if dx else (y - ay) / dy


def _is_inside(x: Fraction, y: Fraction, edges: list[tuple[Fraction, ...]]) -> bool:
    """Return True if a point lies in the interior: not on an edge, and a ray from it meets an odd number of edges."""
    inside = False
    for px, py, qx, qy in edges:
        side = (qx - px) * (y - py) - (qy - py) * (x - px)
        if side == 0 and min(px, qx) <= x <= max(px, qx) and min(py, qy) <= y <= max(py, qy):
            return False
        if (py > y) != (qy > y) and (side > 0) == (qy > py):
            inside = not inside
    return inside
