"""Turn one CQL2 operation into one constraint; raise a Fault at the part that does not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from contrada.codes import BEYOND_BIT, WITHIN_MASK
from contrada.cql2.literals import date_of, decimal_of, timestamp_of
from contrada.cql2.syntax import Attribute, Fault, Node, Operation, Place, Value
from contrada.cql2.unsupported import ARITHMETIC, DISTANCES, FUNCTIONS, OGC, OGC_OF_LINES, RELATIONS, refusal
from contrada.errors import ContradaError
from contrada.geometry import Line, Point, Region, Relation, RelationSet
from contrada.geometry.line_relation import LineRelation, LineRelationSet
from contrada.model import Column, Constraint
from contrada.model.reach import (
    CIRCLE_DISTANCE,
    CIRCLE_OUTCOMES,
    CIRCLE_RELATIONS,
    DistanceOperator,
    reach_of,
    unit_of,
)
from contrada.model.text import Like, fold, parse_like

T = TypeVar("T")
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
TEXTUAL = {"like": "like", "prefix text": "prefix", "suffix text": "suffix", "contains text": "contains"}
FOLDINGS = ("casei", "accenti")
LITERALS: dict[str, Callable[[str], Any]] = {"date": date_of, "timestamp": timestamp_of, "decimal": decimal_of}
LOGIC = ("and", "or", "not")
CONDITIONS = (
    *LOGIC,
    *MIRRORED,
    *TEXTUAL,
    "between",
    "in",
    "isnull",
    "relation",
    "line_relation",
    *DISTANCES,
    *OGC,
    *OGC_OF_LINES,
    *RELATIONS,
)
_RELATION_NAMES = {name: Relation[name.upper()] for name in RELATIONS}
_LINE_RELATION_NAMES = {relation.name.lower(): relation for relation in LineRelation}
_SETS: dict[str, RelationSet | LineRelationSet]
_SETS = {name: RelationSet(relation) for name, relation in _RELATION_NAMES.items()}
_SETS |= {name: getattr(RelationSet, name.upper()) for name in OGC}
_SETS |= {name: getattr(LineRelationSet, name.upper()) for name in OGC_OF_LINES}


class CircleLiteral(NamedTuple):
    """The points within a distance of a point; both may be columns of a template."""

    center: Point | Column
    radius: Any


class Operand(NamedTuple):
    """The name of an attribute, or a value, and the foldings (CASEI, ACCENTI) around it."""

    is_attribute: bool
    content: Any
    at: Place
    folds: frozenset[str]


def constraint_of(node: Node) -> Constraint | bool:
    """Return the constraint of a condition; TRUE and FALSE are returned as booleans.

    >>> at = (0, 0)
    >>> print(constraint_of(Operation("<", (Value(5, at), Attribute("x", at)), at, at)))
    x > 5
    """
    if isinstance(node, Attribute):
        return _made(node.at, node.name, "=", True)
    if isinstance(node, Value):
        if isinstance(node.value, bool):
            return node.value
        message = "need a condition, got a value"
        raise Fault(node.at, message if node.value is not None else "NULL is not a condition; write `x IS NULL`")
    name = node.name
    if name in MIRRORED:
        return _comparison(node)
    if name in TEXTUAL or name in ("between", "in"):
        return _test(node)
    if name == "isnull":
        return _null(node)
    if name in _SETS or name in ("relation", "line_relation"):
        return _spatial(node)
    if name in DISTANCES:
        return _near(node)
    if name in FUNCTIONS:
        raise Fault(node.sign, f"{name.upper()} returns a value; compare the value to make a condition")
    raise Fault(node.sign, refusal(name))


def _made(
    at: Place, attribute: str, operator: Any, value: Any = None, folds: frozenset[str] = frozenset()
) -> Constraint:
    """Make a constraint; its errors become a Fault at `at`."""
    try:
        return Constraint(attribute, operator, value, casei="casei" in folds, accenti="accenti" in folds)
    except ContradaError as error:
        raise Fault(at, str(error)) from error


def _comparison(node: Operation) -> Constraint:
    left, right = (_operand(argument) for argument in _arguments(node, 2))
    if left.is_attribute and right.is_attribute:
        raise Fault(right.at, "two attributes cannot be compared; compare one with a value", kind="two attributes")
    if not left.is_attribute and not right.is_attribute:
        raise Fault(node.at, "two values cannot be compared; one side must be an attribute")
    if right.is_attribute:
        return _compared(right, MIRRORED[node.name], [left], left.at)
    return _compared(left, node.name, [right], right.at)


def _test(node: Operation) -> Constraint:
    """Return the constraint of LIKE, BETWEEN, IN and the text operators; the attribute comes first."""
    first, *rest = _arguments(node, 3 if node.name == "between" else 2)
    if node.name == "in":
        if not isinstance(rest[0], Operation) or rest[0].name != "array":
            raise Fault(rest[0].at, "IN needs a list of values in brackets")
        rest = list(rest[0].arguments)
    attribute, *operands = (_operand(argument) for argument in (first, *rest))
    if not attribute.is_attribute:
        raise Fault(first.at, f"{node.name.split()[0].upper()} needs an attribute on its left side")
    for operand in operands:
        if operand.is_attribute:
            raise Fault(operand.at, "two attributes cannot be compared; compare one with values", kind="two attributes")
    return _compared(attribute, TEXTUAL.get(node.name, node.name), operands, node.at)


def _compared(attribute: Operand, operator: str, operands: Sequence[Operand], at: Place) -> Constraint:
    """Return the constraint that compares an attribute with values; both sides have the same foldings."""
    values = [_folded_alike(attribute, operator, operand) for operand in operands]
    value = tuple(values) if operator in ("between", "in") else values[0]
    return _made(at, attribute.content, operator, value, attribute.folds)


def _folded_alike(attribute: Operand, operator: str, operand: Operand) -> Any:
    """Return the value of an operand. Both sides must be folded, unless folding would not change the value."""
    value, at = operand.content, operand.at
    if value is None:
        raise Fault(at, "nothing compares with NULL; write `x IS NULL` or `x IS NOT NULL`")
    if operand.folds == attribute.folds:
        return value
    if operand.folds - attribute.folds or not isinstance(value, str):
        names = " and ".join(sorted(name.upper() for name in operand.folds ^ attribute.folds))
        raise Fault(at, f"{names} must be on both sides of a comparison, or on neither")
    folds = {name: name in attribute.folds for name in FOLDINGS}
    if operator == "like":
        is_same = _pattern(value, at).folded(**folds) == _pattern(value, at)
    else:
        is_same = fold(value, **folds) == value
    if not is_same:
        names = "(".join(sorted((name.upper() for name in attribute.folds - operand.folds), reverse=True))
        hint = f"{names}('...'{')' * len(attribute.folds - operand.folds)}"
        raise Fault(at, f"never true: this text is not folded; write {hint} here too")
    return value


def _pattern(text: str, at: Place) -> Like:
    try:
        return parse_like(text)
    except ContradaError as error:
        raise Fault(at, str(error)) from error


def _null(node: Operation) -> Constraint:
    operand = _operand(_arguments(node, 1)[0])
    if not operand.is_attribute:
        raise Fault(operand.at, "IS NULL needs an attribute, got a value")
    return _made(node.at, operand.content, "is null")  # folding does not change whether a value is present


def _spatial(node: Operation) -> Constraint:
    """Return the spatial constraint of an attribute and a geometry; with the geometry first, the inverse relations."""
    relations: RelationSet | LineRelationSet
    if node.name in ("relation", "line_relation"):
        if len(node.arguments) < 2:
            raise Fault(node.at, f"{node.name.upper()} needs an attribute, a geometry and names of relations")
        first, second, *names = node.arguments
        if node.name == "relation":
            relations = RelationSet(*(_named(name, _RELATION_NAMES) for name in names))
        else:
            relations = LineRelationSet(*(_named(name, _LINE_RELATION_NAMES) for name in names))
    else:
        first, second = _arguments(node, 2)
        relations = _SETS[node.name]
    left, right, is_turned = _attribute_and_geometry(node, first, second)
    relations = relations.inverse if is_turned else relations
    if isinstance(right.content, CircleLiteral):
        if not isinstance(relations, RelationSet) or relations not in CIRCLE_OUTCOMES:
            raise Fault(right.at, f"{CIRCLE_RELATIONS} POLYGON")
        operator = _reach(right.content.radius, CIRCLE_OUTCOMES[relations], right.at)
        return _made(node.at, left.content, operator, right.content.center)
    return _made(node.at, left.content, relations, right.content)


def _attribute_and_geometry(node: Operation, first: Node, second: Node) -> tuple[Operand, Operand, bool]:
    """Return the attribute and the geometry among two arguments, and whether the geometry came first."""
    left, right = _operand(first), _operand(second)
    is_turned = right.is_attribute
    if left.is_attribute == right.is_attribute:
        message = "cannot be related; need one attribute and one geometry"
        if left.is_attribute:
            raise Fault(node.at, f"two attributes {message}", kind="two attributes")
        raise Fault(node.at, f"two values {message}")
    if is_turned:
        left, right = right, left
    for operand in (left, right):
        if operand.folds:
            raise Fault(operand.at, "CASEI and ACCENTI apply to text only")
    if not isinstance(right.content, Region | Point | Line | Column | CircleLiteral):
        needed = "POLYGON, MULTIPOLYGON, POINT, LINESTRING, MULTILINESTRING, BBOX or CIRCLE"
        raise Fault(right.at, f"{node.name.upper()} needs a geometry: a {needed}")
    return left, right, is_turned


def _near(node: Operation) -> Constraint:
    """Return the constraint of within_distance and beyond_distance; the attribute or the geometry comes first."""
    has_unit = len(node.arguments) == 4
    first, second, third, *units = _arguments(node, 4 if has_unit else 3)
    left, right, _ = _attribute_and_geometry(node, first, second)
    if isinstance(right.content, CircleLiteral):
        raise Fault(right.at, CIRCLE_DISTANCE)
    distance = _operand(third)
    if distance.is_attribute or distance.folds:
        raise Fault(distance.at, f"{node.name.upper()} needs a distance, a number")
    mask = WITHIN_MASK if node.name == "within_distance" else BEYOND_BIT
    unit = _unit(units[0]) if has_unit else None
    return _made(node.at, left.content, _reach(distance.content, mask, distance.at, unit), right.content)


def _unit(node: Node) -> str | None:
    """Return the unit of a distance, text in quotes."""
    try:
        if isinstance(node, Value) and isinstance(node.value, str):
            return unit_of(node.value)
    except ContradaError as error:
        raise Fault(node.at, str(error)) from error
    raise Fault(node.at, "unit: need 'm' (metres), or none for the units of the coordinates")


def _reach(distance: Any, mask: int, at: Place, unit: str | None = None) -> DistanceOperator:
    try:
        return reach_of(distance, mask, unit)
    except ContradaError as error:
        raise Fault(at, str(error)) from error


def _named(node: Node, names: Mapping[str, T]) -> T:
    """Return the relation that a text names."""
    name = node.value if isinstance(node, Value) else None
    known = names.get(name.lower().replace("-", "_")) if isinstance(name, str) else None
    if known is None:
        listed = ", ".join(repr(str(each)) for each in names.values())
        raise Fault(node.at, f"need the name of a relation, one of {listed}")
    return known


def _arguments(node: Operation, count: int) -> tuple[Node, ...]:
    if len(node.arguments) != count:
        given = len(node.arguments)
        raise Fault(node.at, f"{node.name.upper()} needs {count} argument{'s' * (count > 1)}, got {given}")
    return node.arguments


def _operand(node: Node) -> Operand:
    """Return an attribute or a value, and the foldings around it."""
    folds = set()
    while isinstance(node, Operation) and node.name in FOLDINGS:
        folds.add(node.name)
        (node,) = _arguments(node, 1)
    if isinstance(node, Operation):
        node = _value(node)
    return Operand(isinstance(node, Attribute), node[0], node.at, frozenset(folds))


def _value(node: Operation) -> Value:
    """Return the value of a literal function: DATE, TIMESTAMP, DECIMAL, BBOX."""
    if node.name in LITERALS:
        (argument,) = _arguments(node, 1)
        if not isinstance(argument, Value) or not isinstance(argument.value, str):
            raise Fault(argument.at, f"{node.name.upper()} needs text in '...'")
        try:
            return Value(LITERALS[node.name](argument.value), node.at)
        except ContradaError as error:
            raise Fault(argument.at, str(error)) from error
    if node.name == "bbox":
        return _box(node)
    if node.name == "circle":
        return _circle(node)
    if node.name in CONDITIONS:
        raise Fault(node.at, "need a value or an attribute, got a condition")
    raise Fault(node.sign, refusal(node.name))


def _circle(node: Operation) -> Value:
    center, radius = (_operand(argument) for argument in _arguments(node, 2))
    if center.is_attribute or not isinstance(center.content, Point | Column):
        raise Fault(center.at, "CIRCLE needs a POINT and a radius: CIRCLE(POINT(1 2), 500)")
    if radius.is_attribute:
        raise Fault(radius.at, "CIRCLE needs a radius, a number")
    return Value(CircleLiteral(center.content, radius.content), node.at)


def _box(node: Operation) -> Value:
    if len(node.arguments) == 6:
        raise Fault(node.at, "BBOX needs four numbers (xmin, ymin, xmax, ymax), got six; heights are not supported")
    corners: list[Any] = []
    for argument in _arguments(node, 4):
        if isinstance(argument, Operation) and argument.name in ARITHMETIC:
            raise Fault(argument.sign, refusal(argument.name))
        if not isinstance(argument, Value) or type(argument.value) not in (int, float):
            raise Fault(argument.at, "BBOX needs numbers")
        corners.append(argument.value)
    try:
        return Value(Region.box(*map(float, corners)), node.at)
    except (ContradaError, OverflowError) as error:
        raise Fault(node.at, str(error)) from error
