"""Turn a query in any form (predicate, filter, constraint, CQL2 text, CQL2 JSON) into a predicate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from contrada.cql2 import parse
from contrada.errors import FilterError
from contrada.model import Constraint, Filter, Predicate
from contrada.model.filter import as_predicate

Asked: TypeAlias = Constraint | Filter | Predicate | str | Mapping[str, Any]


def asked_predicate(what: Asked) -> Predicate:
    """Return the predicate of a query.

    >>> print(asked_predicate("5 < severity"))
    severity > 5
    """
    if isinstance(what, str | Mapping):
        return parse(what)
    if not isinstance(what, Constraint | Filter | Predicate):
        raise FilterError(
            f"need a Constraint, Filter or Predicate, CQL2 text or CQL2 JSON as a dict, got {type(what).__name__}"
        )
    return as_predicate(what)


def bound_predicate(what: Asked) -> Predicate:
    """Return the predicate of a query; raise FilterError for a template, whose columns have no values.

    >>> bound_predicate("severity > $least")
    Traceback (most recent call last):
    contrada.errors.FilterError: $least is a column of a template; use subscribe_many
    """
    predicate = asked_predicate(what)
    for part in predicate.filters:
        for constraint in part.constraints:
            if constraint.columns:
                raise FilterError(f"{constraint.columns[0]} is a column of a template; use subscribe_many")
    return predicate
