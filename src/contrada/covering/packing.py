"""Packed filters: the constraints of a filter as bytes, which take a fraction of the memory of the objects.

An item is one constraint as plain values. Of scalars and text it has the attribute, the kind of the operand, the
operator, the operand and the folding; of regions and points the attribute, REGION or POINT, the mask, the CRS, and the
region, its arrays as bytes, or the coordinates. Most items are compared as they are: equal ones, intervals of numbers,
and regions by their exact relation.
"""

from __future__ import annotations

import marshal
import pickle
from functools import lru_cache
from math import inf
from struct import Struct
from typing import Any

import numpy as np

from contrada.codes import COVERED_BY, EQUALS, INSIDE, PRESENT, TEXT
from contrada.geometry import Crs, Point, Region, RelationSet, relate
from contrada.geometry.column import KernelArrays
from contrada.geometry.composition import covering_by_kinds
from contrada.geometry.line_relation import LineRelationSet
from contrada.geometry.relate import relate_arrays
from contrada.geometry.validation import arrays_of_one
from contrada.matching.routing_boxes import box_of as reached_box
from contrada.model import Constraint, Filter
from contrada.model.forms import ACCENTI, CASEI
from contrada.model.implication import are_compared, covers, each_covers
from contrada.model.reach import DistanceOperator
from contrada.model.values import BOOLEAN, EXACT_INTEGERS, NUMBER

REGION, POINT = -1, -2  # in place of the kind of an operand
PICKLED, OBJECT = 100, 101  # an operand as bytes, such as a time; a whole constraint, as on a distance or own type
WITHIN = 1 << EQUALS | 1 << INSIDE | 1 << COVERED_BY  # relations of a region to another that contains it
MARSHAL_VERSION = 2  # later versions write references, so that equal items need not have equal bytes
MAX_PACKED_BYTES = 1 << 14  # larger regions stay objects, which keep their edge index from search to search
Item = tuple[Any, ...]
Box = tuple[float, float, float, float]
Packed = bytes | list[Item]  # items stay as they are if a region is large or a type is registered
Cut = tuple[float, int]  # as in contrada.model.pieces: just below (0) or above (1) a number
BEGIN, END = (-inf, -1), (inf, 2)
_KINDS = {int: NUMBER, float: NUMBER, bool: BOOLEAN, str: TEXT, type(None): PRESENT}
_BOX = Struct("=4d")
_COVERING: list[list[list[list[int]]]] = covering_by_kinds().tolist()  # by whether each is a point


def items_of(part: Filter) -> list[Item]:
    """Return the constraints of a filter as items; regions are the objects themselves."""
    return [_item_of(constraint) for constraint in part.constraints]


def pack(items: list[Item]) -> Packed:
    """Return the items of a filter as `unpack` takes them.

    >>> box = Region.box(0, 0, 1, 1)
    >>> part = Filter([Constraint("severity", ">=", 3), Constraint("area", RelationSet.S_WITHIN, box)])
    >>> packed = pack(items_of(part))
    >>> filter_of(unpack(packed)) == part, len(packed)
    (True, 187)
    """
    plain = []
    for item in items:
        if item[1] == REGION and isinstance(item[4], Region):
            item = (*item[:4], *item[4]._packed())
            if len(item[4]) > MAX_PACKED_BYTES:
                return items
        elif item[1] == OBJECT:
            return items
        plain.append(item)
    return marshal.dumps(plain, MARSHAL_VERSION)


def unpack(packed: Packed) -> list[Item]:
    """Return the items that were packed."""
    if isinstance(packed, list):
        return packed
    items: list[Item] = marshal.loads(packed)
    return items


def filter_of(items: list[Item]) -> Filter:
    """Return the filter with these items: its constraints in the same order, with the same values."""
    return Filter(map(_constraint_of, items))


def box_of(item: Item) -> Box:
    """Return the box of the region or point of an item."""
    if item[1] == POINT:
        return item[4], item[5], item[4], item[5]
    value = item[4]
    box: Box = _BOX.unpack_from(value) if type(value) is bytes else value.bounds
    return box


def near_box(item: Item) -> Box | None:
    """Return the box of what a distance constraint accepts; None for other items, and for what lies beyond."""
    if item[1] != OBJECT or not isinstance(item[2].operator, DistanceOperator) or not item[2].is_local:
        return None
    xmin, ymin, xmax, ymax = reached_box(item[2]).tolist()
    return xmin, ymin, xmax, ymax


def filter_covers(first: Filter, second: Filter) -> bool:
    """Return True if every message that satisfies `second` satisfies `first`: each constraint covers one of `second`.

    Filters with very many constraints are compared by equality of constraints only.

    >>> few = Filter([Constraint("x", ">", 3), Constraint("kind", "=", "flood")])
    >>> filter_covers(Filter([Constraint("x", ">", 2)]), few), filter_covers(few, few)
    (True, True)
    """
    return each_covers(first.constraints, second.constraints, covers)


def items_cover(first: list[Item], second: list[Item]) -> bool:
    """Return True if each constraint of `first` covers one of `second`, as `filter_covers` of the filters does."""
    if not are_compared(first, second):
        return filter_covers(filter_of(first), filter_of(second))
    for one in first:
        attribute = one[0]
        for other in second:
            if other[0] == attribute and _item_covers(one, other):
                break
        else:
            return False
    return True


def _item_of(constraint: Constraint) -> Item:
    attribute, operator, value = constraint.attribute, constraint.operator, constraint.value
    if isinstance(operator, DistanceOperator | LineRelationSet):
        return attribute, OBJECT, constraint
    if not isinstance(operator, str):
        crs = None if value.crs is None else str(value.crs)
        if isinstance(value, Point):
            return attribute, POINT, operator.mask, crs, value.x, value.y
        return attribute, REGION, operator.mask, crs, value
    if constraint.kind is not None:
        return attribute, OBJECT, constraint
    folding = constraint.casei * CASEI | constraint.accenti * ACCENTI
    kind = _KINDS.get(type(value))
    if kind is None and type(value) is tuple and _KINDS.keys() >= set(map(type, value)):
        kind = _KINDS[type(value[0])]
    if kind is not None:
        return attribute, kind, operator, value, folding
    try:
        return attribute, PICKLED, operator, pickle.dumps(value), folding
    except (pickle.PicklingError, AttributeError, TypeError):  # a time in a zone of the caller's own
        return attribute, OBJECT, constraint


def _constraint_of(item: Item) -> Constraint:
    """Return the constraint of an item."""
    attribute, kind, operator = item[:3]
    if kind == OBJECT:
        constraint: Constraint = operator
        return constraint
    if kind < 0:
        name = "region" if kind == REGION else "point"
        return Constraint._restored(attribute, RelationSet.from_mask(operator), _geometry(item), False, False, name)
    value, folding = item[3:]
    if kind == PICKLED:
        value = pickle.loads(value)
    return Constraint._restored(attribute, operator, value, bool(folding & CASEI), bool(folding & ACCENTI), None)


_recalled = lru_cache(maxsize=1024)(_constraint_of)  # equal to the item's: many filters have the same few constants


def _geometry(item: Item) -> Region | Point:
    """Return the region or point of an item."""
    value: Any = item[4]
    return value if isinstance(value, Region) else _unpacked_geometry(item)


@lru_cache(maxsize=256)
def _unpacked_geometry(item: Item) -> Region | Point:
    """Return the region or point of an item; the latest ones are kept, with their arrays."""
    crs = item[3] if item[3] is None else Crs(item[3])
    return Point(item[4], item[5], crs=crs) if item[1] == POINT else Region._unpacked(item[4:], crs)


def _item_covers(first: Item, second: Item) -> bool:
    """Return True if every message that satisfies `second` satisfies `first`, constraints on one attribute."""
    kind, other = first[1], second[1]
    if kind < 0 and other < 0:
        if first[3] == second[3]:
            admitted = _COVERING[kind == POINT][other == POINT][first[2]][second[2]]
            if admitted & ~WITHIN == 0 and not (admitted and _lies_within(box_of(second), box_of(first))):
                return False
            return bool(admitted >> _relation(second, first, admitted) & 1)
    elif first == second:
        return True
    elif kind == NUMBER and other == NUMBER:
        ours, theirs = number_ends(first[2], first[3]), number_ends(second[2], second[3])
        if ours is not None and theirs is not None:
            return ours[0] <= theirs[0] and theirs[1] <= ours[1]
    return covers(*(_constraint_of(item) if item[1] < 0 else _recalled(item) for item in (first, second)))


def _relation(first: Item, second: Item, mask: int) -> int:
    """Return the relation of two regions or points of one CRS; of two regions one in `mask` if theirs is in `mask`."""
    if first[1] == REGION and second[1] == REGION:
        return relate_arrays(_arrays(first), _arrays(second), mask)
    return relate(_geometry(first), _geometry(second))


def _arrays(item: Item) -> KernelArrays:
    """Return the kernel arrays of a region; of a small one without making the object, which is not used again."""
    if len(item) == 5 and type(item[4]) is bytes:
        return arrays_of_one(np.frombuffer(item[4]))
    region = _geometry(item)
    assert isinstance(region, Region)
    return region._kernel_arrays


def _lies_within(inner: Box, outer: Box) -> bool:
    return inner[0] >= outer[0] and inner[1] >= outer[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def number_ends(operator: str, value: Any) -> tuple[Cut, Cut] | None:
    """Return the ends of an interval of doubles; None if it is another test or empty, or a number is no double.

    >>> number_ends(">", 3), number_ends("between", (1, 2.5)), number_ends("!=", 3)
    (((3, 1), (inf, 2)), ((1, 0), (2.5, 1)), None)
    """
    if type(value) is tuple:
        if operator != "between":
            return None
        low, high = value
        return ((low, 0), (high, 1)) if _is_double(low) and _is_double(high) and low <= high else None
    if not _is_double(value):
        return None
    if operator == ">=":
        return (value, 0), END
    if operator == "<=":
        return BEGIN, (value, 1)
    if operator == "=":
        return (value, 0), (value, 1)
    if operator == ">":
        return (value, 1), END
    return (BEGIN, (value, 0)) if operator == "<" else None


def _is_double(value: Any) -> bool:
    return type(value) is float or (type(value) is int and -EXACT_INTEGERS <= value <= EXACT_INTEGERS)
