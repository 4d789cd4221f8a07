"""Complaints for people, each kind at most once in a while: hostile peers must not fill a log."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

EVERY = 10.0  # seconds between two complaints of a kind
MOST_KINDS = 256  # that are told apart; all others are of one kind


class Complaints:
    """A function that shows complaints: the first of a kind, then one in `EVERY` seconds with a count of the others.

    Complaints that differ in numbers alone, such as ports, are of one kind.

    >>> shown, now = [], [0.0]
    >>> complain = Complaints(shown.append, lambda: now[0])
    >>> for port in (7001, 7002, 7003):
    ...     complain(f"dropped 127.0.0.1:{port}: it was silent")
    >>> now[0] = 11.0
    >>> complain("dropped 127.0.0.1:7004: it was silent")
    >>> shown  # doctest: -NORMALIZE_WHITESPACE
    ['dropped 127.0.0.1:7001: it was silent', 'dropped 127.0.0.1:7004: it was silent (and 2 more like it)']
    """

    def __init__(self, show: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._show, self._clock = show, clock
        self._shown: dict[str, float] = {}  # when one of a kind was shown last
        self._held: dict[str, tuple[int, str]] = {}  # how many of a kind were not shown since, and the last of these

    def __call__(self, text: str) -> None:
        """Show a complaint, or count it."""
        kind, now = re.sub(r"\d+", "0", text), self._clock()
        if kind not in self._shown and len(self._shown) >= MOST_KINDS:
            self._forget(now)
            kind = kind if len(self._shown) < MOST_KINDS else ""
        if now - self._shown.get(kind, -EVERY) < EVERY:
            count, _ = self._held.get(kind, (0, ""))
            self._held[kind] = count + 1, text
            return
        self._shown[kind] = now
        count, _ = self._held.pop(kind, (0, ""))
        self._show(f"{text} (and {count:,} more like it)" if count else text)

    def close(self) -> None:
        """Show the last complaint of each kind that was held back."""
        for count, text in self._held.values():
            self._show(f"{text} (and {count - 1:,} more like it)" if count > 1 else text)
        self._held.clear()

    def _forget(self, now: float) -> None:
        """Forget kinds that were not heard of for long."""
        for kind in [kind for kind, shown in self._shown.items() if now - shown >= EVERY and kind not in self._held]:
            del self._shown[kind]
