"""Limits in time: requests per second of a principal, and streams that are open at once.

`now` is a monotonic clock in seconds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from contrada.service.problems import TOO_MANY_CONNECTIONS, TOO_MANY_REQUESTS, UNAVAILABLE

PRUNE_AT = 10_000  # least number of buckets at which full ones are forgotten
CLOCK_STEP = 1.0  # seconds; after a larger step back of the clock, buckets are full
ROUNDING = 1e-6  # seconds; sums of intervals are rounded, by more the longer the clock has run
RETRY_CONNECTION = 5.0  # seconds; a guess, since the end of other streams cannot be foreseen


class Rates:
    """A token bucket per principal: `rate` requests per second, and `burst` at once after a pause.

    A bucket is one number, the time at which it will be full again (the generic cell rate algorithm). Full buckets are
    forgotten, so memory is bounded by the principals of the last `burst / rate` seconds. A rate of None is no limit.

    >>> rates = Rates(rate=2.0, burst=2)
    >>> rates.take("ann", now=0.0), rates.take("ann", now=0.0), rates.take("bob", now=0.0)
    (None, None, None)
    >>> rates.take("ann", now=0.1)
    Traceback (most recent call last):
    contrada.service.problems.Problem: Too many requests: at most 2 requests per second; try again in 0.4 s
    """

    def __init__(self, rate: float | None, burst: int | None = None, prune_at: int = PRUNE_AT) -> None:
        self.rate = rate
        self.burst = max(1, math.ceil(rate or 1)) if burst is None else burst
        self._full_at: dict[Hashable, float] = {}
        self._prune_at = self._least_pruned = prune_at

    def __len__(self) -> int:
        """Return the number of buckets that are kept."""
        return len(self._full_at)

    def take(self, principal: Hashable, now: float) -> None:
        """Count a request; raise a Problem (429) with `retry_after` if the principal made too many.

        A refused request does not count.
        """
        if self.rate is None:
            return
        interval, depth = 1 / self.rate, self.burst / self.rate
        full_at = max(now, self._full_at.get(principal, now))
        if full_at > now + depth + CLOCK_STEP:  # later than any request can make it: the clock went back
            full_at = now
        wait = full_at + interval - depth - now
        if wait > ROUNDING:
            detail = f"at most {self.rate:g} requests per second; try again in {wait:.2g} s"
            raise TOO_MANY_REQUESTS(detail, retry_after=wait)
        self._full_at[principal] = full_at + interval
        if len(self._full_at) > self._prune_at:
            self._full_at = {key: full for key, full in self._full_at.items() if full > now}
            self._prune_at = max(self._least_pruned, 2 * len(self._full_at))


class OpenConnections:
    """Counts open streams, per tenant and in total.

    >>> connections = OpenConnections(most=10, most_per_tenant=1)
    >>> with connections.hold("acme"):
    ...     connections.total, connections.of("acme")
    (1, 1)
    >>> connections.total
    0
    """

    def __init__(self, most: int, most_per_tenant: int) -> None:
        self._most, self._most_per_tenant = most, most_per_tenant
        self._counts: Counter[str] = Counter()
        self.total = 0

    def of(self, tenant: str) -> int:
        """Return the number of open streams of a tenant."""
        return self._counts[tenant]

    @contextmanager
    def hold(self, tenant: str) -> Iterator[None]:
        """Count a stream while the block runs; raise a Problem at the limit (429 of the tenant, 503 of the server)."""
        if self._counts[tenant] >= self._most_per_tenant:
            detail = f"the tenant has {self._most_per_tenant:,} open streams, the most that are allowed"
            raise TOO_MANY_CONNECTIONS(detail, retry_after=RETRY_CONNECTION)
        if self.total >= self._most:
            detail = f"the server has {self._most:,} open streams, the most that it takes"
            raise UNAVAILABLE(detail, retry_after=RETRY_CONNECTION)
        self.total += 1
        self._counts[tenant] += 1
        try:
            yield
        finally:
            self.total -= 1
            self._counts[tenant] -= 1
            if not self._counts[tenant]:
                del self._counts[tenant]
