"""Clocks: a time that goes on when the clock of the machine is set back."""

from __future__ import annotations

import time
from collections.abc import Callable


class SteadyClock:
    """Seconds since 1970 that never fall and never stand still.

    They follow the wall clock where it is ahead. After it was set back they go on as fast as time passes, so that ages
    and the lives of tokens and subscriptions are neither cut short nor drawn out.

    >>> wall, passed = [1000.0], [0.0]
    >>> clock = SteadyClock(lambda: wall[0], lambda: passed[0])
    >>> clock(), wall.__setitem__(0, 400.0), passed.__setitem__(0, 2.0), clock()
    (1000.0, None, None, 1002.0)
    """

    def __init__(self, wall: Callable[[], float] = time.time, passed: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._passed = wall, passed
        self._last = wall(), passed()  # replaced as one: several threads may ask

    def __call__(self) -> float:
        """Return the time."""
        now, at = self._last
        passed = self._passed()
        found = max(self._wall(), now + passed - at)
        self._last = found, passed
        return found
