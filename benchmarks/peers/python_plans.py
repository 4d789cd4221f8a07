"""What users write: one Shapely STRtree over the regions, then checks of the candidates; and better forms of it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import shapely

from benchmarks.answers import Answer
from benchmarks.mixed.sets import VALUES, Filters, Ints, Messages

Plan = Callable[[Messages], list[Answer]]
LOOP = "Python: STRtree, then a loop over dictionaries"
VECTORS = "Python: STRtree, then NumPy columns"
SCALARS_FIRST = "Python: STRtree of boxes, NumPy columns, then the regions"


class PythonPlans:
    """Three ways to match a mixed set; each takes messages and gives rows."""

    def __init__(self, filters: Filters) -> None:
        assert filters.polygons is not None
        self.shapes = filters.polygons.shapes
        self.tree = shapely.STRtree(self.shapes)
        self.values = np.ascontiguousarray(filters.values.T)
        self.low, self.high = np.ascontiguousarray(filters.low.T), np.ascontiguousarray(filters.high.T)
        self.filters = filters

    def plans(self) -> dict[str, Plan]:
        """Return all plans by name. The loop's dictionaries, of a value or a pair of bounds, are made here."""
        asked: list[dict[str, Any]] = [{} for _ in range(len(self.filters))]
        names = [f"v{value}" for value in range(VALUES)]
        for name, row, low, high in self.filters.constraints():
            asked[row][name] = names[low] if name[0] == "s" else (low, high)
        return {LOOP: partial(self.loop, asked), VECTORS: self.region_first, SCALARS_FIRST: self.quickest}

    def loop(self, asked: list[dict[str, Any]], messages: Messages) -> list[Answer]:
        """Match with a tree that decides on the region, and dictionaries that are checked one by one."""
        answers = []
        for scalars, wkb in zip(messages.scalars(), messages.regions or (), strict=True):
            near = self.tree.query(shapely.from_wkb(wkb), "intersects").tolist()
            answers.append(np.array(sorted(row for row in near if is_match(asked[row], scalars)), np.int64))
        return answers

    def region_first(self, messages: Messages) -> list[Answer]:
        """Match with a tree that decides on the region, and columns that decide on the scalars."""
        answers = []
        for k, wkb in enumerate(messages.regions or ()):
            rows = self.tree.query(shapely.from_wkb(wkb), "intersects")
            answers.append(np.sort(self.narrow(rows, messages.values[k], messages.numbers[k])))
        return answers

    def quickest(self, messages: Messages) -> list[Answer]:
        """Match with a tree of boxes, then columns for the scalars; few rows are left for the exact test."""
        answers = []
        for k, wkb in enumerate(messages.regions or ()):
            shape = shapely.from_wkb(wkb)
            rows = self.narrow(self.tree.query(shape), messages.values[k], messages.numbers[k])
            shapely.prepare(shape)
            answers.append(np.sort(rows[shapely.intersects(shape, self.shapes[rows])]))
        return answers

    def narrow(self, rows: Answer, values: Ints, numbers: Ints) -> Answer:
        """Return the rows whose scalar constraints hold, column by column."""
        for column, value in zip(self.values, values, strict=True):
            asked = column[rows]
            rows = rows[(asked == value) | (asked < 0)]
        for low, high, number in zip(self.low, self.high, numbers, strict=True):
            rows = rows[(low[rows] <= number) & (number <= high[rows])]
        return rows


def is_match(asked: dict[str, Any], message: dict[str, Any]) -> bool:
    """Return whether all scalar constraints of a filter hold."""
    for name, wanted in asked.items():
        value = message[name]
        if isinstance(wanted, tuple):
            if not wanted[0] <= value <= wanted[1]:
                return False
        elif value != wanted:
            return False
    return True
