"""When one constraint covers another, and when two conflict: sound always, as complete as it says.

`covers(a, b)`: every message that satisfies b satisfies a. `conflicts(a, b)`: no message satisfies both. Unknown does
not satisfy. A True is always right; a False may mean that we cannot tell, but only where this module says so:

- regions and points: what the composition table can tell, which is all there is without holes and several parts;
- numbers, times, booleans, and text compared as a whole or by prefix: all there is, but numbers of more than 103 bits
  are only known to equal themselves, and that times come in nanoseconds is not made use of;
- suffixes, contains and LIKE: see model/text_implication.py; text of different foldings only if one names its values;
- types that were added: equal constraints only.
"""

from __future__ import annotations

from contrada.errors import CrsError
from contrada.geometry import RelationSet, compose, relate
from contrada.model.constraint import Constraint
from contrada.model.evaluate import truth
from contrada.model.forms import NOT, PATTERN, SET, TEXT, Bound, Operand, Test
from contrada.model.operators import exact_operands
from contrada.model.text_implication import text_conflicts, text_covers
from contrada.model.values import BOOLEAN

# A cut is a place between operands: below or above one of them, or at either end of all.
Cut = tuple[int] | tuple[int, Operand, int]
Piece = tuple[Cut, Cut]  # what lies between two cuts
BEGIN: Cut = (0,)
END: Cut = (2,)


def covers(first: Constraint, second: Constraint) -> bool:
    """True if every message that satisfies the second satisfies the first.

    >>> covers(Constraint("size", ">", 1), Constraint("size", "in", (2, 3)))
    True
    >>> covers(Constraint("size", ">", 1), Constraint("weight", ">", 1))
    False
    """
    if first.attribute != second.attribute:
        return False
    if first == second:
        return True
    if _asks_nothing_of_value(first) or _asks_nothing_of_value(second):
        return first.operator == "is not null" and second.operator != "is null"
    relations = _composed(first, second)
    if relations is not None:
        return relations <= first.relations
    if not _are_comparable(first, second):
        return False
    if first.test.form == second.test.form < PATTERN:
        return _lies_in(_pieces(second.test), _pieces(first.test))
    members = _listed(second)
    if members is not None:
        return all(truth(first, member) is True for member in members)
    return text_covers(first, second)


def conflicts(first: Constraint, second: Constraint) -> bool:
    """True if no message satisfies both.

    >>> conflicts(Constraint("size", ">", 1), Constraint("size", "<=", 1))
    True
    >>> conflicts(Constraint("size", ">", 1), Constraint("size", "prefix", "a"))
    True
    """
    if first.attribute != second.attribute:
        return False
    if _asks_nothing_of_value(first) or _asks_nothing_of_value(second):
        return first.operator != second.operator and "is null" in (first.operator, second.operator)
    if _is_own(first) or _is_own(second):
        return False
    if isinstance(first.operator, RelationSet) != isinstance(second.operator, RelationSet):
        return True
    relations = _composed(first, second)
    if relations is not None:
        return not relations & first.relations
    if isinstance(first.operator, RelationSet):  # of different coordinate systems
        return False
    if _kind(first.test.form) != _kind(second.test.form):
        return True
    if not _are_comparable(first, second):
        return False
    if first.test.form == second.test.form < PATTERN:
        return not _have_common(_pieces(first.test), _pieces(second.test))
    for one, other in ((first, second), (second, first)):
        members = _listed(one)
        if members is not None:
            return not any(truth(other, member) is True for member in members)
    return text_conflicts(first, second)


def _asks_nothing_of_value(constraint: Constraint) -> bool:
    """True for the mere being there, or not."""
    return constraint.operator in ("is null", "is not null")


def _is_own(constraint: Constraint) -> bool:
    """True for a type that was added, whose values may be of any other type too."""
    return constraint.kind is not None and not isinstance(constraint.operator, RelationSet)


def _composed(first: Constraint, second: Constraint) -> RelationSet | None:
    """The relations to the first's region that a value has which satisfies the second; None unless both have one."""
    if not isinstance(first.operator, RelationSet) or not isinstance(second.operator, RelationSet):
        return None
    try:
        between = relate(second.value, first.value)
    except CrsError:
        return None
    return compose(second.operator, between)


def _are_comparable(first: Constraint, second: Constraint) -> bool:
    """True for scalars and text that tests tell apart."""
    for one in (first, second):
        if one.kind is not None or exact_operands(one.value):
            return False
    return _kind(first.test.form) == _kind(second.test.form)


def _kind(form: int) -> int:
    """What values a form is of: a kind of scalar, or text."""
    return TEXT if form >= TEXT else form


def _listed(constraint: Constraint) -> tuple[str, ...] | None:
    """All texts that satisfy a constraint, if it names them."""
    if constraint.casei or constraint.accenti or constraint.operator not in ("=", "in"):
        return None
    return constraint.value if constraint.operator == "in" else (constraint.value,)


def _pieces(test: Test) -> list[Piece]:
    """What a test that is no pattern holds of, in order: pieces with something between them."""
    low, high = _cut(test.low, 0, BEGIN), _cut(test.high, 1, END)
    pieces = [(low, high)] if low < high else []
    if test.asks & ~NOT == SET:
        pieces = [_point(member) for member in test.members]
    if test.asks & NOT:
        edges = [BEGIN, *(cut for piece in pieces for cut in piece), END]
        pieces = [(low, high) for low, high in zip(edges[::2], edges[1::2], strict=True) if low < high]
    if test.form == BOOLEAN:  # there are two of them
        pieces = [_point(value) for value in ((0, 0), (1, 0)) if _lies_in([_point(value)], pieces)]
    return pieces


def _point(operand: Operand) -> Piece:
    return (1, operand, 0), (1, operand, 1)


def _cut(bound: Bound | None, closed_above: int, without: Cut) -> Cut:
    """Where an interval begins (0) or ends (1): a closed one begins below its bound and ends above it."""
    return without if bound is None else (1, bound.operand, closed_above ^ bound.is_open)


def _lies_in(inner: list[Piece], outer: list[Piece]) -> bool:
    """True if every piece of one lies in a piece of the other."""
    return all(any(low <= piece[0] and piece[1] <= high for low, high in outer) for piece in inner)


def _have_common(first: list[Piece], second: list[Piece]) -> bool:
    """True if something lies in both."""
    return any(max(a[0], b[0]) < min(a[1], b[1]) for a in first for b in second)
