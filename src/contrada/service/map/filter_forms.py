"""Filters in the forms that a page edits: text, JSON, and rows of a form; or what is wrong, and where."""

from __future__ import annotations

from typing import Any

from contrada.cql2 import LanguageError, to_json
from contrada.cql2.queries import bound_predicate
from contrada.errors import ContradaError, FilterError
from contrada.model import Constraint, Predicate
from contrada.service.map.filter_shapes import operator_word, shapes_of, spatial_operator
from contrada.service.map.schemas import FilterAnswer, FilterProblem, FormConstraint

WRAPPERS = ("casei", "accenti")


def filter_answer(filter: Any) -> FilterAnswer:
    """Return a filter in all its forms, or the problem with it."""
    try:
        predicate = bound_predicate(filter)
    except ContradaError as error:
        return FilterAnswer(False, None, None, [], None, None, [], problem_of(error))
    found = shapes_of(predicate)
    views = [shape.view() for shape in found.shapes]
    return FilterAnswer(
        True, str(predicate), _json(predicate), views, found.conditions, found.bounds, form_of(predicate), None
    )


def problem_of(error: ContradaError) -> FilterProblem:
    """Return what is wrong with a filter, and where."""
    detail = str(error).splitlines()[0] if str(error) else type(error).__name__
    if not isinstance(error, LanguageError):
        return FilterProblem(detail)
    return FilterProblem(detail, error.line, error.column, list(error.expected or ()), error.path)


def form_of(predicate: Predicate) -> list[list[FormConstraint]]:
    """Return a predicate as an OR of ANDs of rows; a spatial one has the place of its shape among the distinct ones."""
    places: dict[Any, int] = {}
    rows: list[list[FormConstraint]] = []
    for part in predicate:
        row = []
        for constraint in part:
            operator = spatial_operator(constraint)
            if operator is None:
                row.append(_form(constraint, *_operation(constraint), None))
                continue
            place = places.setdefault((constraint.attribute, operator, constraint.value), len(places))
            word, is_negated = operator_word(operator)
            row.append(_form(constraint, f"not {word}" if is_negated else word, constraint.value.to_geojson(), place))
        rows.append(row)
    return rows


def _form(constraint: Constraint, operator: str, value: Any, place: int | None) -> FormConstraint:
    return FormConstraint(
        constraint.attribute, operator, value, constraint.casei, constraint.accenti, place, str(constraint)
    )


def _operation(constraint: Constraint) -> tuple[str, Any]:
    """Return the operator and the value of a constraint as CQL2 JSON writes them."""
    try:
        written = to_json(constraint)
    except FilterError:  # of a registered type
        return str(constraint.operator), str(constraint.value)
    is_negated = written["op"] == "not"
    operation = written["args"][0] if is_negated else written
    name = "is null" if operation["op"] == "isNull" else str(operation["op"])
    values = [_unwrapped(item) for item in operation["args"][1:]]
    value = None if not values else values[0] if len(values) == 1 else values
    return (f"not {name}" if is_negated else name), value


def _unwrapped(value: Any) -> Any:
    """Return a value without the functions that fold case and accents."""
    if isinstance(value, list):
        return [_unwrapped(item) for item in value]
    while isinstance(value, dict) and value.get("op") in WRAPPERS:
        value = value["args"][0]
    return value


def _json(predicate: Predicate) -> dict[str, Any] | None:
    try:
        return to_json(predicate)
    except FilterError:  # an operator of a registered type has no form in JSON
        return None
