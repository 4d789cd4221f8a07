"""Pieces of the order of values: what lies in both, and what lies in what, against a scan of every value."""

from hypothesis import given
from hypothesis import strategies as st

from contrada import Constraint
from contrada.model.merging import folded, is_mergeable
from contrada.model.pieces import have_common, intersection, lie_in, pieces_of

HALVES = [value / 2 for value in range(-4, 20)]
numbers = st.integers(0, 7)
constraints = st.one_of(
    st.builds(
        lambda how, value: Constraint("x", how, value), st.sampled_from(["<", "<=", ">", ">=", "=", "!="]), numbers
    ),
    st.builds(
        lambda how, values: Constraint("x", how, tuple(values)),
        st.sampled_from(["in", "not in"]),
        st.lists(numbers, min_size=2, max_size=5, unique=True),
    ),
    st.builds(
        lambda how, ends: Constraint("x", how, tuple(sorted(ends))),
        st.sampled_from(["between", "not between"]),
        st.tuples(numbers, numbers),
    ),
)


def held(constraint):
    """The values, whole and half, that satisfy a constraint, by what its operator says."""
    how, value = str(constraint.operator), constraint.value
    test = {
        "<": lambda x: x < value, "<=": lambda x: x <= value, ">": lambda x: x > value, ">=": lambda x: x >= value,
        "=": lambda x: x == value, "!=": lambda x: x != value,
        "in": lambda x: x in value, "not in": lambda x: x not in value,
        "between": lambda x: value[0] <= x <= value[1], "not between": lambda x: not value[0] <= x <= value[1],
    }[how]  # fmt: skip
    return {x for x in HALVES if test(x)}


@given(constraints, constraints)
def test_two_constraints_against_every_value(first, second):
    one, other = held(first), held(second)
    pieces = pieces_of(first.test), pieces_of(second.test)
    assert lie_in(*pieces) == (one <= other)
    assert have_common(*pieces) == bool(one & other)
    assert bool(intersection(*pieces)) == bool(one & other)


@given(st.lists(constraints, min_size=1, max_size=12).filter(lambda many: all(map(is_mergeable, many))))
def test_few_say_what_many_say(many):
    few = folded(many)
    assert set.intersection(*map(held, few)) == set.intersection(*map(held, many))
    assert len(few) <= len(many)
