"""Operators on scalars and text: the operands each takes, the test it is reduced to, and its CQL2 text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from contrada.codes import ANY_ONE_BYTE, ANY_RUN_BYTE, BACKWARDS, INTERVAL, LIKE, NOT, PATTERN, PRESENT, SET, TEXT
from contrada.errors import FilterError
from contrada.model import values
from contrada.model.forms import ACCENTI, CASEI, Bound, Test
from contrada.model.text import encode_like, encode_text, fold, like_of, parse_like, plain_text

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
PAIRS = ("between", "not between")
SETS = ("in", "not in")
TEXTUAL = ("prefix", "suffix", "contains", "like", "not prefix", "not suffix", "not contains", "not like")
NULLS = ("is null", "is not null")
OPERATORS = (*COMPARISONS, *PAIRS, *SETS, *TEXTUAL, *NULLS)
_SMALLEST, _BEYOND = Fraction(1, 10**values.LARGEST_EXPONENT), Fraction(10 ** (values.LARGEST_EXPONENT + 1))
_RUN, _ONE = bytes([ANY_RUN_BYTE]), bytes([ANY_ONE_BYTE])
_HARD_PATTERN = re.compile(r"\\|[%_][%_]")
_SHAPES = {(False, False): "equals", (False, True): "prefix", (True, False): "suffix", (True, True): "contains"}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")
_RESERVED = {
    "ACCENTI", "AND", "BBOX", "BETWEEN", "CASEI", "CIRCLE", "DATE", "DIV", "ENVELOPE", "FALSE", "GEOMETRYCOLLECTION",
    "IN",
    "INTERVAL", "IS", "LIKE", "LINESTRING", "MULTILINESTRING", "MULTIPOINT", "MULTIPOLYGON", "NOT", "NULL", "OR",
    "POINT", "POLYGON", "TIMESTAMP", "TRUE",
}  # fmt: skip


def printed_name(name: str) -> str:
    """Return a name as CQL2 text, quoted unless it is plain.

    >>> printed_name("area"), printed_name("sea.depth"), printed_name("my area"), printed_name("in")
    ('area', 'sea.depth', '"my area"', '"in"')
    """
    is_plain = _PLAIN_NAME.match(name) and name.upper() not in _RESERVED
    return name if is_plain else '"' + name.replace('"', '""') + '"'


class Column(NamedTuple):
    """Placeholder in a template for a value from a column of the subscriptions' table.

    >>> from contrada import Constraint
    >>> str(Constraint("severity", ">=", Column("at_least")))
    'severity >= $at_least'
    """

    name: str

    def __str__(self) -> str:
        return f"${printed_name(self.name)}"


def normalised(operator: str) -> str:
    """Return the normalised name of an operator; unknown operators raise a FilterError.

    >>> normalised("NOT  IN"), normalised("<>")
    ('not in', '!=')
    """
    name = " ".join(operator.lower().split())
    name = "!=" if name == "<>" else name
    if name not in OPERATORS:
        raise FilterError(f"unknown operator {operator!r:.60}; operators: {', '.join(OPERATORS)}; or a Relation")
    return name


def checked_operand(operator: str, value: Any) -> Any:
    """Return the operand to keep: a value, a pair, a tuple of members, text, or None."""
    if operator in NULLS:
        if value is not None:
            raise FilterError(f"`{operator}` takes no value, got {value!r:.60}")
        return None
    if operator in PAIRS or operator in SETS:
        if isinstance(value, str | Column) or not isinstance(value, Iterable):
            asked = "two values" if operator in PAIRS else "several values"
            raise FilterError(f"`{operator}` needs {asked}, got {type(value).__name__}")
        many = tuple(value)
        if operator in PAIRS and len(many) != 2:
            raise FilterError(f"`{operator}` needs two values, got {len(many)}")
        kinds = {kind_of(operator, item) for item in many if not isinstance(item, Column)}
        if len(kinds) > 1 or not many:
            names = ", ".join(sorted(values.KIND_NAMES[kind] for kind in kinds)) or "none"
            raise FilterError(f"`{operator}` needs values of one kind, got {names}")
        return tuple(plain_text(item) if isinstance(item, str) else item for item in many)
    if isinstance(value, Column):
        return value
    if operator in TEXTUAL and not isinstance(value, str):
        raise FilterError(f"`{operator}` needs text, got {type(value).__name__}")
    kind_of(operator, value)
    return plain_text(value) if isinstance(value, str) else value


def kind_of(operator: str, value: Any) -> int:
    """Return the kind of an operand, or raise FilterError if the operator cannot take it."""
    if isinstance(value, str):
        return values.TEXT
    scalar = values.scalar_of(value)
    if scalar is None:
        if isinstance(value, float | Decimal | np.floating | np.datetime64):
            raise FilterError(f"`{operator} {value}` is never true: nothing compares with {value}")
        hint = "; use `is null` to test for absence" if value is None else ""
        raise FilterError(f"`{operator}` needs text, number, boolean or timestamp, got {type(value).__name__}{hint}")
    is_long = scalar.kind == values.NUMBER and scalar.rest  # no double
    if is_long and not _SMALLEST <= abs(values.exact_number(value)) < _BEYOND:
        raise FilterError(f"`{operator}`: decimal exponents can be at most {values.LARGEST_EXPONENT} in magnitude")
    if scalar.kind == values.BOOLEAN and operator not in ("=", "!=", *SETS):
        raise FilterError(f"`{operator}` does not apply to booleans")
    return scalar.kind


def test_of(operator: str, value: Any, casei: bool, accenti: bool) -> Test:
    """Return the test that a constraint is reduced to."""
    negated = NOT if is_negation(operator) else 0
    if operator in NULLS:
        there = Bound((int(operator == "is not null"), 0), False)
        return Test(PRESENT, INTERVAL, there, there)
    if operator in TEXTUAL:
        return _text_test(operator, value, casei, accenti, negated)
    items = value if operator in PAIRS or operator in SETS else (value,)
    operands: list[Any]
    if isinstance(items[0], str):
        form = TEXT + (casei * CASEI | accenti * ACCENTI)
        operands = [encode_text(fold(item, casei, accenti)) for item in items]
    else:
        scalars = [_scalar(item) for item in items]
        form = scalars[0].kind
        operands = [scalar[1:] for scalar in scalars]
    if operator in SETS:
        return Test(form, SET + negated, members=tuple(sorted(set(operands))))
    low, high = operands[0], operands[-1]
    if operator in ("<", "<="):
        return Test(form, INTERVAL, None, Bound(high, operator == "<"))
    if operator in (">", ">="):
        return Test(form, INTERVAL, Bound(low, operator == ">"), None)
    return Test(form, INTERVAL + negated, Bound(low, False), Bound(high, False))


def exact_operands(value: Any) -> frozenset[Fraction]:
    """Return the numbers among operands that are too long for a test to distinguish."""
    found = set()
    for item in value if type(value) is tuple else (value,):
        if type(item) is float or (type(item) is int and abs(item) <= values.EXACT_INTEGERS):  # most operands
            continue
        scalar = None if isinstance(item, str) else values.scalar_of(item)
        if scalar is not None and scalar.kind == values.NUMBER and scalar.rest & 7 == values.INEXACT:
            found.add(values.exact_number(item))
    return frozenset(found)


def is_negation(operator: str) -> bool:
    """Return True for `!=` and the operators that begin with `not`."""
    return operator == "!=" or operator.startswith("not ")


def negation_of(operator: str) -> str:
    """Return the operator that is true where `operator` is false, and unknown where it is unknown.

    >>> negation_of("<"), negation_of("not in"), negation_of("is null")
    ('>=', 'in', 'is not null')
    """
    known = {"=": "!=", "<": ">=", "<=": ">", "is null": "is not null"}
    known |= {contrary: name for name, contrary in known.items()}
    return known.get(operator) or (operator[4:] if operator.startswith("not ") else f"not {operator}")


def _scalar(value: Any) -> values.Scalar:
    found = values.scalar_of(value)
    assert found is not None, "operands are checked before"
    return found


def _text_test(operator: str, value: str, casei: bool, accenti: bool, negated: int) -> Test:
    """Return the test of a text operator: a simple pattern becomes an interval of the text, forwards or reversed."""
    folded = casei * CASEI | accenti * ACCENTI
    shape, literal = operator.removeprefix("not "), None
    if shape == "like":
        shape, literal, pattern = _shape(value, casei, accenti)
        if literal is None:
            return Test(PATTERN + folded, LIKE + negated, pattern=pattern)
    text = encode_text(fold(value, casei, accenti) if literal is None else literal)
    if shape == "equals":
        return Test(TEXT + folded, INTERVAL + negated, Bound(text, False), Bound(text, False))
    if not text:
        return Test(TEXT + folded, INTERVAL + negated)
    if shape == "contains":
        return Test(PATTERN + folded, LIKE + negated, pattern=_RUN + text + _RUN)
    text = text if shape == "prefix" else text[::-1]
    # No byte of UTF-8 is 255, so this is the least text above all that begin with the text.
    after = text[:-1] + bytes([text[-1] + 1])
    form = TEXT if shape == "prefix" else BACKWARDS
    return Test(form + folded, INTERVAL + negated, Bound(text, False), Bound(after, True))


def _shape(value: str, casei: bool, accenti: bool) -> tuple[str, str | None, bytes]:
    """Return the shape of a LIKE pattern with its one literal; its code if it has no simple shape."""
    if casei or accenti or _HARD_PATTERN.search(value):
        like = parse_like(value).folded(casei, accenti)
        shape, literal = like.shape()
        return shape, literal, encode_like(like)
    # Without folding, escapes and adjacent wildcards the text is already in normal form: faster for templates.
    is_open, is_open_behind = value.startswith("%"), value.endswith("%")
    literal = value[is_open : len(value) - is_open_behind]
    if "%" not in literal and "_" not in literal:
        return _SHAPES[is_open, is_open_behind], literal, b""
    return "pattern", None, encode_text(value).replace(b"%", _RUN).replace(b"_", _ONE)


def printed(name: str, operator: str, value: Any, casei: bool, accenti: bool) -> str:
    """Return a constraint as CQL2 text."""
    if operator in NULLS:
        return f"{name} {operator.upper()}"

    def wrapped(text: str) -> str:
        text = f"ACCENTI({text})" if accenti else text
        return f"CASEI({text})" if casei else text

    sign = "<>" if operator == "!=" else operator.upper()
    if operator in TEXTUAL and not isinstance(value, Column):
        sign, value = "NOT LIKE" if is_negation(operator) else "LIKE", like_of(operator, value).to_text()
    items = [wrapped(printed_value(item)) for item in (value if type(value) is tuple else (value,))]
    operands = f"({', '.join(items)})" if operator in SETS else " AND ".join(items)
    return f"{wrapped(name)} {sign} {operands}"


def printed_value(value: Any) -> str:
    """Return a literal of CQL2. Numbers with a point are read as the nearest double, so other decimals are marked.

    >>> printed_value("it's"), printed_value(True), printed_value(2.5), printed_value(date(2020, 1, 2))
    ("'it''s'", 'TRUE', '2.5', "TIMESTAMP('2020-01-02T00:00:00Z')")
    >>> printed_value(Decimal("0.5")), printed_value(Decimal("0.1"))
    ('0.5', "DECIMAL('0.1')")
    """
    if isinstance(value, Column):
        return str(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool | np.bool_):
        return "TRUE" if value else "FALSE"
    scalar = _scalar(value)
    if isinstance(value, datetime | date | np.datetime64):
        seconds, micros = divmod(scalar.key, 10**6)
        days, seconds = divmod(seconds, 86400)
        day = re.sub(r"^-(?=\d{3}-)", "-0", str(np.datetime64(days, "D")))  # years before Christ have four digits too
        fraction = f".{micros * 1000 + scalar.rest:09d}".rstrip("0").rstrip(".")
        return f"TIMESTAMP('{day}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}Z')"
    if scalar.rest and not isinstance(value, int | np.integer):
        return f"DECIMAL('{value if isinstance(value, Decimal) else values.exact_decimal(values.exact_number(value))}')"
    text = str(value.item() if isinstance(value, np.generic) else value)
    # CQL2 has no literal for infinity; this one is rounded to it.
    return text.lower().replace("infinity", "inf").replace("inf", "1e999") if "inf" in text.lower() else text
