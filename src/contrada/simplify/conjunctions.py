"""One filter at a time: what contradicts itself, and which of its constraints say nothing that the others do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

from contrada.model import Constraint
from contrada.model.merging import folded, intersected, is_mergeable
from contrada.simplify.interning import OTHER, Ground, Term, Terms

MOST_COMPARED = 32  # constraints of one filter on one attribute that are compared each with each


class Reduced(NamedTuple):
    """What is left of a filter; two constraints that no message satisfies both, or one twice, if it is false."""

    terms: Terms
    conflict: tuple[Term, Term] | None = None
    covering: int = 0  # constraints dropped because others imply them
    intersected: int = 0  # constraints that became one with others


def learn_filters(ground: Ground, filters: Iterable[Terms]) -> None:
    """Find out in bulk how the regions within each filter relate."""
    ground.learn(
        (first.space, first.item, second.item)
        for terms in filters
        if len(terms) > 1
        for group in _groups(ground, terms)
        if len(group) <= MOST_COMPARED
        for first, second in combinations(group, 2)
        if first.space == second.space != OTHER
    )


def _groups(ground: Ground, terms: Terms) -> Iterable[Terms]:
    """The terms of a filter that may be compared with each other: all of a short one, else those of one attribute."""
    if len(terms) <= MOST_COMPARED:
        return [terms]
    groups: dict[str, list[Term]] = {}
    for term in terms:
        groups.setdefault(ground.attribute(term), []).append(term)
    return map(tuple, groups.values())


def reduced(ground: Ground, terms: Terms) -> Reduced:
    """A filter without what is redundant in it: equal to it for every message.

    Of an attribute with very many constraints ranges and sets become one; others are then left as they are, since
    comparing each with each would take hours.
    """
    if len(terms) <= MOST_COMPARED:
        return _reduced(ground, terms)
    left: list[Term] = []
    covering = intersected = 0
    for group in _groups(ground, terms):
        small = group if len(group) <= MOST_COMPARED else _folded(ground, group)
        found = _reduced(ground, small) if len(small) <= MOST_COMPARED else Reduced(small)
        if found.conflict is not None:
            return Reduced(terms, found.conflict)
        left += found.terms
        covering += found.covering
        intersected += found.intersected + len(group) - len(small)
    return Reduced(tuple(sorted(left)), None, covering, intersected)


def _folded(ground: Ground, terms: Terms) -> Terms:
    """The terms of one attribute, the ranges and sets of each form made few at once."""
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
    """The terms with masks of one item, and ranges and sets of one attribute, made one."""
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
    """Constraints with those made one that one constraint can say."""
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
    """The first two terms that conflict; a term that nothing satisfies conflicts with itself."""
    for term in terms:
        if (term.space != OTHER and term.mask == 0) or (term.space == OTHER and ground.conflicts(term, term)):
            return term, term
    for first, second in combinations(terms, 2):
        if ground.attribute(first) == ground.attribute(second) and ground.conflicts(first, second):
            return first, second
    return None


def _without_covering(ground: Ground, terms: Terms) -> Terms:
    """The terms without those that another one implies; of two that imply each other the first stays."""
    left = list(terms)
    for term in reversed(terms):
        attribute = ground.attribute(term)
        if any(ground.attribute(o) == attribute and ground.covers(term, o) for o in left if o is not term):
            left.remove(term)
    return tuple(left)
