"""Parse timestamps (RFC 3339), to the nanosecond."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from contrada.errors import FormatError
from contrada.shown import short

_SHAPE = re.compile(r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d)?)(?:[.,](\d+))?(Z|z|[+-]\d\d:?\d\d)?)?\Z", re.ASCII)


def instant_of(value: Any) -> datetime | np.datetime64:
    """Parse a date or RFC 3339 timestamp; without an offset it is in UTC.

    Returns a datetime in UTC up to microseconds, else a numpy.datetime64 of nanoseconds; finer digits are cut off.

    >>> instant_of("2024-05-01T12:00:00+02:00").isoformat()
    '2024-05-01T10:00:00+00:00'
    >>> instant_of("2024-05-01T12:00:00.123456789Z")
    np.datetime64('2024-05-01T12:00:00.123456789')
    """
    found = _SHAPE.match(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise FormatError(f"{short(value)} is not a timestamp; need text such as 2024-05-01T12:00:00Z")
    day, clock, fraction, offset = found.groups()
    try:
        whole = datetime.fromisoformat(f"{day}T{clock or '00:00'}").replace(tzinfo=UTC) - _offset(offset)
    except (ValueError, OverflowError) as error:
        raise FormatError(f"{short(value)} is not a timestamp: {error}") from error
    digits = (fraction or "")[:9].ljust(9, "0")
    if digits.endswith("000"):
        return whole.replace(microsecond=int(digits[:6]))
    seconds = (whole - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    if abs(seconds) >= 2**63 // 10**9:  # nanoseconds fit from 1678 to 2262
        return whole.replace(microsecond=int(digits[:6]))
    return np.datetime64(seconds * 10**9 + int(digits), "ns")


def _offset(text: str | None) -> timedelta:
    if text is None or text in "Zz":
        return timedelta(0)
    hours, minutes = int(text[1:3]), int(text[-2:])
    if hours > 23 or minutes > 59:
        raise ValueError(f"the offset {text} is outside -23:59 to +23:59")
    return (-1 if text[0] == "-" else 1) * timedelta(hours=hours, minutes=minutes)
