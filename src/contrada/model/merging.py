"""Merge constraints on scalars or text into one: intersection or union."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from contrada.codes import BACKWARDS, PRESENT
from contrada.model.constraint import Constraint
from contrada.model.forms import is_text
from contrada.model.pieces import BEGIN, END, Piece, gaps_of, intersection, is_point, pieces_of, test_of_pieces, union
from contrada.model.restore import constraint_of
from contrada.model.values import BOOLEAN


def is_mergeable(constraint: Constraint) -> bool:
    """Return True for intervals and sets of values: no patterns, prefixes or suffixes, no numbers too long for tests.

    >>> [is_mergeable(Constraint("x", *asked)) for asked in (("<", 5), ("in", ("a", "b")), ("prefix", "a"))]
    [True, True, False]
    """
    if constraint.kind is not None or constraint.columns or constraint.long_numbers:
        return False
    test = constraint._test
    if test.form == PRESENT or test.form >= BACKWARDS:
        return False
    ends = (test.low, test.high)
    return not (is_text(test.form) and None not in ends and any(end is not None and end.is_open for end in ends))


def intersected(first: Constraint, second: Constraint) -> Constraint | None:
    """Return the one constraint that is equivalent to both together; None if there is no such constraint.

    >>> print(intersected(Constraint("x", ">=", 3), Constraint("x", "<=", 5)))
    x BETWEEN 3 AND 5
    >>> print(intersected(Constraint("x", "in", (1, 4, 5)), Constraint("x", ">", 3)))
    x IN (4, 5)
    """
    if first.attribute != second.attribute or not is_mergeable(first) or not is_mergeable(second):
        return None
    if first.slot != second.slot:
        return None
    return _made(first, list(intersection(pieces_of(first._test), pieces_of(second._test))))


def folded(constraints: Sequence[Constraint]) -> list[Constraint]:
    """Return few constraints that are equivalent to all given ones, which are mergeable and of one slot.

    Sets become the smallest set and what it leaves of the others, `!=` and `not in` become one constraint, ranges
    become the two with the closest ends.

    >>> [str(one) for one in folded([Constraint("x", "!=", k) for k in (3, 1, 2)] + [Constraint("x", ">", 0)])]
    ['x > 0', 'x NOT IN (1, 2, 3)']
    """
    sets: list[Constraint] = []
    left_out: list[Constraint] = []
    ranges: list[Constraint] = []
    others: list[Constraint] = []
    for constraint in constraints:
        pieces = pieces_of(constraint._test)
        if pieces and all(map(is_point, pieces)):
            sets.append(constraint)
        elif len(pieces) == 1:
            ranges.append(constraint)
        else:
            (left_out if gaps_of(pieces) is not None else others).append(constraint)
    return [*_folded_sets(sets), *_folded_ranges(ranges), *_folded_gaps(left_out), *others]


def _folded_sets(sets: list[Constraint]) -> list[Constraint]:
    """Return one set; or two sets without common members, and the sets after them."""
    if not sets:
        return []
    one, *rest = sorted(sets, key=lambda constraint: len(constraint._test.members))
    for k, other in enumerate(rest):
        both = intersected(one, other)
        if both is None:
            return [one, *rest[k:]]
        one = both
    return [one]


def _folded_ranges(ranges: list[Constraint]) -> list[Constraint]:
    """Return the range that begins last and the range that ends first."""
    if not ranges:
        return []
    low = max(ranges, key=lambda constraint: pieces_of(constraint._test)[0][0])
    high = min(ranges, key=lambda constraint: pieces_of(constraint._test)[0][1])
    return [low] if low is high else [low, high]


def _folded_gaps(left_out: list[Constraint]) -> list[Constraint]:
    """Return one constraint that leaves out all values that any of these leaves out."""
    if not left_out:
        return []
    points = {point for constraint in left_out for point in gaps_of(pieces_of(constraint._test)) or ()}
    edges = [BEGIN, *(cut for point in sorted(points) for cut in point), END]
    made = _made(left_out[0], list(zip(edges[::2], edges[1::2], strict=True)))
    return left_out if made is None else [made]


def united(constraints: Sequence[Constraint]) -> Constraint | None:
    """Return the one constraint that is equivalent to any of several of one slot; None if there is no such constraint.

    >>> print(united([Constraint("x", "=", "a"), Constraint("x", "in", ("b", "c"))]))
    x IN ('a', 'b', 'c')
    >>> print(united([Constraint("x", "<", 5), Constraint("x", ">=", 5)]))
    None
    """
    return _made(constraints[0], union([piece for constraint in constraints for piece in pieces_of(constraint._test)]))


def _made(like: Constraint, pieces: list[Piece]) -> Constraint | None:
    """Return the constraint of these pieces on the slot of `like`."""
    test = test_of_pieces(like._test.form, pieces)
    if test is None or (test.form == BOOLEAN and len(pieces) > 1):
        return None
    return constraint_of(like.attribute, test, _no_long_numbers)


def _no_long_numbers(key: int, rest: int) -> Fraction:
    raise AssertionError("a constraint with a number too long for a double was merged")
