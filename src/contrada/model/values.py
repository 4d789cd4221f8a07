"""Convert values of messages and constraints to keys that sort exactly like the values.

A number, timestamp or boolean becomes two integers, (key, rest), that compare like the values. The key alone
distinguishes all doubles and all instants of whole microseconds; for these the rest is 0. Text becomes UTF-8, whose
bytes compare like the code points.
"""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

NUMBER, TIME, BOOLEAN, TEXT = range(4)
KIND_NAMES = ("number", "timestamp", "boolean", "text")
EXACT_INTEGERS = 2**53  # every integer up to here is a double
INEXACT, NUDGE = 4, 2  # last 3 bits of a rest: flag of numbers beyond 103 bits, offset to order them
LARGEST_EXPONENT = 1000  # largest decimal exponent in constraints
NANOSECONDS: dict[str, int | Fraction] = {
    "W": 7 * 86_400 * 10**9, "D": 86_400 * 10**9, "h": 3_600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6,
    "us": 1000, "ns": 1, "ps": Fraction(1, 10**3), "fs": Fraction(1, 10**6), "as": Fraction(1, 10**9),
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LARGEST = float(np.finfo(np.float64).max)
_BITS, _DOUBLE = struct.Struct("<q"), struct.Struct("<d")


class Scalar(NamedTuple):
    """Number, timestamp or boolean; scalars of one kind compare by (key, rest)."""

    kind: int
    key: int
    rest: int


def ordered_bits(number: float) -> int:
    """Return a 64-bit integer that grows with the number.

    >>> ordered_bits(-1.5) < ordered_bits(0.0) == 0 < ordered_bits(5e-324) < ordered_bits(float("inf"))
    True
    """
    bits: int = _BITS.unpack(_DOUBLE.pack(number + 0.0))[0]  # -0.0 becomes 0.0
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


def number_of_bits(bits: int) -> float:
    """Return the number with these ordered_bits."""
    number: float = _DOUBLE.unpack(_BITS.pack(bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF))[0]
    return number


def scalar_of(value: Any) -> Scalar | None:
    """Return a number, timestamp or boolean as a Scalar; None for NaN, NaT and values of any other type.

    >>> scalar_of(2**53 + 1) > scalar_of(2.0**53), scalar_of(Decimal("0.1")) < scalar_of(0.1)
    (True, True)
    >>> scalar_of(True).kind == BOOLEAN, scalar_of(float("nan")), scalar_of("text")
    (True, None, None)
    """
    known = type(value)
    if known is float:
        return None if value != value else Scalar(NUMBER, ordered_bits(value), 0)
    if known is bool:
        return Scalar(BOOLEAN, int(value), 0)
    if known is int:
        if -EXACT_INTEGERS <= value <= EXACT_INTEGERS:
            return Scalar(NUMBER, ordered_bits(value), 0)
        return _long_number(Fraction(value))
    if isinstance(value, datetime):
        return _instant(value) if value == value else None  # pandas' NaT is a datetime
    if isinstance(value, date):
        return _instant(datetime(value.year, value.month, value.day, tzinfo=UTC))
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, np.datetime64):
        return _numpy_instant(value)
    if isinstance(value, np.longdouble) and np.isfinite(value):
        return _long_number(exact_number(value))
    if isinstance(value, float | np.floating):
        return scalar_of(float(value))
    if isinstance(value, np.bool_):
        return scalar_of(bool(value))
    if isinstance(value, np.timedelta64):  # NumPy counts it among the integers
        return None
    return scalar_of(int(value)) if isinstance(value, int | np.integer) else None


def _decimal(value: Decimal) -> Scalar | None:
    if value.is_nan():
        return None
    return scalar_of(float(value)) if value.is_infinite() else _long_number(exact_number(value))


def exact_number(value: Any) -> Fraction:
    """Return a finite number as a fraction; decimals beyond LARGEST_EXPONENT are cut to just beyond it.

    >>> exact_number(Decimal("0.1")), exact_number(Decimal("1E+999999999")) == 10 ** (LARGEST_EXPONENT + 1)
    (Fraction(1, 10), True)
    """
    if isinstance(value, Decimal) and value and abs(value.adjusted()) > LARGEST_EXPONENT:  # would not fit in memory
        beyond = Fraction(10) ** (LARGEST_EXPONENT + 1 if value.adjusted() > 0 else -LARGEST_EXPONENT - 1)
        return -beyond if value < 0 else beyond
    return Fraction(int(value)) if isinstance(value, np.integer) else Fraction(*value.as_integer_ratio())


def exact_decimal(exact: Fraction) -> Decimal:
    """Return a fraction as a decimal; its denominator has no factors but 2 and 5.

    >>> exact_decimal(Fraction(1, 8)), exact_decimal(Fraction(10**400))
    (Decimal('0.125'), Decimal('1E+400'))
    """
    # More digits than needed: each halving adds one.
    digits = exact.numerator.bit_length() + exact.denominator.bit_length() + 1
    context = Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX)
    return context.divide(Decimal(exact.numerator), Decimal(exact.denominator)).normalize(context)


def _long_number(exact: Fraction) -> Scalar:
    """Return a number that need not be a double: the key of the nearest double, and 50 bits of the remainder."""
    nearest = _nearest(exact)
    left = exact - Fraction(nearest)
    if not left:
        return Scalar(NUMBER, ordered_bits(nearest), 0)
    bits = ordered_bits(_nearest(left)) & ~7
    below = number_of_bits(bits)
    if math.isfinite(below) and Fraction(below) > left:
        bits -= 8
        below = number_of_bits(bits)
    is_whole = math.isfinite(below) and Fraction(below) == left  # no double is below the most negative one
    return Scalar(NUMBER, ordered_bits(nearest), bits if is_whole else bits | INEXACT)


def _nearest(exact: Fraction) -> float:
    """Return the nearest finite double."""
    try:
        return float(exact)
    except OverflowError:
        return _LARGEST if exact > 0 else -_LARGEST


def _instant(value: datetime) -> Scalar:
    aware = value if value.tzinfo is not None and value.utcoffset() is not None else value.replace(tzinfo=UTC)
    return Scalar(TIME, (aware - _EPOCH) // _MICROSECOND, int(getattr(value, "nanosecond", 0)))


def _numpy_instant(value: np.datetime64) -> Scalar | None:
    if np.isnat(value):
        return None
    unit, count = np.datetime_data(value.dtype)
    if unit in ("Y", "M"):  # different lengths; days fit into 64 bits for all months
        value, unit, count = value.astype("datetime64[D]"), "D", 1
    nanoseconds = int(int(value.astype(np.int64)) * count * NANOSECONDS[unit])
    microseconds, rest = divmod(nanoseconds, 1000)
    return Scalar(TIME, microseconds, rest) if abs(microseconds) < 2**63 else None
