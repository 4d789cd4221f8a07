"""Read CQL2 JSON into a syntax tree, and write predicates as CQL2 JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from contrada.codes import BEYOND_BIT, ENCLOSED_BIT, WITHIN_MASK
from contrada.cql2.scanner import OTHER_GEOMETRIES, nested_too_deeply, too_many_terms
from contrada.cql2.syntax import Attribute, Fault, Node, Operation, Pointer, Value
from contrada.doors import plain_dict
from contrada.errors import ContradaError, FilterError
from contrada.geometry import Line, Point, Region, RelationSet
from contrada.geometry.line_relation import LineRelationSet
from contrada.limits import limit
from contrada.model import Column, Constraint, Filter, Predicate
from contrada.model.filter import as_predicate
from contrada.model.operators import NULLS, SETS, TEXTUAL, printed_value
from contrada.model.reach import DistanceOperator
from contrada.model.text import like_of

OPERATORS = {"prefix": "prefix text", "suffix": "suffix text", "textContains": "contains text"}  # additions to CQL2
_WRITTEN = {name.removesuffix(" text"): operator for operator, name in OPERATORS.items()}


def syntax_of(value: object, path: Pointer | None = None, depth: int = 0) -> Node:
    """Return the syntax tree of a JSON value; raise a Fault where it is no CQL2.

    >>> str(syntax_of({"op": "<", "args": [{"property": "x"}, 5]}).arguments[1].at)
    '/args/1'
    """
    path = Pointer() if path is None else path
    if depth > limit("filter_nesting"):
        raise Fault(path, nested_too_deeply())
    if value is None or isinstance(value, str | int | float | Decimal):
        return Value(value, path)
    if isinstance(value, list | tuple):
        items = tuple(syntax_of(item, path.to(k), depth + 1) for k, item in enumerate(value))
        return Operation("array", items, path, path)
    if not isinstance(value, Mapping):
        raise Fault(path, f"need a JSON value, got {type(value).__name__}")
    value = plain_dict(value)
    if "op" in value:
        return _operation(value, path, depth)
    for key, read in _READERS.items():
        if key in value:
            _check_keys(value, {key}, path)
            return read(value[key], path.to(key))
    if "type" in value:
        return _geometry(value, path)
    known = ", ".join(("op", *_READERS, "type"))
    raise Fault(path, f"need an object with one of the keys {known}; got {', '.join(map(repr, value))}")


def _operation(value: Mapping[str, Any], path: Pointer, depth: int) -> Node:
    _check_keys(value, {"op", "args"}, path)
    name, arguments = value["op"], value.get("args")
    if not isinstance(name, str):
        raise Fault(path.to("op"), f"op: need text, got {type(name).__name__}")
    if not isinstance(arguments, list | tuple):
        raise Fault(path, f"op {name!r:.60} needs `args`, a list of arguments")
    if name.lower() in ("and", "or") and len(arguments) > limit("terms"):
        raise Fault(path, too_many_terms())
    below = path.to("args")
    read = tuple(syntax_of(item, below.to(k), depth + 1) for k, item in enumerate(arguments))
    known = OPERATORS.get(name, "<>" if name == "!=" else name.lower())
    return Operation(known, read, path, path.to("op"))


def _check_keys(value: Mapping[str, Any], known: set[str], path: Pointer) -> None:
    for key in value:
        if key not in known:
            raise Fault(path, f"unknown key {key!r:.60} beside {', '.join(map(repr, sorted(known)))}")


def _attribute(name: object, path: Pointer) -> Node:
    if not isinstance(name, str) or not name:
        raise Fault(path, "property: need non-empty text")
    return Attribute(name, path)


def _column(name: object, path: Pointer) -> Node:
    if not isinstance(name, str):
        raise Fault(path, f"column: need text, got {type(name).__name__}")
    return Value(Column(name), path)


def _function(name: str, argument: object, path: Pointer) -> Node:
    """Read the value of a JSON key that stands for a function of text."""
    return Operation(name, (Value(argument, path),), path, path)


def _box(corners: object, path: Pointer) -> Node:
    if not isinstance(corners, list | tuple):
        raise Fault(path, f"bbox: need a list of four numbers, got {type(corners).__name__}")
    return Operation("bbox", tuple(Value(corner, path.to(k)) for k, corner in enumerate(corners)), path, path)


_READERS: dict[str, Callable[[Any, Pointer], Node]] = {
    "property": _attribute,
    "column": _column,
    **{name: partial(_function, name) for name in ("date", "timestamp", "decimal")},
    "interval": lambda argument, path: Operation("interval", (), path, path),
    "bbox": _box,
}


def _geometry(value: Mapping[str, Any], path: Pointer) -> Node:
    """Read a GeoJSON geometry."""
    kind = value["type"]
    if isinstance(kind, str) and kind.upper() in OTHER_GEOMETRIES:
        raise Fault(
            path, f"{kind} is not supported; need a Polygon, MultiPolygon, Point, LineString, MultiLineString or bbox"
        )
    if "coordinates" in value:
        _check_keys(value, {"type", "coordinates", "bbox"}, path)
    try:
        given = dict(value)
        if kind in ("LineString", "MultiLineString"):
            return Value(Line.from_geojson(given), path)
        return Value(Point.from_geojson(given) if kind == "Point" else Region.from_geojson(given), path)
    except ContradaError as error:
        raise Fault(path, str(error)) from error
    except (KeyError, TypeError, ValueError) as error:
        raise Fault(path, "Point: need two numbers as coordinates") from error


def to_json(what: Predicate | Filter | Constraint) -> dict[str, Any]:
    """Return a predicate as CQL2 JSON, of plain Python values; `parse_json` returns an equal predicate.

    >>> to_json(Constraint("severity", ">=", 3))
    {'op': '>=', 'args': [{'property': 'severity'}, 3]}
    """
    filters = [_joined("and", [_constraint(constraint) for constraint in part]) for part in as_predicate(what)]
    return _joined("or", filters)


def _joined(name: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    return parts[0] if len(parts) == 1 else {"op": name, "args": parts}


def _constraint(constraint: Constraint) -> dict[str, Any]:
    name: dict[str, Any] = {"property": constraint.attribute}
    operator, value = constraint.operator, constraint.value
    if isinstance(operator, RelationSet | LineRelationSet):
        geometry = {"column": value.name} if isinstance(value, Column) else value.to_geojson()
        word = operator.word or (~operator).word
        if word is None:
            function = "relation" if isinstance(operator, RelationSet) else "line_relation"
            return {"op": function, "args": [name, geometry, *map(str, operator)]}
        return _negated(operator.word is None, {"op": word.lower(), "args": [name, geometry]})
    if isinstance(operator, DistanceOperator):
        return _distance(name, operator, value)
    if constraint.kind is not None:
        raise FilterError(f"`{constraint}` cannot be written as CQL2 JSON: its operator belongs to a registered type")
    if operator in NULLS:
        return _negated(operator == "is not null", {"op": "isNull", "args": [name]})

    def folded(item: Any) -> Any:
        item = {"op": "accenti", "args": [item]} if constraint.accenti else item
        return {"op": "casei", "args": [item]} if constraint.casei else item

    plain = operator.removeprefix("not ")
    if operator in TEXTUAL and not isinstance(value, Column):
        plain, value = "like", like_of(operator, value).to_text()
    plain = _WRITTEN.get(plain, "<>" if plain == "!=" else plain)
    items = [folded(_literal(item)) for item in (value if type(value) is tuple else (value,))]
    arguments = [items] if operator in SETS else items
    return _negated(operator.startswith("not "), {"op": plain, "args": [folded(name), *arguments]})


def _distance(name: dict[str, Any], operator: DistanceOperator, value: Any) -> dict[str, Any]:
    geometry = {"column": value.name} if isinstance(value, Column) else value.to_geojson()
    distance = operator.distance
    asked = {"column": distance.name} if isinstance(distance, Column) else distance
    if operator.mask in (ENCLOSED_BIT, WITHIN_MASK + BEYOND_BIT - ENCLOSED_BIT):
        circle = {"op": "circle", "args": [geometry, asked]}
        return _negated(operator.mask != ENCLOSED_BIT, {"op": "s_within", "args": [name, circle]})
    word = "within_distance" if operator.is_within else "beyond_distance"
    unit = [] if operator.unit is None else [operator.unit]
    return {"op": word, "args": [name, geometry, asked, *unit]}


def _negated(is_negated: bool, operation: dict[str, Any]) -> dict[str, Any]:
    return {"op": "not", "args": [operation]} if is_negated else operation


def _literal(value: Any) -> Any:
    """Return a value as JSON; numbers other than integers and finite doubles become `{"decimal": ...}`."""
    if isinstance(value, Column):
        return {"column": value.name}
    if isinstance(value, str | bool):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, date | np.datetime64):
        return {"timestamp": printed_value(value).removeprefix("TIMESTAMP('").removesuffix("')")}
    nearest = float(value)
    if nearest in (float("inf"), float("-inf")) or Fraction(*value.as_integer_ratio()) != Fraction(nearest):
        text = printed_value(value).removeprefix("DECIMAL('").removesuffix("')")
        return {"decimal": text.replace("1e999", "Infinity")}
    return nearest
