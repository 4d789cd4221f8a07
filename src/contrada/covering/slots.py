"""Slots: what a filter says of each attribute, as an index of covering filters looks for it.

A filter that covers another names only attributes that the other names. What it says of one is kept in a slot: values
that must be among those named (EQUAL), an interval that must contain the other's (RANGE), a region (NEAR where it
holds of nothing far apart, so that boxes must meet, FAR otherwise), or anything else (OTHER), which is left to the
exact comparison. What is kept of an interval are two doubles that keep the order of its ends, so that nothing is lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product
from typing import NamedTuple

from contrada.geometry import Point, Relation, RelationSet
from contrada.model import Constraint, Filter
from contrada.model.forms import BACKWARDS, LIKE, NOT, PATTERN, PRESENT, TEXT, Operand, Test, folding
from contrada.model.operators import exact_operands
from contrada.model.pieces import BEGIN, END, Cut, Piece, intersection, pieces_of
from contrada.model.restore import decode_text
from contrada.model.text import WILDCARD_BYTES, encode_text, fold
from contrada.model.values import BOOLEAN, NUMBER, number_of_bits

EQUAL, RANGE, NEAR, FAR, OTHER = range(5)
APART = 1 << Relation.DISJOINT
MOST_VALUES = 16  # that a filter is filed under; one with more is looked for by the smallest and the largest
KEPT_BYTES = 6  # of a text: as many as a double holds exactly
Box = tuple[float, float, float, float]
Slot = tuple[int, str, int]  # what it is, of which attribute, in which form
Signature = tuple[Slot, ...]  # sorted: values first
Place = tuple[str, int]
NOWHERE: Box = (0.0, 0.0, 0.0, 0.0)


class Described(NamedTuple):
    """A filter as an index files it: its slots, a point for each choice of its values, and its first region."""

    signature: Signature
    points: list[list[float]]
    mask: int
    box: Box


class Offer(NamedTuple):
    """What a filter offers to those that may cover it."""

    attributes: frozenset[str]
    values: dict[Place, float]  # one of the values that it allows
    ranges: dict[Place, tuple[float, float]]
    regions: dict[str, list[tuple[int, Box]]]


def described(part: Filter) -> Described:
    """A filter that may cover others."""
    equal: list[tuple[Slot, list[float]]] = []
    ranges: list[tuple[Slot, tuple[float, float]]] = []
    others: set[Slot] = set()
    region: tuple[Slot, int, Box] | None = None
    for (attribute, form), constraints in _by_place(part):
        if form is None:
            for constraint in constraints:
                mask = constraint.relations.mask
                slot = (FAR if mask & APART else NEAR, attribute, 0)
                if region is None or slot < region[0]:
                    region = slot, mask, _box(constraint)
            others.add((OTHER, attribute, 0))
            continue
        pieces = _pieces(constraints)
        values = _values(pieces) if pieces is not None and (form == BOOLEAN or TEXT <= form < BACKWARDS) else None
        if values is not None and len(values) <= MOST_VALUES:
            equal.append(((EQUAL, attribute, form), [_code(form, value) for value in values]))
        elif pieces and form != BOOLEAN and (pieces[0][0], pieces[-1][1]) != (BEGIN, END):
            ranges.append(((RANGE, attribute, form), (_height(form, pieces[0][0]), _height(form, pieces[-1][1]))))
        else:
            others.add((OTHER, attribute, 0))
    if region is not None:
        others.discard((OTHER, region[0][1], 0))
    slots = [*equal, *ranges, *([(region[0], ())] if region else []), *((slot, ()) for slot in others)]
    signature = tuple(slot for slot, _ in sorted(slots, key=lambda pair: pair[0]))
    return Described(
        signature, _points(equal, ranges, region), region[1] if region else 0, region[2] if region else NOWHERE
    )


def _points(
    equal: list[tuple[Slot, list[float]]],
    ranges: list[tuple[Slot, tuple[float, float]]],
    region: tuple[Slot, int, Box] | None,
) -> list[list[float]]:
    """The points of a filter: for each choice of its values; the larger, the more it covers."""
    tail = [coordinate for _, (low, high) in sorted(ranges) for coordinate in (-low, high)]
    if region is not None and region[0][0] == NEAR:
        xmin, ymin, xmax, ymax = region[2]
        tail += [-xmin, -ymin, xmax, ymax]
    chosen = product(*(values for _, values in sorted(equal)))
    return [[*(coordinate for value in values for coordinate in (-value, value)), *tail] for values in chosen]


def offered(part: Filter) -> Offer:
    """A filter that others may cover."""
    values: dict[Place, float] = {}
    ranges: dict[Place, tuple[float, float]] = {}
    regions: dict[str, list[tuple[int, Box]]] = {}
    for (attribute, form), constraints in _by_place(part):
        if form is None:
            regions.setdefault(attribute, []).extend((c.relations.mask, _box(c)) for c in constraints)
            continue
        pieces = _pieces(constraints)
        if pieces:
            ranges[attribute, form] = _height(form, pieces[0][0]), _height(form, pieces[-1][1])
            named = _values(pieces)
            if named is not None:
                values[attribute, form] = _code(form, named[0])
                if form == TEXT:
                    _offer_folded(attribute, [decode_text(value) for value in named], values, ranges)  # type: ignore[arg-type]
        elif form >= PATTERN:
            for constraint in constraints:
                _offer_ends(attribute, constraint.test, ranges)
    return Offer(frozenset(c.attribute for c in part), values, ranges, regions)


def _offer_folded(
    attribute: str, texts: list[str], values: dict[Place, float], ranges: dict[Place, tuple[float, float]]
) -> None:
    """Texts in all forms in which others may ask for them: folded, and read backwards."""
    for fold_by in range(4):
        codes = sorted(encode_text(fold(text, bool(fold_by & 1), bool(fold_by & 2))) for text in texts)
        if fold_by:
            values.setdefault((attribute, TEXT + fold_by), _code(TEXT, codes[0]))
            ranges.setdefault((attribute, TEXT + fold_by), (_text_height(codes[0]), _text_height(codes[-1])))
        back = sorted(code[::-1] for code in codes)
        ranges.setdefault((attribute, BACKWARDS + fold_by), (_text_height(back[0]), _text_height(back[-1])))


def _offer_ends(attribute: str, test: Test, ranges: dict[Place, tuple[float, float]]) -> None:
    """What all texts of a pattern begin and end with."""
    if test.asks & NOT or test.asks & ~NOT != LIKE:
        return
    runs = test.pattern
    for wildcard in WILDCARD_BYTES.values():
        runs = runs.replace(wildcard, b"\xff")
    head, tail = runs.split(b"\xff", 1)[0], runs.rsplit(b"\xff", 1)[-1][::-1]
    for form, text in ((TEXT, head), (BACKWARDS, tail)):
        if text:
            place = attribute, form + folding(test.form)
            low, high = ranges.get(place, (-math.inf, math.inf))
            ranges[place] = max(low, _text_height(text)), min(high, _text_height(text[:-1] + bytes([text[-1] + 1])))


def _by_place(part: Filter) -> Iterator[tuple[tuple[str, int | None], list[Constraint]]]:
    """The constraints of a filter by attribute and form; regions and points, and types that were added, have none."""
    found: dict[tuple[str, int | None], list[Constraint]] = {}
    for constraint in part:
        if isinstance(constraint.operator, RelationSet):
            found.setdefault((constraint.attribute, None), []).append(constraint)
        elif constraint.kind is not None:
            found.setdefault((constraint.attribute, PRESENT), []).append(constraint)
        else:
            found.setdefault(constraint.place, []).append(constraint)
    return iter(found.items())


def _pieces(constraints: Iterable[Constraint]) -> list[Piece] | None:
    """What all of these hold of; None if one of them is no piece of an order, or its numbers are too long for that."""
    common: list[Piece] | None = None
    for constraint in constraints:
        if constraint.kind is not None or constraint.operator in ("is null", "is not null"):
            return None
        test = constraint.test
        if test.form >= PATTERN or exact_operands(constraint.value):
            return None
        pieces = pieces_of(test)
        common = pieces if common is None else intersection(common, pieces)
    return common


def _values(pieces: list[Piece] | None) -> list[Operand] | None:
    """The values that pieces are made of; None if one of them is more than a value."""
    if not pieces:
        return None
    values: list[Operand] = []
    for low, high in pieces:
        if len(low) == 1 or len(high) == 1 or low[1] != high[1]:
            return None
        values.append(low[1])
    return values


def _code(form: int, value: Operand) -> float:
    """A number for a value: equal for equal ones, and hardly ever for others."""
    return float(hash((form, value)) & 0xFFFFFFFFFFFF)


def _height(form: int, cut: Cut) -> float:
    """A double for a cut: never smaller for a later one."""
    if len(cut) == 1:
        return -math.inf if cut == BEGIN else math.inf
    _, operand, above = cut
    if isinstance(operand, bytes):
        return _text_height(operand)
    key, rest = operand
    if form == NUMBER:
        nearest = number_of_bits(key)
        return math.nextafter(nearest, math.inf) if rest > 0 or (above and rest == 0) else nearest
    return float(key + 1 if rest or above else key)


def _text_height(text: bytes) -> float:
    return float(int.from_bytes(text[:KEPT_BYTES].ljust(KEPT_BYTES, b"\0"), "big"))


def _box(constraint: Constraint) -> Box:
    value = constraint.value
    if isinstance(value, Point):
        return value.x, value.y, value.x, value.y
    xmin, ymin, xmax, ymax = value.kernel_arrays[4][0].tolist()
    return xmin, ymin, xmax, ymax
