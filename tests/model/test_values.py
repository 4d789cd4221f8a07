"""Values as keys: their order is that of the values, exactly."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contrada as ct
from contrada.model.values import INEXACT, exact_number, number_of_bits, ordered_bits, scalar_of
from generators.scalars import numbers


def in_order(first, second):
    return (first > second) - (first < second)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_bits_order_doubles(first, second):
    assert in_order(ordered_bits(first), ordered_bits(second)) == in_order(first, second)
    assert number_of_bits(ordered_bits(first)) == first


@given(numbers(), numbers())
def test_numbers_compare_like_fractions(first, second):
    a, b = scalar_of(first), scalar_of(second)
    if any(abs(float(x)) == float("inf") for x in (first, second) if not isinstance(x, int)):
        return
    right = in_order(exact_number(first), exact_number(second))
    if a[1:] == b[1:] and a.rest & 7 == INEXACT:
        apart = abs(exact_number(first) - exact_number(second))
        assert apart <= abs(exact_number(first)) / 2**102 or apart > 1.7e308 or right == 0
    else:
        assert in_order(a, b) == right


def test_what_is_no_scalar():
    unknown = (None, "1", float("nan"), Decimal("NaN"), np.datetime64("NaT"), np.timedelta64(1, "D"), b"1", 1j)
    assert [scalar_of(value) for value in unknown] == [None] * len(unknown)
    pandas = pytest.importorskip("pandas")
    assert scalar_of(pandas.NaT) is None
    assert scalar_of(pandas.Timestamp(1)) == scalar_of(np.datetime64(1, "ns"))
    assert scalar_of(np.datetime64(10**12, "Y")) is None


def test_endless_decimals_take_no_time():
    huge, tiny = Decimal("1E+999999999"), Decimal("-1E-999999999")
    assert scalar_of(1.7e308) < scalar_of(huge) < scalar_of(float("inf"))
    assert scalar_of(-5e-324) < scalar_of(tiny) < scalar_of(0)
    with pytest.raises(ct.FilterError, match=r"constraint on 'a': `<`: decimal exponents can be at most 1000"):
        ct.Constraint("a", "<", huge)


def test_numbers_that_only_differ_far_behind_are_told_apart_or_refused():
    third = [Decimal("0." + "3" * digits) for digits in (40, 41, 42)]
    assert len({scalar_of(number) for number in third}) == 1
    assert len({ct.Constraint("a", "=", number) for number in third}) == 3
    table = ct.ForwardingTable()
    table.subscribe("equal", ct.Constraint("a", "=", third[1]))
    table.subscribe("less", ct.Constraint("a", "<", third[1]))
    table.subscribe("not less", ct.Constraint("a", ">=", third[1]))
    for _ in range(2):
        assert [set(table.match({"a": number})) for number in third] == [{"less"}, {"equal", "not less"}, {"not less"}]
        table.pack()
    with pytest.raises(ct.FilterError, match="cannot be distinguished from a number of another subscription"):
        table.subscribe("other", ct.Constraint("a", ">", third[2]))
    assert len(table) == 3
    assert exact_number(third[0]) < Fraction(1, 3)
