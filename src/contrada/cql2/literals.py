"""Read literals: numbers exact or correctly rounded, dates and timestamps of any year down to nanoseconds."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

import numpy as np

from contrada.errors import FilterError
from contrada.model.restore import time_of
from contrada.shown import short

MAX_DECIMAL_DIGITS = 10_000
MAX_INTEGER_DIGITS = 1200  # beyond what constraints compare, and below Python's limit for reading integers
_DATE = re.compile(r"([+-]?[0-9]{4,})-[0-9]{2}-[0-9]{2}\Z")
_TIMESTAMP = re.compile(
    r"([+-]?[0-9]{4,}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?([Zz]|[+-][0-9]{2}:?[0-9]{2})?\Z"
)


def number_of(text: str) -> int | float:
    """Return the number of a literal: exact for an integer without point and exponent, else the nearest double.

    >>> number_of("9007199254740993"), number_of("0.1"), number_of("1e3"), number_of("1e999")
    (9007199254740993, 0.1, 1000.0, inf)
    """
    if not text.lstrip("+-").isdigit():
        return float(text)
    if len(text) > MAX_INTEGER_DIGITS:
        raise FilterError(f"integer has {len(text):,} digits; at most {MAX_INTEGER_DIGITS:,} are supported")
    return int(text)


def decimal_of(text: str) -> Decimal:
    """Return the exact decimal of a literal.

    >>> decimal_of("0.10")
    Decimal('0.10')
    """
    if len(text) > MAX_DECIMAL_DIGITS:  # longer ones would make slow fractions
        raise FilterError(f"decimal has {len(text):,} digits; at most {MAX_DECIMAL_DIGITS:,} are supported")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise FilterError(f"{short(text)} is not a decimal number") from None


def date_of(text: str) -> date | np.datetime64:
    """Return the date of a literal; a date stands for its midnight in UTC.

    >>> date_of("2020-01-02"), date_of("12020-01-02")
    (datetime.date(2020, 1, 2), np.datetime64('12020-01-02'))
    """
    match = _DATE.match(text)
    if match is None:
        raise FilterError(f"{short(text)} is not a date; write a date as DATE('2020-01-31')")
    if len(match[1].lstrip("+-0")) > 9:
        raise FilterError(f"{short(text)} is outside the range of dates (years below 10^9)")
    try:
        day = np.datetime64(text, "D")
    except ValueError as error:
        raise FilterError(f"{short(text)} is not a date: the calendar has no such day") from error
    known: object = day.item()  # a number of days if the year is not within 1 to 9999
    return known if isinstance(known, date) else day


def timestamp_of(text: str) -> datetime | np.datetime64:
    """Return the timestamp of a literal, in UTC if no zone is given, down to nanoseconds.

    >>> timestamp_of("2020-01-02T03:04:05Z"), timestamp_of("2020-01-02T03:04:05.123456789+01:00")
    (datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc),
     np.datetime64('2020-01-02T02:04:05.123456789'))
    """
    match = _TIMESTAMP.match(text)
    if match is None:
        hint = "; write a day as DATE('2020-01-31')" if _DATE.match(text) else ""
        raise FilterError(f"{short(text)} is not a timestamp, such as TIMESTAMP('2020-01-31T18:30:00Z'){hint}")
    day, *clock, fraction, zone = match.groups()
    hours, minutes, seconds = map(int, clock)
    if hours > 23 or minutes > 59 or seconds > 59:
        raise FilterError(f"{short(text)} is not a timestamp: the time of day is outside 00:00:00 to 23:59:59")
    fraction = fraction or ""
    if fraction[9:].strip("0"):
        raise FilterError(f"{short(text)} has more than nine digits after the point; the limit is nanoseconds")
    midnight = date_of(day)
    days = midnight.toordinal() - 719_163 if isinstance(midnight, date) else int(midnight.astype(np.int64))
    whole = days * 86_400 + hours * 3600 + minutes * 60 + seconds - _offset(text, zone)
    return _instant(text, whole * 10**9 + int(fraction[:9].ljust(9, "0")))


def _offset(text: str, zone: str | None) -> int:
    """Return the offset of a zone from UTC in seconds; positive to the east."""
    if zone is None or zone in "Zz":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 23 or minutes > 59:
        raise FilterError(f"{short(text)} is not a timestamp: the zone is outside -23:59 to +23:59")
    return (hours * 3600 + minutes * 60) * (-1 if zone[0] == "-" else 1)


def _instant(text: str, nanoseconds: int) -> datetime | np.datetime64:
    """Return the instant `nanoseconds` after 1970-01-01 UTC: a datetime if it can hold it, else a datetime64."""
    if nanoseconds % 1000 == 0 and abs(nanoseconds) < 2**63 * 1000:
        return time_of(nanoseconds // 1000, 0)
    for step in (1, 10, 100):
        if nanoseconds % step == 0 and abs(nanoseconds) < 2**63 * step:
            return np.datetime64(nanoseconds // step, ("ns", step))
    ranges = "292 years around 1970 with nanoseconds, 292,000 years with microseconds"
    raise FilterError(f"{short(text)} is outside the range of timestamps: {ranges}")
