"""Find filters that no message satisfies, among many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations, islice
from typing import TypeVar

from contrada.geometry import RelationSet
from contrada.model import Constraint, Filter
from contrada.model.implication import conflicts
from contrada.simplification.conjunctions import learn_filters, reduced
from contrada.simplification.interning import ConstraintPool
from contrada.simplification.simplifying import conflict_in

BATCH_FILTERS = 10_000  # decided together
MAX_CONSTRAINT_LENGTH = 80  # characters of a constraint: regions are long
Owner = TypeVar("Owner")


def never_satisfied(filters: Iterable[tuple[Owner, Filter]]) -> Iterator[tuple[Owner, str]]:
    """Yield the owners of filters that no message satisfies, and why, in order.

    A filter that names each attribute once is decided by its constraints alone. For the others, regions are related in
    bulk.

    >>> from contrada import parse
    >>> list(never_satisfied(enumerate(parse("x = 1 OR x > 3 AND y = 2 AND x < 3"))))
    [(1, 'x > 3 and x < 3 exclude each other')]
    """
    doubtful = ((owner, part) for owner, part in filters if is_doubtful(part))
    while held := list(islice(doubtful, BATCH_FILTERS)):
        yield from _decided(held)


def undecided(part: Filter) -> list[Constraint]:
    """Return the constraints of a template's filter that may conflict, depending on the row.

    Left out are regions and points whose attribute has no other constraint.

    >>> from contrada import parse
    >>> print(*undecided(parse("overlaps(area, $geometry) AND severity BETWEEN $low AND $high").filters[0]))
    severity BETWEEN $low AND $high
    """
    named = Counter(one.attribute for one in part)
    found = [one for one in part if named[one.attribute] > 1 or not _is_spatial(one)]
    return found if any(one.columns for one in found) else []


def is_doubtful(part: Filter) -> bool:
    """Return True if constraints of a filter may conflict: two are on one attribute, or no value satisfies one.

    >>> from contrada import parse
    >>> [is_doubtful(parse(text).filters[0]) for text in ("x > 1 AND y < 1", "x > 1 AND x < 5", "x BETWEEN 5 AND 3")]
    [False, True, True]
    """
    names = [one.attribute for one in part]
    return len(set(names)) < len(names) or any(map(_is_empty, part))


def _is_empty(constraint: Constraint) -> bool:
    """Return True if no value satisfies a constraint."""
    return not constraint.relations if _is_spatial(constraint) else conflicts(constraint, constraint)


def _is_spatial(constraint: Constraint) -> bool:
    return isinstance(constraint.operator, RelationSet)


def _decided(held: list[tuple[Owner, Filter]]) -> Iterator[tuple[Owner, str]]:
    pool = ConstraintPool([part] for _, part in held)
    learn_filters(pool, pool.filters)
    for (owner, part), terms in zip(held, pool.filters, strict=True):
        if reduced(pool, terms).conflict is not None:
            yield owner, reason_in(part)


def reason_in(part: Filter) -> str:
    """Return why no message satisfies a filter, by two constraints of its text if possible.

    >>> from contrada import parse
    >>> reason_in(parse("y = 1 AND x BETWEEN 5 AND 3").filters[0])
    'no value satisfies x BETWEEN 5 AND 3'
    """
    for constraint in part:
        if _is_empty(constraint):
            return f"no value satisfies {_shown(constraint)}"
    found = next((pair for pair in combinations(part, 2) if conflicts(*pair)), None) or conflict_in(part)
    assert found is not None
    return f"{_shown(found[0])} and {_shown(found[1])} exclude each other"


def _shown(constraint: Constraint) -> str:
    text = str(constraint)
    return text if len(text) <= MAX_CONSTRAINT_LENGTH else text[: MAX_CONSTRAINT_LENGTH - 3] + "..."
