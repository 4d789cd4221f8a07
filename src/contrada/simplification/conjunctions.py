"""Simplify one filter: find conflicting constraints, drop implied ones, intersect masks, ranges and sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

from contrada.geometry.composition import masks_agree_on_lines
from contrada.model import Constraint
from contrada.model.merging import folded, intersected, is_mergeable
from contrada.simplification.interning import OTHER, ConstraintPool, Term, Terms


class Reduced(NamedTuple):
    """The rest of a filter. `conflict`: two terms that no message satisfies both, or one unsatisfiable term twice."""

    terms: Terms
    conflict: tuple[Term, Term] | None = None
    covering: int = 0  # constraints dropped because others imply them
    intersected: int = 0  # constraints merged into others


def learn_filters(pool: ConstraintPool, filters: Iterable[Terms]) -> None:
    """Compute in bulk the relations of the regions within each filter."""
    pool.learn(
        (first.space, first.item, second.item)
        for terms in filters
        if len(terms) > 1
        for group in _groups(pool, terms)
        if len(group) <= pool.limits.constraints
        for first, second in combinations(group, 2)
        if first.space == second.space != OTHER
    )


def _groups(pool: ConstraintPool, terms: Terms) -> Iterable[Terms]:
    """Return groups of terms to compare with each other: all terms of a short filter, else by attribute."""
    if len(terms) <= pool.limits.constraints:
        return [terms]
    groups: dict[str, list[Term]] = {}
    for term in terms:
        groups.setdefault(pool.attribute(term), []).append(term)
    return map(tuple, groups.values())


def reduced(pool: ConstraintPool, terms: Terms) -> Reduced:
    """Return an equivalent filter without redundant constraints.

    If an attribute has more than `pool.limits.constraints` constraints, its ranges and sets are intersected; if too
    many are left, they are not compared, because comparing all pairs would take hours.
    """
    if len(terms) <= pool.limits.constraints:
        return _reduced(pool, terms)
    left: list[Term] = []
    covering = intersected = 0
    for group in _groups(pool, terms):
        small = group if len(group) <= pool.limits.constraints else _folded(pool, group)
        found = _reduced(pool, small) if len(small) <= pool.limits.constraints else Reduced(small)
        if found.conflict is not None:
            return Reduced(terms, found.conflict)
        left += found.terms
        covering += found.covering
        intersected += found.intersected + len(group) - len(small)
    return Reduced(tuple(sorted(left)), None, covering, intersected)


def _folded(pool: ConstraintPool, terms: Terms) -> Terms:
    """Return the terms of one attribute with the ranges and sets of each form folded into few."""
    forms: dict[tuple[str, int], list[Constraint]] = {}
    left: list[Term] = []
    for term in terms:
        constraint = pool.constraint(term) if term.space == OTHER else None
        if constraint is not None and is_mergeable(constraint):
            forms.setdefault(constraint.slot, []).append(constraint)
        else:
            left.append(term)
    made = [Term(OTHER, pool.other(one)) for those in forms.values() for one in folded(those)]
    return tuple(sorted({*left, *made}))


def _reduced(pool: ConstraintPool, terms: Terms) -> Reduced:
    covering = intersected = 0
    while True:
        conflict = _conflict(pool, terms)
        if conflict is not None or len(terms) == 1:
            return Reduced(terms, conflict, covering, intersected)
        left = _without_covering(pool, terms)
        joint = _intersected(pool, left)
        covering += len(terms) - len(left)
        intersected += len(left) - len(joint)
        if joint == left:
            return Reduced(left, None, covering, intersected)
        terms = joint


def _intersected(pool: ConstraintPool, terms: Terms) -> Terms:
    """Return the terms with masks of one item, and ranges and sets of one attribute, intersected."""
    masks: dict[tuple[int, int], list[int]] = {}
    others: list[int] = []
    for term in terms:
        if term.space == OTHER:
            others.append(term.item)
            continue
        known = masks.setdefault((term.space, term.item), [])
        for k, mask in enumerate(known):
            if masks_agree_on_lines(mask & term.mask, mask, term.mask, False):
                known[k] = mask & term.mask
                break
        else:
            known.append(term.mask)
    spatial = [Term(space, item, mask) for (space, item), some in masks.items() for mask in some]
    return tuple(sorted([*spatial, *(Term(OTHER, number) for number in _together(pool, others))]))


def _together(pool: ConstraintPool, others: list[int]) -> Iterator[int]:
    """Intersect constraints in pairs where one constraint can express the result; yield the rest unchanged."""
    todo = list(others)
    while todo:
        one = pool.others[todo.pop(0)]
        for number in list(todo):
            both = intersected(one, pool.others[number])
            if both is not None:
                todo.remove(number)
                one = both
        yield pool.other(one)


def _conflict(pool: ConstraintPool, terms: Terms) -> tuple[Term, Term] | None:
    """Return the first two terms that conflict; an unsatisfiable term conflicts with itself; None without conflict."""
    for term in terms:
        if (term.space != OTHER and term.mask == 0) or (term.space == OTHER and pool.conflicts(term, term)):
            return term, term
    for first, second in combinations(terms, 2):
        if pool.attribute(first) == pool.attribute(second) and pool.conflicts(first, second):
            return first, second
    return None


def _without_covering(pool: ConstraintPool, terms: Terms) -> Terms:
    """Return the terms that no other term implies; of two that imply each other the first stays."""
    left = list(terms)
    for term in reversed(terms):
        attribute = pool.attribute(term)
        if any(pool.attribute(o) == attribute and pool.covers(term, o) for o in left if o is not term):
            left.remove(term)
    return tuple(left)
