"""How long to wait before the next attempt."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

FIRST_SECONDS, MOST_SECONDS = 0.1, 10.0


class Backoff:
    """Waiting times that double from `first` to `most` seconds, each shortened by up to a half at random.

    >>> backoff = Backoff(1, 5, lambda: 1.0)
    >>> [backoff.seconds() for _ in range(4)], backoff.seconds(retry_after=30)
    ([1.0, 2.0, 4.0, 5.0], 35.0)
    """

    def __init__(
        self, first: float = FIRST_SECONDS, most: float = MOST_SECONDS, draw: Callable[[], float] = random.random
    ) -> None:
        self._first, self._most, self._draw = first, most, draw
        self._failures = 0

    def seconds(self, retry_after: float = 0) -> float:
        """Return the time to wait after one more failure, at least `retry_after`."""
        bound = min(self._most, self._first * 2.0 ** min(self._failures, 60))
        self._failures += 1
        return retry_after + bound * (1 + self._draw()) / 2

    def reset(self) -> None:
        """Begin anew after a success."""
        self._failures = 0


def retry_after_of(text: str | None, now: datetime | None = None) -> float:
    """Return the seconds of a header Retry-After, which has a number or a date; 0 without one that can be read.

    >>> retry_after_of("7"), retry_after_of("Wed, 21 Oct 2015 07:28:00 GMT", datetime(2015, 10, 21, 7, 27, tzinfo=UTC))
    (7.0, 60.0)
    """
    if not text:
        return 0.0
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - (now or datetime.now(UTC))).total_seconds())
