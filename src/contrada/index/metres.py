"""MetricTree: constraints on distances in metres, under a tree of boxes of degrees that are grown by the distances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.geometry import Line, LineArray, PointArray
from contrada.geometry.arrays import frozen
from contrada.geometry.line_relating import AnyValue, AnyValues, ShapeColumn
from contrada.geometry.metres import boxes_grown_by_metres, places_of
from contrada.geometry.relate import ShapeArrays
from contrada.index.near import DistanceTree, NearScratch
from contrada.index.packed import NO_ROWS
from contrada.kernels.match.tables import METRES


class MetricTree(DistanceTree):
    """Constraints on distances in metres on one attribute, in longitude and latitude."""

    __slots__ = ("places",)
    layout = METRES

    def __init__(
        self, column: ShapeColumn, masks: NDArray[np.uint8], distances: NDArray[np.float64],
        rows: NDArray[np.int32], is_ordered: bool = False,
    ) -> None:  # fmt: skip
        """Pack constraints; rows[k] is reported if constraint k holds. The order stays if `is_ordered`."""
        assert not isinstance(column, LineArray), "lines have no distance in metres"
        super().__init__(column, masks, distances, rows, is_ordered)
        points = self.column.xy if isinstance(self.column, PointArray) else np.empty((0, 2))
        self.places = frozen(places_of(points, self.distances))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the tree by name (`METRES` in kernels/match/tables.py), except those of the column."""
        return {**super().arrays(), "places": self.places}

    @staticmethod
    def grown_boxes(boxes: NDArray[np.float64], distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return boxes that hold every point within metres of the given ones, but for turns."""
        return boxes_grown_by_metres(boxes, distances)

    def match(self, value: AnyValue) -> NDArray[np.int64]:
        """Return the rows of the constraints that a message's value satisfies, sorted; a line satisfies none."""
        return NO_ROWS if isinstance(value, Line) else super().match(value)

    def match_many(self, column: AnyValues, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Match rows `order` of a column, as `DistanceTree.match_many` does; lines satisfy nothing."""
        if isinstance(column, LineArray):
            return np.zeros(len(order), np.int64), np.empty(0, np.int32)
        return super().match_many(column, order)

    def _match(self, shapes: ShapeArrays, order: NDArray[np.int64], start: int, scratch: NearScratch) -> int:
        *rest, radii = shapes
        if len(radii):  # circles, whose radii are in the units of the coordinates, have no distance in metres
            scratch.ends[: len(order)] = 0
            return len(order)
        done: int = kernels.match_metres(*rest, self.table, order, start, scratch.table)
        return done
