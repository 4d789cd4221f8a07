"""Filter (all its constraints hold) and Predicate (any of its filters holds)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from contrada.arguments import checks_methods
from contrada.errors import FilterError
from contrada.geometry.immutable import Immutable
from contrada.limits import check_limit, limit
from contrada.model.constraint import Constraint


@checks_methods("__init__")
class Filter(Immutable):
    """Conjunction of constraints, immutable; several may name the same attribute.

    >>> from contrada import Region, Relation
    >>> len(Filter([Constraint("area", Relation.OVERLAPS, Region.box(0, 0, 1, 1))]))
    1
    """

    __slots__ = ("constraints",)
    constraints: tuple[Constraint, ...]

    def __init__(self, constraints: Iterable[Constraint]) -> None:
        given = tuple(constraints)
        if not given:
            raise FilterError("a filter needs at least one constraint")
        for constraint in given:
            if not isinstance(constraint, Constraint):
                raise FilterError(f"a filter needs constraints, got {type(constraint).__name__}")
        if len(given) > limit("attributes"):
            check_limit("attributes", len({constraint.attribute for constraint in given}), "the filter")
        object.__setattr__(self, "constraints", given)

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self.constraints)

    def __len__(self) -> int:
        return len(self.constraints)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and set(self.constraints) == set(other.constraints)

    def __hash__(self) -> int:
        return hash(frozenset(self.constraints))

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Filter, (self.constraints,)

    def __str__(self) -> str:
        """Return the filter as CQL2 text."""
        return " AND ".join(map(str, self.constraints))

    def __repr__(self) -> str:
        return f"<Filter {self}>"


@checks_methods("__init__")
class Predicate(Immutable):
    """Disjunction of filters, immutable: the condition of one subscription."""

    __slots__ = ("filters",)
    filters: tuple[Filter, ...]

    def __init__(self, filters: Iterable[Filter]) -> None:
        given = tuple(filters)
        if not given:
            raise FilterError("a predicate needs at least one filter")
        for part in given:
            if not isinstance(part, Filter):
                raise FilterError(f"a predicate needs filters, got {type(part).__name__}")
        object.__setattr__(self, "filters", given)

    def __iter__(self) -> Iterator[Filter]:
        return iter(self.filters)

    def __len__(self) -> int:
        return len(self.filters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Predicate) and set(self.filters) == set(other.filters)

    def __hash__(self) -> int:
        return hash(frozenset(self.filters))

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Predicate, (self.filters,)

    def __str__(self) -> str:
        """Return the predicate as CQL2 text."""
        return " OR ".join(f"({part})" if len(part) > 1 and len(self) > 1 else str(part) for part in self.filters)

    def __repr__(self) -> str:
        return f"<Predicate {self}>"


def as_predicate(what: object) -> Predicate:
    """Return the predicate that is equivalent to a constraint, filter or predicate."""
    if isinstance(what, Predicate):
        return what
    if isinstance(what, Filter):
        return Predicate([what])
    if isinstance(what, Constraint):
        return Predicate([Filter([what])])
    raise FilterError(f"need a Constraint, Filter or Predicate, got {type(what).__name__}")
