"""Packed filters: the constraints of a filter as bytes, which take a fraction of the memory of the objects.

An item is one constraint as plain values. Of scalars and text it has the attribute, the form, the operator, the operand
and the folding; of regions and points the attribute, REGION or POINT, the mask, the CRS, and the arrays or coordinates.
Most items are compared as they are: equal ones, intervals of numbers, and regions by their exact relation.
"""

from __future__ import annotations

import marshal
import pickle
from functools import lru_cache
from math import inf
from typing import Any

from contrada.geometry import Crs, Point, Region, RelationSet
from contrada.geometry.composition import covering_relations
from contrada.geometry.relate import relate_pair
from contrada.model import Constraint, Filter
from contrada.model.forms import ACCENTI, CASEI
from contrada.model.implication import are_compared, covers, each_covers
from contrada.model.values import EXACT_INTEGERS, NUMBER

REGION, POINT = -1, -2  # in place of the form of a scalar
PICKLED = 4  # beside the folding: the operand is no plain value, but a time or a decimal
PLAIN = frozenset([str, int, float, bool, type(None)])  # marshal would take dates of NumPy for bytes
MARSHAL_VERSION = 2  # later versions write references, so that equal items need not have equal bytes
MAX_PACKED_BYTES = 1 << 14  # larger regions stay objects, which keep their edge index from search to search
Item = tuple[Any, ...]
Packed = bytes | Filter  # a filter stays as it is if a constraint of it has a large region or a registered type
Cut = tuple[float, int]  # as in contrada.model.pieces: just below (0) or above (1) a number
BEGIN, END = (-inf, -1), (inf, 2)
_COVERING: list[list[int]] = covering_relations().tolist()


def pack(part: Filter) -> Packed:
    """Return a filter as `unpack` takes it.

    >>> box = Region.box(0, 0, 1, 1)
    >>> part = Filter([Constraint("severity", ">=", 3), Constraint("area", RelationSet.S_WITHIN, box)])
    >>> unpack(pack(part)) == part, len(pack(part))
    (True, 191)
    """
    items = []
    for constraint in part.constraints:
        item = _item_of(constraint)
        if item is None:
            return part
        items.append(item)
    return marshal.dumps(items, MARSHAL_VERSION)


def unpack(packed: Packed) -> Filter:
    """Return the filter that was packed: its constraints in the same order, with the same values."""
    return packed if isinstance(packed, Filter) else Filter(map(_restored, marshal.loads(packed)))


def packed_covers(first: Packed, second: Packed) -> bool:
    """Return True if each constraint of `first` covers one of `second`, as `filter_covers` of the filters does."""
    if isinstance(first, Filter) or isinstance(second, Filter):
        return filter_covers(unpack(first), unpack(second))
    if first == second:
        return True
    ours, theirs = marshal.loads(first), marshal.loads(second)
    if not are_compared(ours, theirs):
        return filter_covers(unpack(first), unpack(second))
    return each_covers(ours, theirs, _item_covers)


def filter_covers(first: Filter, second: Filter) -> bool:
    """Return True if every message that satisfies `second` satisfies `first`: each constraint covers one of `second`.

    Filters with very many constraints are compared by equality of constraints only.

    >>> few = Filter([Constraint("x", ">", 3), Constraint("kind", "=", "flood")])
    >>> filter_covers(Filter([Constraint("x", ">", 2)]), few), filter_covers(few, few)
    (True, True)
    """
    return each_covers(first.constraints, second.constraints, covers)


def _item_of(constraint: Constraint) -> Item | None:
    """Return a constraint as plain values; None if it has to stay as it is."""
    attribute, operator, value = constraint.attribute, constraint.operator, constraint.value
    if isinstance(operator, str):
        if constraint.kind is not None:
            return None
        folding = constraint.casei * CASEI | constraint.accenti * ACCENTI
        if type(value) not in PLAIN and not (type(value) is tuple and PLAIN.issuperset(map(type, value))):
            value, folding = pickle.dumps(value), folding | PICKLED
        return attribute, constraint._test.form, operator, value, folding
    crs = None if value.crs is None else str(value.crs)
    if isinstance(value, Point):
        return attribute, POINT, operator.mask, crs, value.x, value.y
    packed = value._packed()
    return (attribute, REGION, operator.mask, crs, *packed) if len(packed[0]) <= MAX_PACKED_BYTES else None


def _restored(item: Item) -> Constraint:
    """Return the constraint of an item."""
    attribute, form, operator, value, *rest = item
    if form < 0:
        kind = "region" if form == REGION else "point"
        return Constraint._restored(attribute, RelationSet.from_mask(operator), _geometry(item), False, False, kind)
    (folding,) = rest
    if folding & PICKLED:
        value = pickle.loads(value)
    return Constraint._restored(attribute, operator, value, bool(folding & CASEI), bool(folding & ACCENTI), None)


@lru_cache(maxsize=1024)
def _recalled(item: Item) -> Constraint:
    """Return a constraint that is equal to the item's: many filters have the same few constants."""
    return _restored(item)


@lru_cache(maxsize=256)
def _geometry(item: Item) -> Region | Point:
    """Return the region or point of an item; the latest ones are kept, with their arrays."""
    crs = item[3] if item[3] is None else Crs(item[3])
    return Point(item[4], item[5], crs=crs) if item[1] == POINT else Region._unpacked(item[4:], crs)


def _item_covers(first: Item, second: Item) -> bool:
    """Return True if every message that satisfies the constraint of `second` satisfies that of `first`."""
    if first[0] != second[0]:
        return False
    if first == second:
        return True
    if first[1] == NUMBER and second[1] == NUMBER:
        ours, theirs = _ends(first[2], first[3]), _ends(second[2], second[3])
        if ours is not None and theirs is not None:
            return ours[0] <= theirs[0] and theirs[1] <= ours[1]
    elif first[1] < 0 and second[1] < 0 and first[3] == second[3]:
        admitted = _COVERING[first[2]][second[2]]
        return admitted != 0 and admitted >> relate_pair(_geometry(second), _geometry(first)) & 1 != 0
    return covers(_recalled(first), _recalled(second))


def _ends(operator: str, value: Any) -> tuple[Cut, Cut] | None:
    """Return the ends of an interval of doubles; None if it is another test or empty, or a number is no double."""
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
