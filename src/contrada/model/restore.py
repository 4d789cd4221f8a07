"""Convert tests back to constraints: the inverse of `contrada.model.operators.test_of`.

A test does not record how it was written: `like 'a%'` comes back as `prefix 'a'`, 1.0 as 1, and folded text stays
folded. The restored constraint is equal to the original.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from contrada.codes import BACKWARDS, LIKE, NOT, PRESENT, SET
from contrada.model.constraint import Constraint
from contrada.model.forms import ACCENTI, CASEI, Operand, Test, folding, is_text
from contrada.model.text import WILDCARD_BYTES, Like
from contrada.model.values import BOOLEAN, INEXACT, TIME, exact_decimal, number_of_bits

Exact = Callable[[int, int], Fraction]  # from a key and a rest that do not determine the number
MAX_SHOWN_WHOLE = 2.0**64  # larger whole numbers are shown with an exponent
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WILDCARDS = {code: wildcard for wildcard, code in WILDCARD_BYTES.items()}


def constraint_of(attribute: str, test: Test, exact: Exact) -> Constraint:
    """Return a constraint that is reduced to `test`; `exact` returns numbers that are too long for tests.

    >>> long = Constraint("price", "<=", Decimal("0.1"))
    >>> constraint_of("price", long._test, lambda key, rest: Fraction(1, 10)) == long
    True
    >>> print(constraint_of("name", Constraint("name", "like", "Via %", casei=True)._test, Fraction))
    CASEI(name) LIKE CASEI('via %')
    """
    if test.form == PRESENT:
        assert test.low is not None
        return Constraint(attribute, "is not null" if test.low.operand[0] else "is null")
    operator, value = _asked(test, exact)
    if test.asks & NOT:
        operator = "!=" if operator == "=" else f"not {operator}"
    folded = folding(test.form) if is_text(test.form) else 0
    return Constraint(attribute, operator, value, casei=bool(folded & CASEI), accenti=bool(folded & ACCENTI))


def _asked(test: Test, exact: Exact) -> tuple[str, Any]:
    """Return the operator and operand of a test, ignoring its negation."""
    asks, low, high = test.asks & ~NOT, test.low, test.high
    if asks == LIKE:
        like = decode_like(test.pattern)
        shape, literal = like.shape()
        return ("contains", literal) if shape == "contains" else ("like", like.to_text())
    if asks == SET:
        return "in", [value_of(test.form, member, exact) for member in test.members]
    if low is None and high is None:
        return "like", "%"
    if low is None or high is None:
        bound = high or low
        assert bound is not None
        sign = "<" if low is None else ">"
        return sign if bound.is_open else f"{sign}=", value_of(test.form, bound.operand, exact)
    first = value_of(test.form, low.operand, exact)
    if high.is_open:  # only prefix and suffix tests have two ends of which one is open
        return "suffix" if test.form & ~3 == BACKWARDS else "prefix", first
    return ("=", first) if low == high else ("between", (first, value_of(test.form, high.operand, exact)))


def value_of(form: int, operand: Operand, exact: Exact) -> Any:
    """Return the value of an operand.

    >>> value_of(TIME, (1, 0), Fraction), value_of(8, b"a", Fraction), value_of(BOOLEAN, (1, 0), Fraction)
    (datetime.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=datetime.timezone.utc), 'a', True)
    """
    if isinstance(operand, bytes):
        return decode_text(operand[::-1] if form & ~3 == BACKWARDS else operand)
    if form == BOOLEAN:
        return bool(operand[0])
    return time_of(*operand) if form == TIME else number_of(*operand, exact)


def number_of(key: int, rest: int, exact: Exact) -> int | float | Decimal:
    """Return the number of a key and a rest: an int if it is whole, else a float, or a Decimal if it is no double.

    >>> number_of(0, 0, Fraction), number_of(1, 0, Fraction), number_of(0, INEXACT, lambda key, rest: Fraction(1, 8))
    (0, 5e-324, Decimal('0.125'))
    """
    nearest = number_of_bits(key)
    if rest == 0:
        return int(nearest) if abs(nearest) <= MAX_SHOWN_WHOLE and nearest.is_integer() else nearest
    whole = exact(key, rest) if rest & 7 == INEXACT else Fraction(nearest) + Fraction(number_of_bits(rest))
    if whole.denominator == 1 and abs(whole) <= MAX_SHOWN_WHOLE:
        return int(whole)
    return exact_decimal(whole)  # all operands have finitely many digits


def time_of(key: int, rest: int) -> datetime | np.datetime64:
    """Return the instant of `key` microseconds and `rest` nanoseconds: a datetime in UTC if it fits, else a datetime64.

    >>> time_of(0, 5), time_of(2**60, 0)
    (np.datetime64('1970-01-01T00:00:00.000000005'), np.datetime64('38504-08-17T21:30:06.846976'))
    """
    nanoseconds = 1000 * key + rest
    if rest and abs(nanoseconds) < 2**63:  # beyond, only a few unusual types have nanoseconds
        return np.datetime64(nanoseconds, "ns")
    try:
        return _EPOCH + timedelta(microseconds=key)
    except OverflowError:
        return np.datetime64(key, "us")


def decode_text(code: bytes) -> str:
    """Return the text that `contrada.model.text.encode_text` encoded."""
    return code.decode("utf-8", "surrogatepass")


def decode_like(code: bytes) -> Like:
    """Return the pattern that `contrada.model.text.encode_like` encoded.

    >>> decode_like(b"a\\xfe\\xff").to_text()
    'a_%'
    """
    pieces = re.split(b"([\xfe\xff])", code)
    return Like.of(_WILDCARDS[piece] if piece in _WILDCARDS else decode_text(piece) for piece in pieces)
