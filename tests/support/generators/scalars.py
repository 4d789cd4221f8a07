"""Hypothesis strategies for values, constraints and messages: few and coarse, so that tests are often true.

Every attribute has a kind that most of its values and constraints share, by its position among the attributes; the
rest are of any kind. So a conjunction over several attributes is true often enough, and unknown often enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from contrada.geometry import Region
from contrada.model import Constraint, Filter, Predicate
from generators.strategies import circles, distances, points, regions, relation_sets, relations

Values = st.SearchStrategy[Any]

KINDS = ("number", "text", "timestamp", "spatial", "boolean")
ATTRIBUTES = ("size", "name", "at", "area", "flag")

SETS = ["in", "not in"]
ORDERED = ["=", "!=", "<>", "<", "<=", ">", ">=", "between", "not between", *SETS]
SUBSTRINGS = [f"{negation}{test}" for negation in ("", "not ") for test in ("prefix", "suffix", "contains")]
LIKES = ["like", "not like"]
NULLS = ["is null", "is not null"]
OPERATORS = {
    "number": ORDERED,
    "timestamp": ORDERED,
    "boolean": ["=", "!=", *SETS],
    "text": [*ORDERED, *SUBSTRINGS, *LIKES, *LIKES],
}

COARSE_NUMBERS = [-1, 0, 1, 2, 0.5, -0.0, 1.0, Decimal("0.1"), 0.1, 2**53, 2**53 + 1, 2.0**53, Decimal("0.5")]
HARD_NUMBERS = [
    *(np.int8(-1), np.uint8(2), np.int64(2**53 + 1), np.uint64(2**64 - 1)),
    *(np.float16(0.1), np.float32(0.1), np.float64(0.5), np.longdouble(0.1), np.float32(math.inf)),
    *(2**63, 2**63 - 1, -(2**63), -(2**63) - 1, 2.0**63, 2**64, 2.0**64),
    *(2**1024, -(2**1024), 2**1024 + 1, 2**1024 - 2**970, 10**400, -(10**400)),
    *(math.inf, -math.inf, Decimal("Infinity"), Decimal("-Infinity"), 1.7976931348623157e308, 5e-324, -5e-324),
    *(Decimal("1E+400"), Decimal("-1E+400"), Decimal("1E-400"), Decimal("-0.0"), Decimal("1.0"), Decimal("0.10")),
    *(2**53 - 1, 2.0**53 - 1, -(2**53) - 1, -(2.0**53), Decimal(2**53 + 1), Decimal("9007199254740992.5")),
]
TINY = Decimal("1E-60")
NOT_NUMBERS = [math.nan, -math.nan, np.float32(math.nan), Decimal("NaN"), Decimal("sNaN"), np.datetime64("NaT")]

LETTERS = "aAbeEéÉsSßİ\u0301%_\\\n😀\ud800"
WORDS = [
    *("", "a", "A", "ab", "Ab", "b", "e", "é", "É", "e\u0301", "E\u0301", "\u0301"),
    *("Straße", "STRASSE", "strasse", "Strase", "%", "_", "\\", "a%", "a\x00", "a\x00b"),
    *("가", "\u1100\u1161", "ᾳ", "\u03c3", "\u03c2", "\u03a3", "😀", "\ud83d\ude00", "\ud800", "\udfff"),
]
LIKE_TOKENS = ["%", "%", "_", "a", "A", "b", "é", "e", "ß", "s", "tra", "\u0301", "😀", "\ud800", "\n"]

INDIA, LINE_ISLANDS, HOWLAND = (timezone(timedelta(hours=hours)) for hours in (5.5, 14, -12))
INSTANTS = [
    *(datetime(2000, 1, 1), datetime(2000, 1, 1, tzinfo=UTC), date(2000, 1, 1)),
    *(datetime(2000, 1, 1, 5, 30, tzinfo=INDIA), np.datetime64("2000"), np.datetime64("2000-01-01T00:00", "ns")),
    *(datetime(2000, 1, 1, 0, 0, 0, 1), np.datetime64("2000-01-01T00:00:00.000000001"), np.datetime64("2000-01", "M")),
    *(date(1999, 12, 31), datetime(1999, 12, 31, 23, 59, 59, 999_999), np.datetime64("1999-12-31T23:59:59.999999999")),
    *(datetime(1970, 1, 1), np.datetime64(0, "s"), np.datetime64(-1, "ns"), np.datetime64(3, "W")),
]
HARD_INSTANTS = [  # the ends of what each type can say; nanoseconds in 64 bits end in 1677 and in 2262
    *(datetime.min, datetime.max, date.min, date.max, np.datetime64("-0044-03-15"), np.datetime64("30000")),
    *(datetime.min.replace(tzinfo=LINE_ISLANDS), datetime.max.replace(tzinfo=HOWLAND)),  # beyond the years in UTC
    *(np.datetime64(2**63 - 1, "ns"), np.datetime64(1 - 2**63, "ns"), np.datetime64(2**63 - 1, "us")),
    *(datetime(2262, 4, 11, 23, 47, 16, 854_775), datetime(2262, 4, 11, 23, 47, 16, 854_776), date(1677, 9, 21)),
]
# Values that no built-in operator asks about, and objects that are no values: a message with one is refused.
UNSUPPORTED: list[Any] = [timedelta(1), np.timedelta64(1, "D"), time(12), [1], (1,), np.array([1, 2])]
REFUSED: list[Any] = [
    *(b"a", 1j, Fraction(1, 2), frozenset({1}), object(), object, np.bytes_(b"a"), np.complex128(1), range(2), ...),
]


def near(value: float) -> list[Any]:
    """A float, its neighbours, and decimals at it and as close to it as 35 digits allow, on both sides."""
    exact = Decimal(value)
    rounded = [Context(prec=35, rounding=way).create_decimal(exact) for way in (ROUND_FLOOR, ROUND_CEILING)]
    return [value, math.nextafter(value, -math.inf), math.nextafter(value, math.inf), exact, *rounded]


NEAR_NUMBERS = [number for value in (0.1, 1 / 3, -0.7, 1e22, 1e-7, 2.0**53 + 2) for number in near(value)]
# Closer to operands than a table lets operands be to each other: for messages alone.
CLOSE_NUMBERS = [
    *(10**400 + 1, 10**400 - 1, 10**401, 2**1024 + 2, -(2**1024) - 1, Decimal("2E-400"), Decimal("-1E-400")),
    *(Context(prec=90).add(n, step) for n in NEAR_NUMBERS if isinstance(n, Decimal) for step in (TINY, -TINY)),
    *(Context(prec=90).add(Decimal("0.1"), step) for step in (TINY, -TINY)),
]


def mostly(usual: Values, rare: Values) -> Values:
    """Seven in ten of one strategy; `|` would give every alternative within the two the same weight."""
    return st.integers(0, 9).flatmap(lambda roll: usual if roll < 7 else rare)


def numbers() -> Values:
    """Numbers of every type, mostly a few that are equal or nearly so; never NaN."""
    digits = st.integers(-(10**35), 10**35).map(lambda n: Decimal(n).scaleb(-34, Context(prec=40)))
    drawn = st.integers() | st.floats(allow_nan=False) | st.decimals(-3, 3, places=1) | digits
    hard = st.sampled_from(HARD_NUMBERS) | st.sampled_from(NEAR_NUMBERS) | drawn
    return mostly(st.sampled_from(COARSE_NUMBERS), hard)


def texts() -> st.SearchStrategy[str]:
    """Short text: empty, with accents and without, in both cases, with lone surrogates and the wildcards of LIKE."""
    return mostly(st.sampled_from(WORDS), st.text(LETTERS, max_size=4) | st.sampled_from(WORDS).map(np.str_))


def instants() -> Values:
    """Timestamps of every type, many of them equal; never NaT, finer than nanoseconds or beyond 64-bit microseconds."""
    zones = st.none() | st.sampled_from([INDIA, LINE_ISLANDS])
    hours = st.builds(lambda hour, zone: datetime(2000, 1, 1, hour, tzinfo=zone), st.integers(0, 23), zones)
    return mostly(st.sampled_from(INSTANTS), st.sampled_from(HARD_INSTANTS) | hours)


def boxes() -> st.SearchStrategy[Region]:
    """Few boxes, so that they are often equal, meet or lie in each other."""
    side = st.sampled_from([(0, 1), (0, 2), (1, 2), (0, 4), (1, 3)])
    return st.builds(lambda x, y: Region.box(x[0], y[0], x[1], y[1]), side, side)


@cache
def of_kind(kind: str) -> Values:
    """Values of one kind, all of which may be operands; made once, which takes longer than drawing from it."""
    if kind == "boolean":
        return st.sampled_from([True, False, np.True_, np.False_])
    if kind == "spatial":
        return mostly(boxes(), points() | regions())
    return {"number": numbers, "text": texts, "timestamp": instants}[kind]()


@cache
def carried(kind: str) -> Values:
    """Values of one kind that messages have: those that may be operands, and circles."""
    return mostly(boxes(), points() | regions() | circles()) if kind == "spatial" else of_kind(kind)


@cache
def oddities() -> Values:
    """What no test is true or false of: null, NaN, NaT and objects of types that are not supported."""
    return st.none() | st.sampled_from(NOT_NUMBERS) | st.sampled_from(UNSUPPORTED)


@cache
def values() -> Values:
    """Values that a message may carry, of every kind and of none; not all of them may be operands."""
    return st.one_of(*(carried(kind) for kind in KINDS), st.sampled_from(CLOSE_NUMBERS), oddities())


def favourite(attributes: Sequence[str], attribute: str) -> str:
    """The kind of most values of an attribute.

    >>> favourite(["x", "y"], "y")
    'text'
    """
    return KINDS[attributes.index(attribute) % len(KINDS)]


@st.composite
def messages(draw: st.DrawFn, attributes: Sequence[str] = ATTRIBUTES) -> dict[str, Any]:
    """Messages with most of the attributes, mostly of their favourite kinds."""
    message: dict[str, Any] = {}
    for name in attributes:
        way = draw(st.sampled_from(["usual"] * 12 + ["any", "any", "odd", "absent"]))
        if way == "usual":
            message[name] = draw(carried(favourite(attributes, name)))
        elif way != "absent":
            message[name] = draw(values() if way == "any" else oddities())
    return message


@cache
def spelled(operator: str) -> st.SearchStrategy[str]:
    """An operator as users may write it."""
    return st.sampled_from([operator, operator, operator.upper(), operator.title().replace(" ", " \t ")])


@st.composite
def like_patterns(draw: st.DrawFn) -> tuple[str, str]:
    """A LIKE pattern, often one that many texts match, and its escape."""
    escape = draw(st.sampled_from(["\\", "\\", "!"]))
    escaped = [escape + character for character in ("%", "_", escape, "a")]
    tokens = draw(st.lists(st.sampled_from([*LIKE_TOKENS, *escaped]), max_size=4))
    if draw(st.booleans()):
        tokens.insert(draw(st.integers(0, len(tokens))), "%")
    return "".join(tokens), escape


@cache
def operands(operator: str, kind: str) -> Values:
    """What the operator, other than LIKE, may be given."""
    one = of_kind(kind)
    if operator in SETS:
        return st.lists(one, min_size=1, max_size=4) | st.lists(one, min_size=1, max_size=4).map(tuple)
    return st.tuples(one, one) if operator.endswith("between") else one


@st.composite
def scalar_constraints(draw: st.DrawFn, attribute: str, kind: str) -> Constraint:
    """Constraints of one kind of values that is not spatial."""
    operator = draw(st.sampled_from(OPERATORS[kind]))
    options: dict[str, Any] = {}
    if kind == "text":
        options = {"casei": draw(st.booleans()), "accenti": draw(st.booleans())}
    if operator in LIKES:
        value, options["escape"] = draw(like_patterns())
    elif operator in SUBSTRINGS:
        value = draw(mostly(st.text(LETTERS, max_size=1), texts()))
    else:
        value = draw(operands(operator, kind))
    return Constraint(attribute, draw(spelled(operator)), value, **options)


def spatial_constraints(attribute: str) -> st.SearchStrategy[Constraint]:
    """Relations to regions and points, and distances from them."""
    name = st.just(attribute)
    related = st.builds(Constraint, name, relations() | relation_sets(), of_kind("spatial"))
    return related | related | st.builds(Constraint, name, distances(), of_kind("spatial"))


@st.composite
def constraints(draw: st.DrawFn, attributes: Sequence[str] = ATTRIBUTES) -> Constraint:
    """Constraints with every operator, mostly of the favourite kind of their attribute."""
    attribute = draw(st.sampled_from(list(attributes)))
    usual = favourite(attributes, attribute)
    kind = draw(st.sampled_from([usual] * 14 + ["null", *KINDS]))
    if kind == "null":
        return Constraint(attribute, draw(st.sampled_from(NULLS).flatmap(spelled)))
    return draw(spatial_constraints(attribute) if kind == "spatial" else scalar_constraints(attribute, kind))


def filters(attributes: Sequence[str] = ATTRIBUTES) -> st.SearchStrategy[Filter]:
    """Conjunctions of one to three constraints, several of them perhaps on one attribute."""
    return st.lists(constraints(attributes), min_size=1, max_size=3).map(Filter)


def predicates(attributes: Sequence[str] = ATTRIBUTES) -> st.SearchStrategy[Predicate]:
    """Disjunctions of one to three filters."""
    return st.lists(filters(attributes), min_size=1, max_size=3).map(Predicate)
