"""Slots: the constraints of a filter on each attribute, in the form that the index of covering filters searches.

A filter that covers another has constraints only on attributes of the other. A slot keeps the constraint on one
attribute: values, one of which the other must name (EQUAL); an interval that must contain the other's (RANGE); a region
(NEAR if it does not accept `disjoint`, so boxes must meet, else FAR); a distance from a region, as its box grown by the
distance, under a name of its own, since a box covers those within it; or anything else (OTHER), which only the exact
comparison decides. Ends of intervals are kept as doubles in the same order, so no covering filter is missed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

from contrada.codes import BACKWARDS, DISJOINT_BIT, NOT, PATTERN, PRESENT, TEXT
from contrada.covering.packing import (
    WITHIN,
    Box,
    Item,
    Packed,
    box_of,
    filter_of,
    items_of,
    near_box,
    number_ends,
    pack,
    unpack,
)
from contrada.geometry import RelationSet
from contrada.model import Constraint, Filter
from contrada.model.forms import ACCENTI, CASEI, Operand, Test, folding
from contrada.model.operators import NULLS
from contrada.model.pieces import BEGIN, END, Cut, Piece, intersection, pieces_of, values_of
from contrada.model.restore import decode_text
from contrada.model.text import encode_text, fold
from contrada.model.values import BOOLEAN, NUMBER, number_of_bits

EQUAL, RANGE, NEAR, FAR, OTHER = range(5)
SEVERAL_REGIONS = 1  # form of an OTHER slot: the attribute has more regions than the indexed one
MAX_FILED_VALUES = 16  # a filter with more values is indexed by its smallest and largest
TEXT_PREFIX_BYTES = 6  # of a text; a double holds 6 bytes exactly
Slot = tuple[int, str, int]  # kind, attribute, form
Signature = tuple[Slot, ...]  # sorted: EQUAL slots first
AttributeForm = tuple[str, int]
Pair = tuple[float, float]  # coordinates of a slot: minus its smallest value, and its largest value
NEARBY = "\0near"  # ends the name under which distances from the regions of an attribute are filed
NO_BOX: Box = (0.0, 0.0, 0.0, 0.0)


class FiledFilter(NamedTuple):
    """A filter as the index stores it: its slots, a point for each choice of values, and its first region."""

    signature: Signature
    points: list[list[float]]
    mask: int
    box: Box


class Pieces:
    """The scalar constraints of a filter by attribute and form: the pieces of values that all of them accept."""

    __slots__ = ("by_form", "inexact", "patterns")

    def __init__(self, constraints: Iterable[Constraint]) -> None:
        self.by_form: dict[AttributeForm, list[Piece] | None] = {}  # None: without order, left to the exact comparison
        self.inexact: set[AttributeForm] = set()  # slots in which some numbers are too long for pieces
        self.patterns: dict[AttributeForm, list[Test]] = {}
        for constraint in constraints:
            self._take(constraint)

    def _take(self, constraint: Constraint) -> None:
        if constraint.kind is not None or constraint.operator in NULLS:
            self.by_form[constraint.attribute, PRESENT] = None
            return
        test = constraint._test
        at = constraint.attribute, test.form
        if test.form >= PATTERN:
            self.patterns.setdefault(at, []).append(test)
            self.by_form[at] = None
        elif constraint.long_numbers:  # covered by equal ones only; other constraints on the attribute still count
            self.inexact.add(at)
            self.by_form.setdefault(at, None)
        else:
            before, pieces = self.by_form.get(at), pieces_of(test)
            self.by_form[at] = pieces if before is None else list(intersection(before, pieces))


class Profile:
    """The constraints of a filter by attribute, for both searches: as a covering and as a covered filter.

    Most filters have one constraint per attribute, each an interval or a text: these are described at once. For others,
    and for slots of another form, the pieces of all constraints are collected.
    """

    __slots__ = ("_collected", "_described", "_packed", "_pairs", "_part", "attributes", "items", "regions")

    def __init__(self, part: Filter) -> None:
        self._part: Filter | None = part
        self._packed: Packed | None = None
        self._take(items_of(part))

    @classmethod
    def of_packed(cls, packed: Packed) -> Profile:
        """Return the profile of a packed filter; no object of the filter is made unless it is needed."""
        made = cls.__new__(cls)
        made._part, made._packed = None, packed
        made._take(unpack(packed))
        return made

    def _take(self, items: list[Item]) -> None:
        self.items = items
        self.regions: dict[str, list[tuple[int, Box]]] = {}
        self._pairs: dict[Slot, Pair | None] = {}  # cache: several trees ask for the same slot
        self._collected: Pieces | None = None
        self._described: FiledFilter | None = None
        filed: list[tuple[Slot, Pair]] = []
        self.attributes = {item[0] for item in items}
        for item in items:
            if item[1] < 0:
                self.regions.setdefault(item[0], []).append((item[2], box_of(item)))
            elif (simple := _simple_slot(item)) is not None:
                filed.append(simple)
            elif (near := near_box(item)) is not None:
                self.regions.setdefault(item[0] + NEARBY, []).append((int(WITHIN), near))
                self.attributes.add(item[0] + NEARBY)
        if len(filed) + len(self.regions) == len(items) == len(self.attributes) and len(self.regions) <= 1:
            self._describe_quickly(filed)

    @property
    def part(self) -> Filter:
        """The filter."""
        if self._part is None:
            self._part = filter_of(self.items)
        return self._part

    @property
    def packed(self) -> Packed:
        """The filter, packed."""
        if self._packed is None:
            self._packed = pack(self.items)
        return self._packed

    def _describe_quickly(self, filed: list[tuple[Slot, Pair]]) -> None:
        """Describe a filter with one constraint per attribute, at most one region, and simple slots for the others."""
        filed.sort()
        self._pairs.update(filed)
        slots = [slot for slot, _ in filed]
        point = [coordinate for _, pair in filed for coordinate in pair]
        mask, box = 0, NO_BOX
        for attribute, ((mask, box),) in self.regions.items():
            slots.append((FAR if mask & DISJOINT_BIT else NEAR, attribute, 0))
            point += () if mask & DISJOINT_BIT else corners(box)
        self._described = FiledFilter(tuple(slots), [point], mask, box)

    @property
    def _pieces(self) -> Pieces:
        if self._collected is None:
            scalars = (one for one in self.part.constraints if not isinstance(one.operator, RelationSet))
            self._collected = Pieces(scalars)
        return self._collected

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
        for (attribute, form), pieces in self._pieces.by_form.items():
            if (attribute, form) in self._pieces.inexact:
                others.add((OTHER, attribute, 0))
                continue
            values = values_of(pieces or []) if form == BOOLEAN or TEXT <= form < BACKWARDS else None
            if values is not None and len(values) <= MAX_FILED_VALUES:
                equal.append(((EQUAL, attribute, form), [_code(form, value) for value in values]))
            elif pieces and form != BOOLEAN and (pieces[0][0], pieces[-1][1]) != (BEGIN, END):
                slot = RANGE, attribute, form
                # Numbers have one form, so the pair of a search equals the pair that is stored.
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
                others.add((OTHER, region[0][1], SEVERAL_REGIONS))
        slots += others
        _, mask, box = region or (None, 0, NO_BOX)
        return FiledFilter(tuple(sorted(slots)), _points(equal, ranges, region), mask, box)

    def _first_region(self) -> tuple[Slot, int, Box] | None:
        """Return the region under which the filter is stored, NEAR if there is one."""
        slots = [
            ((FAR if mask & DISJOINT_BIT else NEAR, attribute, 0), mask, box)
            for attribute, regions in self.regions.items()
            for mask, box in regions
        ]
        return min(slots) if slots else None

    def pair(self, slot: Slot) -> Pair | None:
        """Return the coordinates that points of covering filters must reach in a slot; None if no filter covers it."""
        if slot not in self._pairs:
            kind, attribute, form = slot
            self._pairs[slot] = self._value(attribute, form) if kind == EQUAL else self._ends(attribute, form)
        return self._pairs[slot]

    def _value(self, attribute: str, form: int) -> Pair | None:
        """Return the coordinates of a value that the filter names; None if it names none."""
        own = values_of(self._pieces.by_form.get((attribute, form)) or [])
        named = [values for values in (own, *self._derived(attribute, form)) if values]
        if not named:
            return None
        common = set(named[0]).intersection(*named[1:]) if len(named) > 1 else None
        code = _code(form, min(common) if common else named[0][0])
        return -code, code

    def _ends(self, attribute: str, form: int) -> Pair | None:
        """Return bounds of the values that the filter allows, from all its constraints."""
        pieces = self._pieces.by_form.get((attribute, form))
        if form < TEXT:
            return _ends(form, pieces) if pieces else None
        pairs = [_ends(form, pieces)] if pieces else []
        pairs += [(-_text_height(min(values)), _text_height(max(values))) for values in self._derived(attribute, form)]
        for test in self._pieces.patterns.get((attribute, PATTERN + folding(form)), ()):
            ends = _pattern_ends(test, form)
            if ends is not None:
                pairs.append(ends)
        return (min(low for low, _ in pairs), min(high for _, high in pairs)) if pairs else None

    def _derived(self, attribute: str, form: int) -> list[list[bytes]]:
        """Return the texts that the filter names in another form, converted to `form`: folded, or reversed."""
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
        """Return the texts that the filter names in `form`; none if it names none."""
        named = values_of(self._pieces.by_form.get((attribute, form)) or [])
        return [value for value in named or () if isinstance(value, bytes)]


def _simple_slot(item: Item) -> tuple[Slot, Pair] | None:
    """Return the slot of an interval of doubles, or of one text, with its coordinates; None for all others."""
    attribute, kind = item[:2]
    if kind == NUMBER:
        ends = number_ends(item[2], item[3])
        if ends is None:
            return None
        (low, above), (high, beyond) = ends
        least = math.nextafter(low, math.inf) if above == 1 else low  # as `_height`
        most = math.nextafter(high, math.inf) if beyond == 1 else high
        return (RANGE, attribute, NUMBER), (-least, most)
    if kind != TEXT or item[2] != "=":
        return None
    form = TEXT + item[4]
    code = _code(form, encode_text(fold(item[3], bool(item[4] & CASEI), bool(item[4] & ACCENTI))))
    return (EQUAL, attribute, form), (-code, code)


def corners(box: Box) -> list[float]:
    """Return the coordinates of a box: larger ones contain more."""
    xmin, ymin, xmax, ymax = box
    return [-xmin, -ymin, xmax, ymax]


def region_in(signature: Signature) -> str | None:
    """Return the attribute of the region under which filters of a signature are stored, if they have one."""
    return next((attribute for kind, attribute, _ in signature if kind in (NEAR, FAR)), None)


def _points(
    equal: list[tuple[Slot, list[float]]], ranges: list[tuple[Slot, Pair]], region: tuple[Slot, int, Box] | None
) -> list[list[float]]:
    """Return the points of a filter, one per choice of values; larger coordinates cover more."""
    tail = [coordinate for _, pair in sorted(ranges) for coordinate in pair]
    if region is not None and region[0][0] == NEAR:
        tail += corners(region[2])
    chosen = product(*(values for _, values in sorted(equal)))
    return [[*(coordinate for value in values for coordinate in (-value, value)), *tail] for values in chosen]


def _pattern_ends(test: Test, form: int) -> Pair | None:
    """Return bounds of the texts that match a pattern, forwards or reversed, from its literal start."""
    if test.asks & NOT or form >= PATTERN:
        return None
    head = re.split(b"[\xfe\xff]", test.pattern[::-1] if form >= BACKWARDS else test.pattern, maxsplit=1)[0]
    return (-_text_height(head), _text_height(head[:-1] + bytes([head[-1] + 1]))) if head else None


def _code(form: int, value: Operand) -> float:
    """Return a number for a value: equal values have equal numbers, others rarely."""
    return float(hash((form, value)) & 0xFFFFFFFFFFFF)


def _ends(form: int, pieces: list[Piece]) -> Pair:
    return -_height(form, pieces[0][0]), _height(form, pieces[-1][1])


def _height(form: int, cut: Cut) -> float:
    """Return a double for a cut; it does not decrease from a cut to a later one."""
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
    return float(int.from_bytes(text[:TEXT_PREFIX_BYTES].ljust(TEXT_PREFIX_BYTES, b"\0"), "big"))
