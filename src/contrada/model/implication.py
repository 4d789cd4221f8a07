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
from contrada.model.forms import PATTERN, TEXT
from contrada.model.pieces import have_common, lie_in, pieces_of
from contrada.model.text_implication import text_conflicts, text_covers

MOST_PAIRS = 4096  # constraints of two filters that are compared each with each; beyond, equal ones alone count


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
    if not are_comparable(first, second):
        return False
    if first.test.form == second.test.form < PATTERN:
        return lie_in(pieces_of(second.test), pieces_of(first.test))
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
    if not are_comparable(first, second):
        return False
    if first.test.form == second.test.form < PATTERN:
        return not have_common(pieces_of(first.test), pieces_of(second.test))
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


def are_comparable(first: Constraint, second: Constraint) -> bool:
    """True for scalars and text of one kind that their tests tell apart."""
    for one in (first, second):
        if one.kind is not None or one.long_numbers:
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
