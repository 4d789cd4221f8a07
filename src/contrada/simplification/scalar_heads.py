"""Find the scalar constraints that a given one may cover, by hashed values and sorted ranges."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from contrada.codes import NOT, PATTERN, TEXT
from contrada.model import Constraint
from contrada.model.operators import TEXTUAL
from contrada.model.pieces import Cut, pieces_of
from contrada.model.reach import DistanceOperator
from contrada.simplification.interning import OTHER, ConstraintPool, Term, Terms

VALUES, RANGE, WIDE = 1, 2, 3  # how selective a head is, most selective first


def rank_of(constraint: Constraint) -> int:
    """Return how few constraints this one may cover, roughly: VALUES, RANGE or WIDE."""
    if constraint.kind is not None or constraint.operator == "is null":
        return VALUES
    if constraint.operator == "is not null" or constraint.long_numbers:
        return WIDE
    test = constraint._test
    if test.form > TEXT or test.asks & NOT or constraint.operator in TEXTUAL:
        return WIDE  # a prefix may cover patterns, which have no order
    return VALUES if constraint.operator in ("=", "in") else RANGE


class ScalarHeads:
    """The scalar constraints of some filters, and the filters that have each."""

    def __init__(self, pool: ConstraintPool, filters: Sequence[Terms]) -> None:
        self._pool = pool
        self._filters_of: dict[int, list[int]] = {}
        self._spatial: dict[str, set[int]] = {}  # filters with a region or point on an attribute
        for number, terms in enumerate(filters):
            for term in terms:
                if term.space == OTHER:
                    self._filters_of.setdefault(term.item, []).append(number)
                else:
                    self._spatial.setdefault(pool.attribute(term), set()).add(number)
        self._at: dict[str, list[int]] = {}
        self._near: dict[tuple[str, str | None, object], list[int]] = {}  # by attribute, unit and geometry
        self._by_value: dict[tuple[object, ...], list[int]] = {}
        self._ranges: dict[tuple[str, int], list[tuple[Cut, Cut, int]]] = {}
        for number in self._filters_of:
            self._add(number, pool.others[number])
        for ranges in self._ranges.values():
            ranges.sort()

    def _add(self, number: int, constraint: Constraint) -> None:
        self._at.setdefault(constraint.attribute, []).append(number)
        if isinstance(constraint.operator, DistanceOperator):
            key = constraint.attribute, constraint.operator.unit, constraint.value
            self._near.setdefault(key, []).append(number)
        if constraint.kind is not None or constraint.operator in ("is null", "is not null"):
            return
        test = constraint._test
        if test.form >= PATTERN or constraint.long_numbers:
            return
        pieces = pieces_of(test)
        if not pieces:
            return
        self._ranges.setdefault(constraint.slot, []).append((pieces[0][0], pieces[-1][1], number))
        self._by_value.setdefault((constraint.slot, pieces[0][0]), []).append(number)

    def filters_under(self, head: Term) -> list[int]:
        """Return the filters with a constraint that `head` may cover, sorted."""
        constraint = self._pool.others[head.item]
        found = {number for item in self._under(head.item, constraint) for number in self._filters_of.get(item, ())}
        if constraint.operator == "is not null":
            found |= self._spatial.get(constraint.attribute, set())
        return sorted(found)

    def _under(self, number: int, constraint: Constraint) -> Iterable[int]:
        """Return the constraints that `constraint` may cover."""
        if isinstance(constraint.operator, DistanceOperator):
            return self._near[constraint.attribute, constraint.operator.unit, constraint.value]
        if constraint.kind is not None or constraint.operator == "is null":
            return [number]
        rank = rank_of(constraint)
        if rank == WIDE:
            return self._at.get(constraint.attribute, [])
        pieces = pieces_of(constraint._test)
        if not pieces:
            return [number]
        if rank == VALUES:
            return [item for piece in pieces for item in self._by_value.get((constraint.slot, piece[0]), ())]
        ranges = self._ranges.get(constraint.slot, [])
        low, high = pieces[0][0], pieces[-1][1]
        first = bisect_left(ranges, (low,))
        last = bisect_right(ranges, (high, high))  # a range that begins after `high` ends after it
        return [item for _, end, item in ranges[first:last] if end <= high]
