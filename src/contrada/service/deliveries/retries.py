"""When a delivery that failed is tried again, and when it is given up."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import NamedTuple


class RetryPolicy(NamedTuple):
    """Exponential back-off with full jitter; times are in seconds.

    An event is given up once `age` has passed since its first attempt, or after `attempts` (None: any number).
    """

    first: float = 1.0
    longest: float = 300.0
    longest_retry_after: float = 3_600.0  # a receiver that asks for more is tried after this
    age: float = 3 * 86_400.0
    attempts: int | None = None

    def delay(self, attempts: int, jitter: float, retry_after: float | None = None) -> float:
        """Return the seconds until the next attempt after so many; `jitter` is a random number from 0 to 1.

        >>> RetryPolicy().delay(4, 0.5), RetryPolicy().delay(40, 1.0), RetryPolicy().delay(1, 0.5, 20)
        (4.0, 300.0, 20)
        """
        bound = min(self.longest, self.first * 2.0 ** min(attempts - 1, 60))
        return max(jitter * bound, min(retry_after or 0.0, self.longest_retry_after))

    def limited(self, attempts: int | None, age: float | None) -> RetryPolicy:
        """Return the policy with other attempts and another age, where they are given."""
        return self._replace(
            attempts=self.attempts if attempts is None else attempts, age=self.age if age is None else age
        )

    def is_over(self, attempts: int, seconds: float) -> bool:
        """Return True if an event is given up after so many attempts, `seconds` after the first."""
        return seconds >= self.age or (self.attempts is not None and attempts >= self.attempts)


DEFAULT_POLICY = RetryPolicy()


def retry_after_seconds(value: str | None, now: float) -> float | None:
    """Return the seconds that a Retry-After header asks for, given the time in seconds since 1970; None if none.

    >>> retry_after_seconds("120", 0), retry_after_seconds("Thu, 01 Jan 1970 00:01:00 GMT", 10)
    (120.0, 50.0)
    >>> retry_after_seconds("soon", 0) is None
    True
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        at = parsedate_to_datetime(text)
        return max(0.0, (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now)
    except (ValueError, OverflowError):
        return None
