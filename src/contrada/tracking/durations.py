"""Read durations: `5m`, `1h30m`, a number of seconds, a timedelta."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from contrada.errors import ArgumentError
from contrada.shown import short

Duration = str | int | float | timedelta
MILLISECONDS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
MAX_DURATION = 1 << 60  # milliseconds; sums with times stay within 64 bits
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)


def duration_ms(value: Any, name: str = "duration") -> int:
    """Return a duration in whole milliseconds; raise ArgumentError unless it is at least one.

    >>> duration_ms("1h30m"), duration_ms(2.5), duration_ms(timedelta(minutes=5)), duration_ms("250ms")
    (5400000, 2500, 300000, 250)
    """
    found = _milliseconds(value)
    if found is None or not 1 <= found <= MAX_DURATION:
        raise ArgumentError(f"{name}: need a duration such as 90s, 5m or 1h30m, got {short(value)}")
    return int(found)


def _milliseconds(value: Any) -> float | None:
    if isinstance(value, timedelta):
        return value / timedelta(milliseconds=1)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value * 1_000 if value == value and abs(value) <= MAX_DURATION else None
    if not isinstance(value, str) or len(value) > 60:
        return None
    text = value.replace(" ", "")
    parts = _PART.findall(text)
    if not parts or "".join(map("".join, parts)) != text:
        return None
    return sum(float(number) * MILLISECONDS[unit] for number, unit in parts)
