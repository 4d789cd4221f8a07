"""Relations and distances of fixes to the shapes that subscriptions watch, pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.geometry import PointArray, RegionArray
from contrada.geometry.arrow.mixed import ValueRows
from contrada.geometry.relate import relate_rows
from contrada.matching.batch import Integers, SpatialColumn

POINT_WKB_BYTES = 21
NO_CODE = -1  # of a pair without a relation


def column_of_wkb(shapes: Sequence[bytes]) -> SpatialColumn:
    """Return regions and points in WKB as a column; only points have 21 bytes."""
    is_point = np.array([len(shape) == POINT_WKB_BYTES for shape in shapes], bool)
    parts: list[ValueRows] = []
    for kind, rows in ((RegionArray, np.flatnonzero(~is_point)), (PointArray, np.flatnonzero(is_point))):
        if len(rows):
            parts.append(ValueRows(kind.from_wkb([shapes[row] for row in rows.tolist()]), rows))
    return SpatialColumn.of_parts(parts, len(shapes))


def relation_codes(fixes: SpatialColumn, rows: Integers, shapes: SpatialColumn, places: Integers) -> NDArray[np.int8]:
    """Return the relation of the geometry of each fix to a shape, pair by pair; -1 if a fix has none."""
    codes = np.full(len(rows), NO_CODE, np.int8)
    for values, value_of in fixes.regions_and_points:
        for others, other_of in shapes.regions_and_points:
            here = np.flatnonzero((value_of[rows] >= 0) & (other_of[places] >= 0))
            if len(here):
                first, second = value_of[rows[here]], other_of[places[here]]
                codes[here] = relate_rows(values, others, first, second)
    return codes


def points_of(column: SpatialColumn, rows: Integers) -> NDArray[np.float64]:
    """Return x and y of the points in rows; NaN for rows without one and for negative rows."""
    found = np.full((len(rows), 2), np.nan)
    at = np.where(rows >= 0, column.point_of[rows], -1)
    found[at >= 0] = column.points.xy[at[at >= 0]]
    return found


def boxes_of(column: SpatialColumn, rows: Integers) -> NDArray[np.float64]:
    """Return the boxes of fixes; NaN for those without a geometry."""
    found = np.tile(points_of(column, rows), 2)
    at = column.region_of[rows]
    found[at >= 0] = column.regions.bounds[at[at >= 0]]
    return found


def distances(fixes: SpatialColumn, rows: Integers, shapes: SpatialColumn, places: Integers) -> NDArray[np.float64]:
    """Return the distance of the geometry of each fix from a shape, pair by pair; NaN if a fix has none."""
    found: NDArray[np.float64] = shapely.distance(_drawn(fixes, rows), _drawn(shapes, places))
    return found


def _drawn(column: SpatialColumn, rows: Integers) -> NDArray[Any]:
    """Return the geometry of rows as Shapely objects."""
    drawn = np.full(len(rows), None, object)
    for values, value_of in column.regions_and_points:
        here = np.flatnonzero(value_of[rows] >= 0)
        if len(here):
            wanted, place = np.unique(value_of[rows[here]], return_inverse=True)
            drawn[here] = values[wanted].to_shapely()[place]
    return drawn
