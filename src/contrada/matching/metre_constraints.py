"""Constraints on distances in metres in arrays, and what differs from those in the units of the coordinates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contrada.codes import BEYOND_BIT
from contrada.errors import CrsError
from contrada.geometry import Crs
from contrada.geometry.circle import CircleArray
from contrada.geometry.crs import LONGITUDE_LATITUDE
from contrada.geometry.line_column import LineArray
from contrada.geometry.line_relating import AnyValues, ShapeColumn
from contrada.geometry.metres import boxes_grown_by_metres, check_degrees, metre_outcomes, strips_grown_by_metres
from contrada.index.items import boxes_of
from contrada.index.metres import MetricTree
from contrada.index.near import DistanceTree
from contrada.matching.near_constraints import NearConstraints, NearResidual
from contrada.matching.residual import share_of_boxes

PLANE_KINDS = ("near region", "near point", "near line")  # of slots: what distance constraints compare with
METRE_KINDS = ("metres region", "metres point")  # and those in metres
NEAR_KINDS = (*PLANE_KINDS, *METRE_KINDS)
DEGREES = Crs.of(LONGITUDE_LATITUDE)


class MetreConstraints(NearConstraints):
    """Constraints in metres in arrays: filter `filters[k]` asks for an outcome in `masks[k]` with value k."""

    __slots__ = ()

    def indexed(self) -> MetricTree:
        """Return an index over the constraints."""
        return MetricTree(self.column, self.masks, self.distances, self.filters)

    def residual(self, offsets: NDArray[np.int32]) -> MetreResidual:
        """Return the form that tests given filters; the constraints are sorted by filter."""
        return MetreResidual(self, offsets)

    def share(self, size: tuple[float, float] | None) -> NDArray[np.float64]:
        """Estimate per constraint the share of messages, with boxes of size `size`, that meet its grown box."""
        boxes = np.clip(boxes_grown_by_metres(boxes_of(self.column), self.distances), -540.0, 540.0)
        return np.asarray(np.where(self.masks & BEYOND_BIT, 1.0, share_of_boxes(boxes, size)))

    def plane_boxes(self) -> NDArray[np.float64]:
        """Return boxes in the plane that surely hold all within reach: of all longitudes, which are periodic."""
        return strips_grown_by_metres(boxes_of(self.column), self.distances)


class MetreResidual(NearResidual):
    """Constraints in metres by filter: those of filter `first + k` are at `offsets[k]:offsets[k + 1]`."""

    __slots__ = ()

    @property
    def part(self) -> MetreConstraints:  # type: ignore[override]
        """The constraints in arrays."""
        return MetreConstraints(self.filters, self.masks, self.column, self.distances)

    def are_satisfied(
        self, values: AnyValues, rows: NDArray[np.int64], entries: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return whether the value in each of `rows` satisfies the constraint at the position in `entries`."""
        if isinstance(values, CircleArray | LineArray):
            return np.zeros(len(entries), bool)
        outcomes = metre_outcomes(values, self.column, rows, entries, self.distances[entries])
        return np.asarray(self.masks[entries] >> outcomes & 1 == 1)


def constraints_in(
    unit: str | None, filters: NDArray[np.int32], masks: NDArray[np.uint8], column: ShapeColumn,
    distances: NDArray[np.float64],
) -> NearConstraints:  # fmt: skip
    """Return distance constraints in a unit: the units of the coordinates, or metres."""
    kind = NearConstraints if unit is None else MetreConstraints
    return kind(filters, masks, column, distances)


def unit_of(part: NearConstraints | DistanceTree | NearResidual) -> str | None:
    """Return the unit of distance constraints in arrays."""
    return "m" if isinstance(part, MetreConstraints | MetricTree | MetreResidual) else None


def near_kind(unit: str | None, kind: str) -> str:
    """Return the kind of a slot of distance constraints with regions, points or lines."""
    return f"{'near' if unit is None else 'metres'} {kind}"


def shape_kind(kind: str) -> str:
    """Return "region", "point" or "line" for the kind of a slot of regions, points or distances; others stay.

    >>> shape_kind("metres point"), shape_kind("near region"), shape_kind("period")
    ('point', 'region', 'period')
    """
    return kind.partition(" ")[2] if kind in NEAR_KINDS else kind


def crs_in_metres(attribute: str, kind: str, crs: Crs | None) -> Crs | None:
    """Return the CRS of an attribute with constraints of some kind: those in metres take degrees, if none is known.

    >>> crs_in_metres("area", "metres point", None)
    'OGC:CRS84'
    """
    if kind not in METRE_KINDS:
        return crs
    try:
        check_degrees(crs)
    except CrsError as error:
        raise CrsError(f"attribute {attribute!r}: {error}") from error
    return DEGREES if crs is None else crs
