"""Pieces of the order of values: what lies in both, and what lies in what, against a scan of every value."""

from hypothesis import given
from hypothesis import strategies as st

from contrada import Constraint
from contrada.model.merging import folded, is_mergeable
from contrada.model.pieces import intersection, lie_in, pieces_of
from oracles.plain import holds

HALVES = [value / 2 for value in range(-4, 20)]
numbers = st.integers(0, 7)
several = st.lists(numbers, min_size=2, max_size=5, unique=True).map(tuple)
ends = st.tuples(numbers, numbers).map(sorted).map(tuple)
constraints = st.one_of(
    st.builds(Constraint, st.just("x"), st.sampled_from(operators), operands)
    for operators, operands in (
        (["<", "<=", ">", ">=", "=", "!="], numbers),
        (["in", "not in"], several),
        (["between", "not between"], ends),
    )
)


def held(constraint):
    """The values, whole and half, that satisfy a constraint, by plain evaluation."""
    return {x for x in HALVES if holds(constraint, {"x": x})}


@given(constraints, constraints)
def test_two_constraints_against_every_value(first, second):
    one, other = held(first), held(second)
    pieces = pieces_of(first._test), pieces_of(second._test)
    assert lie_in(*pieces) == (one <= other)
    assert bool(list(intersection(*pieces))) == bool(one & other)


@given(st.lists(constraints, min_size=1, max_size=12).filter(lambda many: all(map(is_mergeable, many))))
def test_few_say_what_many_say(many):
    few = folded(many)
    assert set.intersection(*map(held, few)) == set.intersection(*map(held, many))
    assert len(few) <= len(many)
