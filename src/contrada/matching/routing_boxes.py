"""Routing boxes (heads): per filter the box that a message must meet, from its most selective spatial constraint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.codes import BEYOND_BIT, DISJOINT_BIT, LINE_DISJOINT_BIT
from contrada.geometry.crs import Crs, common_crs
from contrada.geometry.globe import Globe
from contrada.geometry.metres import strips_grown_by_metres
from contrada.index.items import boxes_of
from contrada.index.near import grown_boxes
from contrada.matching.line_constraints import LineConstraints
from contrada.matching.metre_constraints import crs_in_metres
from contrada.matching.near_constraints import NearConstraints
from contrada.matching.store.level import Spatial
from contrada.matching.template import bind_template
from contrada.model import Filter, Predicate
from contrada.model.constraint import Constraint
from contrada.model.reach import DistanceOperator

NO_BOX = (np.nan,) * 4


class Heads(NamedTuple):
    """Heads of filters: row r has the filters `offsets[r]:offsets[r + 1]`, each with an attribute and a box.

    `attributes` holds positions in `names`. The attribute is -1 and the box NaN for filters that a message anywhere may
    satisfy: filters without spatial constraints, or whose spatial constraints all accept `disjoint`.
    """

    offsets: NDArray[np.int32]
    attributes: NDArray[np.int32]
    boxes: NDArray[np.float64]
    names: tuple[str, ...]


def heads_of(predicates: Iterable[Predicate | None]) -> Heads:
    """Return the heads of predicates; None counts as a predicate without filters.

    >>> from contrada.cql2 import parse
    >>> found = heads_of([parse("S_INTERSECTS(area, POLYGON((0 0, 4 0, 0 4, 0 0))) OR size > 3")])
    >>> found.attributes.tolist(), found.boxes[0].tolist()
    ([0, -1], [0.0, 0.0, 4.0, 4.0])
    """
    numbers: dict[str, int] = {}
    offsets, attributes, boxes = [0], [], []
    for predicate in predicates:
        for part in () if predicate is None else predicate:
            head = _head(part)
            attributes.append(-1 if head is None else numbers.setdefault(head[0], len(numbers)))
            boxes.append(NO_BOX if head is None else head[1])
        offsets.append(len(boxes))
    return Heads(
        np.array(offsets, np.int32),
        np.array(attributes, np.int32),
        np.array(boxes, np.float64).reshape(-1, 4),
        tuple(numbers),
    )


def _head(part: Filter) -> tuple[str, tuple[float, ...]] | None:
    found = [(one.attribute, tuple(box_of(one).tolist())) for one in part if one.is_local]
    return min(found, key=lambda head: _size(head[1])) if found else None


def box_of(constraint: Constraint) -> NDArray[np.float64]:
    """Return the box that a message must meet to satisfy a local constraint: grown by the distance if it has one."""
    box = boxes_of(constraint.value._column)
    operator = constraint.operator
    if isinstance(operator, DistanceOperator):
        grown = grown_boxes if operator.unit is None else strips_grown_by_metres
        box = grown(box, np.array([operator.number]))
    return np.asarray(box[0])


def is_local_part(part: Spatial) -> bool:
    """Return True if only messages that meet or come near the values of the constraints satisfy them."""
    mask = int(part.masks[0])  # rows of a template share one mask
    if isinstance(part, LineConstraints):
        return not mask & LINE_DISJOINT_BIT
    return not mask & (BEYOND_BIT if isinstance(part, NearConstraints) else DISJOINT_BIT)


def boxes_of_part(part: Spatial) -> NDArray[np.float64]:
    """Return the boxes that messages must meet to satisfy local constraints."""
    return part.plane_boxes() if isinstance(part, NearConstraints) else boxes_of(part.column)


def _size(box: tuple[float, ...]) -> tuple[float, float]:
    width, height = box[2] - box[0], box[3] - box[1]
    return width * height, width + height


def bound_heads(
    rows: Any, template: Predicate, globes: Mapping[str, Globe] = MappingProxyType({})
) -> tuple[Heads, dict[str, Crs | None]]:
    """Return the heads of a template's filters for each row of an Arrow table, and the CRS by attribute.

    `globes` says by attribute how regions and points are wrapped. A bad row raises, as in
    `ForwardingTable.subscribe_many`.
    """
    bound = bind_template(rows, template, globes=globes)
    names = tuple(dict.fromkeys(slot[0] for parts in bound.spatial for slot, _ in parts))
    shape = (bound.rows, bound.filters)
    attributes, boxes = np.full(shape, -1, np.int32), np.full((*shape, 4), np.nan)
    crs: dict[str, Crs | None] = {}
    for k, parts in enumerate(bound.spatial):
        for (attribute, kind), part in parts:
            crs[attribute] = crs_in_metres(attribute, kind, common_crs(crs.get(attribute), part.column.crs))
        local = [(slot[0], part) for slot, part in parts if bound.rows and is_local_part(part)]
        if local:
            own = np.stack([boxes_of_part(part) for _, part in local])
            width, height = np.moveaxis(own[..., 2:] - own[..., :2], -1, 0)
            best = np.lexsort((width + height, width * height), axis=0)[0]  # the smallest box of each row
            attributes[:, k] = np.array([names.index(attribute) for attribute, _ in local])[best]
            boxes[:, k] = own[best, np.arange(bound.rows)]
    offsets = np.arange(bound.rows + 1, dtype=np.int32) * np.int32(bound.filters)
    return Heads(offsets, attributes.ravel(), boxes.reshape(-1, 4), names), crs
