"""What subscriptions ask for: constraints, filters and predicates."""

from contrada.model.constraint import Constraint
from contrada.model.filter import Filter, Predicate
from contrada.model.operators import Column
from contrada.model.reach import BeyondDistance, WithinDistance
from contrada.model.types import ValueType, register_type

__all__ = [
    "BeyondDistance",
    "Column",
    "Constraint",
    "Filter",
    "Predicate",
    "ValueType",
    "WithinDistance",
    "register_type",
]
