"""Filters as constraints in arrays: each filter is reached through its narrowest one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from contrada.geometry import Point, PointArray, Region, RegionArray
from contrada.matching.level import Added, Constraints, Place
from contrada.model import Constraint, Filter


def constraints_of(filters: Sequence[tuple[int, Filter]]) -> Added:
    """The constraints of a few filters, in arrays."""
    reached: dict[Place, list[tuple[int, Constraint]]] = defaultdict(list)
    further: dict[Place, list[tuple[int, Constraint]]] = defaultdict(list)
    for number, part in filters:
        ordered = sorted(part, key=_breadth)
        for k, constraint in enumerate(ordered):
            place = (constraint.attribute, isinstance(constraint.value, Point))
            (reached if k == 0 else further)[place].append((number, constraint))
    return Added(_in_arrays(reached), _in_arrays(further))


def _breadth(constraint: Constraint) -> tuple[bool, float]:
    """How much of the messages a constraint lets through, roughly: reach filters through the narrowest."""
    if isinstance(constraint.value, Region):
        xmin, ymin, xmax, ymax = constraint.value.bounds
        return 0 in constraint.relations, (xmax - xmin) * (ymax - ymin)
    return 0 in constraint.relations, 0.0


def _in_arrays(places: Mapping[Place, list[tuple[int, Constraint]]]) -> dict[Place, Constraints]:
    made = {}
    for place, rows in places.items():
        values = [constraint.value for _, constraint in rows]
        column: RegionArray | PointArray
        if place[1]:
            column = PointArray([(value.x, value.y) for value in values if isinstance(value, Point)])
        else:
            column = RegionArray.from_regions([value for value in values if isinstance(value, Region)])
        filters = np.array([number for number, _ in rows], np.int32)
        masks = np.array([constraint.relations.mask for _, constraint in rows], np.uint8)
        made[place] = Constraints(filters, masks, column)
    return made
