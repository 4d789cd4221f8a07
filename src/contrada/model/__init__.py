"""What subscriptions ask: constraints, filters and predicates."""

from contrada.model.constraint import Column, Constraint
from contrada.model.filter import Filter, Predicate

__all__ = ["Column", "Constraint", "Filter", "Predicate"]
