"""Simplify one filter: find conflicting constraints, drop implied ones, intersect masks, ranges and sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

from contrada.model import Constraint
from contrada.model.merging import folded, intersected, is_mergeable
from contrada.simplification.interning import OTHER, Ground, Term, Terms

MAX_PAIRWISE_CONSTRAINTS = 32  # of a filter, or on one attribute of a filter with more


class Reduced(NamedTuple):
    """The rest of a filter. `conflict`: two terms that no message satisfies both, or one unsatisfiable term twice."""

    terms: Terms
    conflict: tuple[Term, Term] | None = None
    covering: int = 0  # constraints dropped because others imply them
    intersected: int = 0  # constraints merged into others


def learn_filters(ground: Ground, filters: Iterable[Terms]) -> None:
    """Compute in bulk the relations of the regions within each filter."""
    ground.learn(
        (first.space, first.item, second.item)
        for terms in filters
        if len(terms) > 1
        for group in _groups(ground, terms)
        if len(group) <= MAX_PAIRWISE_CONSTRAINTS
        for first, second in combinations(group, 2)
        if first.space == second.space != OTHER
    )


def _groups(ground: Ground, terms: Terms) -> Iterable[Terms]:
    """Return groups of terms to compare with each other: all terms of a short filter, else by attribute."""
    if len(terms) <= MAX_PAIRWISE_CONSTRAINTS:
        return [terms]
    groups: dict[str, list[Term]] = {}
    for term in terms:
        groups.setdefault(ground.attribute(term), []).append(term)
    return map(tuple, groups.values())


def reduced(ground: Ground, terms: Terms) -> Reduced:
    """Return an equivalent filter without redundant constraints.

    If an attribute has more than MAX_PAIRWISE_CONSTRAINTS constraints, its ranges and sets are intersected; if too many
    are left, they are not compared, because comparing all pairs would take hours.
    """
    if len(terms) <= MAX_PAIRWISE_CONSTRAINTS:
        return _reduced(ground, terms)
    left: list[Term] = []
    covering = intersected = 0
    for group in _groups(ground, terms):
        small = group if len(group) <= MAX_PAIRWISE_CONSTRAINTS else _folded(ground, group)
        found = _reduced(ground, small) if len(small) <= MAX_PAIRWISE_CONSTRAINTS else Reduced(small)
        if found.conflict is not None:
            return Reduced(terms, found.conflict)
        left += found.terms
        covering += found.covering
        intersected += found.intersected + len(group) - len(small)
    return Reduced(tuple(sorted(left)), None, covering, intersected)


def _folded(ground: Ground, terms: Terms) -> Terms:
    """Return the terms of one attribute with the ranges and sets of each form folded into few."""
    forms: dict[tuple[str, int], list[Constraint]] = {}
    left: list[Term] = []
    for term in terms:
        constraint = ground.constraint(term) if term.space == OTHER else None
        if constraint is not None and is_mergeable(constraint):
            forms.setdefault(constraint.place, []).append(constraint)
        else:
            left.append(term)
    made = [Term(OTHER, ground.other(one)) for those in forms.values() for one in folded(those)]
    return tuple(sorted({*left, *made}))


def _reduced(ground: Ground, terms: Terms) -> Reduced:
    covering = intersected = 0
    while True:
        conflict = _conflict(ground, terms)
        if conflict is not None or len(terms) == 1:
            return Reduced(terms, conflict, covering, intersected)
        left = _without_covering(ground, terms)
        joint = _intersected(ground, left)
        covering += len(terms) - len(left)
        intersected += len(left) - len(joint)
        if joint == left:
            return Reduced(left, None, covering, intersected)
        terms = joint


def _intersected(ground: Ground, terms: Terms) -> Terms:
    """Return the terms with masks of one item, and ranges and sets of one attribute, intersected."""
    masks: dict[tuple[int, int], int] = {}
    others: list[int] = []
    for term in terms:
        if term.space == OTHER:
            others.append(term.item)
        else:
            key = term.space, term.item
            masks[key] = masks.get(key, 255) & term.mask
    spatial = [Term(space, item, mask) for (space, item), mask in masks.items()]
    return tuple(sorted([*spatial, *(Term(OTHER, number) for number in _together(ground, others))]))


def _together(ground: Ground, others: list[int]) -> Iterator[int]:
    """Intersect constraints in pairs where one constraint can express the result; yield the rest unchanged."""
    todo = list(others)
    while todo:
        one = ground.others[todo.pop(0)]
        for number in list(todo):
            both = intersected(one, ground.others[number])
            if both is not None:
                todo.remove(number)
                one = both
        yield ground.other(one)


def _conflict(ground: Ground, terms: Terms) -> tuple[Term, Term] | None:
    """Return the first two terms that conflict; an unsatisfiable term conflicts with itself; None without conflict."""
    for term in terms:
        if (term.space != OTHER and term.mask == 0) or (term.space == OTHER and ground.conflicts(term, term)):
            return term, term
    for first, second in combinations(terms, 2):
        if ground.attribute(first) == ground.attribute(second) and ground.conflicts(first, second):
            return first, second
    return None


def _without_covering(ground: Ground, terms: Terms) -> Terms:
    """Return the terms that no other term implies; of two that imply each other the first stays."""
    left = list(terms)
    for term in reversed(terms):
        attribute = ground.attribute(term)
        if any(ground.attribute(o) == attribute and ground.covers(term, o) for o in left if o is not term):
            left.remove(term)
    return tuple(left)
