"""Simplify predicates: same answer for every message, fewer filters and constraints.

Section 4.2 of [SPATIAL], corrected: covering and conflict follow from the composition table. Within a filter, masks
and ranges are intersected; false filters (rule 1) and implied constraints (rule 2) are dropped. Among filters, those
that another one covers are dropped (rule 3), and filters that differ in one mask or range are merged. The rules are
applied until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import NamedTuple

from contrada.cql2.queries import Asked, bound_predicate
from contrada.model import Constraint, Filter, Predicate
from contrada.simplification.conjunctions import learn_filters, reduced
from contrada.simplification.interning import DEFAULT_LIMITS, ConstraintPool, PairLimits, Terms
from contrada.simplification.merges import merged
from contrada.simplification.redundancy import MAX_PAIRWISE_FILTERS, learn_pairs, uncovered

FILTERS_PER_CHUNK = 50_000  # about how many filters are simplified, and their relations cached, together

RULES = {
    "false": "filters that no message satisfies",
    "covering": "constraints that others of their filter imply",
    "covered": "filters that another one covers",
    "intersected": "constraints merged with others of their filter",
    "united": "filters merged with others",
}


@dataclass(frozen=True)
class Simplification:
    """Report of a simplification: sizes before and after, and how often each of the `RULES` was applied."""

    filters_before: int = 0
    filters_after: int = 0
    constraints_before: int = 0
    constraints_after: int = 0
    rules: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RULES, 0))

    def plus(self, other: Simplification) -> Simplification:
        """Return the sum of both reports."""
        return Simplification(
            self.filters_before + other.filters_before,
            self.filters_after + other.filters_after,
            self.constraints_before + other.constraints_before,
            self.constraints_after + other.constraints_after,
            {rule: count + other.rules[rule] for rule, count in self.rules.items()},
        )

    def __str__(self) -> str:
        """Return the report as a few lines of text."""
        lines = [
            f"filters      {self.filters_before:>12,} -> {self.filters_after:,}",
            f"constraints  {self.constraints_before:>12,} -> {self.constraints_after:,}",
        ]
        return "\n".join([*lines, *(f"  {self.rules[rule]:>10,} {what}" for rule, what in RULES.items())])


class Simplified(NamedTuple):
    """The simplified filters of a group, and a report; `changed` is False if the filters are as before."""

    filters: list[Filter]
    report: Simplification
    changed: bool


def simplify(what: Asked) -> Predicate:
    """Return a predicate without redundancies that every message satisfies if and only if it satisfies `what`.

    A predicate that no message can satisfy becomes one filter with a conflict: two constraints, or one.

    >>> print(simplify("severity >= 3 AND severity >= 5 OR severity >= 4 AND kind = 'flood' AND severity >= 6"))
    severity >= 5
    >>> print(simplify("kind = 'flood' OR kind = 'storm'"))
    kind IN ('flood', 'storm')
    """
    predicate = bound_predicate(what)
    (one,) = simplified_groups([predicate.filters])
    return Predicate(one.filters) if one.changed else predicate


def compact_predicate(what: Asked) -> Predicate:
    """Return `simplify(what)`, or the predicate of `what` itself if it is one filter with one constraint per attribute.

    Constraints on different attributes never make each other redundant, so simplifying would only take time.

    >>> print(compact_predicate("severity >= 3 AND kind = 'flood'"))
    severity >= 3 AND kind = 'flood'
    >>> print(compact_predicate("severity >= 3 AND severity >= 5"))
    severity >= 5
    """
    predicate = bound_predicate(what)
    if len(predicate) == 1:
        constraints = predicate.filters[0].constraints
        if len({constraint.attribute for constraint in constraints}) == len(constraints):
            return predicate
    return simplify(predicate)


def simplified_groups(
    groups: Iterable[Sequence[Filter]],
    progress: Callable[[int], None] | None = None,
    limits: PairLimits = DEFAULT_LIMITS,
) -> Iterable[Simplified]:
    """Simplify each group of filters, joined by OR; `progress` is called with 1 after each group.

    Groups are processed in chunks, to relate regions in bulk; a group's result does not depend on other groups.
    """
    chunk: list[Sequence[Filter]] = []
    size = 0
    for group in groups:
        chunk.append(group)
        size += len(group)
        if size >= FILTERS_PER_CHUNK:
            yield from _simplified_chunk(chunk, progress, limits)
            chunk, size = [], 0
    if chunk:
        yield from _simplified_chunk(chunk, progress, limits)


def conflict_in(part: Filter) -> tuple[Constraint, Constraint] | None:
    """Return two constraints of a filter that no message satisfies both (or one, twice); None if satisfiable.

    >>> conflict = conflict_in(Filter([Constraint("x", "<", 1), Constraint("y", "=", 2), Constraint("x", ">", 1)]))
    >>> print(*conflict, sep=", ")
    x < 1, x > 1
    """
    pool = ConstraintPool([[part]])
    found = reduced(pool, pool.filters[0]).conflict
    return None if found is None else (pool.constraint(found[0]), pool.constraint(found[1]))


def _simplified_chunk(
    groups: list[Sequence[Filter]], progress: Callable[[int], None] | None, limits: PairLimits
) -> Iterable[Simplified]:
    pool = ConstraintPool(groups, limits)
    learn_filters(pool, pool.filters)
    drafts, at = [], 0
    for number, group in enumerate(groups):
        drafts.append(_Group(pool, number, group, pool.filters[at : at + len(group)]))
        at += len(group)
    few = (draft.filters for draft in drafts if len(draft.filters) <= MAX_PAIRWISE_FILTERS)
    learn_pairs(pool, (pair for filters in few for pair in permutations(filters, 2)))
    for draft in drafts:
        yield draft.simplified()
        if progress is not None:
            progress(1)


class _Group:
    """The filters of one group, while it is simplified."""

    def __init__(
        self, pool: ConstraintPool, number: int, originals: Sequence[Filter], filters: Sequence[Terms]
    ) -> None:
        self._pool, self._number, self._originals = pool, number, originals
        pool.group = number
        self._before = list(filters)
        self._rules = dict.fromkeys(RULES, 0)
        repeated = sum(map(len, originals)) - sum(map(len, filters))  # equal constraints within a filter
        self._rules["intersected"] = repeated
        self._has_changed = repeated > 0
        self._false: Terms | None = None
        self.filters = self._reduced(filters)

    def simplified(self) -> Simplified:
        """Apply the rules until nothing changes."""
        self._pool.group = self._number
        while True:
            left = uncovered(self._pool, self.filters)
            self._rules["covered"] += len(self.filters) - len(left)
            same, made = merged(self._pool, left)
            self._rules["united"] += len(left) - len(same) - len(made)
            self.filters = [*same, *self._reduced(made)]
            if not made:
                return self._finished()

    def _reduced(self, filters: Sequence[Terms]) -> list[Terms]:
        """Simplify each filter by itself; drop false ones."""
        left = []
        learn_filters(self._pool, filters)
        for terms in filters:
            found = reduced(self._pool, terms)
            if found.conflict is not None:
                self._rules["false"] += 1
                self._false = self._false or tuple(sorted(set(found.conflict)))
                continue
            self._rules["covering"] += found.covering
            self._rules["intersected"] += found.intersected
            left.append(found.terms)
        return left

    def _finished(self) -> Simplified:
        if not self.filters:  # no message satisfies the predicate: keep one shortest false filter
            assert self._false is not None
            self.filters = [self._false]
            self._rules["false"] -= 1
        changed = self._has_changed or self.filters != self._before
        before, after = list(self._originals), list(self._originals)
        if changed:
            after = [Filter(map(self._pool.constraint, terms)) for terms in self.filters]
        constraints = sum(map(len, before)), sum(map(len, after))
        return Simplified(after, Simplification(len(before), len(after), *constraints, self._rules), changed)
