"""The judge of constraints: whether one holds for a message, by plain Python.

Written for tests, to be obviously right rather than fast, and to share neither code nor method with the model, the
indexes and the kernels: numbers are fractions, instants are nanoseconds without limit, LIKE is a regular expression.
Only the relation of regions is taken from `contrada.relate`, which `oracles.rational` judges.

Three answers: True, False, and None where the test is unknown, as for an absent attribute or a value of another kind.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias
from unicodedata import category, normalize

import numpy as np
import shapely

from contrada.geometry import Circle, Line, Point, Region, RelationSet, relate
from contrada.model.reach import DistanceOperator
from oracles.circles import is_circle_within_circle, is_circle_within_distance, relation_of_circle
from oracles.distance import is_within, square_of_distance
from oracles.ogc import WORDS, word_holds

Message: TypeAlias = Mapping[str, object]
Comparable: TypeAlias = tuple[str, Any]  # a kind, and what compares within it
UNKNOWN: Comparable = ("unknown", None)

EPOCH = datetime(1970, 1, 1)
CYCLE_DAYS = 146_097  # the calendar repeats every 400 years
SECOND = 10**9
NANOSECONDS: dict[str, int | Fraction] = {
    **{unit: seconds * SECOND for unit, seconds in (("W", 604_800), ("D", 86_400), ("h", 3_600), ("m", 60), ("s", 1))},
    **{unit: Fraction(SECOND, 1000**k) for k, unit in enumerate(("ms", "us", "ns", "ps", "fs", "as"), start=1)},
}
TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "prefix": str.startswith,
    "suffix": str.endswith,
    "contains": operator.contains,
}


def predicate_holds(predicate: Iterable[Iterable[Any]], message: Message) -> bool:
    """True if a filter of the predicate holds.

    >>> from contrada import Constraint, Filter, Predicate
    >>> predicate_holds(Predicate([Filter([Constraint("size", "=", n)]) for n in (1, 2)]), {"size": 2})
    True
    """
    return any(filter_holds(part, message) for part in predicate)


def filter_holds(constraints: Iterable[Any], message: Message) -> bool:
    """True if every constraint of the filter is true; unknown is not enough.

    >>> from contrada import Constraint, Filter
    >>> filter_holds(Filter([Constraint("size", ">", 1), Constraint("size", "!=", 3)]), {"size": 2})
    True
    """
    return all(holds(constraint, message) is True for constraint in constraints)


def holds(constraint: Any, message: Message) -> bool | None:
    """Whether the constraint is true or false of the message; None if that is unknown.

    >>> from contrada import Constraint
    >>> asked = Constraint("size", "!=", 1)
    >>> [holds(asked, message) for message in ({"size": 2}, {"size": 1.0}, {"size": "1"}, {})]
    [True, False, None, None]
    """
    value, asked = message.get(constraint.attribute), constraint.operator
    if asked == "is null":
        return value is None
    if asked == "is not null":
        return value is not None
    if isinstance(value, Circle) and isinstance(asked, RelationSet | DistanceOperator):
        return _circle_holds(asked, constraint.value, value)
    if isinstance(value, Line) and isinstance(asked, RelationSet):
        return _line_holds(asked, constraint.value, value)
    if isinstance(asked, RelationSet):
        return relate(value, constraint.value) in asked if isinstance(value, (Region, Point)) else None
    if isinstance(asked, DistanceOperator):
        return _reach_holds(asked, constraint.value, value) if isinstance(value, (Region, Point, Line)) else None
    if asked == "!=":
        return _negated(_scalar_holds(constraint, "=", value))
    if asked.startswith("not "):
        return _negated(_scalar_holds(constraint, asked.removeprefix("not "), value))
    return _scalar_holds(constraint, asked, value)


def _reach_holds(asked: DistanceOperator, given: Any, value: Any) -> bool:
    """Whether a value has one of the outcomes that a distance constraint asks for: enclosed, reached, beyond."""
    shapes = value.to_shapely(), given.to_shapely()
    is_near = is_within(square_of_distance(*shapes), asked.number)
    spots = [shapely.Point(xy) for xy in shapely.get_coordinates(shapes[0])]
    is_circle = isinstance(given, Point)
    is_whole = is_circle and all(is_within(square_of_distance(spot, shapes[1]), asked.number) for spot in spots)
    return bool(asked.mask >> (0 if is_whole else 1 if is_near else 2) & 1)


def _circle_holds(asked: RelationSet | DistanceOperator, given: Any, circle: Circle) -> bool:
    """Whether a circle has a relation to a region or point, or an outcome of a distance constraint."""
    shape = given.to_shapely()
    if isinstance(asked, RelationSet):
        return relation_of_circle(circle, shape) in asked
    if isinstance(given, Line):
        is_near = is_within(square_of_distance(circle.center.to_shapely(), shape), asked.number, circle.radius)
    else:
        is_near = is_circle_within_distance(circle, shape, asked.number)
    is_whole = isinstance(given, Point) and is_circle_within_circle(circle, given.x, given.y, asked.number)
    return bool(asked.mask >> (0 if is_whole else 1 if is_near else 2) & 1)


def _line_holds(asked: RelationSet, given: Any, line: Line) -> bool | None:
    """Whether one of OGC's words within the set holds of a line; None if neither these nor those outside decide."""
    shapes = line.to_shapely(), given.to_shapely()
    words = [word for word in WORDS if hasattr(RelationSet, word)]
    sets = {(word, negated): ~getattr(RelationSet, word) if negated else getattr(RelationSet, word)
            for word in words for negated in (False, True)}  # fmt: skip
    for answer, whole in ((True, asked), (False, ~asked)):
        if any(own <= whole and word_holds(word, *shapes) != negated for (word, negated), own in sets.items()):
            return answer
    return None


def _negated(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def _scalar_holds(constraint: Any, asked: str, value: object) -> bool | None:
    """Whether the value passes a test that is not negated."""
    casei, accenti = constraint.casei, constraint.accenti
    given = constraint.value if asked in ("in", "between") else [constraint.value]
    found, *operands = (comparable(each, casei, accenti) for each in (value, *given))
    if found == UNKNOWN or any(kind != found[0] for kind, _ in operands):
        return None
    if asked == "in":
        return found in operands
    if asked == "between":
        return operands[0] <= found <= operands[1]
    if asked == "like":
        # A Constraint that keeps its pattern in standard form has no escape of its own.
        pattern = like_regex(constraint.value, getattr(constraint, "escape", "\\"), casei, accenti)
        return re.fullmatch(pattern, found[1], re.DOTALL) is not None
    return bool(TESTS[asked](found[1], operands[0][1]))


def comparable(value: object, casei: bool = False, accenti: bool = False) -> Comparable:
    """A value's kind and what compares within it; UNKNOWN for what no test is true or false of.

    >>> comparable(2**53 + 1) > comparable(2.0**53), comparable(0.1) == comparable(Decimal(0.1))
    (True, True)
    >>> comparable(True), comparable(float("nan"))
    (('boolean', True), ('unknown', None))
    """
    if isinstance(value, (bool, np.bool_)):
        return "boolean", bool(value)
    if isinstance(value, str):
        return "text", folded(value, casei, accenti)
    if isinstance(value, (date, np.datetime64)):  # a datetime is a date
        return UNKNOWN if isinstance(value, np.datetime64) and np.isnat(value) else ("timestamp", instant(value))
    if isinstance(value, np.timedelta64):  # to NumPy an integer
        return UNKNOWN
    if isinstance(value, (int, float, Decimal, np.integer, np.floating)):
        exact = exact_number(value)
        return UNKNOWN if exact is None else ("number", exact)
    return UNKNOWN


def exact_number(value: Any) -> tuple[int, Fraction] | None:
    """A number as (0, its exact value), the infinities as (-1, 0) and (1, 0), which compare right; None for NaN.

    >>> exact_number(0.5), exact_number(Decimal("-Infinity"))
    ((0, Fraction(1, 2)), (-1, Fraction(0, 1)))
    """
    if isinstance(value, (int, np.integer)):
        return 0, Fraction(int(value))
    if isinstance(value, Decimal):
        is_nan, is_infinite = value.is_nan(), value.is_infinite()  # a signalling NaN may not even be compared
    else:
        is_nan, is_infinite = bool(value != value), bool(abs(value) == math.inf)
    if is_nan:
        return None
    if is_infinite:
        return (1 if value > 0 else -1), Fraction(0)
    return 0, Fraction(*value.as_integer_ratio())


def instant(value: date | np.datetime64) -> int | Fraction:
    """Nanoseconds since 1970 began in UTC; without a zone a time is UTC, a date is its midnight.

    >>> instant(date(1970, 1, 2)) == instant(np.datetime64("1970-01-02")) == 86_400 * SECOND
    True
    """
    if isinstance(value, np.datetime64):
        return _numpy_instant(value)
    if not isinstance(value, datetime):
        return (value.toordinal() - EPOCH.toordinal()) * NANOSECONDS["D"]
    since = value.replace(tzinfo=None) - EPOCH - (value.utcoffset() or timedelta(0))
    return since // timedelta(microseconds=1) * NANOSECONDS["us"]


def _numpy_instant(value: np.datetime64) -> int | Fraction:
    unit, count = np.datetime_data(value.dtype)
    ticks = int(value.astype(np.int64)) * count
    if unit not in ("Y", "M"):
        return ticks * NANOSECONDS[unit]
    year, month = divmod(1970 * 12 + ticks * (12 if unit == "Y" else 1), 12)
    cycles, year_in_cycle = divmod(year - 1, 400)
    days = date(year_in_cycle + 1, month + 1, 1).toordinal() + cycles * CYCLE_DAYS - EPOCH.toordinal()
    return days * NANOSECONDS["D"]


def folded(text: str, casei: bool, accenti: bool) -> str:
    """The text without its accents and then without its case, as asked.

    >>> folded("É", casei=True, accenti=False), folded("É", casei=False, accenti=True)
    ('é', 'E')
    """
    if accenti:
        text = normalize("NFC", "".join(c for c in normalize("NFD", text) if category(c) != "Mn"))
    return text.casefold() if casei else text


def like_regex(pattern: str, escape: str, casei: bool, accenti: bool) -> str:
    r"""The regular expression that a LIKE pattern stands for, on folded text, with re.DOTALL.

    >>> print(like_regex("A!%_%", "!", casei=True, accenti=False))
    a%..*
    """
    tokens = re.findall(re.escape(escape) + r".|%|_|[^%_]", pattern, re.DOTALL)
    regex, literal = "", ""
    for token in [*tokens, ""]:  # the last one ends the last literal
        if token in ("%", "_", ""):
            regex += re.escape(folded(literal, casei, accenti)) + {"%": ".*", "_": ".", "": ""}[token]
            literal = ""
        else:
            literal += token[-1]
    return regex
