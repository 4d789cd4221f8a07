"""Slots: what a filter says of each attribute, as an index of covering filters looks for it.

A filter that covers another names only attributes that the other names. What it says of one is kept in a slot: values
that must be among those named (EQUAL), an interval that must contain the other's (RANGE), a region (NEAR where it
holds of nothing far apart, so that boxes must meet, FAR otherwise), or anything else (OTHER), which is left to the
exact comparison. What is kept of an interval are two doubles that keep the order of its ends, so that nothing is lost.
"""

from __future__ import annotations

import math
import re
from itertools import product
from typing import NamedTuple

from contrada.geometry import Point, Relation, RelationSet
from contrada.model import Constraint, Filter
from contrada.model.forms import ACCENTI, BACKWARDS, CASEI, NOT, PATTERN, PRESENT, TEXT, Operand, Test, folding
from contrada.model.operators import NULLS
from contrada.model.pieces import BEGIN, END, Cut, Piece, intersection, pieces_of
from contrada.model.restore import decode_text
from contrada.model.text import encode_text, fold
from contrada.model.values import BOOLEAN, NUMBER, number_of_bits

EQUAL, RANGE, NEAR, FAR, OTHER = range(5)
SEVERAL = 1  # the form of an OTHER slot: there are more regions of the attribute than the one it is filed under
APART = 1 << Relation.DISJOINT
MOST_VALUES = 16  # that a filter is filed under; one with more is looked for by the smallest and the largest
KEPT_BYTES = 6  # of a text: as many as a double holds exactly
Box = tuple[float, float, float, float]
Slot = tuple[int, str, int]  # what it is, of which attribute, in which form
Signature = tuple[Slot, ...]  # sorted: values first
Place = tuple[str, int]
Pair = tuple[float, float]  # the coordinates of a slot: less its smallest value, and its largest one
NOWHERE: Box = (0.0, 0.0, 0.0, 0.0)


class FiledFilter(NamedTuple):
    """A filter as an index files it: its slots, a point for each choice of its values, and its first region."""

    signature: Signature
    points: list[list[float]]
    mask: int
    box: Box


class Profile:
    """What a filter says, as one that may cover others and as one that others may cover."""

    __slots__ = ("_described", "_inexact", "_pairs", "_patterns", "_pieces", "attributes", "part", "regions")

    def __init__(self, part: Filter) -> None:
        self.part = part
        self.regions: dict[str, list[tuple[int, Box]]] = {}
        self.attributes: set[str] = set()
        self._pieces: dict[Place, list[Piece] | None] = {}  # None: no pieces of an order, left to the comparison
        self._inexact: set[Place] = set()  # where some constraints have numbers too long for pieces
        self._patterns: dict[Place, list[Test]] = {}
        self._pairs: dict[Slot, Pair | None] = {}  # that were asked for: several trees ask for the same
        self._described: FiledFilter | None = None
        for constraint in part.constraints:
            self._take(constraint)

    def _take(self, constraint: Constraint) -> None:
        attribute, operator = constraint.attribute, constraint.operator
        self.attributes.add(attribute)
        if isinstance(operator, RelationSet):
            self.regions.setdefault(attribute, []).append((operator.mask, _box(constraint)))
            return
        if constraint.kind is not None or operator in NULLS:
            self._pieces[attribute, PRESENT] = None
            return
        test = constraint.test
        place = attribute, test.form
        if test.form >= PATTERN:
            self._patterns.setdefault(place, []).append(test)
            self._pieces[place] = None
        elif constraint.long_numbers:  # covered by equal ones alone; what the others say of the attribute still holds
            self._inexact.add(place)
            self._pieces.setdefault(place, None)
        else:
            before, pieces = self._pieces.get(place), pieces_of(test)
            self._pieces[place] = pieces if before is None else intersection(before, pieces)

    @property
    def described(self) -> FiledFilter:
        """The filter as one that may cover others."""
        if self._described is None:
            self._described = self._describe()
        return self._described

    def _describe(self) -> FiledFilter:
        equal: list[tuple[Slot, list[float]]] = []
        ranges: list[tuple[Slot, Pair]] = []
        others: set[Slot] = set()
        for (attribute, form), pieces in self._pieces.items():
            if (attribute, form) in self._inexact:
                others.add((OTHER, attribute, 0))
                continue
            values = _values(pieces) if form == BOOLEAN or TEXT <= form < BACKWARDS else None
            if values is not None and len(values) <= MOST_VALUES:
                equal.append(((EQUAL, attribute, form), [_code(form, value) for value in values]))
            elif pieces and form != BOOLEAN and (pieces[0][0], pieces[-1][1]) != (BEGIN, END):
                slot = RANGE, attribute, form
                # Of a number no other form tells more: what others are asked for is what is filed.
                pair = self.pair(slot) if form < TEXT else None
                ranges.append((slot, pair or _ends(form, pieces)))
            else:
                others.add((OTHER, attribute, 0))
        region = self._first_region()
        slots = [slot for slot, _ in (*equal, *ranges)]
        if region is not None:
            slots.append(region[0])
            others |= {(OTHER, attribute, 0) for attribute in self.regions if attribute != region[0][1]}
            if len(self.regions[region[0][1]]) > 1:
                others.add((OTHER, region[0][1], SEVERAL))
        slots += others
        _, mask, box = region or (None, 0, NOWHERE)
        return FiledFilter(tuple(sorted(slots)), _points(equal, ranges, region), mask, box)

    def _first_region(self) -> tuple[Slot, int, Box] | None:
        """The region that a filter is filed under: one that holds of nothing far apart, if there is one."""
        slots = [
            ((FAR if mask & APART else NEAR, attribute, 0), mask, box)
            for attribute, regions in self.regions.items()
            for mask, box in regions
        ]
        return min(slots) if slots else None

    def pair(self, slot: Slot) -> Pair | None:
        """What a point of filters that cover this one reaches in the two dimensions of a slot; None: none cover it."""
        if slot not in self._pairs:
            kind, attribute, form = slot
            self._pairs[slot] = self._value(attribute, form) if kind == EQUAL else self._ends(attribute, form)
        return self._pairs[slot]

    def _value(self, attribute: str, form: int) -> Pair | None:
        """A value that the filter allows, one of few that it names."""
        own = _values(self._pieces.get((attribute, form)))
        named = [values for values in (own, *self._derived(attribute, form)) if values]
        if not named:
            return None
        common = set(named[0]).intersection(*named[1:]) if len(named) > 1 else None
        code = _code(form, min(common) if common else named[0][0])
        return -code, code

    def _ends(self, attribute: str, form: int) -> Pair | None:
        """Between what the values that the filter allows lie, by all that it says of them."""
        pieces = self._pieces.get((attribute, form))
        if form < TEXT:
            return _ends(form, pieces) if pieces else None
        pairs = [_ends(form, pieces)] if pieces else []
        pairs += [(-_text_height(min(values)), _text_height(max(values))) for values in self._derived(attribute, form)]
        for test in self._patterns.get((attribute, PATTERN + folding(form)), ()):
            ends = _pattern_ends(test, form)
            if ends is not None:
                pairs.append(ends)
        return (min(low for low, _ in pairs), min(high for _, high in pairs)) if pairs else None

    def _derived(self, attribute: str, form: int) -> list[list[bytes]]:
        """The texts that the filter names in another form, as this one has them: folded, or read backwards."""
        found = []
        if form > TEXT:
            texts = [decode_text(value) for value in self._texts(attribute, TEXT)]
            found.append([encode_text(fold(text, bool(form & CASEI), bool(form & ACCENTI))) for text in texts])
        if form >= BACKWARDS:
            if folding(form):
                found.append(self._texts(attribute, TEXT + folding(form)))
            found = [[code[::-1] for code in codes] for codes in found]
        return [codes for codes in found if codes]

    def _texts(self, attribute: str, form: int) -> list[bytes]:
        """The texts that the filter names in a form, none if it does not."""
        return [value for value in _values(self._pieces.get((attribute, form))) or () if isinstance(value, bytes)]


def _points(
    equal: list[tuple[Slot, list[float]]],
    ranges: list[tuple[Slot, Pair]],
    region: tuple[Slot, int, Box] | None,
) -> list[list[float]]:
    """The points of a filter: for each choice of its values; the larger, the more it covers."""
    tail = [coordinate for _, pair in sorted(ranges) for coordinate in pair]
    if region is not None and region[0][0] == NEAR:
        xmin, ymin, xmax, ymax = region[2]
        tail += [-xmin, -ymin, xmax, ymax]
    chosen = product(*(values for _, values in sorted(equal)))
    return [[*(coordinate for value in values for coordinate in (-value, value)), *tail] for values in chosen]


def _pattern_ends(test: Test, form: int) -> Pair | None:
    """Between what all texts of a pattern lie, read forwards or backwards, by what they begin with."""
    if test.asks & NOT or form >= PATTERN:
        return None
    head = re.split(b"[\xfe\xff]", test.pattern[::-1] if form >= BACKWARDS else test.pattern, maxsplit=1)[0]
    return (-_text_height(head), _text_height(head[:-1] + bytes([head[-1] + 1]))) if head else None


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


def _ends(form: int, pieces: list[Piece]) -> Pair:
    return -_height(form, pieces[0][0]), _height(form, pieces[-1][1])


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
