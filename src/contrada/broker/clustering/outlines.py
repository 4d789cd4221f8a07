"""Simple regions that cover two others: their union, simplified outward as far as needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.broker.clustering.box_grid import Floats, joint_boxes, lie_within
from contrada.geometry import Region, RegionArray, Relation, RelationSet, read_regions
from contrada.geometry.arrays import concatenate
from contrada.geometry.relate import relate_rows

Shapes = NDArray[Any]

MAX_VERTICES = 64  # of a region that is neither a convex hull nor a box
WITHIN = np.array([relation in RelationSet.S_WITHIN for relation in Relation])


def column_of(regions: Sequence[Region]) -> RegionArray:
    """Return a column of regions without their CRS."""
    return RegionArray(concatenate([region._column.arrays for region in regions]))


def are_within(inner: RegionArray, outer: RegionArray) -> NDArray[np.bool_]:
    """Return whether each region lies in the one in the same row, by the exact relation.

    >>> squares = RegionArray.from_regions([Region.box(0, 0, 2, 2), Region.box(1, 1, 2, 2)])
    >>> are_within(squares, squares[[0, 0]]).tolist(), are_within(squares, squares[[1, 1]]).tolist()
    ([True, True], [False, True])
    """
    rows = np.arange(len(inner))
    return np.asarray(WITHIN[relate_rows(inner, outer, rows, rows)])


def unions_of(first: Shapes, second: Shapes) -> Shapes:
    """Return unions of pairs of shapes; None where GEOS fails."""
    try:
        return np.asarray(shapely.union(first, second), object)
    except shapely.errors.GEOSException:
        if len(first) == 1:
            return np.full(1, None)
        half = len(first) // 2
        return np.concatenate([unions_of(first[:half], second[:half]), unions_of(first[half:], second[half:])])


def covering_regions(first: RegionArray, second: RegionArray, unions: Shapes, most: Floats) -> list[RegionArray | None]:
    """Return for each pair of regions, with its union, a column of one region of area `most` at most that covers both.

    It is their union if that has few vertices, a simplified union, their convex hull, or their box: the first that is
    small enough and has no more parts than one of the two. None if there is none.

    >>> one, other = (RegionArray.from_regions([Region.box(x, x, x + 2, x + 2)]) for x in (0, 1))
    >>> unions = unions_of(one.to_shapely(), other.to_shapely())
    >>> covering_regions(one, other, unions, np.array([7.0])), covering_regions(one, other, unions, np.array([6.9]))
    ([<RegionArray of 1 regions, 9 vertices>], [None])
    """
    found: list[RegionArray | None] = [None] * len(unions)
    boxes = joint_boxes(first.bounds, second.bounds)
    parts = np.maximum(*(shapely.get_num_geometries(column.to_shapely()) for column in (first, second)))
    for simplified in (_small, _outward, _hull, _box):
        left = np.array([k for k, region in enumerate(found) if region is None and unions[k] is not None], np.int64)
        shapes = simplified(unions[left], boxes[left], most[left])
        fits = np.flatnonzero(shapely.get_num_geometries(shapes) <= parts[left])
        if not len(fits):
            continue
        sifted = read_regions(shapes[fits])
        rows = left[fits][sifted.rows]
        is_good = sifted.regions.areas <= most[rows]
        is_good &= lie_within(sifted.regions.bounds, boxes[rows])
        for column in (first, second):
            is_good &= are_within(column[rows], sifted.regions)
        for k in np.flatnonzero(is_good).tolist():
            found[int(rows[k])] = sifted.regions[[k]]
    return found


def _without_many(shapes: Shapes) -> Shapes:
    kept = shapes.copy()
    kept[shapely.get_num_coordinates(shapes) > MAX_VERTICES] = None
    return kept


def _small(unions: Shapes, boxes: Floats, most: Floats) -> Shapes:
    return _without_many(unions)


def _outward(unions: Shapes, boxes: Floats, most: Floats) -> Shapes:
    """Widen shapes by half of what their areas may grow, simplify them by as much, and cut them at their boxes."""
    widths = np.maximum(most - shapely.area(unions), 0.0) / shapely.length(unions) / 2
    try:
        wider = shapely.buffer(unions, widths, join_style="mitre")
        return _without_many(shapely.intersection(shapely.simplify(wider, widths), shapely.box(*boxes.T)))
    except shapely.errors.GEOSException:
        return np.full(len(unions), None)


def _hull(unions: Shapes, boxes: Floats, most: Floats) -> Shapes:
    return np.asarray(shapely.convex_hull(unions), object)


def _box(unions: Shapes, boxes: Floats, most: Floats) -> Shapes:
    return np.asarray(shapely.box(*boxes.T), object)
