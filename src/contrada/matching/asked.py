"""What subscriptions may ask in: predicates and their parts, CQL2 text, CQL2 JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from contrada.errors import FilterError
from contrada.language import parse
from contrada.model import Constraint, Filter, Predicate
from contrada.model.filter import as_predicate

Asked: TypeAlias = Constraint | Filter | Predicate | str | Mapping[str, Any]


def asked_predicate(what: Asked) -> Predicate:
    """The predicate that is asked.

    >>> print(asked_predicate("5 < severity"))
    severity > 5
    """
    if isinstance(what, str | Mapping):
        return parse(what)
    if not isinstance(what, Constraint | Filter | Predicate):
        raise FilterError(
            f"a subscription asks a Filter or Predicate, CQL2 text or CQL2 JSON as a dict, not {type(what).__name__}"
        )
    return as_predicate(what)
