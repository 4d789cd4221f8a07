"""Read many CQL2 texts by shape: texts that differ only in literals are parsed once, their literals become columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from contrada.cql2 import descent
from contrada.cql2.literals import number_of
from contrada.cql2.normal_form import predicate_of
from contrada.cql2.scanner import NUMBER, QUOTED, STRING
from contrada.cql2.syntax import Fault
from contrada.errors import ContradaError
from contrada.geometry.metres import METRES
from contrada.model import Column, Constraint, Predicate
from contrada.model.reach import DistanceOperator
from contrada.model.values import EXACT_INTEGERS

_NUMBERS = r"[0-9eE.+\-,\s]*+"
_RING = rf"\(\s*+\({_NUMBERS}\)(?:\s*+,\s*+\({_NUMBERS}\))*+\s*+\)"
_POLYGON = rf"POLYGON\s*+{_RING}"
_MULTIPOLYGON = rf"MULTIPOLYGON\s*+\(\s*+{_RING}(?:\s*+,\s*+{_RING})*+\s*+\)"
_POINT = rf"POINT\s*+\({_NUMBERS}\)"
_LINE = rf"LINESTRING\s*+\({_NUMBERS}\)|MULTILINESTRING\s*+{_RING}"
# Names in double quotes are found too, because a number in one is no literal.
_PIECE = re.compile(
    rf"({QUOTED}|{STRING}|(?<![\w.:$])(?:{NUMBER})(?![\w.:])|(?<![\w.:$])(?:{_MULTIPOLYGON}|{_POLYGON}|{_POINT}|{_LINE}))",
    re.IGNORECASE,
)
_SIGN = re.compile(r"(?:[=<>(,]|\b(?:BETWEEN|AND))\s*+([+-])\Z", re.IGNORECASE)
_DIGITS = frozenset("0123456789.")
_UNIT = f"'{METRES}'"
TEXT, NUMERIC, REGION, POINT, LINE = "text", "number", "region", "point", "line"


class Shape:
    """What texts have in common that differ only in literals; `template` is None if they must be parsed one by one."""

    __slots__ = ("kinds", "template", "twins")

    def __init__(self, pieces: Sequence[str], kinds: Sequence[str]) -> None:
        self.kinds = kinds
        names = [f"${column_name(k)}" for k in range(len(kinds))]
        text = "".join(f"{piece}{name}" for piece, name in zip(pieces, [*names, ""], strict=True))
        try:
            self.template: Predicate | None = predicate_of(descent.syntax_of(text))
        except (Fault, ContradaError):
            self.template = None
        self.twins = _twins(self.template)

    def column(self, number: int, literals: Sequence[str]) -> Any | None:
        """Return the literals at one place as an Arrow array, None if they do not fit into one exactly."""
        import pyarrow as pa

        kind = self.kinds[number]
        if kind == TEXT:
            return pa.array([literal[1:-1].replace("''", "'") for literal in literals], pa.string())
        if kind != NUMERIC:
            return _geometry(kind, literals)
        try:
            numbers = [number_of(literal) for literal in literals]
        except ContradaError:
            return None
        if all(type(number) is int for number in numbers) and max(map(abs, numbers)) < 1 << 63:
            return pa.array(numbers, pa.int64())
        if max(map(abs, numbers)) <= EXACT_INTEGERS:  # larger integers are no doubles
            return pa.array(numbers, pa.float64())
        return None

    def has_twins(self, literals: Sequence[str]) -> bool:
        """Return True if two constraints that differ in nothing but these literals are equal: they count once."""
        return any(all(literals[a] == literals[b] for a, b in pairs) for pairs in self.twins)


class TextShapes:
    """The shapes of texts seen so far."""

    MAX_SHAPES = 1000  # texts of more shapes are parsed one by one

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], Shape] = {}

    def find(self, text: str) -> tuple[Shape, list[str]] | None:
        """Return the shape of a text and its literals; None if the text must be parsed on its own.

        >>> shape, literals = TextShapes().find("severity >= 3 AND kind = 'it''s'")
        >>> print(shape.template, literals)
        severity >= $_0 AND kind = $_1 ['3', "'it''s'"]
        """
        pieces = _PIECE.split(text)
        literals = pieces[1::2]
        plain = pieces[::2]
        if _UNIT in literals:
            plain, literals = _without_units(plain, literals)
        if '"' in text:
            plain, literals = _without_names(plain, literals)
        for k, piece in enumerate(plain[:-1]):
            if piece[-1:] in ("-", "+"):
                signed = _SIGN.search(piece)
                if signed is None or literals[k][0] not in _DIGITS:
                    return None
                plain[k], literals[k] = piece[:-1], signed[1] + literals[k]
        kinds = [_kind(literal) for literal in literals]
        key = (*plain, *kinds)
        shape = self._known.get(key)
        if shape is None:
            if len(self._known) >= self.MAX_SHAPES or "$" in text:
                return None
            shape = self._known[key] = Shape(plain, kinds)
        return (shape, literals) if shape.template is not None and literals else None


def column_name(number: int) -> str:
    """Return the name of the column for the literals at one place of a shape."""
    return f"_{number}"


def _without_names(plain: list[str], literals: list[str]) -> tuple[list[str], list[str]]:
    """Return pieces and literals with quoted names among the pieces."""
    pieces, kept = [plain[0]], list[str]()
    for literal, piece in zip(literals, plain[1:], strict=True):
        if literal.startswith('"'):
            pieces[-1] += literal + piece
        else:
            kept.append(literal)
            pieces.append(piece)
    return pieces, kept


def _without_units(plain: list[str], literals: list[str]) -> tuple[list[str], list[str]]:
    """Return pieces and literals with the units of distances among the pieces: they cannot be columns."""
    pieces, kept = [plain[0]], list[str]()
    for literal, piece in zip(literals, plain[1:], strict=True):
        if literal == _UNIT and pieces[-1].rstrip().endswith(",") and piece.lstrip().startswith(")"):
            pieces[-1] += literal + piece
        else:
            kept.append(literal)
            pieces.append(piece)
    return pieces, kept


def _kind(literal: str) -> str:
    first = literal[0]
    if first == "'":
        return TEXT
    if first in "lL" or literal[:6].upper() == "MULTIL":
        return LINE
    if first in "pPmM":
        return POINT if literal[:5].upper() == "POINT" else REGION
    return NUMERIC


def _geometry(kind: str, literals: Sequence[str]) -> Any | None:
    """Return regions, points or lines as WKB; None if one cannot be read."""
    import pyarrow as pa
    import shapely

    from contrada.geometry.wellknown import shapes_from_wkt, wkb_of_plain_polygon

    plain = [wkb_of_plain_polygon(literal) for literal in literals] if kind == REGION else []
    if plain and None not in plain:
        return pa.array(plain, pa.binary())
    read = shapes_from_wkt(literals)
    return None if read.faults.any() else pa.array(shapely.to_wkb(read.geometries), pa.binary())


def _twins(template: Predicate | None) -> list[list[tuple[int, int]]]:
    """Return the pairs of places whose literals, if they are equal, make two constraints equal."""
    found: list[list[tuple[int, int]]] = []
    if template is None:
        return found
    seen: dict[Any, list[list[int]]] = {}
    for part in template:
        for constraint in part:
            places = [int(column.name[1:]) for column in constraint.columns]
            if not places:
                continue
            others = seen.setdefault(_plain(constraint), [])
            found += [list(zip(other, places, strict=True)) for other in others if other != places]
            others.append(places)
    return found


def _plain(constraint: Constraint) -> tuple[Any, ...]:
    """Return what a constraint has besides its columns."""
    values = constraint._items if isinstance(constraint.value, tuple) else (constraint.value,)
    operator: Any = str(constraint.operator)
    if isinstance(constraint.operator, DistanceOperator):
        values, operator = (*values, constraint.operator.distance), (constraint.operator.mask, constraint.operator.unit)
    others = tuple(Column if isinstance(value, Column) else value for value in values)
    return constraint.attribute, operator, constraint.casei, constraint.accenti, others
