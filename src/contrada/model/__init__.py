"""What subscriptions ask: constraints, filters and predicates."""

from contrada.model.constraint import Constraint
from contrada.model.filter import Filter, Predicate
from contrada.model.operators import Column

__all__ = ["Column", "Constraint", "Filter", "Predicate"]
